//! The schedule of the latency probe: an open loop. Pure, without I/O and clocks.
//!
//! Slots are at a fixed interval, independent of the answers, with a random phase that changes every hour
//! (periodic with random start, RFC 3432 section 4; docs/decisions/0010-open-loop-probe.md). Latency is measured
//! from the time of the slot, not from the time of the call. Slots that are missed while a call is in flight are
//! completed when that call returns. A closed loop (request, wait, next request) would count a stall of a minute
//! as one slow answer among thousands of fast ones.

use longhaul_model::draw::draw_below;
use longhaul_model::{ProbeKind, SLEPT_NS};

/// Time after which a new random phase is used, in nanoseconds.
const HOUR_NS: u64 = 3600 * 1_000_000_000;
/// Random stream for the phases.
const PHASE_STREAM: u64 = 0x7068_6173;

/// Reading of both clocks at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockReading {
    /// Nanoseconds of the clock that stops while the machine sleeps.
    pub awake_ns: u64,
    /// Total time that the machine has slept until now, in nanoseconds.
    pub asleep_ns: u64,
}

impl ClockReading {
    /// Returns whether the machine slept between an earlier reading and this one.
    pub fn slept_since(self, earlier: Self) -> bool {
        self.asleep_ns.saturating_sub(earlier.asleep_ns) > SLEPT_NS
    }
}

/// Planned request of the latency probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSlot {
    /// Planned time, in nanoseconds of the clock that stops while the machine sleeps.
    pub at_ns: u64,
    /// Kind of request.
    pub kind: ProbeKind,
}

/// Slot whose request was made, with the times of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotCall {
    /// Slot of the request.
    pub slot: ProbeSlot,
    /// Time at which the probe finished its previous request.
    pub last_free: ClockReading,
    /// Time at which the probe thread woke up after waiting for the slot; `None` if the probe was busy at the time
    /// of the slot. A busy or energy-saving machine wakes the thread late. This delay is not caused by the target,
    /// so it does not count as latency.
    pub woken_ns: Option<u64>,
    /// Time at which the call returned.
    pub returned: ClockReading,
}

/// Schedule of the latency probe: all slots of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSchedule {
    begin_ns: u64,
    interval_ns: u64,
    kinds: Vec<ProbeKind>,
    seed: u64,
}

impl ProbeSchedule {
    /// Creates a schedule that starts at `begin_ns`; returns `None` if `kinds` is empty. The interval is clamped
    /// to the range from a millisecond to an hour.
    pub fn new(begin_ns: u64, interval_ms: u64, kinds: &[ProbeKind], seed: u64) -> Option<Self> {
        let interval_ns = interval_ms.saturating_mul(1_000_000).clamp(1_000_000, HOUR_NS);
        (!kinds.is_empty()).then(|| Self { begin_ns, interval_ns, kinds: kinds.to_vec(), seed })
    }

    /// Returns the interval between two slots in nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Returns the first slot after a time.
    pub fn next_after(&self, now_ns: u64) -> ProbeSlot {
        let Some(since) = now_ns.checked_sub(self.begin_ns) else { return self.slot(0, 0) };
        let hour = since / HOUR_NS;
        let number = match (since % HOUR_NS).checked_sub(self.phase(hour)) {
            None => 0,
            Some(past) => past / self.interval_ns + 1,
        };
        match number < self.slots_in_hour(hour) {
            true => self.slot(hour, number),
            false => self.slot(hour + 1, 0),
        }
    }

    /// Returns the slots after `after_ns`, up to and including `until_ns`.
    pub fn between(&self, after_ns: u64, until_ns: u64) -> impl Iterator<Item = ProbeSlot> {
        let first = Some(self.next_after(after_ns)).filter(|slot| slot.at_ns <= until_ns);
        std::iter::successors(first, move |slot| {
            Some(self.next_after(slot.at_ns)).filter(|slot| slot.at_ns <= until_ns)
        })
    }

