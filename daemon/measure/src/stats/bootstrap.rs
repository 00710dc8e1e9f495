//! Intervals that describe, by resampling days. Never for a verdict: they under-cover, 15 % misses at two weeks.
//!
//! Moving blocks of two days keep what neighbouring days share.

use super::Histogram;
use super::buckets::middle_ns;
use super::quantile::quantile_of_sorted;
use crate::corpus::draw::draws;

/// Days in a block.
const BLOCK: usize = 2;
/// Below this many days nothing is resampled.
const DAYS_NEEDED: usize = 5;

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// The same seed gives the same interval, on every machine.
    pub seed: u64,
    /// How often; 2000 for two digits.
    pub replicates: usize,
    /// The share of replicates inside the interval, such as 0.95.
    pub level: f64,
}

impl Bootstrap {
    /// The percentile interval of a statistic of `days`, which are in order of time.
    ///
    /// `None` below five days, without replicates, and if the statistic is not known or not a number for one of them.
    pub fn interval<T>(&self, days: &[T], statistic: impl Fn(&[&T]) -> Option<f64>) -> Option<(f64, f64)> {
        let mut resampled = Vec::with_capacity(days.len());
        self.of_indices(days.len(), |drawn| {
            resampled.clear();
            resampled.extend(drawn.iter().map(|index| &days[*index]));
            statistic(&resampled)
        })
    }

    /// The percentile interval of a quantile of all durations of `days`, in nanoseconds: the same as merging the
    /// histograms of each replicate, without merging them.
    pub fn quantile_ns(&self, days: &[Histogram], q: f64) -> Option<(f64, f64)> {
        let cumulated = Cumulated::of(days);
        self.of_indices(days.len(), |drawn| cumulated.quantile_ns(drawn, q))
    }

    fn of_indices(
        &self,
        days: usize,
        mut statistic: impl FnMut(&[usize]) -> Option<f64>,
    ) -> Option<(f64, f64)> {
        if days < DAYS_NEEDED || !(self.level > 0.0 && self.level < 1.0) {
            return None;
        }
        let mut drawn = Vec::with_capacity(days + BLOCK);
        let mut one = |replicate: u64| {
            self.draw(replicate, days, &mut drawn);
            statistic(&drawn).filter(|value| !value.is_nan())
        };
        let mut values: Vec<f64> = (0..self.replicates as u64).map(&mut one).collect::<Option<_>>()?;
        values.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - self.level) / 2.0;
        Some((quantile_of_sorted(&values, tail)?, quantile_of_sorted(&values, 1.0 - tail)?))
    }

    /// Draws as many days as there are, in blocks of neighbours. Each 64 bits place two blocks.
    fn draw(&self, replicate: u64, days: usize, drawn: &mut Vec<usize>) {
        let starts = (days - BLOCK + 1) as u64;
        let halves = |bits: u64| [bits >> 32, bits & 0xffff_ffff];
        let places =
            draws(self.seed, replicate).flat_map(halves).map(|half| ((half * starts) >> 32) as usize);
        drawn.clear();
        for start in places.take(days.div_ceil(BLOCK)) {
            drawn.extend_from_slice(&std::array::from_fn::<_, BLOCK, _>(|day| start + day));
        }
        drawn.truncate(days);
    }
}

/// The ratio of the sums of both sides, second by first: for days of seconds waited. `None` if the first is zero.
pub fn ratio_of_sums(days: &[&(f64, f64)]) -> Option<f64> {
    let (first, second) = days.iter().fold((0.0, 0.0), |sum, day| (sum.0 + day.0, sum.1 + day.1));
    Some(second / first).filter(|ratio| ratio.is_finite())
}

/// Day histograms, cumulated, so that a quantile of any resampling is a search instead of a merge.
struct Cumulated {
    first: i32,
    /// For each bucket, day by day, how many durations do not lie above it.
    rows: Vec<Vec<u64>>,
    range_ns: Vec<Option<(u64, u64)>>,
}

impl Cumulated {
    fn of(days: &[Histogram]) -> Self {
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
        Self { first, rows, range_ns }
    }

    fn quantile_ns(&self, drawn: &[usize], q: f64) -> Option<f64> {
        let up_to = |row: &Vec<u64>| drawn.iter().map(|day| row[*day]).sum::<u64>();
        let count = up_to(self.rows.last()?);
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count.max(1));
        let bucket = self.rows.partition_point(|row| up_to(row) < rank);
        let ranges = || drawn.iter().filter_map(|day| self.range_ns[*day]);
        let shortest = ranges().map(|(min, _)| min).min()?;
        let longest = ranges().map(|(_, max)| max).max()?;
        Some(middle_ns(self.first + bucket as i32).clamp(shortest as f64, longest as f64))
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
    fn the_same_seed_gives_the_same_interval_and_another_another() {
        let days: Vec<f64> = (0..30).map(|day| f64::from(day * day % 17)).collect();
        assert_eq!(BOOTSTRAP.interval(&days, mean), BOOTSTRAP.interval(&days, mean));
        assert_ne!(BOOTSTRAP.interval(&days, mean), Bootstrap { seed: 8, ..BOOTSTRAP }.interval(&days, mean));
    }

    #[test]
    fn too_little_to_resample_gives_no_interval() {
        assert_eq!(BOOTSTRAP.interval(&[1.0; 4], mean), None);
        assert_eq!(BOOTSTRAP.interval(&[f64::NAN; 9], mean), None);
        assert_eq!(BOOTSTRAP.interval(&[1.0; 9], |_| None), None);
        assert_eq!(Bootstrap { replicates: 0, ..BOOTSTRAP }.interval(&[1.0; 9], mean), None);
        assert_eq!(Bootstrap { level: f64::NAN, ..BOOTSTRAP }.interval(&[1.0; 9], mean), None);
        assert_eq!(BOOTSTRAP.interval(&[(0.0, 1.0); 9], ratio_of_sums), None);
        assert_eq!(BOOTSTRAP.quantile_ns(&vec![Histogram::new(); 9], 0.5), None);
    }

    #[test]
    fn days_come_in_pairs_of_neighbours() {
        for replicate in 0..100 {
            let mut drawn = vec![];
            BOOTSTRAP.draw(replicate, 9, &mut drawn);
            assert_eq!(drawn.len(), 9);
            assert!(drawn.chunks_exact(2).all(|pair| pair[1] == pair[0] + 1 && pair[1] < 9));
        }
    }

    #[test]
    fn the_interval_of_a_mean_is_about_two_standard_errors_to_either_side() {
        let days: Vec<f64> = (0..100).map(|day| f64::from(day * 37 % 100)).collect();
        let (low, high) = Bootstrap { replicates: 2000, ..BOOTSTRAP }.interval(&days, mean).unwrap();
        assert!(
            low > 49.5 - 8.0 && low < 49.5 - 1.0 && high > 49.5 + 1.0 && high < 49.5 + 8.0,
            "{low} {high}"
        );
    }

    proptest! {
        #[test]
        fn searching_a_quantile_equals_merging(days in histograms(), q in 0.0..=1.0f64) {
            let by_merging = BOOTSTRAP.interval(&days, |drawn| {
                let mut whole = Histogram::new();
                drawn.iter().for_each(|day| whole.merge(day));
                whole.quantile_ns(q)
            });
            prop_assert_eq!(BOOTSTRAP.quantile_ns(&days, q), by_merging);
        }

        #[test]
        fn the_interval_of_waiting_lies_within_the_extremes(
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
