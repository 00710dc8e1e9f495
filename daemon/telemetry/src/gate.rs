//! Keeps what is sent and what is measured apart: each message goes through the gate, and a round closes it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// See the module. Open at first.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    passed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    is_passed: bool,
}

/// A message on its way; it is through when this is dropped.
#[derive(Debug)]
pub struct Passing<'a>(&'a Gate);

/// A gate that is closed until this is dropped.
#[derive(Debug)]
pub struct Closed<'a>(&'a Gate);

impl Gate {
    /// Lets one message through, for the one thread that sends; `None`: the gate is closed.
    pub fn pass(&self) -> Option<Passing<'_>> {
        let mut state = self.state();
        if state.is_closed {
            return None;
        }
        state.is_passed = true;
        Some(Passing(self))
    }

    /// Closes it, and waits until what is in flight is through. A collector that does not answer makes no work, and is not
    /// waited for longer than this.
    pub fn close(&self, patience: Duration) -> Closed<'_> {
        let mut state = self.state();
        state.is_closed = true;
        drop(self.passed.wait_timeout_while(state, patience, |state| state.is_passed));
        Closed(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.0.state().is_passed = false;
        self.0.passed.notify_all();
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.state().is_closed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_while_it_is_closed() {
        let gate = Gate::default();
        drop(gate.pass().unwrap());
        let closed = gate.close(Duration::from_secs(100));
        assert!(gate.pass().is_none());
        drop(closed);
        assert!(gate.pass().is_some());
    }

    #[test]
    fn who_closes_it_waits_for_what_is_in_flight_and_not_for_ever() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let passing = gate.pass().unwrap();
            let closes = scope.spawn(|| drop(gate.close(Duration::from_secs(1000))));
            while !gate.state().is_closed {
                std::thread::yield_now();
            }
            assert!(
                gate.pass().is_none() && !closes.is_finished(),
                "it lets nothing more through, and waits"
            );
            drop(passing);
            closes.join().unwrap();
        });
        let _never_through = gate.pass().unwrap();
        let _closed = gate.close(Duration::from_millis(1));
        assert!(gate.pass().is_none());
    }
}
