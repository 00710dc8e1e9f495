//! Decides when the next round is due, and knows how many rounds were started. Pure.

use std::time::Duration;

use longhaul_model::{Event, MachineSnapshot, Timestamp};
use serde_json::json;

use crate::clock::ClockReading;
use crate::round::RoundSpec;
use crate::schedule::skip::SkipReason;
use crate::schedule::{NextSlot, Slot, SlotHistory, SlotTimes, next_slot};

/// Longest wait between two steps of the service. A longer wait would detect too late that the machine slept.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(60);
/// Time before a round from which network traffic is measured, in nanoseconds.
const TRAFFIC_LOOKAHEAD_NS: i64 = 60_000_000_000;
/// Delay before a round is started again that the database could not store, in nanoseconds.
const RETRY_DELAY_NS: i64 = 5_000_000_000;
/// Largest number of rows for one period of missed rounds. A month of absence becomes
/// one event with at most a week of rows.
const MAX_MISSED_ROWS: u64 = 7 * 24;

/// The next action of the schedule.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextAction {
    /// Run the round that a user requested.
    RunRequested,
    /// Run or skip the round of this slot.
    Run(Slot),
    /// Record slots that passed without a round.
    RecordMissed(MissedSlots),
    /// Start to measure the network traffic: a round is due in a minute.
    Prepare,
    /// Wait for this time.
    Wait(Duration),
}

/// Slots that passed without a round.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissedSlots {
    /// Number of slots.
    pub(super) count: u64,
    /// Reason why no round ran.
    pub(super) reason: SkipReason,
    /// Planned times on the continuous clock in nanoseconds, of the last week at most.
    pub(super) times_ns: Vec<i64>,
}

impl MissedSlots {
    /// Returns the event that records them.
    pub(super) fn event(&self, at: Timestamp) -> Event {
        let detail = json!({ "rounds": self.count, "reason": self.reason.code });
        Event { target: None, kind: "missed-rounds".to_owned(), detail, at_us: at }
    }
}

/// The slots of the schedule, and the rounds that were started.
pub(super) struct Scheduler {
    seed: u64,
    started_ns: i64,
    times: SlotTimes,
    history: SlotHistory,
    /// Number of rounds started so far.
    round_index: u64,
    /// Planned time of the first scheduled round.
    first_scheduled: Option<Timestamp>,
    /// True if a user requested a round.
    is_requested: bool,
    /// Number of the slot that was last prepared.
    prepared_slot: Option<u64>,
    /// The slot before the one of the current round, which is due again if the round cannot be stored.
    slot_before: Option<Slot>,
    /// Time before which no round starts, on the continuous clock in nanoseconds. `None`: rounds may start.
    earliest_ns: Option<i64>,
}

impl Scheduler {
    /// Creates the schedule of the first start.
    pub(super) fn new(now: &ClockReading, interval_seconds: u64, seed: u64) -> Self {
        let times = SlotTimes::with_interval(interval_seconds, seed);
        Self {
            seed,
            started_ns: now.continuous_ns,
            history: SlotHistory::new(now, &times),
            times,
            round_index: 0,
            first_scheduled: None,
            is_requested: false,
            prepared_slot: None,
            slot_before: None,
            earliest_ns: None,
        }
    }

    /// Continues after the last scheduled round of an earlier service, with its planned wall-clock time.
    pub(super) fn continue_after(&mut self, now: &ClockReading, planned: u64, scheduled: Timestamp) {
        self.history = SlotHistory::from_last_round(now, planned, scheduled, &self.times);
    }

    /// Sets the rounds of earlier services: their number, and the planned time of the first one.
    pub(super) fn set_earlier_rounds(&mut self, started: u64, first_scheduled: Option<Timestamp>) {
        self.round_index = started;
        self.first_scheduled = first_scheduled;
    }

    /// Changes the time between two slots.
    pub(super) fn set_interval(&mut self, now: &ClockReading, seconds: u64) {
        self.times = SlotTimes::with_interval(seconds, self.seed);
        self.restart(now);
    }

    /// Counts the next slot from now, as when there is nothing to measure.
    pub(super) fn restart(&mut self, now: &ClockReading) {
        self.history = self.history.restarted_at(now);
    }

    /// Records that the machine woke up.
    pub(super) fn wake(&mut self, now: &ClockReading) {
        self.history.resumed_ns = Some(now.continuous_ns);
    }

    /// Requests a round now.
    pub(super) fn request_round(&mut self) {
        self.is_requested = true;
    }

