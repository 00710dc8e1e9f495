//! The schedule of rounds: decides when the next one is due. Pure.
//!
//! The schedule counts in **slots**, one every interval on a clock that never steps and keeps running while the
//! machine sleeps. Each slot's start is jittered uniformly around its instant, drawn from the seed, so that
//! rounds do not coincide with hourly jobs of other programs. Each slot is handled exactly once: run, skipped
//! with a reason, or missed. Slots missed while the machine was asleep or switched off are never made up for.
//! The wall clock is only a label, so clock steps, daylight saving and travel neither double nor lose a round.

pub mod budget;
pub mod quiet_hours;
pub mod skip;
pub mod weeks;

use longhaul_model::draw::draw_below;
use longhaul_model::{Role, Target, Timestamp};

use crate::clock::ClockReading;

const SECOND_NS: i64 = 1_000_000_000;

/// Number of rounds from one measurement of the baselines to the next.
const BASELINE_INTERVAL: u64 = 4;
/// Delay of the first round after the first start of the service.
const FIRST_ROUND_DELAY_NS: i64 = 10 * SECOND_NS;

/// Parameters from which the start times of all slots follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotTimes {
    /// Time between two slots, in nanoseconds.
    pub interval_ns: i64,
    /// Largest distance between a slot's instant and its start, earlier or later, in nanoseconds.
    pub jitter_ns: i64,
    /// Time after the machine woke up in which no round starts, in nanoseconds.
    pub grace_ns: i64,
    /// Seed of the random jitter.
    pub seed: u64,
}

impl SlotTimes {
    /// Returns slots `seconds` apart, jittered by a sixth of the interval: ten minutes of an hour.
    pub fn with_interval(seconds: u64, seed: u64) -> Self {
        let interval_ns =
            i64::try_from(seconds).unwrap_or(i64::MAX / SECOND_NS).max(1).saturating_mul(SECOND_NS);
        Self { interval_ns, jitter_ns: interval_ns / 6, grace_ns: 60 * SECOND_NS, seed }
    }

    /// Returns the start of a slot's round on the continuous clock, in nanoseconds.
    pub fn start_ns(&self, slot: Slot) -> i64 {
        // 0x736c_6f74 is "slot" in ASCII: it separates these draws from others with the same seed.
        let jitter = draw_below(self.seed, 0x736c_6f74, slot.number, self.jitter_ns.cast_unsigned() * 2 + 1);
        slot.at_ns + jitter.cast_signed() - self.jitter_ns
    }

    /// Returns the time after which a slot counts as missed. A quarter of an interval late is allowed: the
    /// previous round or the grace period after a wake-up may take that long.
    fn deadline_ns(&self, slot: Slot) -> i64 {
        self.start_ns(slot) + self.interval_ns / 4
    }

    fn slot_after(&self, slot: Slot) -> Slot {
        Slot { number: slot.number + 1, at_ns: slot.at_ns + self.interval_ns }
    }
}

/// One planned round of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Number of the slot, starting at 0.
    pub number: u64,
    /// Instant of the slot on the continuous clock, in nanoseconds. Negative: before the machine was started.
    pub at_ns: i64,
}

/// The last handled slot and the last wake-up of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotHistory {
    /// The last slot that was run, skipped or missed.
    pub last: Slot,
    /// Time of the last wake-up on the continuous clock, in nanoseconds. `None`: the machine has not slept.
    pub resumed_ns: Option<i64>,
}

impl SlotHistory {
    /// Returns the history for the very first start. The first round starts after ten seconds, so that the user
    /// sees one soon, and its slot is chosen to match.
    pub fn new(now: &ClockReading, times: &SlotTimes) -> Self {
        let jitter_ns = times.start_ns(Slot { number: 1, at_ns: 0 });
        let at_ns = now.continuous_ns + FIRST_ROUND_DELAY_NS - jitter_ns - times.interval_ns;
        Self { last: Slot { number: 0, at_ns }, resumed_ns: None }
    }

    /// Returns the history after a restart, from the last slot's planned wall-clock time. That time may be in
    /// the future by up to the jitter, because a round may start before its slot. If it is further ahead, the
    /// clock was set back: the slot then counts as just handled, so that the wait is at most one interval.
    pub fn from_last_round(now: &ClockReading, number: u64, scheduled: Timestamp, times: &SlotTimes) -> Self {
        let at_ns = now.continuous_ns_at(scheduled);
        let is_set_back = at_ns.saturating_sub(now.continuous_ns) > times.jitter_ns;
        let at_ns = if is_set_back { now.continuous_ns } else { at_ns };
        Self { last: Slot { number, at_ns }, resumed_ns: None }
    }

