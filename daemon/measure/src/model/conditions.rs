//! What else was true while a run was made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The surroundings of a run. They explain and stratify; they never enter a comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Conditions {
    /// Operating system with its version.
    pub system: Option<String>,
    /// One-minute load average when the run began.
    pub load_average: Option<f64>,
    /// Logical processors.
    pub processors: Option<u32>,
    /// Bytes of memory not in use when the run began.
    pub memory_available: Option<u64>,
    /// What the machine was running on.
    pub power: Option<Power>,
    /// I/O policy of the worker: `default` or `throttled`.
    pub io_policy: Option<String>,
    /// Free bytes on the target when the run, or its preparation, began.
    pub free_bytes: Option<u64>,
    /// The size of the target in bytes.
    #[serde(default)]
    pub total_bytes: Option<u64>,
    /// What the instrument itself adds to one operation, in nanoseconds: measured by the worker just before the run.
    pub instrument_ns: Option<f64>,
    /// Peak resident memory of the worker so far, in bytes.
    pub worker_peak_bytes: Option<u64>,
    /// Seconds that the machine slept during the run; more than one makes the run void.
    pub slept_seconds: Option<f64>,
    /// What was negotiated on the mount.
    pub negotiated: BTreeMap<String, String>,
}

/// Where the electricity comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// The mains.
    Mains,
    /// A battery.
    Battery,
}
