//! The current state of the service, which is exported but not stored.

use longhaul_model::{TargetName, Timestamp};
use longhaul_store::RoundCounts;

use crate::check_results::CheckResults;
use longhaul_model::status::SignalStatus;

/// The current state of the service.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CurrentState {
    /// Time of the observation.
    pub at: Timestamp,
    /// State of each configured target.
    pub targets: Vec<CurrentTarget>,
    /// Number of scheduled rounds so far by status. `None`: not known yet.
    pub rounds: Option<RoundCounts>,
    /// Status of each exported signal.
    pub signals: Vec<SignalStatus>,
    /// Results of the checks apart from speed.
    pub checks: CheckResults,
}

/// The current state of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentTarget {
    /// Name of the target.
    pub name: TargetName,
    /// Time for which a call on the target has been stuck, in seconds; 0 if no call is stuck.
    pub stuck_seconds: f64,
    /// Bytes read and written on the target in the last 24 hours.
    pub bytes_used: u64,
    /// Maximum number of bytes that may be read and written in 24 hours. `None`: no limit.
    pub bytes_allowed: Option<u64>,
}
