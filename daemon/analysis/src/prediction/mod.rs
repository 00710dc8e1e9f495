//! Predicts how long a task would take over another network or with another disk in the NAS
//! (docs/methodology.md#prediction).
//!
//! A task's time is modelled as client + round trips x round-trip time + bytes / bandwidth + disk requests x disk time,
//! and fitted to the runs of a target, each with the network and disk that were measured in its round.

mod conditions;
mod least_squares;
mod model;
mod runs;
mod values;
mod what_if;

/// Newest rounds to which a prediction is fitted by default.
pub const FITTED_ROUNDS: u32 = 200;

pub use conditions::{Dimension, NetworkAndDisk, NoPrediction, TimedRun};
pub use model::{FittedRuns, Model, Prediction};
pub use runs::{TargetMetric, TimedRuns, timed_runs};
pub use values::{parse_bandwidth, parse_disk, parse_round_trip};
pub use what_if::{Answer, AssumedChange, what_if};