    /// Returns the next action, and counts what it handles as handled.
    pub(super) fn next(&mut self, now: &ClockReading) -> NextAction {
        if std::mem::take(&mut self.is_requested) {
            self.slot_before = None;
            return NextAction::RunRequested;
        }
        if let Some(earliest_ns) = self.earliest_ns.filter(|at_ns| now.continuous_ns < *at_ns) {
            return wait_until(earliest_ns, now);
        }
        match next_slot(now, &self.history, &self.times) {
            NextSlot::Missed { first, last } => NextAction::RecordMissed(self.miss(first, last)),
            NextSlot::Due(slot) => {
                self.slot_before = Some(std::mem::replace(&mut self.history.last, slot));
                NextAction::Run(slot)
            }
            NextSlot::Wait { slot, until_ns } => {
                let prepare_ns = until_ns - TRAFFIC_LOOKAHEAD_NS;
                let is_prepared = self.prepared_slot == Some(slot.number);
                if now.continuous_ns >= prepare_ns && !is_prepared {
                    self.prepared_slot = Some(slot.number);
                    return NextAction::Prepare;
                }
                wait_until(if now.continuous_ns < prepare_ns { prepare_ns } else { until_ns }, now)
            }
        }
    }

    fn miss(&mut self, first: Slot, last: Slot) -> MissedSlots {
        self.history.last = last;
        let is_asleep =
            self.history.resumed_ns.is_some_and(|woke_ns| woke_ns > first.at_ns - self.times.jitter_ns);
        let reason = if is_asleep {
            SkipReason::new("asleep", "the machine slept")
        } else if first.at_ns < self.started_ns {
            SkipReason::new("not-running", "longhaul was not running")
        } else {
            SkipReason::new(
                "late",
                "the previous round took too long or could not be stored, or the machine was too busy",
            )
        };
        let count = last.number - first.number + 1;
        let rows = count.min(MAX_MISSED_ROWS).cast_signed();
        let times_ns = (0..rows).rev().map(|index| last.at_ns - index * self.times.interval_ns).collect();
        MissedSlots { count, reason, times_ns }
    }

    /// Returns the start of the next round.
    pub(super) fn next_round(&self, now: &ClockReading) -> Timestamp {
        match next_slot(now, &self.history, &self.times) {
            NextSlot::Wait { until_ns, .. } => now.wall_at(until_ns),
            NextSlot::Due(_) | NextSlot::Missed { .. } => now.wall,
        }
    }

    /// Returns the parameters of the next round.
    pub(super) fn round_spec(
        &self,
        scheduled: Option<Timestamp>,
        baseline_interval: u64,
        before: MachineSnapshot,
    ) -> RoundSpec {
        RoundSpec {
            machine_seed: self.seed,
            round_index: self.round_index,
            baseline_interval,
            scheduled,
            before: Some(before),
        }
    }

    /// Counts a round that was started and stored.
    pub(super) fn round_stored(&mut self, scheduled: Option<Timestamp>) {
        self.round_index += 1;
        self.first_scheduled = self.first_scheduled.or(scheduled);
    }

    /// Makes the slot of a round due again that the database could not store.
    pub(super) fn retry_slot(&mut self, now: &ClockReading) {
        if let Some(before) = self.slot_before.take() {
            self.history.last = before;
            self.earliest_ns = Some(now.continuous_ns + RETRY_DELAY_NS);
        }
    }

    /// Returns the number of rounds started so far.
    pub(super) fn round_index(&self) -> u64 {
        self.round_index
    }

    /// Returns the planned time of the first scheduled round.
    pub(super) fn first_scheduled(&self) -> Option<Timestamp> {
        self.first_scheduled
    }
}

