//! Results of a run: one workload on one target, once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;
use crate::{Conditions, Operation, Phase, Protocol, Scale, TargetName, Timestamp};

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Outcome {
    /// All operations were completed, and the data was verified.
    Ok,
    /// An operation failed, or the data that was read differed from the data that was written.
    Error,
    /// The run reached its cap; its figures are censored at the cap.
    Hung,
    /// The target was missing or not in a usable state, before anything was timed.
    Unavailable,
    /// The results are not used: the machine slept, the user stopped the run, or the worker died.
    Void,
}

impl Outcome {
    /// Returns whether the outcome counts as a failure of the target. `unavailable` and `void` do not.
    pub const fn is_failure(self) -> bool {
        match self {
            Self::Error | Self::Hung => true,
            Self::Ok | Self::Unavailable | Self::Void => false,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Kind of sync that made writes durable. Latencies of different kinds are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SyncKind {
    /// `F_FULLFSYNC`, which also makes the drive write its own cache.
    FullFsync,
    /// `fsync` on its own.
    Fsync,
}

/// Failure of a run: the error and the place where it occurred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// Kind of call that failed or hung; `None` if the failure was not that of one call.
    pub operation: Option<Operation>,
    /// Path of the failed call, relative to the target.
    pub path: Option<String>,
    /// Name of the system error, such as `ENOSPC`; `None` if the failure was not a system error.
    pub error: Option<String>,
    /// Message for the user: the problem, its meaning and the next step.
    pub message: String,
}

impl Failure {
    /// Name of the system error that occurs if access is refused: on macOS by the privacy settings, on Linux by the server or the file
    /// system.
    pub const BLOCKED: &str = "EPERM";

    /// Returns whether macOS's privacy settings, or on Linux the server or the file system, refused access, given the outcome of the
    /// run. With another outcome the same error is an ordinary failure of the run.
    pub fn is_blocked(&self, outcome: Outcome) -> bool {
        outcome == Outcome::Unavailable && self.error.as_deref() == Some(Self::BLOCKED)
    }
}

/// Run: one workload on one target, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Round that the run belongs to, numbered within the database. A round is one randomized block.
    pub round: i64,
    /// Position of the run in its round, from 0.
    pub slot: u32,
    /// Target of the run.
    pub target: TargetName,
    /// Protocol of the target; `None` if it could not be determined.
    pub protocol: Option<Protocol>,
    /// Name of the workload.
    pub workload: String,
    /// Scale of the corpus.
    pub scale: Scale,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Wall-clock time at the start of the run, in microseconds since 1970 UTC: a label, not a measurement.
    pub started_us: Timestamp,
    /// Offset of local time from UTC at the start of the run, in seconds.
    pub utc_offset_seconds: i32,
    /// Seconds of the monotonic clock from the first to the last phase; for a hung run the cap.
    pub seconds: f64,
    /// Phases of the run, in order.
    pub phases: Vec<Phase>,
    /// Failure that explains an outcome other than `ok`; `None` for an `ok` run.
    pub failure: Option<Failure>,
    /// Facts that the workload recorded, such as which kind of sync was used or which metadata was preserved.
    pub facts: BTreeMap<String, String>,
    /// State of the machine and the target during the run.
    pub conditions: Conditions,
}

impl Run {
    /// Name of the fact that holds the slice of a heavy preset that the run processed.
    pub const SLICE_FACT: &str = "slice";
    /// Name of the fact that holds the recording which the run replayed.
    pub const RECORDING_FACT: &str = "recording";

    /// Returns an `ok` run of the scale `quick` that took no time and has no phases: the first one of its round, where local
    /// time is UTC, on a target whose protocol is unknown.
    pub fn new(round: i64, target: TargetName, workload: impl Into<String>, started: Timestamp) -> Self {
        Self {
            round,
            slot: 0,
            target,
            protocol: None,
            workload: workload.into(),
            scale: Scale::Quick,
            outcome: Outcome::Ok,
            started_us: started,
            utc_offset_seconds: 0,
            seconds: 0.0,
            phases: vec![],
            failure: None,
            facts: BTreeMap::new(),
            conditions: Conditions::default(),
        }
    }

    /// Returns whether the run processed only one slice of a heavy preset. Its figures are not those of the
    /// whole preset.
    pub fn is_partial(&self) -> bool {
        self.facts.contains_key(Self::SLICE_FACT)
    }
}

/// Progress of the preparation of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Name of the corpus that is being prepared.
    pub item: String,
    /// Number of files that are done.
    pub files: u64,
    /// Total number of files.
    pub files_total: u64,
    /// Number of bytes that are done.
    pub bytes: u64,
    /// Total number of bytes, as far as known.
    pub bytes_total: u64,
}

stored_names! { Outcome SyncKind }