    /// Returns the history after the interval has changed: the next slot is one interval from now.
    pub fn restarted_at(self, now: &ClockReading) -> Self {
        Self { last: Slot { at_ns: now.continuous_ns, ..self.last }, ..self }
    }
}

/// The next action of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextSlot {
    /// No round is due yet.
    Wait {
        /// The next slot.
        slot: Slot,
        /// Start of the slot's round on the continuous clock, in nanoseconds.
        until_ns: i64,
    },
    /// The round of this slot is due now.
    Due(Slot),
    /// These slots passed without a round. They count as handled once they are recorded.
    Missed {
        /// First missed slot.
        first: Slot,
        /// Last missed slot.
        last: Slot,
    },
}

/// Returns the next action. Pure: equal arguments give equal results.
pub fn next_slot(now: &ClockReading, history: &SlotHistory, times: &SlotTimes) -> NextSlot {
    let first = times.slot_after(history.last);
    if let Some(last) = last_missed(now.continuous_ns, first, times) {
        return NextSlot::Missed { first, last };
    }
    let start_ns = times.start_ns(first);
    let until_ns = history.resumed_ns.map_or(start_ns, |woke_ns| start_ns.max(woke_ns + times.grace_ns));
    if now.continuous_ns >= until_ns {
        NextSlot::Due(first)
    } else {
        NextSlot::Wait { slot: first, until_ns }
    }
}

/// Returns the last missed slot, starting at `first`. `None`: `first` is not missed.
fn last_missed(now_ns: i64, first: Slot, times: &SlotTimes) -> Option<Slot> {
    let is_missed = |slot: &Slot| times.deadline_ns(*slot) < now_ns;
    // Jumps over slots that are certainly missed instead of walking through weeks of
    // them; the last two are checked one by one.
    let skippable = ((now_ns - first.at_ns) / times.interval_ns - 2).max(0);
    let start = Slot {
        number: first.number + skippable.cast_unsigned(),
        at_ns: first.at_ns + skippable * times.interval_ns,
    };
    let mut slot = if is_missed(&start) { start } else { Some(first).filter(is_missed)? };
    while is_missed(&times.slot_after(slot)) {
        slot = times.slot_after(slot);
    }
    Some(slot)
}

/// Returns the number of rounds from one with the baselines to the next. Baselines are only a comparison next to the
/// shares, so every fourth round is enough for them; without shares, they are in every round.
pub fn baseline_interval(targets: &[Target]) -> u64 {
    if targets.iter().any(|target| target.role == Role::Share) { BASELINE_INTERVAL } else { 1 }
}

/// Returns whether a target takes part in a round.
pub fn takes_part(role: Role, round_index: u64, baseline_interval: u64) -> bool {
    match role {
        Role::Share => true,
        Role::Baseline => round_index.is_multiple_of(baseline_interval),
    }
}

