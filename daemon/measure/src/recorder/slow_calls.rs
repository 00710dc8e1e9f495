//! Slow calls: calls that took so long that each is reported individually.
//!
//! Each thread slot keeps its latest slow calls in a ring buffer. The reader must collect them before the ring
//! wraps around, which takes a while, because each slow call takes more than a second.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use longhaul_model::{Operation, Timestamp};

/// Number of slow calls that a thread slot keeps.
pub(super) const RING_CAPACITY: u64 = 32;
/// Number of words of one slow call: operation and error, start time, duration.
const CALL_WORDS: usize = 3;
/// Number of words for the slow calls of a thread slot: number of slow calls, then the ring.
pub(super) const WORDS: usize = 1 + RING_CAPACITY as usize * CALL_WORDS;

/// Call that took longer than [`longhaul_model::SLOW_CALL_NS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawSlowCall {
    /// Kind of call.
    pub operation: Operation,
    /// Start of the call.
    pub at: Timestamp,
    /// Duration of the call in nanoseconds.
    pub duration_ns: u64,
    /// System error number (`errno`) of a failed call, 0 for an error without a number; `None` if the call
    /// succeeded.
    pub error: Option<i32>,
}

impl RawSlowCall {
    fn words(self) -> [u64; CALL_WORDS] {
        let error = self.error.map_or(0, |number| u64::from(number.unsigned_abs()) + 1);
        [self.operation as u64 | error << 32, self.at.as_us().cast_unsigned(), self.duration_ns]
    }

    fn from_words([tag, at, nanoseconds]: [u64; CALL_WORDS]) -> Option<Self> {
        let operation = Operation::from_number(tag & 0xffff_ffff)?;
        let error = (tag >> 32).checked_sub(1).and_then(|number| i32::try_from(number).ok());
        Some(Self { operation, at: Timestamp::from_us(at.cast_signed()), duration_ns: nanoseconds, error })
    }
}

/// Words of a thread slot in which it keeps its slow calls.
#[derive(Clone, Copy)]
pub(super) struct SlowCallRing<'recorder>(pub &'recorder [AtomicU64]);

impl SlowCallRing<'_> {
    /// Records a slow call.
    pub(super) fn record(self, call: RawSlowCall) {
        let count = self.0[0].load(Relaxed);
        let begin = ring_word(count);
        for (word, value) in self.0[begin..begin + CALL_WORDS].iter().zip(call.words()) {
            word.store(value, Relaxed);
        }
        self.0[0].store(count + 1, Release);
    }

    /// Returns the slow calls from number `seen` on that are still in the ring, and the number of the next slow
    /// call.
    pub(super) fn since(self, seen: u64) -> (Vec<RawSlowCall>, u64) {
        let count = self.0[0].load(Acquire);
        let first = seen.max(count.saturating_sub(RING_CAPACITY));
        let read = |number| {
            let begin = ring_word(number);
            RawSlowCall::from_words(std::array::from_fn(|word| self.0[begin + word].load(Relaxed)))
        };
        ((first..count).filter_map(read).collect(), count)
    }
}

fn ring_word(number: u64) -> usize {
    1 + (number % RING_CAPACITY) as usize * CALL_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slow_call_survives_encoding_in_words(
            operation in proptest::sample::select(Operation::ALL.to_vec()),
            us: i64,
            duration_ns: u64,
            error in proptest::option::of(0i32..i32::MAX),
        ) {
            let call = RawSlowCall { operation, at: Timestamp::from_us(us), duration_ns, error };
            prop_assert_eq!(RawSlowCall::from_words(call.words()), Some(call));
        }
    }
}
