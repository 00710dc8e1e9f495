//! Everything that a verdict rests on, in its narrow form: from the database or from an export, the same value.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::{Event, Outcome, Role, RoundStatus, Scale, TargetName, Times};

/// Everything that a verdict rests on. Targets, epochs, rounds and runs are in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    /// What was settled before the first run.
    pub premises: Premises,
    /// What was measured.
    pub targets: Vec<KeptTarget>,
    /// Every epoch of every target.
    pub epochs: Vec<KeptEpoch>,
    /// Every round, also those that were skipped.
    pub rounds: Vec<KeptRound>,
    /// Every run.
    pub runs: Vec<KeptRun>,
    /// Every event.
    pub events: Vec<Event>,
}

/// What was settled before the first run, so that nobody can settle it after having seen the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Premises {
    /// The machine's random id; `None` where it is not known.
    pub machine: Option<String>,
    /// The time zone by its IANA name; it says how many hours a week had.
    pub zone: Option<String>,
    /// From which ratio on a difference matters, above 1.
    pub threshold: f64,
    /// How often a week the person does each activity, by endpoint (`workload/name`). Empty: not known.
    pub mix: BTreeMap<String, f64>,
}

impl Default for Premises {
    /// 10 %: "Why 10 %" is in `knowledge/statistics.md`; whoever wants another value sets it before the first run.
    fn default() -> Self {
        Self { machine: None, zone: None, threshold: 1.1, mix: BTreeMap::new() }
    }
}

/// A target that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptTarget {
    /// Its name.
    pub name: TargetName,
    /// Whether it takes part in verdicts.
    pub role: Role,
}

/// A target's life under one fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptEpoch {
    /// Its number.
    pub number: i64,
    /// The target.
    pub target: TargetName,
    /// When its first run began, in microseconds since 1970 UTC.
    pub opened_us: i64,
    /// How the target was reached, as shown to people; `None` where that could not be told.
    pub protocol: Option<String>,
}

/// A round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptRound {
    /// Its number.
    pub number: i64,
    /// When it began, in microseconds since 1970 UTC.
    pub started_us: i64,
    /// Offset of local time from UTC then, in seconds.
    pub utc_offset_seconds: i32,
    /// The corpus size.
    pub scale: Scale,
    /// What came of it; `None` while it goes on.
    pub status: Option<RoundStatus>,
    /// Why, unless it is `ok`.
    pub reason: Option<String>,
}

impl KeptRound {
    /// The local calendar day on which it began, in days since 1970-01-01.
    pub fn day(&self) -> i64 {
        local_day(self.started_us, self.utc_offset_seconds)
    }
}

/// A run, as far as verdicts need it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptRun {
    /// Its number.
    pub number: i64,
    /// Its round.
    pub round: i64,
    /// Its epoch.
    pub epoch: i64,
    /// Its target's place in [`History::targets`].
    pub target: usize,
    /// Its workload's place in [`WORKLOADS`](crate::workloads::WORKLOADS).
    pub workload: usize,
    /// The corpus size.
    pub scale: Scale,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began, in microseconds since 1970 UTC.
    pub started_us: i64,
    /// How long it took, in seconds; for a hung run the cap.
    pub seconds: f64,
    /// The times of its workload's endpoints.
    pub times: Times,
}

/// The local calendar day of an instant, in days since 1970-01-01.
pub fn local_day(at_us: i64, utc_offset_seconds: i32) -> i64 {
    at_us.div_euclid(1_000_000).saturating_add(i64::from(utc_offset_seconds)).div_euclid(86_400)
}
