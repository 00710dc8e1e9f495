//! Sampling of a target: the latency probe, traffic computed from counter readings, and the stall log.
//!
//! [`probe_schedule`] computes the times of the probe's requests, `probe_files` contains the files that they use,
//! and `probe` is the thread that makes them. A worker switches the probe on and off with [`probe_switch`].

mod probe;
mod probe_files;
pub mod probe_schedule;
pub mod probe_switch;
mod request_times;
mod sample_reporter;
mod stall_log;
mod traffic;

pub use probe::Probe;
pub use probe_files::{file_system_changed, owns};
pub use probe_switch::ProbeSwitch;
pub use request_times::PhaseReading;
pub(crate) use request_times::request_times;
pub use sample_reporter::SampleReporter;
pub use stall_log::{PendingCall, StallLog};
pub(crate) use traffic::wire_traffic;
pub use traffic::{MeteredTraffic, Observation, SelfTraffic, TrafficMeter, is_used_by_others};
