//! Plain data types with the names of the glossary: targets, protocols, operations, runs.
//!
//! Nothing in this module reads a clock, a file or the network. Every enum is closed, because its members are
//! given from outside (protocols, operations): a new member causes a compiler error in each place that must
//! handle it.
//!
//! ```
//! use longhaul_model::Histogram;
//!
//! let mut latency = Histogram::new();
//! for milliseconds in 1..=100 {
//!     latency.record(milliseconds * 1_000_000);
//! }
//! let p95_ns = latency.quantile_ns(0.95).unwrap();
//! assert!((p95_ns / 95e6 - 1.0).abs() < 0.02, "buckets are 1.1 % wide");
//! ```

mod call;
mod checks;
mod conditions;
pub mod design;
pub mod draw;
mod event;
mod fleet_export_status;
mod fnv;
mod hint;
mod histogram;
mod history;
mod machine_snapshot;
mod metric;
mod names;
mod nas;
mod notification;
mod operation;
mod phase;
mod protocol;
mod quantile;
mod request_times;
mod reserve;
mod round;
mod run;
mod sample;
mod scale;
pub mod status;
mod step;
pub mod stored;
mod target;
mod tasks;
pub mod time;
mod usage;
pub mod varint;
mod wire;

pub use call::{Call, KeepReason, decode_calls, encode_calls};
pub use checks::{ChangeKind, FreshnessOutcome, FreshnessSample};
pub use checks::{
    DamagePattern, DataAge, Mismatch, MismatchReread, OtherReread, StoredMismatch, VerifiedData,
    VerifiedTotal,
};
pub use checks::{Finding, KeepResult, Property, ReadBack, TargetFidelity};
pub use conditions::{Conditions, Power};
pub use event::Event;
pub use fnv::fnv;
pub use hint::{Hint, with_causes};
pub use histogram::{BUCKET_COUNT, bucket_of, index_of_slot, midpoint_ns, slot_of, upper_bound_ns};
pub use histogram::{Histogram, HistogramError};
pub use history::{
    AnalysisSettings, EpochRecord, FreshnessDay, History, RecordedDay, Reread, RoundRecord, RunRecord,
    SLOW_CHANGE, TargetRecord,
};
pub use machine_snapshot::{LinkKind, MachineSnapshot, NetworkLink};
pub use metric::{MAX_METRICS, MetricTimes, WaitKind, WaitMetric};
pub use nas::{
    AVERAGE_PERIOD, Counter, DiskBusy, DiskUse, NasDisk, NasFigure, NasProblem, NasProcessors, NasReading,
    NasStart, NasUse, RunNasUse,
};
pub use notification::{
    ComparedPair, DownReason, MeasuringProblem, Notification, NotificationEvent, NotificationKind, Priority,
};
pub use operation::Operation;
pub use phase::{CacheState, ColdMethod, Figure, OperationStats, Phase, Unit};
pub use protocol::{LONGHAUL_KEY_PREFIX, Mount, NegotiatedOptions, Protocol, ProtocolFamily, SHARE_KEYS};
pub use quantile::{MIN_VALUES_FOR_P95, median, quantile, quantile_of_sorted, supports_quantile};
pub use request_times::{CallTotals, MetricSeconds, PhaseTimes, RequestTimes, RequestTotals, TcpCounters};
pub use reserve::FreeSpaceReserve;
pub use round::RoundStatus;
pub use run::{Failure, Outcome, Progress, Run, SyncKind};
pub use sample::{
    CounterReading, CounterScope, CounterSource, CounterUnavailable, Counters, ProbeKind, ProbeMode,
    ProbePlan, ProbePolicy, ProbeSample, SLEPT_NS, SLOW_CALL_NS, SlowCall, Traffic, WorkerSample,
};
pub use scale::Scale;
pub use step::{
    LoadContext, MachineStep, PROBE_TIMEOUT_NS, ProbeStep, Resolution, Stall, TrafficStep, stalled_seconds,
};
pub use target::{Role, Target, TargetName, TargetNameError};
pub use tasks::{
    FOLDER_INDEX, INCREMENTAL_BACKUP, PHOTO_BATCH, STANDARD_TASKS, TASKS, TIME_MACHINE,
    TIME_MACHINE_THROTTLED, Task, YOUR_DAY, all_metrics,
};
pub use time::Timestamp;
pub use usage::profile::{PROFILE_LINES, ProfileLine, SWITCHES_PER_SESSION};
pub use usage::{RequestCounts, RequestKind, UsageStep};
pub use wire::{MAX_COLD_CACHE_SHARE, ServedFrom, WireTraffic};
