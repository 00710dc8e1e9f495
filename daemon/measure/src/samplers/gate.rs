//! How a worker says whether its probe may ask, and what it does itself meanwhile.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::Probing;
use crate::platform::monotonic_ns;

/// What goes on beside the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// What a workload needs is made.
    Preparing,
    /// A run is made: nothing but the probe's own calls may load the target.
    Running,
}

#[derive(Debug)]
struct State {
    probing: Probing,
    /// The workload that is at work.
    beside: Option<(Stage, String)>,
    /// The arena is given back.
    closed: bool,
}

impl State {
    fn is_open(&self) -> bool {
        match self.probing {
            _ if self.closed => false,
            Probing::On => true,
            Probing::DuringRuns => self.beside.is_some(),
        }
    }
}

/// Between a worker and its probe. No call on the target is made under its lock, so neither ever waits for the other.
#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    /// A gate that begins like this.
    pub fn new(probing: Probing) -> Self {
        Self { state: Mutex::new(State { probing, beside: None, closed: false }), changed: Condvar::new() }
    }

    /// Says whether the probe asks from now on.
    pub fn set_probing(&self, probing: Probing) {
        self.change(|state| (state.probing, state.closed) = (probing, false));
    }

    /// A workload's preparation begins.
    pub fn preparing(&self, workload: &str) {
        self.change(|state| {
            (state.beside, state.closed) = (Some((Stage::Preparing, workload.to_owned())), false)
        });
    }

    /// A run begins.
    pub fn running(&self, workload: &str) {
        self.change(|state| {
            (state.beside, state.closed) = (Some((Stage::Running, workload.to_owned())), false)
        });
    }

    /// The workload is done.
    pub fn done(&self) {
        self.change(|state| state.beside = None);
    }

    /// Nothing is asked until there is a word or a workload again: the arena is given back.
    pub fn close(&self) {
        self.change(|state| state.closed = true);
    }

    /// The workload that is at work.
    pub fn beside(&self) -> Option<String> {
        self.lock().beside.as_ref().map(|(_, workload)| workload.clone())
    }

    /// Whether more than a single call may be made: not while a run is.
    pub fn may_build(&self) -> bool {
        let state = self.lock();
        state.is_open() && !matches!(state.beside, Some((Stage::Running, _)))
    }

    /// Whether the probe may ask.
    pub fn is_open(&self) -> bool {
        self.lock().is_open()
    }

    /// Waits until the probe may ask.
    pub fn wait_until_open(&self) {
        let state = self.lock();
        let waited = self.changed.wait_while(state, |state| !state.is_open());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until an instant of the monotonic clock, in nanoseconds; `false` as soon as the probe may not ask.
    pub fn wait_until(&self, at_ns: u64) -> bool {
        let mut state = self.lock();
        loop {
            let left = at_ns.saturating_sub(monotonic_ns());
            if !state.is_open() || left == 0 {
                return state.is_open();
            }
            let waited = self.changed.wait_timeout(state, Duration::from_nanos(left));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// What is in the lock is whole after every change, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn during_runs_it_is_open_while_a_workload_is_at_work() {
        let gate = Gate::new(Probing::DuringRuns);
        assert!(!gate.is_open());
        gate.preparing("photo-batch");
        assert!(gate.is_open() && gate.may_build());
        gate.running("photo-batch");
        assert!(gate.is_open() && !gate.may_build());
        assert_eq!(gate.beside().as_deref(), Some("photo-batch"));
        gate.done();
        assert!(!gate.is_open() && gate.beside().is_none());
    }

    #[test]
    fn once_the_arena_is_given_back_it_needs_a_word_or_a_workload() {
        let gate = Gate::new(Probing::On);
        for again in [&(|| gate.set_probing(Probing::On)) as &dyn Fn(), &|| gate.running("folder-index")] {
            gate.close();
            assert!(!gate.is_open());
            again();
            assert!(gate.is_open());
        }
    }

    #[test]
    fn a_wait_ends_at_its_instant_or_when_the_gate_closes() {
        let gate = Gate::new(Probing::On);
        let began = monotonic_ns();
        assert!(gate.wait_until(began + 5_000_000));
        assert!(monotonic_ns() >= began + 5_000_000);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait_until(u64::MAX));
            gate.set_probing(Probing::DuringRuns);
            assert!(!waiting.join().unwrap());
        });
    }
}
