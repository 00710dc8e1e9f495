//! Weeks of one target against weeks of the other: the comparison for whoever cannot measure both at once.
//!
//! Weeks differ in more than the target. Only alternating weeks (ABBA BAAB) keep the level, at a price in width: a plain
//! A-then-B comparison of two identical targets names a winner about half the time.

use super::student::student_critical;

/// Below this many pairs of adjacent weeks there is no statement.
pub const WEEK_PAIRS_NEEDED: usize = 4;

/// Half the width of the interval at level `1 - alpha` for the mean of differences between adjacent weeks, log ratios.
///
/// Student's t over pairs: valid for one look at the planned end only. `None` below four pairs and with a value that is
/// not finite.
pub fn week_pairs_half(differences: &[f64], alpha: f64) -> Option<f64> {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let squares = differences.iter().map(|difference| (difference - mean).powi(2)).sum::<f64>();
    let half = student_critical(alpha, n - 1.0) * (squares / (n - 1.0) / n).sqrt();
    (differences.len() >= WEEK_PAIRS_NEEDED).then_some(half).filter(|half| !half.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn four_pairs_are_students_t_with_three_degrees_of_freedom() {
        // Standard deviation 0.1 · √(5/3), standard error half of that, t = 3.182446.
        let half = week_pairs_half(&[-0.15, -0.05, 0.05, 0.15], 0.05).unwrap();
        assert!((half - 3.182_446 * 0.1 * (5.0 / 3.0f64).sqrt() / 2.0).abs() < 1e-6, "{half}");
    }

    #[test]
    fn three_pairs_say_nothing() {
        assert_eq!(week_pairs_half(&[0.1; 3], 0.05), None);
        assert_eq!(week_pairs_half(&[0.1, 0.1, f64::NAN, 0.1], 0.05), None);
        assert_eq!(week_pairs_half(&[], 0.05), None);
    }

    proptest! {
        #[test]
        fn any_differences_are_survived(differences in proptest::collection::vec(any::<f64>(), 0..12), alpha in 0.0..1.0f64) {
            let half = week_pairs_half(&differences, alpha);
            prop_assert!(half.is_none_or(|half| half >= 0.0));
        }
    }
}
