//! Single calls that are kept as witnesses: the first that failed, the slowest, and some that were drawn with equal chance
//! (Vitter's algorithm R). Each lane keeps its own; whoever reads them merges.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Lane, Recorder};
use crate::corpus::draw::draw_below;
use crate::model::{Call, Kept, Operation};

/// How many of each kind are kept, of a lane and of a phase.
const EACH: usize = Kept::EACH;
/// Words of one call: what it was, when it began, how long it took.
const CALL_WORDS: usize = 3;
/// Words of one kind.
const KIND_WORDS: usize = EACH * CALL_WORDS;
/// Words of a lane's calls: how many there were, how many failed, the time that one of the slowest has to exceed, and the kept.
pub(super) const WORDS: usize = 3 + Kept::ALL.len() * KIND_WORDS;

/// A call, as it is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Noted {
    pub operation: Operation,
    pub began_ns: u64,
    pub nanoseconds: u64,
    pub is_error: bool,
}

impl Noted {
    fn what(self) -> u64 {
        (self.operation as u64 + 1) * 2 + u64::from(self.is_error)
    }

    /// The call in these words; `None` while it is written, or if there is none.
    fn read(words: &[AtomicU64]) -> Option<Self> {
        let what = words[0].load(Acquire);
        let (began_ns, nanoseconds) = (words[1].load(Acquire), words[2].load(Acquire));
        let operation = Operation::from_number((what / 2).checked_sub(1)?)?;
        let noted = Self { operation, began_ns, nanoseconds, is_error: what % 2 == 1 };
        (words[0].load(Relaxed) == what).then_some(noted)
    }

    fn write(self, words: &[AtomicU64]) {
        words[0].store(0, Release);
        words[1].store(self.began_ns, Release);
        words[2].store(self.nanoseconds, Release);
        words[0].store(self.what(), Release);
    }
}

impl Lane<'_> {
    /// Notes a call that has returned. Few are kept, so that the usual one costs two comparisons.
    #[inline]
    pub(super) fn note_call(&self, call: Noted) {
        let Some(words) = self.calls() else { return };
        let seen = words[0].load(Relaxed);
        words[0].store(seen + 1, Relaxed);
        // The lowest bits of the clock are as good as drawn.
        let drawn = ((call.began_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * (seen + 1)) >> 32;
        let place = if seen < EACH as u64 { seen } else { drawn };
        if place < EACH as u64 {
            call.write(of_kind(words, Kept::Sample, place as usize));
        }
        if call.nanoseconds > words[2].load(Relaxed) || seen < EACH as u64 {
            slowest(words, call, seen);
        }
        if call.is_error {
            failed(words, call);
        }
    }

    fn calls(&self) -> Option<&[AtomicU64]> {
        self.body.len().checked_sub(WORDS).map(|begin| &self.body[begin..])
    }

    /// How many calls there were, and those that are kept for a reason.
    fn kept(&self, kept: Kept) -> (u64, Vec<Noted>) {
        let Some(words) = self.calls() else { return (0, vec![]) };
        let calls = (0..EACH).filter_map(|place| Noted::read(of_kind(words, kept, place)));
        (words[0].load(Relaxed), calls.collect())
    }

    /// Forgets them.
    pub(super) fn clear_calls(&self) {
        let words = self.calls().filter(|words| words[0].load(Relaxed) > 0);
        words.into_iter().flatten().for_each(|word| word.store(0, Relaxed));
    }
}

fn of_kind(words: &[AtomicU64], kept: Kept, place: usize) -> &[AtomicU64] {
    let begin = 3 + kept as usize * KIND_WORDS + place * CALL_WORDS;
    &words[begin..begin + CALL_WORDS]
}

#[cold]
fn failed(words: &[AtomicU64], call: Noted) {
    let before = words[1].load(Relaxed);
    words[1].store(before + 1, Relaxed);
    if before < EACH as u64 {
        call.write(of_kind(words, Kept::Failed, before as usize));
    }
}

/// Puts a call in the place of the quickest of the slowest, and notes what the next one has to exceed.
#[cold]
fn slowest(words: &[AtomicU64], call: Noted, seen: u64) {
    let took = |place: &usize| of_kind(words, Kept::Slowest, *place)[2].load(Relaxed);
    let place = if seen < EACH as u64 { seen as usize } else { (0..EACH).min_by_key(took).unwrap_or(0) };
    call.write(of_kind(words, Kept::Slowest, place));
    if seen + 1 >= EACH as u64 {
        words[2].store((0..EACH).map(|place| took(&place)).min().unwrap_or(0), Relaxed);
    }
}

impl Recorder {
    /// The calls that are kept of a phase that began then, in nanoseconds of the monotonic clock: at most eight for each
    /// reason, and each call once.
    pub fn calls(&self, began_ns: u64) -> Vec<Call> {
        let mut found: Vec<Call> = vec![];
        for kept in Kept::ALL {
            for noted in self.merged(kept) {
                let call = Call {
                    operation: noted.operation,
                    after_ns: noted.began_ns.saturating_sub(began_ns),
                    nanoseconds: noted.nanoseconds,
                    is_error: noted.is_error,
                    kept,
                };
                if !found.iter().any(|known| Call { kept, ..*known } == call) {
                    found.push(call);
                }
            }
        }
        found
    }

