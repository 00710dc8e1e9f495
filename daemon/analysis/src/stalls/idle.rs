//! Stalls of the first operations after an idle time.

use std::time::Duration;

use longhaul_model::{Stall, Timestamp};

use super::activity::{Session, sessions};
use super::cause::{FALSE_NAME_RATE, Pattern, StallCause, StallEvidence};
use super::observations::{TargetObservations, at_least, median};

/// Time before the first call of a run in which longhaul prepares it, and time after it in which a disk still starts.
const PREPARATION: Duration = Duration::from_secs(60);
const START: Duration = Duration::from_secs(10);
/// Smallest number of stalls after idle times.
const MIN_STALLS: u64 = 3;
/// Share of the idle times of this length that must end with a stall.
const MIN_SHARE: f64 = 0.5;

/// Returns the stalls after idle times; `None` if stalls are as frequent at other times.
pub(super) fn find(observations: &TargetObservations) -> Option<Pattern> {
    let sessions = sessions(observations);
    let begun: Vec<&Session> = sessions.iter().filter(|session| session.idle.is_some()).collect();
    let first = |session: &Session| {
        let stall = observations.stalls.iter().find(|stall| session.begins_with(stall.started_us))?;
        Some((stall, session.idle?))
    };
    let found: Vec<(&Stall, Duration)> = begun.iter().filter_map(|session| first(session)).collect();
    let shortest = found.iter().map(|(_, idle)| *idle).min()?;
    let as_long = begun.iter().filter(|session| session.idle >= Some(shortest)).count();
    let (matching, examined) = (found.len() as u64, observations.stalls.len() as u64);
    let starts: Duration = begun.iter().map(|session| session.start_length()).sum();
    let active: Duration =
        sessions.iter().map(|session| session.until.since(session.from) + PREPARATION).sum();
    let chance = at_least(matching, examined, starts.as_secs_f64() / active.as_secs_f64().max(1.0));
    let is_usual = matching as f64 >= MIN_SHARE * as_long as f64;
    (matching >= MIN_STALLS && is_usual && chance <= FALSE_NAME_RATE).then(|| Pattern {
        cause: StallCause::DiskSpinUp,
        evidence: StallEvidence {
            matching,
            examined,
            typical_seconds: typical(&found),
            idle_seconds: Some(shortest.as_secs_f64()),
            chance: Some(chance),
            ..StallEvidence::default()
        },
        times: found.iter().map(|(stall, _)| stall.started_us).collect(),
    })
}

fn typical(found: &[(&Stall, Duration)]) -> f64 {
    let lengths = found.iter().map(|(stall, _)| Duration::from_nanos(stall.longest_ns));
    median(lengths.collect()).unwrap_or_default().as_secs_f64()
}

impl Session {
    /// Returns whether a time is at the start of the session.
    fn begins_with(&self, at: Timestamp) -> bool {
        self.from - PREPARATION <= at && at <= self.from + START.max(self.blur)
    }

    fn start_length(&self) -> Duration {
        PREPARATION + START.max(self.blur)
    }
}
