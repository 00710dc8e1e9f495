//! Quantiles of small samples whose values are all stored (docs/methodology.md#histograms-and-quantiles).

/// Number of values up to which a p95 by nearest rank is the maximum: `1 / (1 - 0.95)`.
pub const MIN_VALUES_FOR_P95: usize = 20;

/// Minimum number of values beyond a quantile for the quantile to be printed.
const MIN_VALUES_BEYOND: f64 = 20.0;
/// Minimum number of days with values for a quantile to be printed.
const MIN_DAYS_SPANNED: usize = 5;

/// Returns true if `count` values from `days` days are enough to print their `q` quantile: at least 20 values beyond
/// the quantile, and at least five days.
pub fn supports_quantile(count: u64, q: f64, days: usize) -> bool {
    // The tolerance is needed because 1 - 0.95 is not exact in binary.
    count as f64 * (1.0 - q) + 1e-6 >= MIN_VALUES_BEYOND && days >= MIN_DAYS_SPANNED
}

/// Returns the `q` quantile by nearest rank: the smallest value that at least a share `q` of the sample does not
/// exceed.
///
/// `None` for an empty sample. With up to `1 / (1 - q)` values the quantile is the maximum, so callers that print it
/// must also print the number of values.
pub fn quantile(sample: &[f64], q: f64) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

/// Like [`quantile`], for a sample that is sorted in ascending order.
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).checked_sub(1)?).copied()
}

/// Returns the median: the middle value, or the mean of the two in the middle. `None` for an empty sample.
pub fn median(sample: &[f64]) -> Option<f64> {
    if sample.is_empty() {
        return None;
    }
    let (mut values, middle) = (sample.to_vec(), sample.len() / 2);
    // Selecting takes a fifth of the time of sorting, and charts take medians of all days before each day.
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let highest_below = below.iter().copied().max_by(f64::total_cmp);
    match highest_below.filter(|_| sample.len().is_multiple_of(2)) {
        Some(lower) => Some((lower + *upper) / 2.0),
        None => Some(*upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_sample_has_no_quantile() {
        assert_eq!((median(&[]), quantile(&[], 0.95)), (None, None));
    }

    #[test]
    fn median_of_an_even_sample_is_the_mean_of_the_middle() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.95), Some(4.0));
    }

    #[test]
    fn p95_needs_four_hundred_values_from_five_days() {
        assert!(supports_quantile(400, 0.95, 5) && supports_quantile(2000, 0.99, 5));
        assert!(!supports_quantile(399, 0.95, 5) && !supports_quantile(400, 0.95, 4));
        assert!(!supports_quantile(400, f64::NAN, 5));
    }

    proptest! {
        #[test]
        fn share_q_of_the_sample_does_not_exceed_its_quantile(
            sample in proptest::collection::vec(-1e9..1e9f64, 1..200), q in 0.0..=1.0f64,
        ) {
            let value = quantile(&sample, q).unwrap();
            let below = sample.iter().filter(|x| **x <= value).count() as f64;
            prop_assert!(sample.contains(&value) && below >= q * sample.len() as f64);
        }
    }
}
