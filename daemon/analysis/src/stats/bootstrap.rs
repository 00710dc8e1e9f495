//! Descriptive intervals from a moving-block bootstrap of days. They are never used for a verdict, because they miss
//! the truth too often: 15 % of the time at two weeks (docs/methodology.md#time-waited).
//!
//! Blocks of two days preserve the correlation of neighbouring days.

use longhaul_model::draw::draw_stream;
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
        if days.len() < MIN_DAYS || !(self.level > 0.0 && self.level < 1.0) {
            return None;
        }
        let mut drawn = Vec::with_capacity(days.len() + BLOCK_DAYS);
        let mut resampled = Vec::with_capacity(days.len());
        let mut resample = |replicate: u64| {
            self.draw(replicate, days.len(), &mut drawn);
            resampled.clear();
            resampled.extend(drawn.iter().map(|index| &days[*index]));
            statistic(&resampled).filter(|value| !value.is_nan())
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOOTSTRAP: Bootstrap = Bootstrap { seed: 7, replicates: 200, level: 0.95 };

    fn mean(days: &[&f64]) -> Option<f64> {
        Some(days.iter().copied().sum::<f64>() / days.len() as f64)
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
