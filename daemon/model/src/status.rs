//! The status of the service as plain data, returned from memory without waiting.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::stored::RoundCounts;
use super::{Progress, Role, RoundStatus, Stall, TargetName, Timestamp};

pub use super::fleet_export_status::FleetExportStatus;
pub use super::notification::status::{ChannelStatus, HeartbeatStatus, NotifyStatus};

/// Everything that `longhaul status` shows. New keys may be added; existing keys are never removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Version of this schema: 1.
    pub schema: u32,
    /// Version of the service.
    pub version: String,
    /// Process id of the service.
    pub pid: u32,
    /// Wall-clock time at which the service started, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub started_us: Timestamp,
    /// Wall-clock time of this status, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub now_us: Timestamp,
    /// Current state of the service.
    pub state: State,
    /// True during a pause, also while a round runs that the user started. Missing without a pause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_paused: bool,
    /// Current problems that the user should know, sorted by code.
    pub problems: Vec<Problem>,
    /// Status of each target.
    pub targets: Vec<TargetStatus>,
    /// Ongoing stalls: targets that keep an operation waiting right now.
    #[serde(default)]
    pub stalls: Vec<Stall>,
    /// Number of scheduled rounds by status, since the database was created.
    pub rounds: RoundCounts,
    /// The last round, run or skipped. `None`: there was no round yet.
    pub last_round: Option<LastRound>,
    /// Start of the next round, in microseconds since 1970 UTC. `None`: no round is planned.
    #[schema(value_type = Option<i64>)]
    pub next_round_us: Option<Timestamp>,
    /// Number of corpus slices that take turns.
    pub slices: u64,
    /// For the design `weeks`: this week's target, and a note on the design's limits.
    /// `None` for the design `rounds`.
    pub design: Option<String>,
    /// Path and size of the database.
    pub database: DatabaseStatus,
    /// Path of the configuration file in use. `None`: there is none.
    #[schema(value_type = Option<String>)]
    pub config: Option<PathBuf>,
    /// Current log level: `error`, `warn`, `info`, `debug` or `trace`.
    pub log_level: String,
    /// State of the OpenTelemetry export.
    #[serde(default)]
    pub telemetry: ExportStatus,
    /// State of the notifications. Missing if none are configured.
    #[serde(default, skip_serializing_if = "NotifyStatus::is_empty")]
    pub notify: NotifyStatus,
    /// State of the exports into the collection of many machines. Missing if none is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet_export: Option<FleetExportStatus>,
}

impl Status {
    /// Returns the status of a service that started at `now`, waits, and has no targets. `version` is empty, and `pid` and
    /// `slices` are 0, until the caller sets them.
    pub fn new(database: DatabaseStatus, now: Timestamp) -> Self {
        Self {
            schema: 1,
            version: String::new(),
            pid: 0,
            started_us: now,
            now_us: now,
            state: State::Waiting,
            is_paused: false,
            problems: vec![],
            targets: vec![],
            stalls: vec![],
            rounds: RoundCounts::default(),
            last_round: None,
            next_round_us: None,
            slices: 0,
            design: None,
            database,
            config: None,
            log_level: "info".to_owned(),
            telemetry: ExportStatus::default(),
            notify: NotifyStatus::default(),
            fleet_export: None,
        }
    }
}

/// The state of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum State {
    /// A round is running.
    Measuring,
    /// The service waits for the next round.
    Waiting,
    /// The user paused the rounds.
    Paused {
        /// End of the pause, in microseconds since 1970 UTC. `None`: until the user resumes.
        #[schema(value_type = Option<i64>)]
        until_us: Option<Timestamp>,
    },
    /// The service crashed repeatedly and runs no rounds until `longhaul resume`.
    SafeMode,
    /// No target is configured.
    Idle,
    /// The service is stopping.
    Stopping,
}

/// A problem that the user should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Code of the problem, such as `not-stored`.
    pub code: String,
    /// Message for users: the problem, its meaning and the next step.
    pub text: String,
    /// Time since which the problem exists, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub since_us: Timestamp,
}

/// A round that has ended, or was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastRound {
    /// Number of the round.
    pub number: i64,
    /// Outcome of the round.
    pub status: RoundStatus,
    /// Reason for the outcome. `None` if the outcome is ok.
    pub reason: Option<String>,
    /// End of the round, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub ended_us: Timestamp,
}

/// The status of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TargetStatus {
    /// Name of the target.
    pub name: TargetName,
    /// Path of the target. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Role of the target: share or baseline.
    pub role: Role,
    /// Protocol of the target according to the mount table. `None`: unknown.
    pub protocol: Option<String>,
    /// Current state of the target.
    pub state: TargetState,
    /// Number of runs in the target's last round, without void ones, and number of those that were ok. `None`: there was no run yet.
    pub last_runs: Option<(u32, u32)>,
    /// Tasks that failed in the target's last round although another one was ok.
    #[serde(default)]
    pub failed_tasks: Vec<FailedTask>,
    /// Bytes read and written on the target in the last 24 hours.
    pub bytes_last_24h: u64,
    /// Limit for the bytes read and written in 24 hours. `None`: no limit.
    pub bytes_limit: Option<u64>,
    /// State of the target's latency probe.
    #[serde(default)]
    pub probe: ProbeState,
}

/// A task that failed in the last round of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedTask {
    /// Name of the task.
    pub task: String,
    /// The failure and the next step, for users.
    pub reason: String,
}

