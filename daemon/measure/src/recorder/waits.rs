//! Long waits: calls that took so long that each is worth a line of its own.
//!
//! Each lane keeps its latest ones in a ring, which a call reaches only when it was long. Whoever collects them has to
//! come by before the ring is full again: with calls of over a second each, that takes a while.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Lane, PROBE_LANE, Recorder};
use crate::model::Operation;

/// How many waits a lane keeps.
const KEPT: u64 = 32;
/// Words of one wait: operation and error, when it began, how long it took.
const WAIT_WORDS: usize = 3;
/// Words of a lane's long waits: how many there were, and the ring.
pub(super) const WORDS: usize = 1 + KEPT as usize * WAIT_WORDS;
/// Where they begin in a lane.
const BEGIN: usize = 7;

/// A call that took longer than [`crate::model::LONG_WAIT_NS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongWait {
    /// The call.
    pub operation: Operation,
    /// When it began, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// How long it took, in nanoseconds.
    pub nanoseconds: u64,
    /// The number of the system's error if it failed; 0 for an error that did not come from the system.
    pub error: Option<i32>,
}

impl LongWait {
    fn words(self) -> [u64; WAIT_WORDS] {
        let error = self.error.map_or(0, |number| u64::from(number.unsigned_abs()) + 1);
        [self.operation as u64 | error << 32, self.at_us.cast_unsigned(), self.nanoseconds]
    }

    fn of_words([what, at_us, nanoseconds]: [u64; WAIT_WORDS]) -> Option<Self> {
        let operation = Operation::from_number(what & 0xffff_ffff)?;
        let error = (what >> 32).checked_sub(1).and_then(|number| i32::try_from(number).ok());
        Some(Self { operation, at_us: at_us.cast_signed(), nanoseconds, error })
    }
}

impl Lane<'_> {
    /// Writes a long wait down. Like all of a lane, by its one thread only.
    pub(crate) fn note_wait(&self, wait: LongWait) {
        let count = self.head[BEGIN].load(Relaxed);
        let begin = place(count);
        for (word, value) in self.head[begin..begin + WAIT_WORDS].iter().zip(wait.words()) {
            word.store(value, Relaxed);
        }
        self.head[BEGIN].store(count + 1, Release);
    }

    /// The waits from the one with this number on, as far as they are still kept, and the number of the next one.
    fn waits_since(&self, seen: u64) -> (Vec<LongWait>, u64) {
        let count = self.head[BEGIN].load(Acquire);
        let first = seen.max(count.saturating_sub(KEPT));
        let read = |number| {
            let begin = place(number);
            LongWait::of_words(std::array::from_fn(|word| self.head[begin + word].load(Relaxed)))
        };
        ((first..count).filter_map(read).collect(), count)
    }
}

fn place(number: u64) -> usize {
    BEGIN + 1 + (number % KEPT) as usize * WAIT_WORDS
}

/// Collects the long waits of a recorder, each once.
#[derive(Debug)]
pub struct LongWaits {
    seen: [u64; PROBE_LANE + 1],
}

impl Default for LongWaits {
    fn default() -> Self {
        Self { seen: [0; PROBE_LANE + 1] }
    }
}

impl LongWaits {
    /// The waits that ended since the last time, each with the number of its lane.
    pub fn collect(&mut self, recorder: &Recorder) -> Vec<(usize, LongWait)> {
        let mut found = vec![];
        for (number, lane) in recorder.lanes().enumerate().chain([(PROBE_LANE, recorder.probe_lane())]) {
            let (waits, next) = lane.waits_since(self.seen[number]);
            self.seen[number] = next;
            found.extend(waits.into_iter().map(|wait| (number, wait)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wait(at_us: i64) -> LongWait {
        LongWait { operation: Operation::Sync, at_us, nanoseconds: 2_000_000_000, error: None }
    }

    #[test]
    fn each_wait_is_collected_once_with_its_lane() {
        let (recorder, mut waits) = (Recorder::private().unwrap(), LongWaits::default());
        recorder.lane(2).note_wait(wait(5));
        recorder.lane(PROBE_LANE).note_wait(wait(6));
        assert_eq!(waits.collect(&recorder), [(2, wait(5)), (PROBE_LANE, wait(6))]);
        recorder.clear();
        assert_eq!(waits.collect(&recorder), []);
        recorder.lane(2).note_wait(wait(7));
        assert_eq!(waits.collect(&recorder), [(2, wait(7))]);
    }

    #[test]
    fn of_more_than_are_kept_the_latest_are_there() {
        let (recorder, mut waits) = (Recorder::private().unwrap(), LongWaits::default());
        (0..100).for_each(|at_us| recorder.lane(0).note_wait(wait(at_us)));
        let found: Vec<i64> = waits.collect(&recorder).into_iter().map(|(_, wait)| wait.at_us).collect();
        assert_eq!(found, (100 - KEPT as i64..100).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn a_wait_comes_back_as_it_was(
            operation in proptest::sample::select(Operation::ALL.to_vec()),
            at_us: i64,
            nanoseconds: u64,
            error in proptest::option::of(0i32..i32::MAX),
        ) {
            let wait = LongWait { operation, at_us, nanoseconds, error };
            prop_assert_eq!(LongWait::of_words(wait.words()), Some(wait));
        }
    }
}
