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
    /// True if each request was timed, so that a message is one request.
    pub is_exact: bool,
}

impl TripsInOrder {
    /// Returns the limits for a phase; `None` if no source counts requests and their times. Over SMB messages are counted, and several
    /// threads may share a segment, so that only the number of requests is a certain limit.
    pub fn of(phase: &PhaseTimes) -> Option<Self> {
        let requests = Outstanding::of(phase)?;
        let is_exact = requests.answer_seconds.is_some();
        let total = requests.answer_seconds.or(requests.ticked_seconds)?;
        let most = if is_exact { requests.round_trips } else { phase.wire_requests? as f64 };
        let threads = threads(phase);
        let computing = computing_seconds(phase.times.as_ref()?)? / threads;
        let waited = total.min(phase.seconds - computing);
        let at_once = if waited > 0.0 { (total / waited).max(threads) } else { threads };
        Some(Self { least: requests.round_trips / at_once, most: most / threads, is_exact })
    }
}

impl Sum for TripsInOrder {
    fn sum<I: Iterator<Item = Self>>(trips: I) -> Self {
        trips.fold(Self { least: 0.0, most: 0.0, is_exact: true }, |sum, next| Self {
            least: sum.least + next.least,
            most: sum.most + next.most,
            is_exact: sum.is_exact && next.is_exact,
        })
    }
}

#[cfg(test)]
mod tests {
    use longhaul_model::CallTotals;

    use super::*;
    use crate::attribution::tests::{nfs, smb, with_times};

    fn limits(phase: &PhaseTimes) -> [f64; 2] {
        let trips = TripsInOrder::of(phase).unwrap();
        [trips.least, trips.most].map(|trips| (trips * 10.0).round() / 10.0)
    }

    /// Returns a phase of 1.2 s with 60 requests that took some time in all.
    fn answered_in(milliseconds: u64) -> PhaseTimes {
        with_times(nfs(), |times| {
            times.requests.answered = Some(60);
            times.requests.answer_us = Some(milliseconds * 1000);
        })
    }

    #[test]
    fn requests_that_never_overlap_are_round_trips() {
        assert_eq!(limits(&answered_in(600)), [60.0, 60.0], "the computer works between them");
    }

    #[test]
    fn requests_that_were_outstanding_at_once_are_fewer_round_trips() {
        // The worker waited for 1.15 s.
        assert_eq!(limits(&answered_in(3_450)), [20.0, 60.0]);
    }

    #[test]
    fn threads_do_not_wait_for_each_other() {
        let calls = CallTotals { seconds: 4.8, ..nfs().calls };
        assert_eq!(limits(&PhaseTimes { calls, ..answered_in(3_450) }), [15.0, 15.0]);
        assert_eq!(limits(&PhaseTimes { calls, ..answered_in(9_500) }), [7.5, 15.0]);
    }

    #[test]
    fn over_smb_the_requests_in_messages_are_a_limit() {
        let timed = smb(answered_in(1_000));
        assert_eq!(TripsInOrder::of(&timed), None, "no times");
        let ticked = with_times(timed, |times| {
            times.requests.answered = Some(180);
            times.requests.execute_us = Some(6_900_000);
        });
        assert_eq!(limits(&PhaseTimes { wire_requests: Some(180), ..ticked }), [30.0, 180.0]);
    }
}