    /// Returns the slots that were missed between `free`, when the probe was last free, and `returned`, when its
    /// call returned. Returns none if the machine slept in between, because nothing was waiting during sleep.
    pub fn missed(&self, free: ClockReading, returned: ClockReading) -> impl Iterator<Item = ProbeSlot> {
        let until_ns = if returned.slept_since(free) { 0 } else { returned.awake_ns };
        self.between(free.awake_ns, until_ns)
    }

    /// Returns the latencies that result from a call, in nanoseconds: that of its own slot first, then those of
    /// the slots that were missed while the call was in flight. Returns none if the machine slept in between.
    pub fn latencies(&self, call: &SlotCall) -> impl Iterator<Item = (ProbeSlot, u64)> {
        let from_ns = call.woken_ns.unwrap_or(0).max(call.slot.at_ns);
        let returned_ns = call.returned.awake_ns;
        let own = (!call.returned.slept_since(call.last_free)).then_some((call.slot, from_ns));
        let missed = self.missed(ClockReading { awake_ns: from_ns, ..call.last_free }, call.returned);
        let all = own.into_iter().chain(missed.map(|slot| (slot, slot.at_ns)));
        all.map(move |(slot, from_ns)| (slot, returned_ns.saturating_sub(from_ns)))
    }

    fn slot(&self, hour: u64, number: u64) -> ProbeSlot {
        let at_ns = self.begin_ns + hour * HOUR_NS + self.phase(hour) + number * self.interval_ns;
        let index = hour * (HOUR_NS / self.interval_ns) + number;
        let kind = self.kinds[(index % self.kinds.len() as u64) as usize];
        ProbeSlot { at_ns, kind }
    }

    fn phase(&self, hour: u64) -> u64 {
        draw_below(self.seed, PHASE_STREAM, hour, self.interval_ns)
    }

