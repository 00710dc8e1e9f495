//! When the next round is due: pure.
//!
//! The schedule counts in **slots**, one every interval on a clock that never steps and goes on while the machine sleeps.
//! Each slot has a start that is jittered uniformly around its instant, drawn from the seed, so that rounds lock on to
//! nobody's full hour. A slot is dealt with exactly once: made, skipped with a reason, or missed. What is missed, asleep
//! or switched off, is never caught up on. The wall clock is only a label, so clock steps, daylight saving and travel
//! neither double nor lose a round.

pub mod backoff;
pub mod budget;
pub mod skip;
pub mod weeks;

use longhaul_measure::corpus::draw::draw_below;
use longhaul_measure::model::Role;

use crate::clock::Moment;

const SECOND_NS: i64 = 1_000_000_000;

/// Every how many rounds the baselines are measured too.
pub const BASELINE_EVERY: u64 = 4;
/// How long after a first start the first round begins.
const FIRST_NS: i64 = 10 * SECOND_NS;

/// How often rounds are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// From slot to slot, in nanoseconds.
    pub interval_ns: i64,
    /// How far a start may lie from its slot, to both sides, in nanoseconds.
    pub jitter_ns: i64,
    /// How long nothing is begun after the machine woke, in nanoseconds.
    pub grace_ns: i64,
    /// What the jitter is drawn from.
    pub seed: u64,
}

impl Rhythm {
    /// Rounds every so many seconds, jittered by a sixth of that to both sides: ten minutes of an hour.
    pub fn every(seconds: u64, seed: u64) -> Self {
        let interval_ns =
            i64::try_from(seconds).unwrap_or(i64::MAX / SECOND_NS).max(1).saturating_mul(SECOND_NS);
        Self { interval_ns, jitter_ns: interval_ns / 6, grace_ns: 60 * SECOND_NS, seed }
    }

    /// When a slot's round is to start, on the continuous clock.
    pub fn start_ns(&self, slot: Slot) -> i64 {
        let jitter = draw_below(self.seed, 0x736c_6f74, slot.number, self.jitter_ns.cast_unsigned() * 2 + 1);
        slot.at_ns + jitter.cast_signed() - self.jitter_ns
    }

    /// After this, a slot is missed. Late by a little is not: the round before, or the grace after wake, took its time.
    fn last_start_ns(&self, slot: Slot) -> i64 {
        self.start_ns(slot) + self.interval_ns / 4
    }

    fn after(&self, slot: Slot) -> Slot {
        Slot { number: slot.number + 1, at_ns: slot.at_ns + self.interval_ns }
    }
}

/// One planned round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its number, from 0.
    pub number: u64,
    /// Its instant on the continuous clock, in nanoseconds; before zero if it was before the machine was started.
    pub at_ns: i64,
}

/// What the schedule has to know of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// The slot that was dealt with last.
    pub last: Slot,
    /// When the machine last woke, on the continuous clock; `None`: it has not slept.
    pub woke_ns: Option<i64>,
}

impl History {
    /// A first start: the first round begins in a moment, so that the person sees one, and its slot lies accordingly.
    pub fn fresh(now: &Moment, rhythm: &Rhythm) -> Self {
        let jitter_ns = rhythm.start_ns(Slot { number: 1, at_ns: 0 });
        let at_ns = now.continuous_ns + FIRST_NS - jitter_ns - rhythm.interval_ns;
        Self { last: Slot { number: 0, at_ns }, woke_ns: None }
    }

    /// A start after others: the last slot was meant to be then by the wall clock. That may be ahead of us by the jitter, for
    /// its round may have begun early. If it is further ahead, the clock was set back, and the slot counts as dealt with
    /// just now, so that nothing waits for longer than an interval.
    pub fn resumed(now: &Moment, number: u64, scheduled_us: i64, rhythm: &Rhythm) -> Self {
        let ahead_ns = scheduled_us.saturating_sub(now.wall_us).saturating_mul(1000);
        let ahead_ns = if ahead_ns > rhythm.jitter_ns { 0 } else { ahead_ns };
        let at_ns = now.continuous_ns.saturating_add(ahead_ns);
        Self { last: Slot { number, at_ns }, woke_ns: None }
    }

    /// The rhythm has changed: slots go on from now, the next one an interval away.
    pub fn rescheduled(self, now: &Moment) -> Self {
        Self { last: Slot { at_ns: now.continuous_ns, ..self.last }, ..self }
    }
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing until then, on the continuous clock: the start of this slot.
    Wait {
        /// Which slot.
        slot: Slot,
        /// Its start.
        until_ns: i64,
    },
    /// This slot's round is due.
    Due(Slot),
    /// These slots passed without anybody being there to make their rounds. The last of them is dealt with then.
    Missed {
        /// The first.
        first: Slot,
        /// The last.
        last: Slot,
    },
}

