//! Retries while the database is locked or its disk is full, so that nothing that was measured is lost.

use std::time::Duration;

use longhaul_model::Hint;

use crate::clock::Clock;
use crate::round_stop::{RoundStop, RoundStopRequest};

/// Longest pause between two attempts. Each attempt writes to the disk.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Longest time that a run may wait for the database. Runs of a round are compared, so they must follow each other in minutes.
const MAX_DELAY: Duration = Duration::from_secs(600);

/// Settings of the retries.
pub(crate) struct StoreRetry<'a> {
    /// Number of attempts. `u32::MAX`: until the service stops.
    pub attempts: u32,
    /// Source of the current time.
    pub clock: &'a dyn Clock,
    /// Stop of the round, whose interruption ends a pause.
    pub stop: &'a RoundStopRequest,
}

impl StoreRetry<'_> {
    /// Stores something. Reports each failed attempt that is followed by another. Voids the round if it takes long.
    pub fn run<T>(
        &self,
        mut store: impl FnMut() -> longhaul_store::Result<T>,
        mut report: impl FnMut(&longhaul_store::Error),
    ) -> longhaul_store::Result<T> {
        let began_ns = self.clock.peek().continuous_ns;
        let mut attempts = 1;
        loop {
            match store() {
                Err(error)
                    if error.is_retryable() && attempts < self.attempts && !self.is_shutting_down() =>
                {
                    tracing::warn!(error = error.one_line(), "a run could not be stored yet");
                    report(&error);
                    self.stop.interruption().wait(self.clock.real_wait(pause(attempts)));
                    attempts += 1;
                }
                result => {
                    self.void_if_late(began_ns);
                    return result;
                }
            }
        }
    }

    /// Returns whether the service is stopping, so that it must not wait for the database. The foreground
    /// runner has few attempts and may use them all.
    fn is_shutting_down(&self) -> bool {
        self.attempts == u32::MAX && self.stop.reason().is_some()
    }

    fn void_if_late(&self, began_ns: i64) {
        let waited = self.clock.peek().continuous_ns - began_ns;
        let waited = Duration::from_nanos(waited.unsigned_abs());
        if waited > MAX_DELAY {
            let minutes = waited.as_secs() / 60;
            let reason = format!("stored-late: the database could not be written for {minutes} minutes");
            self.stop.request(RoundStop::Void(reason));
        }
    }
}

/// Returns the pause after this number of failed attempts: a second more after each.
fn pause(attempts: u32) -> Duration {
    Duration::from_secs(attempts.into()).min(MAX_PAUSE)
}
