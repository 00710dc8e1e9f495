//! The changes of a session, when each is made, and by whom.

use std::time::Duration;

use longhaul_measure::checks::freshness::MAX_CHANGES;
use longhaul_model::draw::draw_below;
use longhaul_model::{ChangeKind, Role};

use crate::worker::Worker;

/// Shortest time before a change, so that every watcher polls when it is made.
const MIN_LEAD: Duration = Duration::from_millis(300);
/// Random stream of the times of changes.
const TIME_STREAM: u64 = 0x6672_6573;

/// The changes of a session and their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreshnessPlan {
    /// Number of changes of each kind.
    pub changes: usize,
    /// Time within which all changes are made, each at a random time: clients keep what they know for a fixed time,
    /// so the delay depends on when they learned it.
    pub spread: Duration,
    /// Time for which the watchers look for the changes, beginning before the first change.
    pub watch: Duration,
}

impl FreshnessPlan {
    /// The plan of a round: one change of each kind, and a minute at most.
    pub const ROUND: Self =
        Self { changes: 1, spread: Duration::from_secs(10), watch: Duration::from_secs(60) };

    /// Returns the kinds of all changes.
    pub fn kinds(&self) -> Vec<ChangeKind> {
        let count = (ChangeKind::ALL.len() * self.changes).min(MAX_CHANGES);
        ChangeKind::ALL.into_iter().cycle().take(count).collect()
    }

    /// Returns the time of each change, counted from the start of the session.
    pub fn times(&self, seed: u64) -> Vec<Duration> {
        let range_us = self.spread.saturating_sub(MIN_LEAD).as_micros().max(1) as u64;
        let time = |place| MIN_LEAD + Duration::from_micros(draw_below(seed, TIME_STREAM, place, range_us));
        (0..self.kinds().len() as u64).map(time).collect()
    }
}

/// Returns the index of the worker that makes the changes: the role goes round among the shares. `None`: there are
/// fewer than two.
pub fn writer_of_round(workers: &[&mut Worker], round_index: u64) -> Option<usize> {
    let is_share = |index: &usize| workers[*index].target().role == Role::Share;
    let shares: Vec<usize> = (0..workers.len()).filter(is_share).collect();
    (shares.len() >= 2).then(|| shares[(round_index % shares.len() as u64) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_makes_one_change_of_each_kind_in_ten_seconds() {
        let plan = FreshnessPlan::ROUND;
        assert_eq!(plan.kinds(), ChangeKind::ALL);
        let times = plan.times(7);
        assert_ne!(times, plan.times(8), "the times are random");
        assert!(times.len() <= 20 && times.iter().all(|time| (MIN_LEAD..=plan.spread).contains(time)));
    }
}