/// What is to be done now. Pure: the same arguments give the same answer.
pub fn next(now: &Moment, history: &History, rhythm: &Rhythm) -> Next {
    let first = rhythm.after(history.last);
    if let Some(last) = last_missed(now.continuous_ns, first, rhythm) {
        return Next::Missed { first, last };
    }
    let grace_ns = history.woke_ns.map_or(i64::MIN, |woke_ns| woke_ns + rhythm.grace_ns);
    let until_ns = rhythm.start_ns(first).max(grace_ns);
    if now.continuous_ns >= until_ns { Next::Due(first) } else { Next::Wait { slot: first, until_ns } }
}

/// The last slot from `first` on whose time is over. Found without a walk through weeks of slots.
fn last_missed(now_ns: i64, first: Slot, rhythm: &Rhythm) -> Option<Slot> {
    let is_missed = |slot: &Slot| rhythm.last_start_ns(*slot) < now_ns;
    let surely = ((now_ns - first.at_ns) / rhythm.interval_ns - 2).max(0);
    let far = Slot {
        number: first.number + surely.cast_unsigned(),
        at_ns: first.at_ns + surely * rhythm.interval_ns,
    };
    let mut slot = if is_missed(&far) { far } else { Some(first).filter(is_missed)? };
    while is_missed(&rhythm.after(slot)) {
        slot = rhythm.after(slot);
    }
    Some(slot)
}

/// Whether a target takes part in a round: baselines stand beside the comparison, and once in four rounds is enough.
pub fn takes_part(role: Role, turn: u64, there_are_shares: bool) -> bool {
    match role {
        Role::Share => true,
        Role::Baseline => !there_are_shares || turn.is_multiple_of(BASELINE_EVERY),
    }
}

