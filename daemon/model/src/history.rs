//! The measurement history: all input of the verdicts, in reduced form. The database and an export give the same
//! value.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::time::Timestamp;
use crate::{
    CacheState, ChangeKind, Event, MetricTimes, Outcome, Phase, Role, RoundStatus, Run, Scale, TargetName,
    WireTraffic,
};

/// All data from which verdicts are computed. Targets, epochs, rounds and runs are sorted by their numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// Analysis settings that were fixed before the first run.
    pub settings: AnalysisSettings,
    /// Targets that were measured.
    pub targets: Vec<TargetRecord>,
    /// Epochs of all targets.
    pub epochs: Vec<EpochRecord>,
    /// Rounds, including skipped ones, without those that were planned without a task: for presets, or to read test data back.
    pub rounds: Vec<RoundRecord>,
    /// Runs of all rounds.
    pub runs: Vec<RunRecord>,
    /// Entries of the event log.
    pub events: Vec<Event>,
    /// Counts of changes that were made elsewhere, by day.
    pub freshness: Vec<FreshnessDay>,
    /// The recording that the runs of `your-day` replay; `None` if there is none or it is not known.
    pub recorded_day: Option<RecordedDay>,
}

/// A recording of a user's own programs, as far as figures of its replay need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDay {
    /// Protocol of the mount on which it was recorded; `None` if unknown.
    pub recorded_on: Option<String>,
    /// Duration of the recording; `None` if the trace has no durations.
    pub total: Option<Duration>,
}

/// Changes of one kind that were made elsewhere on one day and looked for through one target. Changes through a target
/// that shares the client with it, and those without a result, are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreshnessDay {
    /// Target through which the changes were looked for.
    pub target: TargetName,
    /// Number of the target's epoch.
    pub epoch: i64,
    /// Kind of the changes.
    pub kind: ChangeKind,
    /// Local day of the round, in days since 1970-01-01.
    pub day: i64,
    /// Number of changes.
    pub changes: u64,
    /// Number of changes that were not visible when the check ended.
    pub not_seen: u64,
    /// Number of changes that became visible after more than [`SLOW_CHANGE`].
    pub slow: u64,
    /// Shortest time after which a change that was not visible was given up; `None` if all were visible.
    pub limit: Option<Duration>,
}

/// Time from which a change that became visible counts as slow.
pub const SLOW_CHANGE: Duration = Duration::from_secs(1);

/// Analysis settings. They are fixed before the first run, so that they cannot be chosen after seeing the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnalysisSettings {
    /// Random id of the machine; `None` if unknown.
    pub machine: Option<String>,
    /// IANA name of the time zone, from which the number of hours of a week follows; `None` if unknown.
    pub zone: Option<String>,
    /// Scale of the rounds in the configuration: results at it come first, so that a short run at another scale does not hide
    /// them. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// Ratio from which a difference matters, above 1.
    pub threshold: f64,
    /// Usage profile: how often a week the user does each activity, by metric (`workload/name`). Empty if the
    /// user configured none and too little was counted.
    #[serde(rename = "mix")]
    pub usage_profile: BTreeMap<String, f64>,
    /// Number of days over which the usage profile was counted; `None` if the user configured it, or if it is empty.
    #[serde(rename = "counted_days", default, skip_serializing_if = "Option::is_none")]
    pub usage_counted_days: Option<f64>,
}

impl Default for AnalysisSettings {
    /// Returns the settings with a threshold of 10 % (docs/methodology.md#why-10-percent). A user can configure
    /// another threshold before the first run.
    fn default() -> Self {
        Self {
            machine: None,
            zone: None,
            scale: None,
            threshold: 1.1,
            usage_profile: BTreeMap::new(),
            usage_counted_days: None,
        }
    }
}

/// A measured target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Name of the target.
    pub name: TargetName,
    /// Role of the target: share or baseline.
    pub role: Role,
}

/// An epoch: the period in which a target's protocol, options and path stayed the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Number of the epoch.
    pub number: i64,
    /// Target that the epoch belongs to.
    pub target: TargetName,
    /// Start of the epoch's first run.
    pub opened_us: Timestamp,
    /// Protocol of the target, as shown to users; `None` if it could not be detected.
    pub protocol: Option<String>,
}

/// A round, including skipped and void rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// Number of the round.
    pub number: i64,
    /// Start of the round.
    pub started_us: Timestamp,
    /// Offset of local time from UTC at the start, in seconds.
    pub utc_offset_seconds: i32,
    /// Scale of the test data.
    pub scale: Scale,
    /// Status of the round; `None` while the round is running.
    pub status: Option<RoundStatus>,
    /// Reason for the status, for example why the round was skipped; `None` if the status is `ok`.
    pub reason: Option<String>,
}

impl RoundRecord {
    /// Returns the local calendar day on which the round started, in days since 1970-01-01.
    pub fn day(&self) -> i64 {
        self.started_us.local_day(self.utc_offset_seconds)
    }
}

/// The fields of a run that verdicts need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunRecord {
    /// Number of the run.
    pub number: i64,
    /// Number of the round.
    pub round: i64,
    /// Number of the target's epoch.
    pub epoch: i64,
    /// Index of the target in [`History::targets`].
    pub target: usize,
    /// Index of the workload in [`TASKS`](crate::TASKS).
    pub workload: usize,
    /// Scale of the test data.
    pub scale: Scale,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Start of the run.
    pub started: Timestamp,
    /// Duration of the run, in seconds; for a hung run the cap.
    pub seconds: f64,
    /// Times of the workload's metrics.
    pub times: MetricTimes,
    /// Round trip time of the network to the target's server just before the run; `None` if it was not measured.
    pub rtt: Option<Duration>,
}

/// A re-read: a warm phase that reads data which was just read, with the network traffic that it caused.
#[derive(Debug, Clone, PartialEq)]
pub struct Reread {
    /// Target that was read.
    pub target: TargetName,
    /// Number of the target's epoch.
    pub epoch: i64,
    /// Protocol of the target; `None` if unknown.
    pub protocol: Option<String>,
    /// Bytes that the read calls returned.
    pub bytes_read: u64,
    /// Number of files that were opened.
    pub files: u64,
    /// Traffic between this machine and the server during the phase.
    pub wire: WireTraffic,
}

impl Reread {
    /// Builds a re-read from a phase; `None` unless the phase is warm, complete and has counted traffic.
    pub fn from_phase(run: &Run, epoch: i64, phase: &Phase) -> Option<Self> {
        let wire = phase.wire.clone().filter(|_| phase.cache == CacheState::Warm && phase.complete)?;
        let protocol = run.protocol.as_ref().map(ToString::to_string);
        Some(Self {
            target: run.target.clone(),
            epoch,
            protocol,
            bytes_read: phase.bytes_read,
            files: phase.files_opened(),
            wire,
        })
    }
}
