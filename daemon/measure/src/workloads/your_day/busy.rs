//! The time in which at least one operation is in progress.

/// Number of intervals that a thread keeps. Beyond that, intervals with a short gap are joined.
const MAX_INTERVALS: usize = 1 << 18;

/// Interval of the monotonic clock, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// The times of the operations of one thread, in order.
#[derive(Debug, Default)]
pub struct BusyTimes {
    intervals: Vec<Interval>,
    joined_gap_ns: u64,
}

impl BusyTimes {
    /// Adds an operation that ended after all others of the thread.
    pub fn add(&mut self, operation: Interval) {
        match self.intervals.last_mut() {
            Some(last) if operation.begin_ns <= last.end_ns + self.joined_gap_ns => {
                last.end_ns = operation.end_ns;
            }
            _ => self.intervals.push(operation),
        }
        if self.intervals.len() > MAX_INTERVALS {
            self.joined_gap_ns = (self.joined_gap_ns * 2).max(1_000);
            let intervals = std::mem::take(&mut self.intervals);
            intervals.into_iter().for_each(|interval| self.add(interval));
        }
    }
}

/// Returns the time in which at least one thread was busy, in nanoseconds.
pub fn union_ns(threads: Vec<BusyTimes>) -> u64 {
    let mut all: Vec<Interval> = threads.into_iter().flat_map(|thread| thread.intervals).collect();
    all.sort_unstable();
    let (mut total, mut covered) = (0, 0);
    for interval in all {
        total += interval.end_ns.saturating_sub(interval.begin_ns.max(covered));
        covered = covered.max(interval.end_ns);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_operations_count_once() {
        let thread = |intervals: &[[u64; 2]]| {
            let mut times = BusyTimes::default();
            intervals.iter().for_each(|[begin_ns, end_ns]| {
                times.add(Interval { begin_ns: *begin_ns, end_ns: *end_ns });
            });
            times
        };
        let union = union_ns(vec![thread(&[[10, 20], [30, 40]]), thread(&[[15, 35], [50, 60], [60, 65]])]);
        assert_eq!(union, 45);
    }

    #[test]
    fn memory_is_bounded() {
        let mut times = BusyTimes::default();
        (0..1_000_000).for_each(|number| {
            times.add(Interval { begin_ns: number * 900, end_ns: number * 900 + 100 });
        });
        assert!(times.intervals.len() <= MAX_INTERVALS);
    }
}
