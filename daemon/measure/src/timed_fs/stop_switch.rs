//! The stop signal of a run.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::rate_limit::RateLimiter;
use crate::error::{RunError, StopReason};
use crate::platform::monotonic_ns;

/// The maximum sleep between two checks of the stop switch.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The stop signal and the rate limit of a run, shared by all its threads.
///
/// Both are checked before every operation, so a stopped run ends after the operation in flight.
#[derive(Default)]
pub struct StopSwitch {
    reason_code: AtomicU8,
    rate_limiter: RateLimiter,
}

impl StopSwitch {
    /// Requests a stop. If a stop was requested before, its reason stays.
    pub fn stop(&self, reason: StopReason) {
        let _ = self.reason_code.compare_exchange(0, reason as u8, Relaxed, Relaxed);
    }

    /// Clears the stop request.
    pub fn reset(&self) {
        self.reason_code.store(0, Relaxed);
    }

    /// Returns the reason for the stop; `None` if no stop was requested.
    pub fn reason(&self) -> Option<StopReason> {
        [StopReason::Supervisor, StopReason::Cap, StopReason::Orphaned]
            .into_iter()
            .find(|reason| *reason as u8 == self.reason_code.load(Relaxed))
    }

    /// Checks for a stop request.
    ///
    /// # Errors
    ///
    /// [`RunError::Stopped`] if a stop was requested.
    #[inline]
    pub fn check(&self) -> Result<(), RunError> {
        match self.reason_code.load(Relaxed) {
            0 => Ok(()),
            _ => Err(RunError::Stopped(self.reason().unwrap_or(StopReason::Supervisor))),
        }
    }

    /// Limits the number of operations per second of all threads together; `None` removes the limit.
    pub fn set_rate_limit(&self, operations_per_second: Option<u32>) {
        self.rate_limiter.set_limit(operations_per_second);
    }

    /// Waits until the rate limit allows the next operation. Returns an error if a stop was requested.
    #[inline]
    pub(super) fn acquire(&self) -> Result<(), RunError> {
        self.check()?;
        self.rate_limiter.reserve(monotonic_ns).map_or(Ok(()), |from_ns| self.wait_until(from_ns))
    }

    /// Waits until the monotonic clock reaches `at_ns` nanoseconds. Returns an error as soon as a stop is
    /// requested.
    pub(super) fn wait_until(&self, at_ns: u64) -> Result<(), RunError> {
        loop {
            self.check()?;
            let left = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(STOP_POLL_INTERVAL));
        }
    }
}