/// Which time it is that a target is measured, from 1, as far as its slices are concerned. Baselines that are met in every
/// fourth round only still have to meet all slices in turn.
pub fn rotation(role: Role, turn: u64, baseline_every: u64) -> u64 {
    match role {
        Role::Share => turn + 1,
        Role::Baseline => turn / baseline_every.max(1) + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR_NS: i64 = 3600 * SECOND_NS;

    fn at(continuous_ns: i64) -> Moment {
        Moment { continuous_ns, awake_ns: continuous_ns, ..Moment::default() }
    }

    /// Deals with every slot as it comes; returns the starts of those that were due.
    fn live(rhythm: &Rhythm, from_ns: i64, to_ns: i64) -> (Vec<i64>, History) {
        let mut now_ns = from_ns;
        let (mut history, mut starts) = (History::fresh(&at(now_ns), rhythm), vec![]);
        while now_ns < to_ns {
            match next(&at(now_ns), &history, rhythm) {
                Next::Wait { until_ns, .. } => now_ns = until_ns,
                Next::Due(slot) => {
                    starts.push(now_ns);
                    history.last = slot;
                    now_ns += 400 * SECOND_NS;
                }
                Next::Missed { .. } => panic!("nobody was away"),
            }
        }
        (starts, history)
    }

    #[test]
    fn a_day_has_a_round_an_hour_that_locks_on_to_nothing() {
        let rhythm = Rhythm::every(3600, 7);
        let (starts, _) = live(&rhythm, 0, 100 * 24 * HOUR_NS);
        assert!((2398..=2401).contains(&starts.len()), "{}", starts.len());
        let offsets: Vec<i64> =
            starts.iter().map(|start| start.rem_euclid(HOUR_NS) / (300 * SECOND_NS)).collect();
        let distinct: std::collections::BTreeSet<_> = offsets.iter().collect();
        assert!(distinct.len() >= 4, "starts fall into {distinct:?} of twelve five-minute spans");
        let gaps = starts.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| (40 * 60 * SECOND_NS..=80 * 60 * SECOND_NS).contains(&gap)));
    }

    #[test]
    fn a_night_asleep_is_missed_slot_by_slot_and_never_caught_up_on() {
        let rhythm = Rhythm::every(3600, 7);
        let (_, mut history) = live(&rhythm, 0, 5 * HOUR_NS);
        let woke_ns = history.last.at_ns + 8 * HOUR_NS + HOUR_NS / 2;
        history.woke_ns = Some(woke_ns);
        let Next::Missed { first, last } = next(&at(woke_ns), &history, &rhythm) else { panic!() };
        assert_eq!(first.number, history.last.number + 1);
        assert!((7..=8).contains(&(last.number - history.last.number)), "{last:?}");
        history.last = last;
        let Next::Wait { until_ns, .. } = next(&at(woke_ns), &history, &rhythm) else { panic!("no burst") };
        assert!(until_ns >= woke_ns + rhythm.grace_ns, "grace after wake");
    }

    #[test]
    fn the_wall_clock_decides_nothing_while_the_machine_runs() {
        let rhythm = Rhythm::every(3600, 7);
        let (_, history) = live(&rhythm, 0, 5 * HOUR_NS);
        let now = at(5 * HOUR_NS);
        for wall_us in [0, -3_600_000_000, 86_400_000_000] {
            let stepped = Moment { wall_us, utc_offset_seconds: 7200, ..now };
            assert_eq!(next(&stepped, &history, &rhythm), next(&now, &history, &rhythm));
        }
    }

    #[test]
    fn a_restart_goes_on_where_it_was_and_a_clock_that_was_set_back_delays_by_an_interval_at_most() {
        let rhythm = Rhythm::every(3600, 7);
        let now = Moment { wall_us: 50_000_000_000, ..at(SECOND_NS) };
        let resumed = History::resumed(&now, 41, now.wall_us - 1_800_000_000, &rhythm);
        let Next::Wait { slot, until_ns } = next(&now, &resumed, &rhythm) else { panic!() };
        assert_eq!((slot.number, slot.at_ns), (42, SECOND_NS + HOUR_NS / 2));
        assert!((until_ns - slot.at_ns).abs() <= rhythm.jitter_ns);
        let future = History::resumed(&now, 41, now.wall_us + 86_400_000_000, &rhythm);
        let Next::Wait { slot, .. } = next(&now, &future, &rhythm) else { panic!() };
        assert_eq!(slot.at_ns, SECOND_NS + HOUR_NS);
    }

    #[test]
    fn a_restart_between_an_early_start_and_its_instant_keeps_the_rhythm() {
        let rhythm = Rhythm::every(3600, 7);
        let now = Moment { wall_us: 50_000_000_000, ..at(SECOND_NS) };
        let resumed = History::resumed(&now, 41, now.wall_us + 300_000_000, &rhythm);
        let Next::Wait { slot, .. } = next(&now, &resumed, &rhythm) else { panic!() };
        assert_eq!((slot.number, slot.at_ns), (42, SECOND_NS + 300 * SECOND_NS + HOUR_NS));
    }

    #[test]
    fn baselines_take_part_in_every_fourth_round_and_meet_every_slice() {
        let turns: Vec<u64> = (0..64).filter(|turn| takes_part(Role::Baseline, *turn, true)).collect();
        assert_eq!(turns.len(), 16);
        for slices in [4u64, 26] {
            let long = (0..4000).filter(|turn| takes_part(Role::Baseline, *turn, true));
            let met: std::collections::BTreeSet<u64> =
                long.map(|turn| rotation(Role::Baseline, turn, BASELINE_EVERY) % slices).collect();
            assert_eq!(met.len() as u64, slices);
        }
        assert!(takes_part(Role::Baseline, 1, false), "without shares there is nothing to stand beside");
    }

    proptest! {
        #[test]
        fn every_slot_is_dealt_with_exactly_once(
            seed: u64,
            naps in proptest::collection::vec((1i64..20_000, any::<bool>()), 1..60),
        ) {
            let rhythm = Rhythm::every(3600, seed);
            let mut now_ns = 0;
            let mut history = History::fresh(&at(0), &rhythm);
            let mut seen = 0;
            for (seconds, slept) in naps {
                now_ns += seconds * SECOND_NS;
                history.woke_ns = if slept { Some(now_ns) } else { history.woke_ns };
                loop {
                    let (first, last) = match next(&at(now_ns), &history, &rhythm) {
                        Next::Wait { until_ns, .. } => { prop_assert!(until_ns > now_ns); break }
                        Next::Due(slot) => (slot, slot),
                        Next::Missed { first, last } => (first, last),
                    };
                    prop_assert_eq!(first.number, history.last.number + 1);
                    prop_assert!(last.number >= first.number);
                    seen += last.number - first.number + 1;
                    history.last = last;
                }
            }
            prop_assert_eq!(seen, history.last.number);
            let elapsed = now_ns / rhythm.interval_ns;
            prop_assert!((seen.cast_signed() - elapsed).abs() <= 2, "{} of {}", seen, elapsed);
        }
    }
}