fn wait_until(until_ns: i64, now: &ClockReading) -> NextAction {
    NextAction::Wait(Duration::from_nanos((until_ns - now.continuous_ns).max(0).cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::time::HOUR;
    use proptest::prelude::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn at(seconds: i64) -> ClockReading {
        ClockReading { continuous_ns: seconds * SECOND_NS, ..ClockReading::default() }
    }

    #[test]
    fn slot_is_prepared_once_and_then_run() {
        let mut scheduler = Scheduler::new(&at(0), 3600, 7);
        assert_eq!(scheduler.next(&at(0)), NextAction::Prepare);
        assert_eq!(scheduler.next(&at(0)), NextAction::Wait(Duration::from_secs(10)));
        assert!(matches!(scheduler.next(&at(10)), NextAction::Run(_)));
        assert!(matches!(scheduler.next(&at(10)), NextAction::Wait(_)));
    }

    #[test]
    fn requested_round_comes_first_and_once() {
        let mut scheduler = Scheduler::new(&at(0), 3600, 7);
        scheduler.request_round();
        assert_eq!(scheduler.next(&at(10)), NextAction::RunRequested);
        assert!(matches!(scheduler.next(&at(10)), NextAction::Run(_)));
    }

    #[test]
    fn slot_of_an_unstored_round_is_due_again_after_a_delay() {
        let mut scheduler = Scheduler::new(&at(0), 3600, 7);
        let first = scheduler.next(&at(10));
        scheduler.retry_slot(&at(11));
        assert_eq!(scheduler.next(&at(11)), NextAction::Wait(Duration::from_secs(5)));
        assert_eq!(scheduler.next(&at(16)), first);
    }

    #[test]
    fn missed_slots_have_one_row_each_for_a_week_at_most() {
        let mut scheduler = Scheduler::new(&at(0), 3600, 7);
        scheduler.wake(&at(30 * 86_400));
        let NextAction::RecordMissed(missed) = scheduler.next(&at(30 * 86_400)) else { panic!() };
        assert_eq!((missed.reason.code, missed.times_ns.len()), ("asleep", 7 * 24));
        assert!((719..=721).contains(&missed.count), "{}", missed.count);
    }

    /// Something that happens to the service.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        /// Time passes.
        Pass(u16),
        /// The machine sleeps.
        Sleep(u16),
        /// A user requests a round.
        Request,
        /// The next round of a slot cannot be stored.
        NotStored,
        /// The service crashes when the next round of a slot starts, before it is stored.
        CrashAtRound,
        /// The service crashes, or the machine restarts, which resets the monotonic clocks.
        Crash { restarts: bool, down: u16 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => any::<u16>().prop_map(|seconds| Step::Pass(seconds / 8)),
            2 => any::<u16>().prop_map(Step::Sleep),
            1 => Just(Step::Request),
            2 => Just(Step::NotStored),
            1 => Just(Step::CrashAtRound),
            2 => (any::<bool>(), any::<u16>()).prop_map(|(restarts, down)| Step::Crash { restarts, down }),
        ]
    }

    /// A service with its clock, and the slots in its database.
    struct World {
        now: ClockReading,
        scheduler: Scheduler,
        seed: u64,
        /// Planned wall-clock times of all slots that were run or recorded as missed.
        handled: Vec<Timestamp>,
        pending: Option<Step>,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let now = ClockReading { wall: Timestamp::from_us(1_700_000_000_000_000), ..at(1) };
            let scheduler = Scheduler::new(&now, HOUR.as_secs(), seed);
            Self { now, scheduler, seed, handled: vec![], pending: None }
        }

        fn pass(&mut self, seconds: u16) {
            self.now.continuous_ns += i64::from(seconds) * SECOND_NS;
            self.now.wall = self.now.wall + Duration::from_secs(seconds.into());
        }

        fn crash(&mut self, down: u16) {
            self.pass(down);
            self.scheduler = Scheduler::new(&self.now, HOUR.as_secs(), self.seed);
            if let Some(last) = self.handled.last() {
                self.scheduler.continue_after(&self.now, self.handled.len() as u64, *last);
            }
        }

        fn apply(&mut self, step: Step) {
            match step {
                Step::Pass(seconds) => self.pass(seconds),
                Step::Sleep(seconds) => {
                    self.pass(seconds);
                    self.scheduler.wake(&self.now);
                }
                Step::Request => self.scheduler.request_round(),
                Step::NotStored | Step::CrashAtRound => self.pending = Some(step),
                Step::Crash { restarts, down } => {
                    self.now.continuous_ns = if restarts { SECOND_NS } else { self.now.continuous_ns };
                    self.crash(down);
                }
            }
        }

        /// Does what is due, as the service does.
        fn act(&mut self) {
            loop {
                match self.scheduler.next(&self.now) {
                    NextAction::Wait(wait) => {
                        assert!(!wait.is_zero());
                        return;
                    }
                    NextAction::Prepare | NextAction::RunRequested => {}
                    NextAction::RecordMissed(missed) => {
                        assert_eq!(missed.times_ns.len() as u64, missed.count, "less than a week");
                        self.handled.extend(missed.times_ns.iter().map(|at_ns| self.now.wall_at(*at_ns)));
                    }
                    NextAction::Run(slot) => match self.pending.take() {
                        Some(Step::NotStored) => self.scheduler.retry_slot(&self.now),
                        Some(Step::CrashAtRound) => self.crash(0),
                        _ => self.handled.push(self.now.wall_at(slot.at_ns)),
                    },
                }
            }
        }
    }

    proptest! {
        #[test]
        fn each_slot_is_stored_once_whatever_happens(
            seed: u64,
            steps in proptest::collection::vec(step(), 1..100),
        ) {
            let mut world = World::new(seed);
            world.act();
            for step in steps {
                world.apply(step);
                world.act();
            }
            for pair in world.handled.windows(2) {
                let gap = pair[1].seconds_since(pair[0]);
                prop_assert!((gap - HOUR.as_secs_f64()).abs() < 1e-3, "{gap} s between two slots");
            }
            if let Some(last) = world.handled.last() {
                let open = world.now.wall.seconds_since(*last);
                prop_assert!(open < 2.0 * HOUR.as_secs_f64(), "no slot is handled for {open} s");
            }
        }
    }
}