/// The state of the latency probe of a target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum ProbeState {
    /// The probe is disabled.
    #[default]
    Off,
    /// The probe sends requests.
    Active,
    /// The probe sends requests during runs only, and otherwise waits until a user uses the target.
    Waiting,
    /// The probe cannot run.
    Failed {
        /// Message for users: the problem, its meaning and the next step.
        reason: String,
    },
}

/// The state of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum TargetState {
    /// A run is in progress on the target.
    Measuring {
        /// Name of the workload, or `preparation`.
        workload: String,
    },
    /// The target waits for its next run.
    Waiting {
        /// Description of the awaited event, such as "the next round".
        reason: String,
        /// Expected end of the wait, in microseconds since 1970 UTC. `None`: unknown.
        #[schema(value_type = Option<i64>)]
        until_us: Option<Timestamp>,
    },
    /// An operation on the target does not return.
    Hung {
        /// The operation, such as `read`. `None`: unknown.
        operation: Option<String>,
        /// Start of the operation, in microseconds since 1970 UTC.
        #[schema(value_type = i64)]
        since_us: Timestamp,
    },
    /// The target cannot be used.
    Unavailable {
        /// Reason and next step, for users.
        reason: String,
        /// True if it cannot be used now, for example because its share is not mounted; false if all failed in its last round.
        #[serde(default)]
        is_now: bool,
    },
    /// The system's privacy settings or file permissions refuse access to the target.
    Blocked {
        /// Reason and next step, for users.
        reason: String,
    },
}

/// Path and size of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DatabaseStatus {
    /// Path of the database file.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// Size of the database and its write-ahead log, in bytes. `None`: unknown.
    pub bytes: Option<u64>,
}

/// The round in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveStatus {
    /// Number of the round.
    pub round: i64,
    /// Number of completed runs, and total number of runs in the round.
    pub runs: (u32, u32),
    /// The run in progress. `None`: no run has started yet, or the last one has just ended.
    pub run: Option<LiveRunStatus>,
}

/// The run or preparation in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveRunStatus {
    /// Name of the target.
    pub target: TargetName,
    /// Name of the workload. `None` during a preparation.
    pub workload: Option<String>,
    /// Name of the current phase. `None`: no phase has started yet.
    pub phase: Option<String>,
    /// Progress of the preparation. `None` during a run.
    pub progress: Option<Progress>,
    /// Time since the run or preparation started, in seconds.
    pub seconds: f64,
    /// The operation in flight for longest, and its age in seconds. `None`: no operation is in flight.
    pub in_flight: Option<(String, f64)>,
    /// Statistics of each operation since the phase started.
    pub operations: Vec<LiveOperation>,
    /// Bytes read since the phase started.
    pub bytes_read: u64,
    /// Bytes written since the phase started.
    pub bytes_written: u64,
}

/// Statistics of one kind of operation in the phase in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveOperation {
    /// Name of the operation, such as `read`.
    pub operation: String,
    /// Number of calls that have returned.
    pub count: u64,
    /// Number of calls that have failed.
    pub errors: u64,
    /// Returned calls a second since the phase started.
    pub per_second: Option<f64>,
    /// Median latency in microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile of the latency in microseconds. `None` for fewer than 100 calls.
    pub p99_us: Option<f64>,
    /// Longest latency in microseconds.
    pub max_us: Option<f64>,
}

/// Status of the telemetry export.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ExportStatus {
    /// Status of each exported signal.
    pub signals: Vec<SignalStatus>,
    /// Reason why nothing can be sent at all. `None`: no problem.
    pub problem: Option<String>,
}

/// Status of one signal. Its items are rounds, or five-minute steps for samples.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SignalStatus {
    /// Name of the signal: `traces`, `metrics` or `samples`.
    pub name: String,
    /// Address of the collector for this signal, without its query.
    pub endpoint: String,
    /// Number of items that are waiting to be sent.
    pub pending: u64,
    /// Number of items that the collector accepted.
    pub sent: u64,
    /// Number of items that the collector rejected completely or partly.
    pub rejected: u64,
    /// Number of items that were given up because they were too old.
    pub expired: u64,
    /// Time of the last accepted item, in microseconds since 1970 UTC. `None`: no item was accepted yet.
    #[schema(value_type = Option<i64>)]
    pub last_sent_us: Option<Timestamp>,
    /// The latest rejected item and the reason, or the reason why the current state is rejected. `None`: nothing was rejected.
    pub last_rejection: Option<String>,
    /// Reason why the latest attempt failed. `None`: it succeeded, or there was none.
    pub last_failure: Option<String>,
    /// Time of the next attempt after a failure, in microseconds since 1970 UTC. `None`: no retry is scheduled.
    #[schema(value_type = Option<i64>)]
    pub next_try_us: Option<Timestamp>,
}

/// One check of `longhaul doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// Name of the checked thing, such as `database`.
    pub name: String,
    /// Verdict of the check.
    pub status: CheckStatus,
    /// Result of the check, for users.
    pub message: String,
    /// Next step for the user. `None`: nothing to do.
    pub fix: Option<String>,
}

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CheckVerdict)]
pub enum CheckStatus {
    /// The checked thing works as it should.
    Ok,
    /// Measuring works, but something could be better.
    Warning,
    /// Measuring does not work.
    Failed,
    /// The check could not be made.
    Unknown,
}

impl Check {
    /// Creates a check that is ok.
    pub fn ok(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), status: CheckStatus::Ok, message: message.into(), fix: None }
    }

    /// Creates a check that found a problem, with the next step for the user.
    pub fn problem(
        name: impl Into<String>,
        status: CheckStatus,
        message: impl Into<String>,
        fix: &str,
    ) -> Self {
        Self { name: name.into(), status, message: message.into(), fix: Some(fix.to_owned()) }
    }
}