    /// Returns the number of slots in an hour of the schedule.
    fn slots_in_hour(&self, hour: u64) -> u64 {
        (HOUR_NS - self.phase(hour)).div_ceil(self.interval_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn every(interval_ms: u64, seed: u64) -> ProbeSchedule {
        ProbeSchedule::new(100 * SECOND, interval_ms, &ProbeKind::ALL, seed).unwrap()
    }

    fn at(awake_ns: u64, asleep_ns: u64) -> ClockReading {
        ClockReading { awake_ns, asleep_ns }
    }

    #[test]
    fn plan_without_kinds_has_no_schedule() {
        assert_eq!(ProbeSchedule::new(0, 5000, &[], 1), None);
    }

    #[test]
    fn stall_of_a_minute_delays_twelve_slots() {
        let slots = every(5000, 7);
        let slot = slots.next_after(1000 * SECOND);
        let returned = slot.at_ns + 60 * SECOND;
        let delays: Vec<u64> =
            slots.missed(at(slot.at_ns, 0), at(returned, 0)).map(|slot| returned - slot.at_ns).collect();
        assert_eq!(delays, (0..12).rev().map(|number| number * 5 * SECOND).collect::<Vec<_>>());
    }

    #[test]
    fn late_wakeup_is_no_latency_but_a_busy_probe_is() {
        let slots = every(5000, 7);
        let slot = slots.next_after(1000 * SECOND);
        let returned = at(slot.at_ns + 12 * SECOND, 0);
        let latencies = |woken_ns| {
            let call = SlotCall { slot, last_free: at(slot.at_ns - SECOND, 0), woken_ns, returned };
            slots.latencies(&call).map(|(_, latency)| latency / SECOND).collect::<Vec<_>>()
        };
        assert_eq!(latencies(None), [12, 7, 2]);
        assert_eq!(latencies(Some(slot.at_ns + 11 * SECOND)), [1]);
        assert_eq!(latencies(Some(slot.at_ns + 6 * SECOND)), [6, 2]);
    }

    #[test]
    fn small_difference_between_the_clocks_is_no_sleep() {
        assert!(!at(10 * SECOND, 40_000_000).slept_since(at(0, 0)));
        assert!(at(10 * SECOND, 2 * SECOND).slept_since(at(0, 0)));
        assert!(!at(10 * SECOND, 0).slept_since(at(0, SECOND)), "a clock that goes backwards is no sleep");
    }

    proptest! {
        #[test]
        fn slots_within_an_hour_are_one_interval_apart(
            interval_ms in 1u64..4_000_000, seed: u64, hour in 0u64..100_000, into in 0u64..HOUR_NS,
        ) {
            let slots = every(interval_ms, seed);
            let interval = slots.interval_ns();
            let now = slots.begin_ns + hour * HOUR_NS + into;
            let (first, second) = (slots.next_after(now), slots.next_after(slots.next_after(now).at_ns));
            prop_assert!(first.at_ns > now && second.at_ns > first.at_ns);
            prop_assert!(first.at_ns - now <= 2 * interval, "a change of the phase delays a slot by less than one interval");
            let hour_of = |slot: ProbeSlot| (slot.at_ns - slots.begin_ns) / HOUR_NS;
            if hour_of(first) == hour_of(second) {
                prop_assert_eq!(second.at_ns - first.at_ns, interval);
            }
        }

        #[test]
        fn phases_are_spread_over_the_whole_interval(seed: u64) {
            let slots = every(5000, seed);
            let phases: Vec<u64> = (0..200).map(|hour| slots.phase(hour)).collect();
            prop_assert!(phases.iter().all(|phase| *phase < 5 * SECOND));
            let early = phases.iter().filter(|phase| **phase < 5 * SECOND / 2).count();
            prop_assert!((50..150).contains(&early), "{early} of 200 in the first half");
        }

        #[test]
        fn kinds_alternate(seed: u64, interval_ms in 1000u64..10_000, after in 0u64..HOUR_NS) {
            let slots = every(interval_ms, seed);
            let kinds: Vec<ProbeKind> = slots.between(after, after + 300 * SECOND).map(|slot| slot.kind).collect();
            let index = |kind: ProbeKind| ProbeKind::ALL.iter().position(|one| *one == kind).unwrap();
            let irregular = kinds.windows(2).filter(|two| index(two[1]) != (index(two[0]) + 1) % 3).count();
            prop_assert!(irregular <= 1, "only at the start of an hour: {kinds:?}");
        }

        #[test]
        fn every_missed_slot_is_reported_exactly_once(
            seed: u64, free in 0u64..2 * HOUR_NS, stalls in proptest::collection::vec(0u64..400 * SECOND, 1..10),
        ) {
            let slots = every(5000, seed);
            let (mut now, mut found) = (free, vec![]);
            for stall in stalls {
                found.extend(slots.missed(at(now, 0), at(now + stall, 0)));
                now += stall;
            }
            prop_assert_eq!(found, slots.between(free, now).collect::<Vec<_>>());
        }

        #[test]
        fn call_that_spans_sleep_has_no_latency(
            seed: u64, free in 0u64..HOUR_NS, awake in 0u64..HOUR_NS, asleep in SECOND + 1..100 * HOUR_NS,
        ) {
            let slots = every(5000, seed);
            let slot = slots.next_after(free);
            let returned = at(slot.at_ns + awake, 3 + asleep);
            let call = SlotCall { slot, last_free: at(free, 3), woken_ns: None, returned };
            prop_assert_eq!(slots.latencies(&call).count(), 0);
            let awake = SlotCall { returned: at(slot.at_ns + awake, 3), ..call };
            prop_assert!(slots.latencies(&awake).count() > 0);
        }

        // In some virtual machines, the clock that should stop during sleep continues.
        #[test]
        fn no_slot_is_missed_across_sleep(
            seed: u64, free in 0u64..HOUR_NS, awake in 0u64..100 * HOUR_NS, asleep in SECOND + 1..100 * HOUR_NS,
        ) {
            prop_assert_eq!(every(5000, seed).missed(at(free, 3), at(free + awake, 3 + asleep)).count(), 0);
        }
    }
}
