//! Individual calls that the recorder keeps as examples: the first failed calls, the slowest calls, and a random
//! sample with equal probabilities (Vitter's algorithm R). Each thread slot keeps its own calls; the reader merges
//! them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use longhaul_model::draw::draw_below;
use longhaul_model::{Call, KeepReason, Operation};

/// Number of calls that are kept for each reason, per thread slot and per phase.
const CALLS_PER_REASON: usize = KeepReason::CALLS_PER_REASON;
/// Number of words of one call: tag (operation and error flag), start time, duration.
const CALL_WORDS: usize = 3;
/// Number of words for all calls that are kept for one reason.
const KIND_WORDS: usize = CALLS_PER_REASON * CALL_WORDS;
/// Number of words for the calls of a thread slot: number of calls, number of failed calls, duration that a call
/// must exceed to be one of the slowest, then the kept calls.
pub(super) const WORDS: usize = 3 + KeepReason::ALL.len() * KIND_WORDS;

/// Call that has returned, as stored in the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordedCall {
    pub operation: Operation,
    pub began_ns: u64,
    pub duration_ns: u64,
    pub is_error: bool,
}

impl RecordedCall {
    fn tag(self) -> u64 {
        (self.operation as u64 + 1) * 2 + u64::from(self.is_error)
    }

    /// Reads a call from its words; returns `None` if there is none, or while it is being written.
    fn read(words: &[AtomicU64]) -> Option<Self> {
        let tag = words[0].load(Acquire);
        let (began_ns, nanoseconds) = (words[1].load(Acquire), words[2].load(Acquire));
        let operation = Operation::from_number((tag / 2).checked_sub(1)?)?;
        let call = Self { operation, began_ns, duration_ns: nanoseconds, is_error: tag % 2 == 1 };
        // The writer clears the tag before it changes the other words, so an unchanged tag means that they belong
        // together.
        (words[0].load(Relaxed) == tag).then_some(call)
    }

    fn write(self, words: &[AtomicU64]) {
        words[0].store(0, Release);
        words[1].store(self.began_ns, Release);
        words[2].store(self.duration_ns, Release);
        words[0].store(self.tag(), Release);
    }
}

/// Words of a thread slot in which it keeps calls.
#[derive(Clone, Copy)]
pub(super) struct KeptCalls<'recorder>(pub &'recorder [AtomicU64]);

impl KeptCalls<'_> {
    /// Records a call that has returned. Most calls are not kept and cost only two comparisons.
    #[inline]
    pub(super) fn record(self, call: RecordedCall) {
        let words = self.0;
        let seen = words[0].load(Relaxed);
        words[0].store(seen + 1, Relaxed);
        // The lowest bits of the start time are random enough, so no random number generator is needed.
        let random = ((call.began_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * (seen + 1)) >> 32;
        let position = if seen < CALLS_PER_REASON as u64 { seen } else { random };
        if position < CALLS_PER_REASON as u64 {
            call.write(call_words(words, KeepReason::Sample, position as usize));
        }
        if call.duration_ns > words[2].load(Relaxed) || seen < CALLS_PER_REASON as u64 {
            keep_slowest(words, call, seen);
        }
        if call.is_error {
            keep_failed(words, call);
        }
    }

    /// Returns the number of recorded calls, and the calls that are kept for a reason.
    fn kept(self, reason: KeepReason) -> (u64, Vec<RecordedCall>) {
        let calls =
            (0..CALLS_PER_REASON).filter_map(|index| RecordedCall::read(call_words(self.0, reason, index)));
        (self.0[0].load(Relaxed), calls.collect())
    }

    /// Removes all kept calls.
    pub(super) fn clear(self) {
        if self.0[0].load(Relaxed) > 0 {
            self.0.iter().for_each(|word| word.store(0, Relaxed));
        }
    }
}

fn call_words(words: &[AtomicU64], reason: KeepReason, index: usize) -> &[AtomicU64] {
    let begin = 3 + reason as usize * KIND_WORDS + index * CALL_WORDS;
    &words[begin..begin + CALL_WORDS]
}

#[cold]
fn keep_failed(words: &[AtomicU64], call: RecordedCall) {
    let before = words[1].load(Relaxed);
    words[1].store(before + 1, Relaxed);
    if before < CALLS_PER_REASON as u64 {
        call.write(call_words(words, KeepReason::Failed, before as usize));
    }
}

/// Replaces the fastest of the kept slowest calls with this call, and stores the duration that the next call must
/// exceed.
#[cold]
fn keep_slowest(words: &[AtomicU64], call: RecordedCall, seen: u64) {
    let duration = |index: &usize| call_words(words, KeepReason::Slowest, *index)[2].load(Relaxed);
    let index = if seen < CALLS_PER_REASON as u64 {
        seen as usize
    } else {
        (0..CALLS_PER_REASON).min_by_key(duration).unwrap_or(0)
    };
    call.write(call_words(words, KeepReason::Slowest, index));
    if seen + 1 >= CALLS_PER_REASON as u64 {
        words[2].store((0..CALLS_PER_REASON).map(|index| duration(&index)).min().unwrap_or(0), Relaxed);
    }
}

