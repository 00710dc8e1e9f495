//! What is so just now, beside what is stored.

use longhaul_measure::model::TargetName;
use longhaul_store::RoundCounts;

use crate::status::SignalStatus;

/// What is so just now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Now {
    /// The wall clock, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// Each configured target.
    pub targets: Vec<TargetNow>,
    /// How the rounds of the schedule ended so far; `None`: not known yet.
    pub rounds: Option<RoundCounts>,
    /// How it stands with what is exported.
    pub signals: Vec<SignalStatus>,
}

/// A target just now.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetNow {
    /// Its name.
    pub name: TargetName,
    /// For how long a call on it has not returned, in seconds; 0: none is stuck.
    pub stuck_seconds: f64,
    /// Bytes read and written on it in the last 24 hours.
    pub bytes_per_day: u64,
    /// How many are allowed; `None`: no limit.
    pub bytes_allowed: Option<u64>,
}
