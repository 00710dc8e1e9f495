//! Plain data, spelled with the words of the design: targets, protocols, operations, runs.
//!
//! Nothing here reads a clock, a file or the network, and every enum is closed: the world fixed these sets, so
//! a new member is a compiler error in each place that has to know it.

mod call;
mod conditions;
mod endpoint;
mod event;
mod operation;
mod protocol;
mod round;
mod run;
mod sample;
mod step;
mod surroundings;
mod target;
mod wire;

pub use call::{Call, Kept, decode_calls, encode_calls};
pub use conditions::{Conditions, Power};
pub use endpoint::{Endpoint, MOST_ENDPOINTS, Presence, Times};
pub use event::Event;
pub use operation::Operation;
pub use protocol::{Family, Mount, Negotiated, OWN_PREFIX, Protocol};
pub use round::RoundStatus;
pub use run::{
    CacheState, ColdBy, Failure, Figure, OperationStats, Outcome, Phase, Progress, Run, Scale, SyncKind, Unit,
};
pub use sample::{
    Counters, Covers, LONG_WAIT_NS, ProbeKind, ProbePlan, Probed, Probing, Reading, Sampled, Source, Touch,
    Traffic, Unread, Waited,
};
pub use step::{Beside, LOST_NS, MachineStep, ProbeStep, Stall, Step, TrafficStep};
pub use surroundings::{Link, LinkKind, Surroundings};
pub use target::{Role, Target, TargetName, TargetNameError};
pub use wire::{COLD_SHARE, ServedFrom, Wire};
