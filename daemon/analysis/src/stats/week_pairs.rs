//! Compares weeks of one target with weeks of another, for users who cannot measure both targets at the same time.
//!
//! Weeks differ in more than the target. Only alternating weeks (ABBA BAAB) keep the error rate, at the price of a
//! wider interval: a plain A-then-B comparison of two identical targets names a winner about half the time
//! (docs/methodology.md#sequential-weeks).

use super::student::student_critical;

/// Minimum number of pairs of adjacent weeks for an interval.
pub const MIN_WEEK_PAIRS: usize = 4;

/// Returns half the width of the interval at level `1 - alpha` for the mean log ratio of pairs of adjacent weeks.
///
/// Uses Student's t over pairs, which is valid for only one look at the planned end. `None` below four pairs or with a
/// value that is not finite.
pub fn week_pairs_half_width(differences: &[f64], alpha: f64) -> Option<f64> {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let squares = differences.iter().map(|difference| (difference - mean).powi(2)).sum::<f64>();
    let half = student_critical(alpha, n - 1.0) * (squares / (n - 1.0) / n).sqrt();
    (differences.len() >= MIN_WEEK_PAIRS).then_some(half).filter(|half| !half.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn four_pairs_use_students_t_with_three_degrees() {
        // The standard deviation is 0.1 · √(5/3), the standard error half of that, and t = 3.182446.
        let half = week_pairs_half_width(&[-0.15, -0.05, 0.05, 0.15], 0.05).unwrap();
        assert!((half - 3.182_446 * 0.1 * (5.0 / 3.0f64).sqrt() / 2.0).abs() < 1e-6, "{half}");
    }

    #[test]
    fn three_pairs_give_no_interval() {
        assert_eq!(week_pairs_half_width(&[0.1; 3], 0.05), None);
        assert_eq!(week_pairs_half_width(&[0.1, 0.1, f64::NAN, 0.1], 0.05), None);
        assert_eq!(week_pairs_half_width(&[], 0.05), None);
    }

    proptest! {
        #[test]
        fn any_differences_give_no_negative_width(differences in proptest::collection::vec(any::<f64>(), 0..12), alpha in 0.0..1.0f64) {
            let half = week_pairs_half_width(&differences, alpha);
            prop_assert!(half.is_none_or(|half| half >= 0.0));
        }
    }
}
