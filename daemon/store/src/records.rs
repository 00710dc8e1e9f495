//! What goes into the store and comes out of it, beside the runs themselves.

use std::path::PathBuf;

use longhaul_measure::model::{
    CacheState, Call, ColdBy, Event, Negotiated, OperationStats, Outcome, Protocol, RoundStatus, Run, Scale,
    Surroundings, Target, TargetName,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One pair of a round's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The target.
    pub target: TargetName,
    /// The workload's name.
    pub workload: String,
}

/// A round that is about to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRound {
    /// Wall clock at its begin, in microseconds since 1970 UTC.
    pub started_us: i64,
    /// Offset of local time from UTC at its begin, in seconds.
    pub utc_offset_seconds: i32,
    /// The seed that its order was drawn from.
    pub seed: u64,
    /// The corpus size.
    pub scale: Scale,
    /// What is to be run, in the order drawn.
    pub planned: Vec<Planned>,
    /// The instant that the schedule meant, in microseconds since 1970 UTC; `None`: a person began it.
    pub scheduled_us: Option<i64>,
    /// The machine just before.
    pub before: Option<Surroundings>,
}

/// How a round ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundEnd {
    /// What came of it.
    pub status: RoundStatus,
    /// Why, unless it is `ok`.
    pub reason: Option<String>,
    /// Wall clock at its end, in microseconds since 1970 UTC.
    pub ended_us: i64,
    /// The machine just after.
    pub after: Option<Surroundings>,
}

/// How many rounds of a schedule ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RoundCounts {
    /// Every run was made.
    pub ok: u64,
    /// They say nothing.
    pub void: u64,
    /// They were stopped.
    pub cut_short: u64,
    /// They were not begun.
    pub skipped: u64,
    /// They have no end: one that goes on, or that a crash left.
    pub open: u64,
}

impl RoundCounts {
    /// All that were planned.
    pub fn planned(&self) -> u64 {
        self.ok + self.void + self.cut_short + self.skipped + self.open
    }

    /// All that were begun.
    pub fn begun(&self) -> u64 {
        self.planned() - self.skipped
    }

    /// Counts one more of this status; `None`: without an end.
    pub fn add(&mut self, status: Option<RoundStatus>, rounds: u64) {
        match status {
            Some(RoundStatus::Ok) => self.ok += rounds,
            Some(RoundStatus::Void) => self.void += rounds,
            Some(RoundStatus::CutShort) => self.cut_short += rounds,
            Some(RoundStatus::Skipped) => self.skipped += rounds,
            None => self.open += rounds,
        }
    }
}

/// A round as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRound {
    /// Its number in this database, from 1.
    pub number: i64,
    /// What was known when it began.
    pub round: NewRound,
    /// How it ended; `None` while it goes on, and after a crash until it is closed.
    pub end: Option<RoundEnd>,
}

/// How much fits on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that were free.
    pub free_bytes: u64,
    /// Its size in bytes, where that was asked too.
    pub total_bytes: Option<u64>,
    /// When, in microseconds since 1970 UTC.
    pub found_us: i64,
}

/// An event as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Its number in this database, from 1.
    pub number: i64,
    /// The event.
    pub event: Event,
}

/// A run as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredRun {
    /// Its number in this database, from 1: what people type.
    pub number: i64,
    /// 32 random hexadecimal digits, unique everywhere: what collectors join on.
    pub trace_id: String,
    /// The epoch of its target that it belongs to.
    pub epoch: i64,
    /// The run, exactly as it was given.
    pub run: Run,
}

/// A target that has at least one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTarget {
    /// The target as it was at its latest run.
    pub target: Target,
    /// Wall clock at its first run, in microseconds since 1970 UTC.
    pub added_us: i64,
    /// Its latest epoch.
    pub epoch: i64,
    /// How many runs are kept of it.
    pub runs: u64,
}

/// A target's life under one fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEpoch {
    /// Its number in this database, from 1.
    pub number: i64,
    /// The target.
    pub target: TargetName,
    /// Wall clock at its first run, in microseconds since 1970 UTC.
    pub opened_us: i64,
    /// The folder that is measured.
    pub path: PathBuf,
    /// How it is reached; `None` where that could not be told.
    pub protocol: Option<Protocol>,
    /// What was negotiated; empty where that could not be told.
    pub negotiated: Negotiated,
}

/// The calls of one kind in one phase of a run, with what tells them apart from others.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredOperation {
    /// The run's number.
    pub run: i64,
    /// Its round.
    pub round: i64,
    /// Its epoch.
    pub epoch: i64,
    /// Its target.
    pub target: TargetName,
    /// How the target was reached; `None` where that could not be told.
    pub protocol: Option<Protocol>,
    /// Its workload's name.
    pub workload: String,
    /// The corpus size.
    pub scale: Scale,
    /// How the run ended.
    pub outcome: Outcome,
    /// When the run began, in microseconds since 1970 UTC.
    pub started_us: i64,
    /// The phase's name.
    pub phase: String,
    /// Whether the phase met caches.
    pub cache: CacheState,
    /// How it was made cold.
    pub cold_by: Option<ColdBy>,
    /// The calls.
    pub stats: OperationStats,
}

/// The single calls that are kept of a phase, with what tells them apart from others.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCalls {
    /// The run's number.
    pub run: i64,
    /// Its target.
    pub target: TargetName,
    /// How the target was reached; `None` where that could not be told.
    pub protocol: Option<Protocol>,
    /// The corpus size.
    pub scale: Scale,
    /// The phase's name.
    pub phase: String,
    /// Whether the phase met caches.
    pub cache: CacheState,
    /// When the phase began, in microseconds since 1970 UTC.
    pub began_us: i64,
    /// The calls.
    pub calls: Vec<Call>,
}

/// Which runs are wanted. The default is all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFilter {
    /// Only of this target.
    pub target: Option<TargetName>,
    /// Only of this workload.
    pub workload: Option<String>,
    /// Only runs that began then or later, in microseconds since 1970 UTC.
    pub since_us: Option<i64>,
    /// At most so many, the latest ones.
    pub limit: Option<u32>,
}
