//! What a worker tells beside its answers: gathered here, told once a minute, and at once when somebody should know.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{LONG_WAIT_NS, Probed, Sampled, Waited};
use crate::platform;
use crate::recorder::{LongWait, LongWaits, PROBE_LANE, Recorder};
use crate::worker::SLEPT_NS;

/// How long answers are gathered, in nanoseconds.
const BATCH_NS: u64 = 60 * 1_000_000_000;
/// How many are gathered at most: a stall of a night ends in thousands.
const BATCH_SLOTS: usize = 500;

/// Hears samples.
pub trait Hears: Send + Sync {
    /// One more.
    fn hear(&self, sampled: Sampled);
}

/// What has not been told yet.
#[derive(Default)]
struct State {
    slots: Vec<Probed>,
    /// Processor time of the probe, in nanoseconds: in all, and what was told of it.
    cost_ns: (u64, u64),
    changed_us: Option<i64>,
    /// When was told last, on the monotonic clock.
    told_ns: u64,
    lame: Option<String>,
    waits: LongWaits,
    /// How long the machine had slept when waits were last collected.
    asleep_ns: u64,
}

/// Gathers and tells. Both the probe and the thread that leads runs tell through it.
pub struct Telling {
    ear: Arc<dyn Hears>,
    recorder: Arc<Recorder>,
    state: Mutex<State>,
}

impl Telling {
    /// Nothing to tell yet.
    pub fn new(ear: Arc<dyn Hears>, recorder: Arc<Recorder>) -> Self {
        let (told_ns, asleep_ns) = (platform::monotonic_ns(), platform::asleep_ns());
        Self { ear, recorder, state: Mutex::new(State { told_ns, asleep_ns, ..State::default() }) }
    }

    /// Takes in answers of the probe, and tells them when it is time.
    pub fn probed(&self, slots: impl IntoIterator<Item = Probed>) {
        let mut state = self.lock();
        state.lame = None;
        let mut is_urgent = false;
        for slot in slots {
            // Beside a run, somebody may have to be spared it: that is decided on what is felt now.
            is_urgent |= slot.error.is_some() || slot.latency_ns > LONG_WAIT_NS || slot.beside.is_some();
            state.slots.push(slot);
            if state.slots.len() >= BATCH_SLOTS {
                self.tell(&mut state);
            }
        }
        let is_due = platform::monotonic_ns().saturating_sub(state.told_ns) >= BATCH_NS;
        if is_urgent || is_due {
            self.tell(&mut state);
        }
    }

    /// The processor time that the probe has taken in all, in nanoseconds.
    pub fn cost(&self, nanoseconds: u64) {
        self.lock().cost_ns.0 = nanoseconds;
    }

    /// Somebody changed something, seen at this time.
    pub fn changed(&self, at_us: i64) {
        self.lock().changed_us = Some(at_us);
    }

    /// The probe cannot go on. The same reason is told once, until it has gone on.
    pub fn lame(&self, reason: String) {
        let mut state = self.lock();
        if state.lame.as_ref() != Some(&reason) {
            state.lame = Some(reason.clone());
            self.ear.hear(Sampled::Lame { reason });
        }
    }

    /// Tells the calls of over a second that ended since the last time: those of this workload, and the probe's. What
    /// may have gone on across sleep is left out, as nobody waited then.
    pub fn waits(&self, workload: Option<&str>) {
        let mut state = self.lock();
        let asleep_ns = platform::asleep_ns();
        let slept = asleep_ns.saturating_sub(state.asleep_ns) > SLEPT_NS;
        state.asleep_ns = asleep_ns;
        for (lane, wait) in state.waits.collect(&self.recorder).into_iter().filter(|_| !slept) {
            let workload = workload.filter(|_| lane != PROBE_LANE);
            self.ear.hear(Sampled::Waited(waited(wait, workload)));
        }
    }

    /// Tells everything that is left.
    pub fn rest(&self) {
        self.tell(&mut self.lock());
    }

    fn tell(&self, state: &mut State) {
        state.told_ns = platform::monotonic_ns();
        if !state.slots.is_empty() {
            let (slots, cost_ns) = (std::mem::take(&mut state.slots), state.cost_ns.0 - state.cost_ns.1);
            state.cost_ns.1 = state.cost_ns.0;
            self.ear.hear(Sampled::Probed { slots, cost_ns });
        }
        if let Some(at_us) = state.changed_us.take() {
            self.ear.hear(Sampled::Changed { at_us });
        }
    }

