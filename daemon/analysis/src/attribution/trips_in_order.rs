//! Round trips of a phase that follow each other.

use std::iter::Sum;

use longhaul_model::PhaseTimes;

use super::outstanding::Outstanding;
use super::phase_parts::{computing_seconds, threads};

/// Limits of the number of round trips that follow each other: requests overlap, but counters do not tell which.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TripsInOrder {
    /// Least number: as many requests were outstanding at once as there were on average while the worker waited for them
    /// (Little's law: their total time divided by that of waiting). Over a slow network this is too low, because requests
    /// then also wait for each other's bytes.
    pub least: f64,
    /// Largest number: no requests of one thread overlapped.
    pub most: f64,
}

impl TripsInOrder {
    /// Returns the limits for a phase; `None` if no source counts requests and their times.
    pub fn of(phase: &PhaseTimes) -> Option<Self> {
        let requests = Outstanding::of(phase)?;
        let total = requests.answer_seconds?;
        let threads = threads(phase);
        let computing = computing_seconds(phase.times.as_ref()?)? / threads;
        let waited = total.min(phase.seconds - computing);
        let at_once = if waited > 0.0 { (total / waited).max(threads) } else { threads };
        Some(Self { least: requests.round_trips / at_once, most: requests.round_trips / threads })
    }
}

impl Sum for TripsInOrder {
    fn sum<I: Iterator<Item = Self>>(trips: I) -> Self {
        trips.fold(Self { least: 0.0, most: 0.0 }, |sum, next| Self {
            least: sum.least + next.least,
            most: sum.most + next.most,
        })
    }
}