    fn merged(&self, kept: Kept) -> Vec<Noted> {
        let lanes: Vec<(u64, Vec<Noted>)> = self.lanes().map(|lane| lane.kept(kept)).collect();
        let mut all: Vec<Noted> = match kept {
            Kept::Sample => return drawn(lanes),
            Kept::Failed | Kept::Slowest => lanes.into_iter().flat_map(|(_, calls)| calls).collect(),
        };
        match kept {
            Kept::Slowest => all.sort_by_key(|call| std::cmp::Reverse(call.nanoseconds)),
            Kept::Failed | Kept::Sample => all.sort_by_key(|call| call.began_ns),
        }
        all.truncate(EACH);
        all
    }
}

/// Draws from the lanes' own samples, from each as often as its share of all calls lets expect.
fn drawn(mut lanes: Vec<(u64, Vec<Noted>)>) -> Vec<Noted> {
    let seed = lanes.iter().flat_map(|(_, calls)| calls).fold(0, |seed, call| seed ^ call.began_ns);
    let mut found = vec![];
    for pick in 0..EACH as u64 {
        let total: u64 = lanes.iter().map(|(seen, _)| seen).sum();
        if total == 0 {
            break;
        }
        let mut at = draw_below(seed, 0x6472_6177, pick, total);
        let lane = lanes.iter_mut().find(|(seen, _)| {
            let is_it = at < *seen;
            at = at.saturating_sub(*seen);
            is_it
        });
        let Some((seen, calls)) = lane else { break };
        *seen -= 1;
        if !calls.is_empty() {
            let place = draw_below(seed, 0x6c61_6e65, pick, calls.len() as u64);
            found.push(calls.swap_remove(place as usize));
        }
    }
    found.sort_by_key(|call| call.began_ns);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn note(recorder: &Recorder, lane: usize, (began_ns, nanoseconds, is_error): (u64, u64, bool)) {
        let call = Noted { operation: Operation::Read, began_ns, nanoseconds, is_error };
        recorder.lane(lane).note_call(call);
    }

    fn of(calls: &[Call], kept: Kept) -> Vec<Call> {
        calls.iter().filter(|call| call.kept == kept).copied().collect()
    }

    proptest! {
        #[test]
        fn the_slowest_and_the_first_that_failed_are_kept_and_no_call_twice(
            calls in prop::collection::vec((1u64..1 << 40, prop::bool::weighted(0.05)), 1..400),
            lanes in 1usize..5,
        ) {
            let recorder = Recorder::private().unwrap();
            for (place, (took, is_error)) in calls.iter().enumerate() {
                note(&recorder, place % lanes, (1000 + place as u64, *took, *is_error));
            }
            let found = recorder.calls(1000);
            let mut took: Vec<u64> = calls.iter().map(|(took, _)| *took).collect();
            took.sort_unstable_by_key(|took| std::cmp::Reverse(*took));
            for slowest in took.into_iter().take(EACH) {
                prop_assert!(found.iter().any(|call| call.nanoseconds == slowest));
            }
            let failed: Vec<u64> = (0u64..).zip(&calls).filter(|(_, (_, is_error))| *is_error).map(|(at, _)| at).collect();
            let kept: Vec<u64> = of(&found, Kept::Failed).iter().map(|call| call.after_ns).collect();
            prop_assert_eq!(&kept[..], &failed[..failed.len().min(EACH)]);
            let mut instants: Vec<u64> = found.iter().map(|call| call.after_ns).collect();
            instants.sort_unstable();
            instants.dedup();
            prop_assert_eq!(instants.len(), found.len());
            prop_assert!(found.iter().all(|call| calls[call.after_ns as usize] == (call.nanoseconds, call.is_error)));
            recorder.clear();
            prop_assert_eq!(recorder.calls(0), vec![]);
        }
    }

    #[test]
    fn every_call_has_the_same_chance_to_be_drawn() {
        // Two lanes, one with nine tenths of the calls; instants as a real clock gives them.
        let (mut first_half, mut busy_lane, mut all) = (0, 0, 0);
        for turn in 0..400u64 {
            let recorder = Recorder::private().unwrap();
            for place in 0..1000u64 {
                let began_ns = turn * 1_000_003 + place * 977 + (place * place) % 89;
                note(&recorder, usize::from(place % 10 == 0), (began_ns, 1 + place, false));
            }
            let sample = recorder.merged(Kept::Sample);
            assert_eq!(sample.len(), EACH);
            first_half += sample.iter().filter(|call| call.nanoseconds <= 500).count();
            busy_lane += sample.iter().filter(|call| (call.nanoseconds - 1) % 10 != 0).count();
            all += sample.len();
        }
        let share = |count: usize| count as f64 / all as f64;
        // 3200 draws: four standard errors are 0.035 and 0.021.
        assert!((share(first_half) - 0.5).abs() < 0.035, "{}", share(first_half));
        assert!((share(busy_lane) - 0.9).abs() < 0.021, "{}", share(busy_lane));
    }
}
