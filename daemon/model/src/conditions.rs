//! State of the machine and the target during a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// State of the machine and the target during a run. These values explain and stratify results; except for the
/// round-trip time, they never enter a comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Conditions {
    /// Name and version of the operating system.
    pub system: Option<String>,
    /// One-minute load average at the start of the run.
    pub load_average: Option<f64>,
    /// Number of logical processors.
    pub processors: Option<u32>,
    /// Available memory at the start of the run, in bytes.
    pub memory_available: Option<u64>,
    /// Power source of the machine.
    pub power: Option<Power>,
    /// I/O policy of the worker: `default` or `throttled`.
    pub io_policy: Option<String>,
    /// Free space on the target at the start of the run or of its preparation, in bytes.
    pub free_bytes: Option<u64>,
    /// Total size of the target's file system, in bytes.
    #[serde(default)]
    pub total_bytes: Option<u64>,
    /// Time that the measurement itself adds to one operation, in nanoseconds. The worker measures it just
    /// before the run.
    pub timing_overhead_ns: Option<f64>,
    /// Peak resident memory of the worker so far, in bytes.
    pub worker_peak_bytes: Option<u64>,
    /// Seconds that the machine slept during the run. More than one second makes the run void.
    pub slept_seconds: Option<f64>,
    /// True if idle sleep of the machine was prevented during the round. longhaul does not try this on
    /// battery, nor on Linux, whose desktops do not sleep on mains power by default.
    #[serde(default)]
    pub kept_awake: bool,
    /// Round-trip time of the network to the target's server just before the run, in microseconds; `None` if it was
    /// not measured, and for local file systems. It was known before the run, so a verdict may be adjusted for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u64>,
    /// Rate in bytes per second at which the network took data just before the run; `None` if it was faster than could be
    /// measured, or was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_rate: Option<u64>,
    /// Negotiated options of the mount.
    pub negotiated: BTreeMap<String, String>,
}

/// Power source of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// Mains power.
    Mains,
    /// Battery power.
    Battery,
}