/// Returns the rotation number of a target in a round, from 1, which selects the corpus slice. Baselines count
/// only the rounds they take part in, so that they also use all slices in turn.
pub fn slice_rotation(role: Role, round_index: u64, baseline_interval: u64) -> u64 {
    match role {
        Role::Share => round_index + 1,
        Role::Baseline => round_index / baseline_interval.max(1) + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::time::{DAY, HOUR};
    use std::time::Duration;

    const HOUR_NS: i64 = 3600 * SECOND_NS;

    fn at(continuous_ns: i64) -> ClockReading {
        ClockReading { continuous_ns, awake_ns: continuous_ns, ..ClockReading::default() }
    }

    /// Handles every slot at its time. Returns the starts of the due ones, and the final history.
    fn simulate(times: &SlotTimes, from_ns: i64, to_ns: i64) -> (Vec<i64>, SlotHistory) {
        let mut now_ns = from_ns;
        let (mut history, mut starts) = (SlotHistory::new(&at(now_ns), times), vec![]);
        while now_ns < to_ns {
            match next_slot(&at(now_ns), &history, times) {
                NextSlot::Wait { until_ns, .. } => now_ns = until_ns,
                NextSlot::Due(slot) => {
                    starts.push(now_ns);
                    history.last = slot;
                    now_ns += 400 * SECOND_NS;
                }
                NextSlot::Missed { .. } => panic!("no slot can be missed"),
            }
        }
        (starts, history)
    }

    #[test]
    fn a_day_has_hourly_rounds_at_scattered_minutes() {
        let times = SlotTimes::with_interval(3600, 7);
        let (starts, _) = simulate(&times, 0, 100 * 24 * HOUR_NS);
        assert!((2398..=2401).contains(&starts.len()), "{}", starts.len());
        let offsets: Vec<i64> =
            starts.iter().map(|start| start.rem_euclid(HOUR_NS) / (300 * SECOND_NS)).collect();
        let distinct: std::collections::BTreeSet<_> = offsets.iter().collect();
        assert!(distinct.len() >= 4, "starts fall into {distinct:?} of twelve five-minute spans");
        let gaps = starts.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| (40 * 60 * SECOND_NS..=80 * 60 * SECOND_NS).contains(&gap)));
    }

    #[test]
    fn slots_missed_asleep_are_never_made_up_for() {
        let times = SlotTimes::with_interval(3600, 7);
        let (_, mut history) = simulate(&times, 0, 5 * HOUR_NS);
        let woke_ns = history.last.at_ns + 8 * HOUR_NS + HOUR_NS / 2;
        history.resumed_ns = Some(woke_ns);
        let NextSlot::Missed { first, last } = next_slot(&at(woke_ns), &history, &times) else { panic!() };
        assert_eq!(first.number, history.last.number + 1);
        assert!((7..=8).contains(&(last.number - history.last.number)), "{last:?}");
        history.last = last;
        let NextSlot::Wait { until_ns, .. } = next_slot(&at(woke_ns), &history, &times) else {
            panic!("missed slots must not be made up for")
        };
        assert!(until_ns >= woke_ns + times.grace_ns, "no round starts right after the wake-up");
    }

    #[test]
    fn wall_clock_steps_do_not_change_the_schedule() {
        let times = SlotTimes::with_interval(3600, 7);
        let (_, history) = simulate(&times, 0, 5 * HOUR_NS);
        let now = at(5 * HOUR_NS);
        for wall in [0, -3_600_000_000, 86_400_000_000].map(Timestamp::from_us) {
            let stepped = ClockReading { wall, utc_offset_seconds: 7200, ..now };
            assert_eq!(next_slot(&stepped, &history, &times), next_slot(&now, &history, &times));
        }
    }

    #[test]
    fn restart_continues_and_a_clock_set_back_delays_little() {
        let times = SlotTimes::with_interval(3600, 7);
        let now = ClockReading { wall: Timestamp::from_us(50_000_000_000), ..at(SECOND_NS) };
        let resumed = SlotHistory::from_last_round(&now, 41, now.wall - HOUR / 2, &times);
        let NextSlot::Wait { slot, until_ns } = next_slot(&now, &resumed, &times) else { panic!() };
        assert_eq!((slot.number, slot.at_ns), (42, SECOND_NS + HOUR_NS / 2));
        assert!((until_ns - slot.at_ns).abs() <= times.jitter_ns);
        let future = SlotHistory::from_last_round(&now, 41, now.wall + DAY, &times);
        let NextSlot::Wait { slot, .. } = next_slot(&now, &future, &times) else { panic!() };
        assert_eq!(slot.at_ns, SECOND_NS + HOUR_NS);
    }

    #[test]
    fn restart_between_early_start_and_slot_keeps_the_interval() {
        let times = SlotTimes::with_interval(3600, 7);
        let now = ClockReading { wall: Timestamp::from_us(50_000_000_000), ..at(SECOND_NS) };
        let resumed = SlotHistory::from_last_round(&now, 41, now.wall + Duration::from_mins(5), &times);
        let NextSlot::Wait { slot, .. } = next_slot(&now, &resumed, &times) else { panic!() };
        assert_eq!((slot.number, slot.at_ns), (42, SECOND_NS + 300 * SECOND_NS + HOUR_NS));
    }

    #[test]
    fn baselines_join_every_fourth_round_and_use_every_slice() {
        let rounds: Vec<u64> =
            (0..64).filter(|round| takes_part(Role::Baseline, *round, BASELINE_INTERVAL)).collect();
        assert_eq!(rounds.len(), 16);
        for slices in [4u64, 26] {
            let measured = (0..4000).filter(|round| takes_part(Role::Baseline, *round, BASELINE_INTERVAL));
            let used: std::collections::BTreeSet<u64> = measured
                .map(|round| slice_rotation(Role::Baseline, round, BASELINE_INTERVAL) % slices)
                .collect();
            assert_eq!(used.len() as u64, slices);
        }
        assert!(
            takes_part(Role::Baseline, 1, baseline_interval(&[])),
            "without shares, baselines are in every round"
        );
    }
}
