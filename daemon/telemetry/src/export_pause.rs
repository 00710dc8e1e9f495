//! Prevents sending and measuring at the same time: every message needs a permit, and a round pauses the
//! permits.

use std::time::Duration;

use longhaul_measure::platform;
use longhaul_model::Timestamp;
use parking_lot::{Condvar, Mutex};

/// No message is started in this period before a round, because it can take a while.
const QUIET_BEFORE_ROUND: Duration = Duration::from_secs(5);
/// Interval at which a waiting thread checks whether the period before a round is over.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Coordinates the exporter and the rounds. Initially not paused.
#[derive(Debug, Default)]
pub struct ExportPause {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_paused: bool,
    /// Number of permits in use.
    sending: usize,
    /// Start of the next round. `None`: no round is planned.
    next_round: Option<Timestamp>,
}

/// Permit to send one message; dropped when the message has been sent.
#[derive(Debug)]
pub struct SendPermit<'a>(&'a ExportPause);

/// Keeps the export paused until it is dropped.
#[derive(Debug)]
pub struct PauseGuard<'a>(&'a ExportPause);

impl ExportPause {
    /// Sets the start of the next round. `None`: no round is planned.
    pub fn set_next_round(&self, next: Option<Timestamp>) {
        self.state.lock().next_round = next;
    }

    /// Returns a permit to send one message. `None`: the export is paused, or a round is about to start.
    pub fn try_acquire(&self) -> Option<SendPermit<'_>> {
        self.permit(&mut self.state.lock())
    }

    /// Returns true during a round.
    pub fn is_paused(&self) -> bool {
        self.state.lock().is_paused
    }

    /// Waits for a permit to send one message.
    pub fn acquire(&self) -> SendPermit<'_> {
        let mut state = self.state.lock();
        loop {
            if let Some(permit) = self.permit(&mut state) {
                return permit;
            }
            self.changed.wait_for(&mut state, CHECK_INTERVAL);
        }
    }

    fn permit(&self, state: &mut State) -> Option<SendPermit<'_>> {
        let now = platform::wall_clock();
        let is_near = |next: Timestamp| next >= now && next.since(now) < QUIET_BEFORE_ROUND;
        if state.is_paused || state.next_round.is_some_and(is_near) {
            return None;
        }
        state.sending += 1;
        Some(SendPermit(self))
    }

    /// Pauses the export and waits until the messages in flight have been sent, but at most for `timeout`. A
    /// request that still waits for its collector after that causes no load, so the round can start.
    pub fn pause(&self, timeout: Duration) -> PauseGuard<'_> {
        let mut state = self.state.lock();
        state.is_paused = true;
        self.changed.wait_while_for(&mut state, |state| state.sending > 0, timeout);
        PauseGuard(self)
    }
}

impl Drop for SendPermit<'_> {
    fn drop(&mut self) {
        self.0.state.lock().sending -= 1;
        self.0.changed.notify_all();
    }
}

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_paused = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_permit_is_given_while_paused() {
        let pause = ExportPause::default();
        drop(pause.try_acquire().unwrap());
        let guard = pause.pause(Duration::from_secs(100));
        assert!(pause.try_acquire().is_none() && pause.is_paused());
        drop(guard);
        assert!(pause.try_acquire().is_some());
    }

    #[test]
    fn waiting_thread_gets_its_permit_after_the_pause() {
        let pause = ExportPause::default();
        std::thread::scope(|scope| {
            let guard = pause.pause(Duration::ZERO);
            let waiting = scope.spawn(|| drop(pause.acquire()));
            assert_eq!(pause.state.lock().sending, 0);
            drop(guard);
            waiting.join().unwrap();
        });
    }

    #[test]
    fn no_permit_is_given_shortly_before_a_round() {
        let pause = ExportPause::default();
        pause.set_next_round(Some(platform::wall_clock() + Duration::from_secs(4)));
        assert!(pause.try_acquire().is_none());
        pause.set_next_round(Some(platform::wall_clock() + Duration::from_secs(60)));
        assert!(pause.try_acquire().is_some());
    }

    #[test]
    fn pause_waits_for_the_message_in_flight_up_to_a_timeout() {
        let pause = ExportPause::default();
        std::thread::scope(|scope| {
            let permit = pause.try_acquire().unwrap();
            let pausing = scope.spawn(|| drop(pause.pause(Duration::from_secs(1000))));
            while !pause.state.lock().is_paused {
                std::thread::yield_now();
            }
            assert!(
                pause.try_acquire().is_none() && !pausing.is_finished(),
                "no further permit is given, and the pause waits"
            );
            drop(permit);
            pausing.join().unwrap();
        });
        let _unfinished = pause.try_acquire().unwrap();
        let _guard = pause.pause(Duration::from_millis(1));
        assert!(pause.try_acquire().is_none());
    }
}
