//! Descriptive intervals from a moving-block bootstrap of days. They are never used for a verdict, because they miss
//! the truth too often: 15 % of the time at two weeks (docs/methodology.md#time-waited).
//!
//! Blocks of two days preserve the correlation of neighbouring days.

use longhaul_model::Histogram;
use longhaul_model::draw::draw_stream;
use longhaul_model::midpoint_ns;
use longhaul_model::quantile_of_sorted;

/// Number of days in a block.
const BLOCK_DAYS: usize = 2;
/// Minimum number of days for an interval.
const MIN_DAYS: usize = 5;

/// Parameters of the bootstrap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Seed of the random numbers. The same seed gives the same interval on every machine.
    pub seed: u64,
    /// Number of replicates; about 1,000 to 2,000 give two digits.
    pub replicates: usize,
    /// Share of replicates inside the interval, for example 0.95.
    pub level: f64,
}

impl Bootstrap {
    /// Returns the percentile interval of a statistic of `days`, which must be in chronological order.
    ///
    /// `None` below five days, without replicates, or if the statistic is `None` or NaN for any replicate.
    pub fn interval<T>(&self, days: &[T], statistic: impl Fn(&[&T]) -> Option<f64>) -> Option<(f64, f64)> {
        let mut resampled = Vec::with_capacity(days.len());
        self.interval_of_indices(days.len(), |drawn| {
            resampled.clear();
            resampled.extend(drawn.iter().map(|index| &days[*index]));
            statistic(&resampled)
        })
    }

    /// Returns the percentile interval of the `q` quantile of all durations of `days`, in nanoseconds. The result
    /// equals that of merging the histograms of each replicate, but no merge is needed.
    pub fn quantile_ns(&self, days: &[Histogram], q: f64) -> Option<(f64, f64)> {
        let cumulated = CumulativeHistograms::new(days);
        self.interval_of_indices(days.len(), |drawn| cumulated.quantile_ns(drawn, q))
    }

    fn interval_of_indices(
        &self,
        days: usize,
        mut statistic: impl FnMut(&[usize]) -> Option<f64>,
    ) -> Option<(f64, f64)> {
        if days < MIN_DAYS || !(self.level > 0.0 && self.level < 1.0) {
            return None;
        }
        let mut drawn = Vec::with_capacity(days + BLOCK_DAYS);
        let mut resample = |replicate: u64| {
            self.draw(replicate, days, &mut drawn);
            statistic(&drawn).filter(|value| !value.is_nan())
        };
        let mut values: Vec<f64> = (0..self.replicates as u64).map(&mut resample).collect::<Option<_>>()?;
        values.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.level) / 2.0;
        Some((quantile_of_sorted(&values, tail)?, quantile_of_sorted(&values, 1.0 - tail)?))
    }

    /// Draws as many day indices as there are days, in blocks of neighbouring days. Each 64 random bits place two
    /// blocks.
    fn draw(&self, replicate: u64, days: usize, drawn: &mut Vec<usize>) {
        let starts = (days - BLOCK_DAYS + 1) as u64;
        let halves = |bits: u64| [bits >> 32, bits & 0xffff_ffff];
        let places =
            draw_stream(self.seed, replicate).flat_map(halves).map(|half| ((half * starts) >> 32) as usize);
        drawn.clear();
        for start in places.take(days.div_ceil(BLOCK_DAYS)) {
            drawn.extend_from_slice(&std::array::from_fn::<_, BLOCK_DAYS, _>(|day| start + day));
        }
        drawn.truncate(days);
    }
}

/// Returns the sum of the second values divided by the sum of the first, for days of seconds waited. `None` if the
/// first sum is zero.
pub fn ratio_of_sums(days: &[&(f64, f64)]) -> Option<f64> {
    let (first, second) = days.iter().fold((0.0, 0.0), |sum, day| (sum.0 + day.0, sum.1 + day.1));
    Some(second / first).filter(|ratio| ratio.is_finite())
}

/// Cumulative histograms of days. They give a quantile of any set of resampled days by a search instead of a merge.
struct CumulativeHistograms {
    /// Index of the first bucket.
    first: i32,
    /// Number of durations in or below each bucket: one row per bucket, one column per day.
    counts_up_to: Vec<Vec<u64>>,
    /// Shortest and longest duration of each day in nanoseconds; `None` for a day without durations.
    range_ns: Vec<Option<(u64, u64)>>,
}

impl CumulativeHistograms {
    fn new(days: &[Histogram]) -> Self {
        let filled = || days.iter().filter(|day| day.count() > 0).map(Histogram::buckets);
        let first = filled().map(|(first, _)| first).min().unwrap_or(0);
        let end = filled().map(|(first, counts)| first + counts.len() as i32).max().unwrap_or(0);
        let mut below = vec![0; days.len()];
        let row = |bucket: i32| {
            for (below, day) in below.iter_mut().zip(days) {
                let (first, counts) = day.buckets();
                let place = usize::try_from(bucket - first).ok();
                *below += place.and_then(|place| counts.get(place)).copied().unwrap_or(0);
            }
            below.clone()
        };
        let rows = (first..end).map(row).collect();
        let range_ns = days.iter().map(|day| day.min_ns().zip(day.max_ns())).collect();
        Self { first, counts_up_to: rows, range_ns }
    }

