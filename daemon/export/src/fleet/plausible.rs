//! Leaves out records with impossible values: times far in the past or future, negative durations.

use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_model::{History, Timestamp};

/// Start of 2020 in UTC. longhaul did not exist, so an earlier time is that of a wrong clock.
const FIRST_TIME: Timestamp = Timestamp::from_us(1_577_836_800_000_000);
/// Time by which records may be in the future: clocks of clients differ, but not by more.
const TOLERATED_FUTURE: Duration = DAY;

/// Records that were left out of an export, by reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImplausibleRecords {
    /// Records and reason, as text for the user.
    pub reason: String,
    /// Number of records.
    pub records: usize,
}

/// A history without impossible records.
#[derive(Debug, Clone, PartialEq)]
pub struct PlausibleHistory {
    /// The remaining records.
    pub history: History,
    /// Records that were left out.
    pub left_out: Vec<ImplausibleRecords>,
}

/// Returns true if a record can have been made at this time.
pub(super) fn is_plausible(at: Timestamp, now: Timestamp) -> bool {
    at >= FIRST_TIME && at < now + TOLERATED_FUTURE
}

/// Leaves out records with impossible times and durations. The other records of the same round remain.
pub fn plausible_history(mut history: History, now: Timestamp) -> PlausibleHistory {
    let mut left_out = vec![];
    let mut count = |before: usize, after: usize, reason: &str| {
        if before > after {
            left_out.push(ImplausibleRecords { reason: reason.to_owned(), records: before - after });
        }
    };
    let rounds = history.rounds.len();
    history.rounds.retain(|round| is_plausible(round.started_us, now));
    count(rounds, history.rounds.len(), "rounds before 2020 or in the future: the clock was wrong");
    let runs = history.runs.len();
    history.runs.retain(|run| is_plausible(run.started, now));
    count(runs, history.runs.len(), "runs before 2020 or in the future: the clock was wrong");
    let runs = history.runs.len();
    history.runs.retain(|run| run.seconds.is_finite() && run.seconds >= 0.0);
    count(runs, history.runs.len(), "runs with a duration that is negative or not a number");
    let events = history.events.len();
    history.events.retain(|event| is_plausible(event.at_us, now));
    count(events, history.events.len(), "events before 2020 or in the future: the clock was wrong");
    PlausibleHistory { history, left_out }
}
