//! Student's t distribution.

use super::gamma::incomplete_beta;

/// The chance that a t variable with `freedom` degrees of freedom lies beyond `±t`.
///
/// `P(|T| ≥ t) = I_{ν/(ν+t²)}(ν/2, ½)`. Degrees of freedom are kept within 1 and a million, where the distribution is normal to six digits; NaN for NaN.
pub fn student_tails(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() {
        return f64::NAN;
    }
    let freedom = freedom.clamp(1.0, 1e6);
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(1.0 / (1.0 + t * t / freedom), freedom / 2.0, 0.5)
}

/// The value that a t variable with `freedom` degrees of freedom exceeds in absolute value with the chance `alpha`.
///
/// Infinity for `alpha ≤ 0`, and where there is no such number.
pub fn student_critical(alpha: f64, freedom: f64) -> f64 {
    if alpha.is_nan() || alpha <= 0.0 || freedom.is_nan() {
        return f64::INFINITY;
    }
    let exceeds = |t: f64| student_tails(t, freedom) > alpha;
    let mut high = 1.0;
    while exceeds(high) {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if exceeds(middle) { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn critical_values_are_those_of_the_tables() {
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

    /// The row "fixed-look t" of the table of half widths: `t(0.05, n-1) / √n`.
    #[test]
    fn the_half_width_of_a_single_look_is_that_of_the_specification() {
        let days = [5.0, 7.0, 10.0, 14.0, 21.0, 28.0, 42.0, 56.0, 84.0f64];
        let expected = [1.24, 0.925, 0.715, 0.577, 0.455, 0.388, 0.312, 0.268, 0.217];
        for (n, expected) in days.into_iter().zip(expected) {
            let found = student_critical(0.05, n - 1.0) / n.sqrt();
            assert!((found - expected).abs() < 0.0051 * expected, "{n} days: {found}");
        }
    }

    proptest! {
        #[test]
        fn a_critical_value_is_exceeded_with_its_chance(alpha in 1e-9..0.999f64, freedom in 1.0..1e4f64) {
            let tails = student_tails(student_critical(alpha, freedom), freedom);
            prop_assert!((tails / alpha - 1.0).abs() < 1e-6, "{tails} for {alpha}");
        }

        #[test]
        fn any_numbers_are_survived(alpha: f64, freedom: f64, t: f64) {
            prop_assert!(!student_critical(alpha, freedom).is_nan());
            let tails = student_tails(t, freedom);
            prop_assert!(tails.is_nan() == (t.is_nan() || freedom.is_nan()));
            prop_assert!(tails.is_nan() || (0.0..=1.0 + 1e-12).contains(&tails));
        }
    }
}