    fn quantile_ns(&self, drawn: &[usize], q: f64) -> Option<f64> {
        let up_to = |row: &Vec<u64>| drawn.iter().map(|day| row[*day]).sum::<u64>();
        let count = up_to(self.counts_up_to.last()?);
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count.max(1));
        let bucket = self.counts_up_to.partition_point(|row| up_to(row) < rank);
        let ranges = || drawn.iter().filter_map(|day| self.range_ns[*day]);
        let shortest = ranges().map(|(min, _)| min).min()?;
        let longest = ranges().map(|(_, max)| max).max()?;
        Some(midpoint_ns(self.first + bucket as i32).clamp(shortest as f64, longest as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOOTSTRAP: Bootstrap = Bootstrap { seed: 7, replicates: 200, level: 0.95 };

    fn mean(days: &[&f64]) -> Option<f64> {
        Some(days.iter().copied().sum::<f64>() / days.len() as f64)
    }

    fn histograms() -> impl Strategy<Value = Vec<Histogram>> {
        let day = proptest::collection::vec(1u64..10_000_000_000, 0..40).prop_map(|values| {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            histogram
        });
        proptest::collection::vec(day, 5..12)
    }

    #[test]
    fn interval_depends_only_on_the_seed() {
        let days: Vec<f64> = (0..30).map(|day| f64::from(day * day % 17)).collect();
        assert_eq!(BOOTSTRAP.interval(&days, mean), BOOTSTRAP.interval(&days, mean));
        assert_ne!(BOOTSTRAP.interval(&days, mean), Bootstrap { seed: 8, ..BOOTSTRAP }.interval(&days, mean));
    }

    #[test]
    fn missing_or_invalid_data_gives_no_interval() {
        assert_eq!(BOOTSTRAP.interval(&[1.0; 4], mean), None);
        assert_eq!(BOOTSTRAP.interval(&[f64::NAN; 9], mean), None);
        assert_eq!(BOOTSTRAP.interval(&[1.0; 9], |_| None), None);
        assert_eq!(Bootstrap { replicates: 0, ..BOOTSTRAP }.interval(&[1.0; 9], mean), None);
        assert_eq!(Bootstrap { level: f64::NAN, ..BOOTSTRAP }.interval(&[1.0; 9], mean), None);
        assert_eq!(BOOTSTRAP.interval(&[(0.0, 1.0); 9], ratio_of_sums), None);
        assert_eq!(BOOTSTRAP.quantile_ns(&vec![Histogram::new(); 9], 0.5), None);
    }

    #[test]
    fn days_are_drawn_in_pairs_of_neighbours() {
        for replicate in 0..100 {
            let mut drawn = vec![];
            BOOTSTRAP.draw(replicate, 9, &mut drawn);
            assert_eq!(drawn.len(), 9);
            assert!(drawn.chunks_exact(2).all(|pair| pair[1] == pair[0] + 1 && pair[1] < 9));
        }
    }

    #[test]
    fn interval_of_a_mean_is_about_two_standard_errors() {
        let days: Vec<f64> = (0..100).map(|day| f64::from(day * 37 % 100)).collect();
        let (low, high) = Bootstrap { replicates: 2000, ..BOOTSTRAP }.interval(&days, mean).unwrap();
        assert!(
            low > 49.5 - 8.0 && low < 49.5 - 1.0 && high > 49.5 + 1.0 && high < 49.5 + 8.0,
            "{low} {high}"
        );
    }

    proptest! {
        #[test]
        fn quantile_by_search_equals_quantile_by_merge(days in histograms(), q in 0.0..=1.0f64) {
            let by_merging = BOOTSTRAP.interval(&days, |drawn| {
                let mut merged = Histogram::new();
                drawn.iter().for_each(|day| merged.merge(day));
                merged.quantile_ns(q)
            });
            prop_assert_eq!(BOOTSTRAP.quantile_ns(&days, q), by_merging);
        }

        #[test]
        fn interval_of_a_ratio_lies_within_the_daily_extremes(
            days in proptest::collection::vec((0.1..1e3f64, 0.1..1e3f64), 5..60),
        ) {
            let (low, high) = BOOTSTRAP.interval(&days, ratio_of_sums).unwrap();
            let ratios = || days.iter().map(|(first, second)| second / first);
            prop_assert!(low <= high);
            prop_assert!(low >= ratios().fold(f64::MAX, f64::min) * (1.0 - 1e-9));
            prop_assert!(high <= ratios().fold(0.0, f64::max) * (1.0 + 1e-9));
        }
    }
}
