//! Student's t distribution.

use statrs::function::beta::beta_reg;

use super::bisection::bisect;

/// Returns the probability that a t-distributed variable with `freedom` degrees of freedom lies beyond `±t`.
///
/// `P(|T| ≥ t) = I_{ν/(ν+t²)}(ν/2, ½)`. Degrees of freedom are clamped to 1 to 1,000,000; at 1,000,000 the distribution
/// is normal to six digits. Returns NaN if an argument is NaN.
fn student_two_sided_tail(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() {
        return f64::NAN;
    }
    let freedom = freedom.clamp(1.0, 1e6);
    if t.is_infinite() {
        return 0.0;
    }
    beta_reg(freedom / 2.0, 0.5, 1.0 / (1.0 + t * t / freedom))
}

/// Returns the critical value: a t-distributed variable with `freedom` degrees of freedom exceeds it in absolute value
/// with probability `alpha`.
///
/// Returns infinity for `alpha ≤ 0` or if an argument is NaN.
pub fn student_critical(alpha: f64, freedom: f64) -> f64 {
    if alpha.is_nan() || alpha <= 0.0 || freedom.is_nan() {
        return f64::INFINITY;
    }
    let exceeds = |t: f64| student_two_sided_tail(t, freedom) > alpha;
    let mut high = 1.0;
    while exceeds(high) {
        high *= 2.0;
    }
    bisect(0.0, high, exceeds).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn critical_values_match_published_tables() {
        let known = [
            (0.05, 1.0, 12.706_204_736_432_1),
            (0.05, 3.0, 3.182_446_305_284_26),
            (0.05, 13.0, 2.160_368_656_461_01),
            (0.01, 26.0, 2.778_714_533_329_68),
            (0.001, 6.0, 5.958_816_178_818_76),
            (0.05, 1e6, 1.959_966_356_8),
        ];
        for (alpha, freedom, expected) in known {
            let found = student_critical(alpha, freedom);
            assert!((found / expected - 1.0).abs() < 1e-8, "t({alpha}, {freedom}) = {found}");
        }
    }

    /// Checks the row "t-interval for one planned look" of the table in docs/methodology.md#interval:
    /// `t(0.05, n-1) / √n`.
    #[test]
    fn half_width_of_one_planned_look_matches_documentation() {
        let days = [5.0, 7.0, 10.0, 14.0, 21.0, 28.0, 42.0, 56.0, 84.0f64];
        let expected = [1.24, 0.925, 0.715, 0.577, 0.455, 0.388, 0.312, 0.268, 0.217];
        for (n, expected) in days.into_iter().zip(expected) {
            let found = student_critical(0.05, n - 1.0) / n.sqrt();
            assert!((found - expected).abs() < 0.0051 * expected, "{n} days: {found}");
        }
    }

    proptest! {
        #[test]
        fn tail_beyond_critical_value_is_alpha(alpha in 1e-9..0.999f64, freedom in 1.0..1e4f64) {
            let tails = student_two_sided_tail(student_critical(alpha, freedom), freedom);
            prop_assert!((tails / alpha - 1.0).abs() < 1e-6, "{tails} for {alpha}");
        }

        #[test]
        fn nan_arguments_give_defined_results(alpha: f64, freedom: f64, t: f64) {
            prop_assert!(!student_critical(alpha, freedom).is_nan());
            let tails = student_two_sided_tail(t, freedom);
            prop_assert!(tails.is_nan() == (t.is_nan() || freedom.is_nan()));
            prop_assert!(tails.is_nan() || (0.0..=1.0 + 1e-12).contains(&tails));
        }
    }
}
