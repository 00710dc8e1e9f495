//! One workload on one target, once: what came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Call, Conditions, Operation, Protocol, TargetName, Wire};
use crate::stats::Histogram;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Everything was done and verified.
    Ok,
    /// An operation failed, or what was read was not what had been written.
    Error,
    /// The cap was reached; the figures are censored there.
    Hung,
    /// The target was not there, or not in a state to be measured, before anything was timed.
    Unavailable,
    /// The run says nothing: the machine slept, the person stopped it, or the worker died.
    Void,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 5] = [Self::Ok, Self::Error, Self::Hung, Self::Unavailable, Self::Void];

    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Hung => "hung",
            Self::Unavailable => "unavailable",
            Self::Void => "void",
        }
    }

    /// The outcome with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Whether the target failed: it counts against the target, unlike `unavailable` and `void`.
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

/// How large a corpus is and how long a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// For a first look: minutes in all.
    Quick,
    /// The parameters of the reference workloads.
    Standard,
    /// For large collections: 100,000 files.
    Large,
}

impl Scale {
    /// Every scale.
    pub const ALL: [Scale; 3] = [Self::Quick, Self::Standard, Self::Large];

    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Large => "large",
        }
    }

    /// The scale with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scale| scale.name() == name)
    }
}

/// Whether a phase met caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// Made cold; [`ColdBy`] says how far to believe it.
    Cold,
    /// Done again at once.
    Warm,
    /// The phase writes, or the word does not apply.
    None,
}

impl CacheState {
    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::None => "none",
        }
    }

    /// The state with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Cold, Self::Warm, Self::None].into_iter().find(|state| state.name() == name)
    }
}

/// How a cold phase was made cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ColdBy {
    /// The file data was evicted from this machine's page cache, and the kernel confirmed it.
    Evicted,
    /// The slice had not been touched for at least 24 hours.
    RotatedSlice,
    /// Asked for, but nothing confirms it: the figures may contain cached data.
    Unverified,
}

impl ColdBy {
    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evicted => "evicted",
            Self::RotatedSlice => "rotated-slice",
            Self::Unverified => "unverified",
        }
    }

    /// The way with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Evicted, Self::RotatedSlice, Self::Unverified].into_iter().find(|way| way.name() == name)
    }
}

/// How writes were made durable. The latencies of two kinds are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncKind {
    /// The drive was told to write its cache (`F_FULLFSYNC`).
    FullFsync,
    /// `fsync`.
    Fsync,
}

impl SyncKind {
    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FullFsync => "full-fsync",
            Self::Fsync => "fsync",
        }
    }
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum Unit {
    /// Seconds; less is better.
    #[serde(rename = "s")]
    Seconds,
    /// Bytes a second; more is better.
    #[serde(rename = "B/s")]
    BytesPerSecond,
    /// Things a second; more is better.
    #[serde(rename = "1/s")]
    PerSecond,
    /// A count.
    #[serde(rename = "1")]
    Count,
    /// A share between 0 and 1.
    #[serde(rename = "share")]
    Share,
}

impl Unit {
    /// The symbol that is stored and shown.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::BytesPerSecond => "B/s",
            Self::PerSecond => "1/s",
            Self::Count => "1",
            Self::Share => "share",
        }
    }

    /// The unit with this stored symbol.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        [Self::Seconds, Self::BytesPerSecond, Self::PerSecond, Self::Count, Self::Share]
            .into_iter()
            .find(|unit| unit.symbol() == symbol)
    }
}

/// One number that answers a question about a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Figure {
    /// What it is, unique within its phase.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// The number.
    pub value: f64,
}

impl Figure {
    /// A figure.
    pub fn new(name: &str, unit: Unit, value: f64) -> Self {
        Self { name: name.to_owned(), unit, value }
    }
}

/// All calls of one kind in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationStats {
    /// The kind of call.
    pub operation: Operation,
    /// How long each took, failed ones included.
    pub latency: Histogram,
    /// How many failed.
    pub errors: u64,
}

/// A named part of a run, with its own figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// `open-folder`, `walk`, `copy`, ...
    pub name: String,
    /// Whether it met caches.
    pub cache: CacheState,
    /// How it was made cold; `None` unless `cache` is cold.
    pub cold_by: Option<ColdBy>,
    /// Wall clock at its begin, in microseconds since 1970 UTC: a label, not a measurement; `None`: it was not kept.
    #[serde(default)]
    pub began_us: Option<i64>,
    /// Wall time of the phase, in seconds of the monotonic clock.
    pub seconds: f64,
    /// Bytes that read calls returned.
    pub bytes_read: u64,
    /// Bytes that write calls accepted.
    pub bytes_written: u64,
    /// Whether it ran to its end. A phase cut short has operations, but no figures.
    pub complete: bool,
    /// What it found.
    pub figures: Vec<Figure>,
    /// Its calls by kind.
    pub operations: Vec<OperationStats>,
    /// Some of its calls, one by one; empty where none was kept.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// What crossed the wire meanwhile; `None` where nothing counts it.
    #[serde(default)]
    pub wire: Option<Wire>,
}

/// What went wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// The call that failed or hung; `None` where it was not one call.
    pub operation: Option<Operation>,
    /// The path it was about, relative to the target.
    pub path: Option<String>,
    /// The name of the system's error, `ENOSPC`.
    pub error: Option<String>,
    /// What happened, what it means and what to do, for a person.
    pub message: String,
}

impl Failure {
    /// The name of the system error by which privacy settings refuse.
    pub const BLOCKED: &str = "EPERM";

    /// Tells a refusal by the system's privacy settings, given the outcome of the run. Other failures with that error are
    /// errors of the run.
    pub fn is_blocked(&self, outcome: Outcome) -> bool {
        outcome == Outcome::Unavailable && self.error.as_deref() == Some(Self::BLOCKED)
    }
}

/// One workload on one target, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which randomised block it belongs to, counted in the database.
    pub round: i64,
    /// Its place in the round, from 0.
    pub slot: u32,
    /// The target.
    pub target: TargetName,
    /// How the target was reached; `None` if that could not be told.
    pub protocol: Option<Protocol>,
    /// The workload's name in the table.
    pub workload: String,
    /// The corpus size.
    pub scale: Scale,
    /// How it ended.
    pub outcome: Outcome,
    /// Wall clock at its begin, in microseconds since 1970 UTC: a label, not a measurement.
    pub started_us: i64,
    /// Offset of local time from UTC at its begin, in seconds.
    pub utc_offset_seconds: i32,
    /// Monotonic seconds from the first to the last phase; for a hung run the cap.
    pub seconds: f64,
    /// Its phases, in order.
    pub phases: Vec<Phase>,
    /// Why it is not `ok`.
    pub failure: Option<Failure>,
    /// Facts that the workload found on its way, such as which sync was used or which metadata survived.
    pub facts: BTreeMap<String, String>,
    /// What else was true.
    pub conditions: Conditions,
}

impl Run {
    /// The fact that says which slice of a heavy classic a run did.
    pub const SLICE: &str = "slice";

    /// Whether it did one slice of a heavy classic: its figures are not those of all of it.
    pub fn did_a_slice(&self) -> bool {
        self.facts.contains_key(Self::SLICE)
    }
}

/// How far a preparation has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// What is being made.
    pub what: String,
    /// Files done.
    pub files: u64,
    /// Files in all.
    pub files_total: u64,
    /// Bytes done.
    pub bytes: u64,
    /// Bytes in all, as far as known.
    pub bytes_total: u64,
}
