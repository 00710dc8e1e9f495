//! A request to end early, which wakes the thread that waits for a worker.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::process::ProcessEvent;

/// A request to end early, shared by the thread that makes it and the thread that does the work. Once made, it
/// stays.
#[derive(Debug, Clone, Default)]
pub struct Interruption(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    requested: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_requested: bool,
    /// Channel of the worker process that is waited for. `None`: no thread waits for one.
    waiting: Option<SyncSender<ProcessEvent>>,
}

impl Interruption {
    /// Makes the request, and wakes the thread that waits.
    pub fn request(&self) {
        let mut state = self.0.state.lock();
        state.is_requested = true;
        // If the channel is full, its receiver is awake anyway and checks the request after each message.
        let _ = state.waiting.as_ref().map(|process| process.try_send(ProcessEvent::Interrupted));
        self.0.requested.notify_all();
    }

    /// Returns whether the request was made.
    pub fn is_requested(&self) -> bool {
        self.0.state.lock().is_requested
    }

    /// Waits until the request is made, but at most for `limit`.
    pub fn wait(&self, limit: Duration) {
        let mut state = self.0.state.lock();
        self.0.requested.wait_while_for(&mut state, |state| !state.is_requested, limit);
    }

    /// Lets the request wake the receiver of `process` until the returned value is dropped. A request that was made
    /// before wakes it at once.
    pub(super) fn wakes(&self, process: SyncSender<ProcessEvent>) -> WakeGuard {
        let mut state = self.0.state.lock();
        if state.is_requested {
            let _ = process.try_send(ProcessEvent::Interrupted);
        }
        state.waiting = Some(process);
        drop(state);
        WakeGuard(self.clone())
    }
}

/// Connects an [`Interruption`] with the wait for a process until it is dropped.
pub(super) struct WakeGuard(Interruption);

impl Drop for WakeGuard {
    fn drop(&mut self) {
        self.0.0.state.lock().waiting = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn request_wakes_the_wait_for_a_process() {
        let interruption = Interruption::default();
        let (sender, receiver) = sync_channel(1);
        let guard = interruption.wakes(sender);
        let requester = interruption.clone();
        let thread = std::thread::spawn(move || requester.request());
        assert!(matches!(receiver.recv(), Ok(ProcessEvent::Interrupted)));
        thread.join().unwrap();
        assert!(interruption.is_requested());
        drop(guard);
        assert!(receiver.recv().is_err(), "the channel is no longer held");
    }

    #[test]
    fn request_before_the_wait_for_a_process_wakes_it_too() {
        let interruption = Interruption::default();
        interruption.request();
        let (sender, receiver) = sync_channel(1);
        let _guard = interruption.wakes(sender);
        assert!(matches!(receiver.try_recv(), Ok(ProcessEvent::Interrupted)));
    }

    #[test]
    fn wait_ends_at_once_after_the_request() {
        let interruption = Interruption::default();
        interruption.request();
        let started = std::time::Instant::now();
        interruption.wait(Duration::from_secs(60));
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
