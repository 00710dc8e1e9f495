//! When the light probe asks: an open loop, pure.
//!
//! Slots come at a fixed interval, whatever the answers do, with a random phase that is drawn anew every hour (periodic
//! with random start, RFC 3432 section 4). An answer is late from its slot, not from when it could be asked for; and the
//! slots that pass while a call does not return wait until it does. A loop that asks, waits and asks again would count a
//! stall of a minute as one slow answer among thousands of fast ones.

use crate::corpus::draw::draw_below;
use crate::model::ProbeKind;

/// How long a phase holds, in nanoseconds.
const HOUR_NS: u64 = 3600 * 1_000_000_000;
/// The stream of the seed that phases are drawn from.
const PHASES: u64 = 0x7068_6173;
/// Sleep beyond which what was asked before says nothing, in nanoseconds. The two clocks are read one after the other, so
/// a machine that is busy may seem to have slept for a moment.
const SLEPT_NS: u64 = crate::worker::SLEPT_NS;

/// One instant of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// Nanoseconds of the clock that stops while the machine sleeps.
    pub awake_ns: u64,
    /// How long the machine has slept until now, in nanoseconds.
    pub asleep_ns: u64,
}

impl Moment {
    /// Whether the machine slept between an earlier moment and this one.
    pub fn slept_since(self, earlier: Self) -> bool {
        self.asleep_ns.saturating_sub(earlier.asleep_ns) > SLEPT_NS
    }
}

/// One instant at which the probe is meant to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// When, on the clock that stops while the machine sleeps.
    pub at_ns: u64,
    /// What.
    pub kind: ProbeKind,
}

/// A slot that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Which.
    pub slot: Slot,
    /// When the probe was last free before it.
    pub free: Moment,
    /// When it woke if it had waited for the slot; `None` if it was busy until after it. A busy machine, or one that
    /// saves energy, wakes it late: that is no wait for the target.
    pub woken_ns: Option<u64>,
    /// When the call returned.
    pub returned: Moment,
}

/// All slots of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots {
    begin_ns: u64,
    interval_ns: u64,
    kinds: Vec<ProbeKind>,
    seed: u64,
}

impl Slots {
    /// The slots from an instant on; `None` if nothing is to be asked. An interval is at least a millisecond and at most
    /// an hour.
    pub fn new(begin_ns: u64, interval_ms: u64, kinds: &[ProbeKind], seed: u64) -> Option<Self> {
        let interval_ns = interval_ms.saturating_mul(1_000_000).clamp(1_000_000, HOUR_NS);
        (!kinds.is_empty()).then(|| Self { begin_ns, interval_ns, kinds: kinds.to_vec(), seed })
    }

    /// From slot to slot, in nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// The first slot after an instant.
    pub fn after(&self, now_ns: u64) -> Slot {
        let Some(since) = now_ns.checked_sub(self.begin_ns) else { return self.slot(0, 0) };
        let hour = since / HOUR_NS;
        let number = match (since % HOUR_NS).checked_sub(self.phase(hour)) {
            None => 0,
            Some(past) => past / self.interval_ns + 1,
        };
        match number < self.slots_of(hour) {
            true => self.slot(hour, number),
            false => self.slot(hour + 1, 0),
        }
    }

    /// The slots after an instant, up to and including another.
    pub fn between(&self, after_ns: u64, until_ns: u64) -> impl Iterator<Item = Slot> {
        let first = Some(self.after(after_ns)).filter(|slot| slot.at_ns <= until_ns);
        std::iter::successors(first, move |slot| {
            Some(self.after(slot.at_ns)).filter(|slot| slot.at_ns <= until_ns)
        })
    }

    /// The slots that passed after the moment at which the probe was last free, while a call did not return until now;
    /// none across sleep, as nobody waited then.
    pub fn passed(&self, free: Moment, returned: Moment) -> impl Iterator<Item = Slot> {
        let until_ns = if returned.slept_since(free) { 0 } else { returned.awake_ns };
        self.between(free.awake_ns, until_ns)
    }

