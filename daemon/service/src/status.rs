//! What the service says of itself: plain data, answered from memory.

use std::path::PathBuf;

use longhaul_measure::model::{Progress, Role, Stall, TargetName};
use longhaul_store::{RoundCounts, RoundStatus};
use longhaul_telemetry::status::ExportStatus;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Everything that `longhaul status` shows. Keys are added freely and never taken away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The form of this value: 1.
    pub schema: u32,
    /// The version of the service.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Wall clock at its start, in microseconds since 1970 UTC.
    pub started_us: i64,
    /// Wall clock at this answer.
    pub now_us: i64,
    /// What it is doing.
    pub state: State,
    /// What the person should know of, worst first.
    pub problems: Vec<Problem>,
    /// Each target.
    pub targets: Vec<TargetStatus>,
    /// The targets that keep somebody waiting just now.
    #[serde(default)]
    pub stalls: Vec<Stall>,
    /// How scheduled rounds ended, ever since.
    pub rounds: RoundCounts,
    /// The latest round, made or skipped.
    pub last: Option<LastRound>,
    /// When the next round begins, in microseconds since 1970 UTC; `None`: nothing is planned.
    pub next_us: Option<i64>,
    /// Which slices a corpus has.
    pub slices: u64,
    /// What the design expects of the person, and what it cannot tell.
    pub design: Option<String>,
    /// The database.
    pub database: DatabaseStatus,
    /// The configuration file in force; `None`: there is none.
    #[schema(value_type = Option<String>)]
    pub config: Option<PathBuf>,
    /// The log level in force.
    pub log_level: String,
    /// What is exported to an OpenTelemetry collector, and how that goes.
    #[serde(default)]
    pub telemetry: ExportStatus,
}

/// What the service is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum State {
    /// A round goes on.
    Measuring,
    /// It waits for the next round.
    Waiting,
    /// The person paused it.
    Paused {
        /// Until then, in microseconds since 1970 UTC; `None`: until they resume it.
        until_us: Option<i64>,
    },
    /// It crashed again and again, and makes no rounds until the person says `resume`.
    SafeMode,
    /// No target is configured.
    Idle,
    /// It is about to end.
    Stopping,
}

/// Something that the person should know of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// One word.
    pub word: String,
    /// What happened, what it means, what to do.
    pub text: String,
    /// Since when, in microseconds since 1970 UTC.
    pub since_us: i64,
}

/// A round that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastRound {
    /// Its number.
    pub number: i64,
    /// How it ended.
    pub status: RoundStatus,
    /// Why, unless it is ok.
    pub reason: Option<String>,
    /// When, in microseconds since 1970 UTC.
    pub ended_us: i64,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TargetStatus {
    /// Its name.
    pub name: TargetName,
    /// Its path, with what is not UTF-8 replaced.
    pub path: String,
    /// Whether it is compared.
    pub role: Role,
    /// How it is reached, as the mount table says.
    pub protocol: Option<String>,
    /// What goes on with it.
    pub state: TargetState,
    /// Runs of its latest round: in all, and those that were ok.
    pub last_runs: Option<(u32, u32)>,
    /// Bytes read and written in the last 24 hours.
    pub bytes_per_day: u64,
    /// How many are allowed; `None`: no limit.
    pub bytes_allowed: Option<u64>,
    /// What its light probe does.
    #[serde(default)]
    pub probe: ProbeState,
}

/// What the light probe of a target does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum ProbeState {
    /// It is switched off.
    #[default]
    Off,
    /// It asks.
    Asking,
    /// It asks during runs only, and otherwise waits until somebody uses the target.
    Waiting,
    /// It cannot ask.
    Lame {
        /// What happened, what it means and what to do.
        reason: String,
    },
}

/// What goes on with a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum TargetState {
    /// A run goes on.
    Measuring {
        /// Which workload.
        workload: String,
    },
    /// It waits for something.
    Waiting {
        /// For what.
        reason: String,
        /// Until then, in microseconds since 1970 UTC, if that is known.
        until_us: Option<i64>,
    },
    /// A call does not return.
    Hung {
        /// Which one, if that is known.
        operation: Option<String>,
        /// Since when, in microseconds since 1970 UTC.
        since_us: i64,
    },
    /// It cannot be reached.
    Unavailable {
        /// Why, and what to do.
        reason: String,
    },
    /// The system's privacy settings or its permissions keep us out.
    Blocked {
        /// Why, and what to do.
        reason: String,
    },
}

/// The database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DatabaseStatus {
    /// Its file.
    #[schema(value_type = String)]
    pub path: PathBuf,
    /// What it takes with its log; `None`: it cannot be asked.
    pub bytes: Option<u64>,
}

/// The round in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Live {
    /// The round's number.
    pub round: i64,
    /// Runs that are done, and runs in all.
    pub runs: (u32, u32),
    /// Where it is; `None`: between runs.
    pub task: Option<Task>,
}

/// The run, or the preparation, in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// The target.
    pub target: TargetName,
    /// The workload; `None` while something is prepared.
    pub workload: Option<String>,
    /// The phase.
    pub phase: Option<String>,
    /// How far a preparation has come.
    pub progress: Option<Progress>,
    /// For how long it has gone on, in seconds.
    pub seconds: f64,
    /// The call that has been in flight for longest, and for how long in seconds.
    pub in_flight: Option<(String, f64)>,
    /// What was done since the phase began.
    pub operations: Vec<OperationNow>,
    /// Bytes that were read since the phase began.
    pub bytes_read: u64,
    /// Bytes that were written since the phase began.
    pub bytes_written: u64,
}

/// One kind of call so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OperationNow {
    /// The call.
    pub operation: String,
    /// How many returned.
    pub count: u64,
    /// How many of them failed.
    pub errors: u64,
    /// Returned calls a second since the phase began.
    pub per_second: Option<f64>,
    /// The median, in microseconds.
    pub p50_us: Option<f64>,
    /// The 99th percentile, in microseconds; `None` below 100 calls.
    pub p99_us: Option<f64>,
    /// The longest, in microseconds.
    pub max_us: Option<f64>,
}

/// One thing that `longhaul doctor` looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// What was looked at.
    pub what: String,
    /// How it is.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do about it; `None`: nothing.
    pub fix: Option<String>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CheckVerdict)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It could be better, and measuring works.
    Warning,
    /// Measuring does not work.
    Failed,
    /// It could not be looked at.
    Unknown,
}

impl Check {
    /// Something that is as it should be.
    pub fn ok(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), verdict: Verdict::Ok, found: found.into(), fix: None }
    }

    /// Something else, with what to do about it.
    pub fn bad(what: impl Into<String>, verdict: Verdict, found: impl Into<String>, fix: &str) -> Self {
        Self { what: what.into(), verdict, found: found.into(), fix: Some(fix.to_owned()) }
    }
}
