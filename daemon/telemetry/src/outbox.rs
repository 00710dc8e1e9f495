//! When something is tried again, and what becomes of a batch. Pure: clocks and chance are arguments.

use std::time::Duration;

use longhaul_store::Fate;

use crate::answer::Answer;

/// The wait after the first failure.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The longest wait that is not asked for by the collector.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// How a signal's attempts went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attempts {
    failures: u32,
    /// The next attempt is not before that, in nanoseconds of a clock that never steps.
    not_before_ns: u64,
    /// Rounds go one by one, so that the one that is refused is found.
    is_careful: bool,
    failing: Option<String>,
}

/// What becomes of the items of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Becomes {
    /// All of them have this fate.
    Settled(Fate),
    /// They stay, and are tried again.
    Waiting,
}

impl Attempts {
    /// Whether it is time to try.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.not_before_ns
    }

    /// For how long it is not.
    pub fn wait(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(self.not_before_ns.saturating_sub(now_ns))
    }

    /// How many items may go in one batch.
    pub fn most_items(&self, usual: usize) -> usize {
        if self.is_careful { 1 } else { usual }
    }

    /// Why the latest attempt brought nothing.
    pub fn failing(&self) -> Option<&str> {
        self.failing.as_deref()
    }

    /// Learns from an answer to a message that holds no item: whether the way is open.
    pub fn hear(&mut self, answer: &Answer, when: (u64, f64)) {
        let is_careful = self.is_careful;
        let _ = self.learn(answer, 1, when);
        self.is_careful = is_careful;
    }

    /// Learns from an answer what becomes of a batch of so many items. `chance` is from 0 up to 1.
    pub fn learn(&mut self, answer: &Answer, items: usize, (now_ns, chance): (u64, f64)) -> Becomes {
        match answer {
            Answer::Later { why, after } => {
                self.failures = self.failures.saturating_add(1);
                self.failing = Some(why.clone());
                // What the collector asks for is the least; the jitter keeps a fleet from coming back as one.
                let wait = after.unwrap_or_default() + back_off(self.failures, chance);
                self.not_before_ns =
                    now_ns.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
                Becomes::Waiting
            }
            Answer::Refused { .. } if items > 1 => {
                *self = Self { is_careful: true, ..Self::default() };
                Becomes::Waiting
            }
            Answer::Refused { why } => {
                *self = Self { is_careful: self.is_careful, ..Self::default() };
                Becomes::Settled(Fate::Rejected(why.clone()))
            }
            Answer::TakenInPart { refused, why } => {
                *self = Self::default();
                Becomes::Settled(Fate::Rejected(format!("{refused} values were not taken: {why}")))
            }
            Answer::Taken => {
                *self = Self::default();
                Becomes::Settled(Fate::Sent)
            }
        }
    }
}

/// Twice as long after each failure, up to the longest; between half of that and all of it, by chance.
fn back_off(failures: u32, chance: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_WAIT);
    doubled.mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn later(after: Option<u64>) -> Answer {
        Answer::Later { why: "503".into(), after: after.map(Duration::from_secs) }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn waits_double_up_to_ten_minutes() {
        let waits: Vec<f64> = (1..12).map(|failures| back_off(failures, 1.0).as_secs_f64()).collect();
        assert_eq!(waits[..4], [2.0, 4.0, 8.0, 16.0]);
        assert_eq!(waits[10], 600.0);
        assert_eq!(back_off(3, 0.0).as_secs_f64(), 4.0, "by chance between half and all of it");
        assert_eq!(back_off(u32::MAX, 1.0), LONGEST_WAIT);
    }

    #[test]
    fn what_the_collector_asks_for_is_the_least() {
        let mut attempts = Attempts::default();
        assert_eq!(attempts.learn(&later(Some(120)), 5, (SECOND, 0.5)), Becomes::Waiting);
        assert!(!attempts.is_due(121 * SECOND) && attempts.is_due(123 * SECOND));
        assert_eq!(attempts.failing(), Some("503"));
        assert_eq!(attempts.learn(&Answer::Taken, 5, (123 * SECOND, 0.5)), Becomes::Settled(Fate::Sent));
        assert_eq!(attempts, Attempts::default());
    }

    #[test]
    fn a_refused_batch_is_taken_apart_so_that_only_the_bad_item_is_given_up() {
        let mut attempts = Attempts::default();
        let refused = Answer::Refused { why: "400: bad".into() };
        assert_eq!(attempts.learn(&refused, 7, (0, 0.0)), Becomes::Waiting);
        assert_eq!((attempts.most_items(32), attempts.is_due(0)), (1, true));
        attempts.hear(&Answer::Taken, (0, 0.0));
        assert_eq!(attempts.most_items(32), 1, "that another message was taken says nothing of the items");
        assert_eq!(
            attempts.learn(&refused, 1, (0, 0.0)),
            Becomes::Settled(Fate::Rejected("400: bad".into()))
        );
        assert_eq!(attempts.most_items(32), 1, "there may be more of them");
        attempts.learn(&Answer::Taken, 1, (0, 0.0));
        assert_eq!(attempts.most_items(32), 32);
    }

    proptest! {
        #[test]
        fn no_wait_is_without_end_and_none_is_without_length(failures in 0u32.., chance in any::<f64>()) {
            let wait = back_off(failures, if chance.is_nan() { 0.0 } else { chance });
            prop_assert!(wait >= FIRST_WAIT / 2 && wait <= LONGEST_WAIT);
        }
    }
}