    /// What was felt: how long the slot that was asked took, then those that passed meanwhile, in nanoseconds; nothing
    /// across sleep.
    pub fn felt(&self, call: &Call) -> impl Iterator<Item = (Slot, u64)> {
        let from_ns = call.woken_ns.unwrap_or(0).max(call.slot.at_ns);
        let returned_ns = call.returned.awake_ns;
        let asked = (!call.returned.slept_since(call.free)).then_some((call.slot, from_ns));
        let passed = self.passed(Moment { awake_ns: from_ns, ..call.free }, call.returned);
        let all = asked.into_iter().chain(passed.map(|slot| (slot, slot.at_ns)));
        all.map(move |(slot, from_ns)| (slot, returned_ns.saturating_sub(from_ns)))
    }

    fn slot(&self, hour: u64, number: u64) -> Slot {
        let at_ns = self.begin_ns + hour * HOUR_NS + self.phase(hour) + number * self.interval_ns;
        let turn = hour * (HOUR_NS / self.interval_ns) + number;
        let kind = self.kinds[(turn % self.kinds.len() as u64) as usize];
        Slot { at_ns, kind }
    }

    fn phase(&self, hour: u64) -> u64 {
        draw_below(self.seed, PHASES, hour, self.interval_ns)
    }

    /// How many slots begin in an hour.
    fn slots_of(&self, hour: u64) -> u64 {
        (HOUR_NS - self.phase(hour)).div_ceil(self.interval_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn every(interval_ms: u64, seed: u64) -> Slots {
        Slots::new(100 * SECOND, interval_ms, &ProbeKind::ALL, seed).unwrap()
    }

    fn at(awake_ns: u64, asleep_ns: u64) -> Moment {
        Moment { awake_ns, asleep_ns }
    }

    #[test]
    fn nothing_to_ask_has_no_slots() {
        assert_eq!(Slots::new(0, 5000, &[], 1), None);
    }

    #[test]
    fn a_stall_of_a_minute_is_twelve_waits_and_not_one() {
        let slots = every(5000, 7);
        let asked = slots.after(1000 * SECOND);
        let returned = asked.at_ns + 60 * SECOND;
        let waits: Vec<u64> =
            slots.passed(at(asked.at_ns, 0), at(returned, 0)).map(|slot| returned - slot.at_ns).collect();
        assert_eq!(waits, (0..12).rev().map(|number| number * 5 * SECOND).collect::<Vec<_>>());
    }

    #[test]
    fn nobody_waited_while_the_lid_was_closed() {
        let slots = every(5000, 7);
        let asked = slots.after(1000 * SECOND);
        let eight_hours = 8 * 3600 * SECOND;
        // Also where the clock that should stop went on, as in some virtual machines.
        for awake in [20 * SECOND, eight_hours] {
            let returned = at(asked.at_ns + awake, eight_hours);
            assert_eq!(slots.passed(at(asked.at_ns, 0), returned).count(), 0);
        }
    }

    #[test]
    fn a_probe_that_is_woken_late_waits_for_nobody_and_one_that_was_busy_does() {
        let slots = every(5000, 7);
        let slot = slots.after(1000 * SECOND);
        let returned = at(slot.at_ns + 12 * SECOND, 0);
        let felt = |woken_ns| {
            let call = Call { slot, free: at(slot.at_ns - SECOND, 0), woken_ns, returned };
            slots.felt(&call).map(|(_, felt)| felt / SECOND).collect::<Vec<_>>()
        };
        assert_eq!(felt(None), [12, 7, 2]);
        assert_eq!(felt(Some(slot.at_ns + 11 * SECOND)), [1]);
        assert_eq!(felt(Some(slot.at_ns + 6 * SECOND)), [6, 2]);
    }

    #[test]
    fn what_two_readings_of_a_busy_machine_differ_by_is_no_sleep() {
        assert!(!at(10 * SECOND, 40_000_000).slept_since(at(0, 0)));
        assert!(at(10 * SECOND, 2 * SECOND).slept_since(at(0, 0)));
        assert!(!at(10 * SECOND, 0).slept_since(at(0, SECOND)), "a clock that seems to go back is no sleep");
    }

    proptest! {
        #[test]
        fn slots_come_at_the_interval_within_an_hour(
            interval_ms in 1u64..4_000_000, seed: u64, hour in 0u64..100_000, into in 0u64..HOUR_NS,
        ) {
            let slots = every(interval_ms, seed);
            let interval = slots.interval_ns();
            let now = slots.begin_ns + hour * HOUR_NS + into;
            let (first, second) = (slots.after(now), slots.after(slots.after(now).at_ns));
            prop_assert!(first.at_ns > now && second.at_ns > first.at_ns);
            prop_assert!(first.at_ns - now <= 2 * interval, "a change of phase leaves out less than one slot");
            let hour_of = |slot: Slot| (slot.at_ns - slots.begin_ns) / HOUR_NS;
            if hour_of(first) == hour_of(second) {
                prop_assert_eq!(second.at_ns - first.at_ns, interval);
            }
        }

        #[test]
        fn the_phase_of_each_hour_lies_anywhere_in_the_interval(seed: u64) {
            let slots = every(5000, seed);
            let phases: Vec<u64> = (0..200).map(|hour| slots.phase(hour)).collect();
            prop_assert!(phases.iter().all(|phase| *phase < 5 * SECOND));
            let early = phases.iter().filter(|phase| **phase < 5 * SECOND / 2).count();
            prop_assert!((50..150).contains(&early), "{early} of 200 in the first half");
        }

        #[test]
        fn kinds_take_turns(seed: u64, interval_ms in 1000u64..10_000, after in 0u64..HOUR_NS) {
            let slots = every(interval_ms, seed);
            let kinds: Vec<ProbeKind> = slots.between(after, after + 300 * SECOND).map(|slot| slot.kind).collect();
            let turn = |kind: ProbeKind| ProbeKind::ALL.iter().position(|one| *one == kind).unwrap();
            let broken = kinds.windows(2).filter(|two| turn(two[1]) != (turn(two[0]) + 1) % 3).count();
            prop_assert!(broken <= 1, "only where the hour changes: {kinds:?}");
        }

        #[test]
        fn every_slot_that_passed_is_waited_for_and_none_twice(
            seed: u64, free in 0u64..2 * HOUR_NS, stalls in proptest::collection::vec(0u64..400 * SECOND, 1..10),
        ) {
            let slots = every(5000, seed);
            let (mut now, mut found) = (free, vec![]);
            for stall in stalls {
                found.extend(slots.passed(at(now, 0), at(now + stall, 0)));
                now += stall;
            }
            prop_assert_eq!(found, slots.between(free, now).collect::<Vec<_>>());
        }

        #[test]
        fn a_call_that_spans_sleep_is_left_out(
            seed: u64, free in 0u64..HOUR_NS, awake in 0u64..HOUR_NS, asleep in SECOND + 1..100 * HOUR_NS,
        ) {
            let slots = every(5000, seed);
            let slot = slots.after(free);
            let returned = at(slot.at_ns + awake, 3 + asleep);
            let call = Call { slot, free: at(free, 3), woken_ns: None, returned };
            prop_assert_eq!(slots.felt(&call).count(), 0);
            let awake = Call { returned: at(slot.at_ns + awake, 3), ..call };
            prop_assert!(slots.felt(&awake).count() > 0);
        }

        #[test]
        fn no_slot_is_invented_across_sleep(
            seed: u64, free in 0u64..HOUR_NS, awake in 0u64..HOUR_NS, asleep in SECOND + 1..100 * HOUR_NS,
        ) {
            prop_assert_eq!(every(5000, seed).passed(at(free, 3), at(free + awake, 3 + asleep)).count(), 0);
        }
    }
}
