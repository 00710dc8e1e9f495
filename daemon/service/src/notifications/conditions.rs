//! Conditions that begin and end: each is reported once it has lasted, and its end is reported only if its beginning was.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::Timestamp;

/// Longest time for which the end of a condition has to last before it is reported.
const MAX_END_DELAY: Duration = Duration::from_secs(60);
/// Time without an observation after which a condition that was not reported begins anew: meanwhile the machine slept.
pub(super) const MAX_GAP: Duration = Duration::from_secs(120);

/// Knowledge about a condition at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionState {
    /// It holds, since this time as far as known.
    Holds(Timestamp),
    /// It does not hold.
    Absent,
    /// Nothing is known.
    Unknown,
}

/// A change to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionChange {
    /// The condition has lasted since this time.
    Began(Timestamp),
    /// The condition that began at this time is over.
    Ended(Timestamp),
}

/// The time of an observation, and how long a condition has to last before it is reported.
#[derive(Debug, Clone, Copy)]
pub struct ObservationTime {
    /// Time of the observation.
    pub now: Timestamp,
    /// Time that a condition has to last.
    pub delay: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Condition {
    since: Timestamp,
    observed: Timestamp,
    is_reported: bool,
    absent_since: Option<Timestamp>,
}

/// Conditions by key.
#[derive(Debug)]
pub struct Conditions<K> {
    known: BTreeMap<K, Condition>,
}

impl<K> Default for Conditions<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Conditions<K> {
    /// Restores a condition whose beginning was reported.
    pub fn restore(&mut self, key: K, since: Timestamp) {
        self.known.insert(key, Condition { since, observed: since, is_reported: true, absent_since: None });
    }

    /// Takes an observation. Returns the change to report.
    pub fn observe(
        &mut self,
        key: &K,
        observation: ConditionState,
        observed: ObservationTime,
    ) -> Option<ConditionChange> {
        let ObservationTime { now, delay } = observed;
        match observation {
            ConditionState::Unknown => {
                self.known.get_mut(key)?.observed = now;
                None
            }
            ConditionState::Holds(since) => {
                let new = Condition {
                    since: since.min(now),
                    observed: now,
                    is_reported: false,
                    absent_since: None,
                };
                let condition = self.known.entry(key.clone()).or_insert(new);
                if !condition.is_reported && now.since(condition.observed) > MAX_GAP {
                    *condition = new;
                }
                condition.observed = now;
                condition.absent_since = None;
                let is_due = !condition.is_reported && now.since(condition.since) >= delay;
                condition.is_reported |= is_due;
                is_due.then_some(ConditionChange::Began(condition.since))
            }
            ConditionState::Absent => {
                let condition = self.known.get_mut(key)?;
                let absent_since = *condition.absent_since.get_or_insert(now);
                let has_lasted = now.since(absent_since) >= delay.min(MAX_END_DELAY);
                if condition.is_reported && !has_lasted {
                    return None;
                }
                let ended = self.known.remove(key)?;
                ended.is_reported.then_some(ConditionChange::Ended(ended.since))
            }
        }
    }

    /// Forgets conditions that `keep` does not keep. Returns the keys of those that were reported.
    pub fn retain(&mut self, keep: impl Fn(&K) -> bool) -> Vec<K> {
        let dropped = self.known.iter().filter(|(key, condition)| condition.is_reported && !keep(key));
        let dropped = dropped.map(|(key, _)| key.clone()).collect();
        self.known.retain(|key, _| keep(key));
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_us(seconds * 1_000_000)
    }

    fn observed(seconds: i64) -> ObservationTime {
        ObservationTime { now: at(seconds), delay: Duration::from_secs(600) }
    }

    #[test]
    fn condition_is_reported_once_after_the_delay() {
        let mut conditions = Conditions::default();
        let mut observe =
            |seconds| conditions.observe(&"smb", ConditionState::Holds(at(seconds)), observed(seconds));
        (0..600).step_by(100).for_each(|seconds| assert_eq!(observe(seconds), None));
        assert_eq!(observe(599), None);
        assert_eq!(observe(600), Some(ConditionChange::Began(at(0))));
        assert_eq!(observe(6000), None);
    }

    /// A share that was unmounted when the lid was closed may be mounted again at once.
    #[test]
    fn time_asleep_does_not_count() {
        let mut conditions = Conditions::default();
        let mut observe =
            |seconds| conditions.observe(&"smb", ConditionState::Holds(at(seconds)), observed(seconds));
        assert_eq!([observe(0), observe(30), observe(28_800)], [None; 3]);
        let later = (28_900..29_500).step_by(100).find_map(&mut observe);
        assert_eq!(later, Some(ConditionChange::Began(at(28_800))));
    }

    #[test]
    fn end_is_reported_only_after_it_has_lasted() {
        let mut conditions = Conditions::default();
        conditions.restore("smb", at(0));
        assert_eq!(conditions.observe(&"smb", ConditionState::Absent, observed(700)), None);
        assert_eq!(conditions.observe(&"smb", ConditionState::Holds(at(710)), observed(710)), None);
        assert_eq!(conditions.observe(&"smb", ConditionState::Absent, observed(720)), None);
        assert_eq!(conditions.observe(&"smb", ConditionState::Unknown, observed(800)), None);
        let ended = conditions.observe(&"smb", ConditionState::Absent, observed(801));
        assert_eq!(ended, Some(ConditionChange::Ended(at(0))));
        assert_eq!(conditions.observe(&"smb", ConditionState::Absent, observed(900)), None);
    }

    #[test]
    fn short_condition_is_never_reported() {
        let mut conditions = Conditions::default();
        assert_eq!(conditions.observe(&"smb", ConditionState::Holds(at(0)), observed(0)), None);
        assert_eq!(conditions.observe(&"smb", ConditionState::Absent, observed(300)), None);
        assert_eq!(conditions.observe(&"smb", ConditionState::Holds(at(700)), observed(700)), None);
    }

    #[test]
    fn start_in_the_future_counts_from_now() {
        let mut conditions = Conditions::default();
        assert_eq!(conditions.observe(&"smb", ConditionState::Holds(at(9_999)), observed(0)), None);
        (100..600).step_by(100).for_each(|seconds| {
            assert_eq!(conditions.observe(&"smb", ConditionState::Unknown, observed(seconds)), None);
        });
        let reported = conditions.observe(&"smb", ConditionState::Holds(at(9_999)), observed(600));
        assert_eq!(reported, Some(ConditionChange::Began(at(0))));
    }
}