/// Returns the kept calls of several thread slots: at most eight for each reason, and no call twice. `began_ns` is
/// the start of the phase, in nanoseconds of the monotonic clock.
pub(super) fn merge(slots: &[KeptCalls<'_>], began_ns: u64) -> Vec<Call> {
    let mut found: Vec<Call> = vec![];
    for reason in KeepReason::ALL {
        for recorded in merge_reason(slots, reason) {
            let call = Call {
                operation: recorded.operation,
                offset_ns: recorded.began_ns.saturating_sub(began_ns),
                duration_ns: recorded.duration_ns,
                is_error: recorded.is_error,
                keep_reason: reason,
            };
            if !found.iter().any(|known| Call { keep_reason: reason, ..*known } == call) {
                found.push(call);
            }
        }
    }
    found
}

fn merge_reason(slots: &[KeptCalls<'_>], reason: KeepReason) -> Vec<RecordedCall> {
    let slots: Vec<(u64, Vec<RecordedCall>)> = slots.iter().map(|slot| slot.kept(reason)).collect();
    let mut all: Vec<RecordedCall> = match reason {
        KeepReason::Sample => return merge_samples(slots),
        KeepReason::Failed | KeepReason::Slowest => slots.into_iter().flat_map(|(_, calls)| calls).collect(),
    };
    match reason {
        KeepReason::Slowest => all.sort_by_key(|call| std::cmp::Reverse(call.duration_ns)),
        KeepReason::Failed | KeepReason::Sample => all.sort_by_key(|call| call.began_ns),
    }
    all.truncate(CALLS_PER_REASON);
    all
}

/// Merges the samples of all thread slots into one sample. Each element of `slots` is the number of calls of a
/// slot and the slot's own sample.
fn merge_samples(mut slots: Vec<(u64, Vec<RecordedCall>)>) -> Vec<RecordedCall> {
    let seed = slots.iter().flat_map(|(_, calls)| calls).fold(0, |seed, call| seed ^ call.began_ns);
    let mut found = vec![];
    for pick in 0..CALLS_PER_REASON as u64 {
        let total: u64 = slots.iter().map(|(seen, _)| seen).sum();
        if total == 0 {
            break;
        }
        // A slot is chosen with the probability of its share of all calls, so that every call has the same chance.
        let mut position = draw_below(seed, 0x6472_6177, pick, total);
        let slot = slots.iter_mut().find(|(seen, _)| {
            let is_chosen = position < *seen;
            position = position.saturating_sub(*seen);
            is_chosen
        });
        let Some((seen, calls)) = slot else { break };
        *seen -= 1;
        if !calls.is_empty() {
            let index = draw_below(seed, 0x6c61_6e65, pick, calls.len() as u64);
            found.push(calls.swap_remove(index as usize));
        }
    }
    found.sort_by_key(|call| call.began_ns);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recorder::Recorder;

    fn record(recorder: &Recorder, slot: usize, (began_ns, nanoseconds, is_error): (u64, u64, bool)) {
        let call = RecordedCall { operation: Operation::Read, began_ns, duration_ns: nanoseconds, is_error };
        recorder.thread_slot(slot).calls().unwrap().record(call);
    }

    fn kept_for(calls: &[Call], reason: KeepReason) -> Vec<Call> {
        calls.iter().filter(|call| call.keep_reason == reason).copied().collect()
    }

    proptest! {
        #[test]
        fn slowest_and_first_failed_calls_are_kept_once(
            calls in prop::collection::vec((1u64..1 << 40, prop::bool::weighted(0.05)), 1..400),
            slots in 1usize..5,
        ) {
            let recorder = Recorder::private().unwrap();
            for (index, (duration, is_error)) in calls.iter().enumerate() {
                record(&recorder, index % slots, (1000 + index as u64, *duration, *is_error));
            }
            let found = recorder.calls(1000);
            let mut durations: Vec<u64> = calls.iter().map(|(duration, _)| *duration).collect();
            durations.sort_unstable_by_key(|duration| std::cmp::Reverse(*duration));
            for slowest in durations.into_iter().take(CALLS_PER_REASON) {
                prop_assert!(found.iter().any(|call| call.duration_ns == slowest));
            }
            let failed: Vec<u64> =
                (0u64..).zip(&calls).filter(|(_, (_, is_error))| *is_error).map(|(index, _)| index).collect();
            let kept: Vec<u64> = kept_for(&found, KeepReason::Failed).iter().map(|call| call.offset_ns).collect();
            prop_assert_eq!(&kept[..], &failed[..failed.len().min(CALLS_PER_REASON)]);
            let mut offsets: Vec<u64> = found.iter().map(|call| call.offset_ns).collect();
            offsets.sort_unstable();
            offsets.dedup();
            prop_assert_eq!(offsets.len(), found.len());
            prop_assert!(found.iter().all(|call| calls[call.offset_ns as usize] == (call.duration_ns, call.is_error)));
            recorder.clear();
            prop_assert_eq!(recorder.calls(0), vec![]);
        }
    }

    #[test]
    fn every_call_has_the_same_chance_to_be_sampled() {
        // Two thread slots, one of them with nine tenths of the calls. The start times resemble those of a real
        // clock.
        let (mut first_half, mut busy_slot, mut all) = (0, 0, 0);
        for repetition in 0..400u64 {
            let recorder = Recorder::private().unwrap();
            for index in 0..1000u64 {
                let began_ns = repetition * 1_000_003 + index * 977 + (index * index) % 89;
                record(&recorder, usize::from(index % 10 == 0), (began_ns, 1 + index, false));
            }
            let sample = merge_reason(&recorder.kept_calls(), KeepReason::Sample);
            assert_eq!(sample.len(), CALLS_PER_REASON);
            first_half += sample.iter().filter(|call| call.duration_ns <= 500).count();
            busy_slot += sample.iter().filter(|call| (call.duration_ns - 1) % 10 != 0).count();
            all += sample.len();
        }
        let share = |count: usize| count as f64 / all as f64;
        // With 3200 sampled calls, four standard errors are 0.035 and 0.021.
        assert!((share(first_half) - 0.5).abs() < 0.035, "{}", share(first_half));
        assert!((share(busy_slot) - 0.9).abs() < 0.021, "{}", share(busy_slot));
    }
}
