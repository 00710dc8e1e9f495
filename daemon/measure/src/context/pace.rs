//! How closely calls may follow each other, where the person has set that.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const SECOND_NS: u64 = 1_000_000_000;

/// Gives each call the instant from which it may begin. Shared by all threads of a worker; as fast as it can be at first.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// From call to call; 0: there is no limit.
    interval_ns: AtomicU64,
    /// Where the next call stands, on the monotonic clock.
    next_ns: AtomicU64,
}

impl Pace {
    /// At most so many calls a second from now on; `None` or 0: as many as it takes.
    pub(crate) fn limit(&self, per_second: Option<u32>) {
        let interval_ns = per_second.filter(|most| *most > 0).map_or(0, |most| SECOND_NS / u64::from(most));
        self.interval_ns.store(interval_ns, Relaxed);
    }

    /// Takes the next place: when the call may begin. Time in which nobody asked is not saved up for a burst.
    /// `None`: there is no limit.
    #[inline]
    pub(crate) fn place(&self, now_ns: impl FnOnce() -> u64) -> Option<u64> {
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
    fn calls_stand_in_line_and_a_rest_is_not_saved_up() {
        let pace = Pace::default();
        assert_eq!(pace.place(|| panic!("no clock is read")), None);
        pace.limit(Some(100));
        let places: Vec<_> = [0, 0, 1, 500_000_000, 500_000_001].map(|now_ns| pace.place(|| now_ns)).into();
        assert_eq!(places, [0, 10_000_000, 20_000_000, 500_000_000, 510_000_000].map(Some));
        pace.limit(None);
        assert_eq!(pace.place(|| 600_000_000), None);
    }
}
