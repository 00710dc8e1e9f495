//! Quantiles of small samples that are kept whole.

/// From how many values on a p95 is more than the maximum: `1 / (1 - 0.95)`.
pub const P95_NEEDS: usize = 20;

/// How many values have to lie beyond a quantile before it is printed.
const VALUES_BEYOND: f64 = 20.0;
/// How many days the values have to span before one is printed.
const DAYS_SPANNED: usize = 5;

/// Whether `count` durations from `days` days carry their `q` quantile: twenty beyond it, and five days.
pub fn carries_quantile(count: u64, q: f64, days: usize) -> bool {
    // 1 - 0.95 is not exact.
    count as f64 * (1.0 - q) + 1e-6 >= VALUES_BEYOND && days >= DAYS_SPANNED
}

/// The `q` quantile by nearest rank: the smallest value that at least `q` of the sample does not exceed.
///
/// `None` for an empty sample. With fewer than `1 / (1 - q)` values this is the maximum; whoever prints it says how
/// many there were.
pub fn quantile(sample: &[f64], q: f64) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

/// The same of a sample in ascending order.
pub(super) fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).checked_sub(1)?).copied()
}

/// The median: the middle value, or the mean of the two in the middle. `None` for an empty sample.
pub fn median(sample: &[f64]) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_sample_has_no_quantile() {
        assert_eq!((median(&[]), quantile(&[], 0.95)), (None, None));
    }

    #[test]
    fn the_median_of_an_even_sample_lies_between() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.95), Some(4.0));
    }

    #[test]
    fn a_p95_needs_four_hundred_durations_from_five_days() {
        assert!(carries_quantile(400, 0.95, 5) && carries_quantile(2000, 0.99, 5));
        assert!(!carries_quantile(399, 0.95, 5) && !carries_quantile(400, 0.95, 4));
        assert!(!carries_quantile(400, f64::NAN, 5));
    }

    proptest! {
        #[test]
        fn at_least_q_of_the_sample_does_not_exceed_its_quantile(
            sample in proptest::collection::vec(-1e9..1e9f64, 1..200), q in 0.0..=1.0f64,
        ) {
            let value = quantile(&sample, q).unwrap();
            let below = sample.iter().filter(|x| **x <= value).count() as f64;
            prop_assert!(sample.contains(&value) && below >= q * sample.len() as f64);
        }
    }
}
