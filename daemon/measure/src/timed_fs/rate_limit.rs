//! The limit on the number of operations per second, if the user set one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const SECOND_NS: u64 = 1_000_000_000;

/// Assigns each call a start time, so that calls do not exceed a rate. Shared by all threads of a worker.
///
/// A new limiter has no limit.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    /// Minimum time between the starts of two calls, in nanoseconds; 0 means no limit.
    interval_ns: AtomicU64,
    /// Earliest start of the next call, in nanoseconds of the monotonic clock.
    next_ns: AtomicU64,
}

impl RateLimiter {
    /// Sets the maximum number of calls per second; `None` or 0 removes the limit.
    pub(crate) fn set_limit(&self, per_second: Option<u32>) {
        let interval_ns =
            per_second.filter(|limit| *limit > 0).map_or(0, |limit| SECOND_NS / u64::from(limit));
        self.interval_ns.store(interval_ns, Relaxed);
    }

    /// Reserves the next start time and returns it, in nanoseconds of the monotonic clock; `None` if there is no
    /// limit.
    ///
    /// Unused time is not saved: after a pause, calls still keep the minimum interval.
    #[inline]
    pub(crate) fn reserve(&self, now_ns: impl FnOnce() -> u64) -> Option<u64> {
        let interval_ns = self.interval_ns.load(Relaxed);
        if interval_ns == 0 {
            return None;
        }
        let now_ns = now_ns();
        let after = |next_ns: u64| Some(next_ns.max(now_ns) + interval_ns);
        let next_ns = self.next_ns.fetch_update(Relaxed, Relaxed, after).unwrap_or(now_ns);
        Some(next_ns.max(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_spaced_and_unused_time_is_not_saved() {
        let limiter = RateLimiter::default();
        assert_eq!(limiter.reserve(|| panic!("without a limit, the clock is not read")), None);
        limiter.set_limit(Some(100));
        let starts: Vec<_> =
            [0, 0, 1, 500_000_000, 500_000_001].map(|now_ns| limiter.reserve(|| now_ns)).into();
        assert_eq!(starts, [0, 10_000_000, 20_000_000, 500_000_000, 510_000_000].map(Some));
        limiter.set_limit(None);
        assert_eq!(limiter.reserve(|| 600_000_000), None);
    }
}