    /// What is in the lock is whole after every change, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn waited(wait: LongWait, workload: Option<&str>) -> Waited {
    let LongWait { operation, at_us, nanoseconds, error } = wait;
    let name = |number| platform::error_name(&std::io::Error::from_raw_os_error(number));
    let error =
        error.map(|number| name(number).filter(|_| number != 0).unwrap_or_else(|| "unknown".to_owned()));
    Waited { operation, at_us, nanoseconds, error, workload: workload.map(ToOwned::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Operation, ProbeKind};

    #[derive(Default)]
    struct Ear(Mutex<Vec<Sampled>>);

    impl Hears for Ear {
        fn hear(&self, sampled: Sampled) {
            self.0.lock().unwrap().push(sampled);
        }
    }

    impl Ear {
        fn heard(&self) -> Vec<Sampled> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    fn telling() -> (Arc<Ear>, Telling) {
        let ear = Arc::new(Ear::default());
        let recorder = Arc::new(Recorder::private().unwrap());
        (Arc::clone(&ear), Telling::new(ear, recorder))
    }

    fn slot(latency_ns: u64, error: Option<&str>) -> Probed {
        let error = error.map(ToOwned::to_owned);
        Probed { kind: ProbeKind::Read, at_us: 1, latency_ns, call_ns: Some(1), error, beside: None }
    }

    fn lengths(heard: &[Sampled]) -> Vec<usize> {
        let length = |sampled: &Sampled| match sampled {
            Sampled::Probed { slots, .. } => slots.len(),
            other => panic!("{other:?}"),
        };
        heard.iter().map(length).collect()
    }

    #[test]
    fn answers_are_gathered_until_one_is_slow_or_failed_or_nothing_follows() {
        let (ear, telling) = telling();
        telling.probed([slot(5_000, None), slot(6_000, None)]);
        assert_eq!(ear.heard(), []);
        telling.probed([slot(2 * LONG_WAIT_NS, None)]);
        assert_eq!(lengths(&ear.heard()), [3]);
        telling.probed([slot(5_000, Some("EIO"))]);
        assert_eq!(lengths(&ear.heard()), [1]);
        telling.probed([slot(5_000, None)]);
        telling.rest();
        assert_eq!(lengths(&ear.heard()), [1]);
        telling.rest();
        assert_eq!(ear.heard(), []);
    }

    #[test]
    fn beside_a_run_every_answer_is_told_at_once() {
        let (ear, telling) = telling();
        telling.probed([Probed { beside: Some("time-machine".to_owned()), ..slot(5_000, None) }]);
        assert_eq!(lengths(&ear.heard()), [1]);
    }

    #[test]
    fn the_end_of_a_long_stall_comes_in_parts() {
        let (ear, telling) = telling();
        telling.probed((0..1200).map(|_| slot(2 * LONG_WAIT_NS, None)));
        assert_eq!(lengths(&ear.heard()), [500, 500, 200]);
    }

    #[test]
    fn what_the_probe_costs_is_told_once() {
        let (ear, telling) = telling();
        let mut told = vec![];
        for cost in [300, 700, 700] {
            telling.cost(cost);
            telling.probed([slot(1, None)]);
            telling.rest();
            told.extend(ear.heard().into_iter().map(|sampled| match sampled {
                Sampled::Probed { cost_ns, .. } => cost_ns,
                other => panic!("{other:?}"),
            }));
        }
        assert_eq!(told, [300, 400, 0]);
    }

    #[test]
    fn the_same_reason_is_told_once_until_the_probe_has_gone_on() {
        let (ear, telling) = telling();
        telling.lame("read-only".to_owned());
        telling.lame("read-only".to_owned());
        assert_eq!(ear.heard().len(), 1);
        telling.probed([slot(1, None)]);
        telling.lame("read-only".to_owned());
        assert_eq!(ear.heard(), [Sampled::Lame { reason: "read-only".to_owned() }]);
    }

    #[test]
    fn a_long_wait_is_the_workloads_but_for_the_probes_own() {
        let (ear, telling) = telling();
        let wait = LongWait { operation: Operation::Sync, at_us: 5, nanoseconds: 7, error: Some(libc::EIO) };
        telling.recorder.lane(3).note_wait(wait);
        telling.recorder.lane(PROBE_LANE).note_wait(LongWait { error: None, ..wait });
        telling.waits(Some("photo-batch"));
        let error = Some("EIO".to_owned());
        let of_run = Waited {
            operation: Operation::Sync,
            at_us: 5,
            nanoseconds: 7,
            error,
            workload: Some("photo-batch".to_owned()),
        };
        let of_probe = Waited { error: None, workload: None, ..of_run.clone() };
        assert_eq!(ear.heard(), [Sampled::Waited(of_run), Sampled::Waited(of_probe)]);
        telling.waits(Some("photo-batch"));
        assert_eq!(ear.heard(), []);
    }
}
