//! Retries while the database is locked or its disk is full, so that nothing that was measured is lost.

use std::time::Duration;

use longhaul_model::Hint;

use crate::clock::Clock;
use crate::round_stop::{RoundStop, RoundStopRequest};
use crate::worker::Interruption;

/// Longest pause between two attempts. Each attempt writes to the disk.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Longest time that a run may wait for the database. Runs of a round are compared, so they must follow each other in minutes.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(600);

/// The end of the attempts to store something.
#[derive(Debug, Clone, Copy)]
pub enum RetryLimit<'a> {
    /// This number of attempts.
    Attempts(u32),
    /// The end of the service, which makes this request. A round that is to stop tries for ten minutes at most.
    ServiceStop(&'a Interruption),
}

/// Settings of the retries.
pub(crate) struct StoreRetry<'a> {
    /// End of the attempts.
    pub limit: RetryLimit<'a>,
    /// Source of the current time.
    pub clock: &'a dyn Clock,
    /// Stop of the round, whose interruption ends a pause.
    pub stop: &'a RoundStopRequest,
}

impl StoreRetry<'_> {
    /// Stores something. Reports each failed attempt that is followed by another, with the time since the first. Voids the round if it
    /// takes long.
    pub fn run<T>(
        &self,
        mut store: impl FnMut() -> longhaul_store::Result<T>,
        mut report: impl FnMut(&longhaul_store::Error, Duration),
    ) -> longhaul_store::Result<T> {
        let began_ns = self.clock.peek().continuous_ns;
        let mut attempts = 1;
        loop {
            match store() {
                Err(error) if error.is_retryable() && self.may_retry(attempts, began_ns) => {
                    tracing::warn!(error = error.one_line(), "a run could not be stored yet");
                    report(&error, self.waited(began_ns));
                    self.wait(pause(attempts));
                    attempts += 1;
                }
                result => {
                    self.void_if_late(began_ns);
                    return result;
                }
            }
        }
    }

    fn may_retry(&self, attempts: u32, began_ns: i64) -> bool {
        match self.limit {
            RetryLimit::Attempts(limit) => attempts < limit,
            // A pause of the user or a changed mount is no reason to drop a run. But the service applies a new
            // configuration only after the round, and later than this the round is void anyway.
            RetryLimit::ServiceStop(service_stop) => {
                let may_wait = self.stop.reason().is_none() || self.waited(began_ns) <= MAX_DELAY;
                may_wait && !service_stop.is_requested()
            }
        }
    }

    /// Waits until the next attempt. A request to stop that is made meanwhile ends the wait.
    fn wait(&self, limit: Duration) {
        let interruption = match self.limit {
            // The round's request was made before and would end each wait at once.
            RetryLimit::ServiceStop(service_stop) if self.stop.reason().is_some() => service_stop,
            RetryLimit::ServiceStop(_) | RetryLimit::Attempts(_) => self.stop.interruption(),
        };
        interruption.wait(self.clock.real_wait(limit));
    }

    fn waited(&self, began_ns: i64) -> Duration {
        let waited_ns = self.clock.peek().continuous_ns - began_ns;
        Duration::from_nanos(waited_ns.unsigned_abs())
    }

    fn void_if_late(&self, began_ns: i64) {
        let waited = self.waited(began_ns);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::clock::ClockReading;

    /// A clock whose time in nanoseconds passes only in waits.
    #[derive(Default)]
    struct WaitClock(AtomicI64);

    impl Clock for WaitClock {
        fn now(&self) -> ClockReading {
            ClockReading { continuous_ns: self.0.load(Ordering::Relaxed), ..ClockReading::default() }
        }

        fn real_wait(&self, time: Duration) -> Duration {
            self.0.fetch_add(i64::try_from(time.as_nanos()).unwrap(), Ordering::Relaxed);
            Duration::ZERO
        }
    }

    /// Stores a run in a round that the user has paused, while the disk is full for this number of attempts. Returns the number of
    /// attempts, or of failed ones if the run was given up.
    fn store_in_paused_round(service_stop: &Interruption, full_for: u32) -> Result<u32, u32> {
        let reason = RoundStop::CutShort("paused: paused by the user".to_owned());
        let stop = RoundStopRequest::on(Interruption::default(), reason.clone());
        stop.request(reason);
        let limit = RetryLimit::ServiceStop(service_stop);
        let retry = StoreRetry { limit, clock: &WaitClock::default(), stop: &stop };
        let mut attempts = 0;
        let store = || {
            attempts += 1;
            let (path, operation) = ("/x/longhaul.sqlite".into(), "store a run");
            if attempts > full_for {
                Ok(())
            } else {
                Err(longhaul_store::Error::DiskFull { path, operation })
            }
        };
        let mut reported = vec![];
        let result = retry.run(store, |_, waited| reported.push(waited));
        assert!(reported.is_sorted(), "{reported:?}");
        let longest = reported.last().copied();
        assert_eq!(longest.is_some_and(|waited| waited > Duration::from_secs(590)), full_for == u32::MAX);
        result.map(|()| attempts).map_err(|_| attempts)
    }

    #[test]
    fn paused_round_stores_its_run_once_the_disk_has_space() {
        assert_eq!(store_in_paused_round(&Interruption::default(), 3), Ok(4));
    }

    #[test]
    fn paused_round_gives_up_after_ten_minutes() {
        // Pauses of 1 to 35 seconds are the first ones that take more than 600 seconds together.
        assert_eq!(store_in_paused_round(&Interruption::default(), u32::MAX), Err(36));
    }

    #[test]
    fn stop_of_the_service_ends_the_attempts() {
        let service_stop = Interruption::default();
        service_stop.request();
        assert_eq!(store_in_paused_round(&service_stop, 3), Err(1));
    }
}
