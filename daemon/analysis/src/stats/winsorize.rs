//! Limits the influence of outliers: values far from the median are moved closer to it.

use longhaul_model::median;

/// Factor from a median absolute deviation to a standard deviation: `1 / Φ⁻¹(¾)`.
const MAD_TO_STANDARD_DEVIATION: f64 = 1.4826;

/// Largest share of values beyond the bounds that can be outliers. More of them are a part of what was measured: a NAS
/// that is slow every evening.
pub(super) const MAX_OUTLIERS: f64 = 0.1;
/// Distance of the means with and without outliers, as log ratios, up to which it does not matter which is stated.
const MAX_SHIFT: f64 = 0.05;
/// Mean log ratio up to which it may be said that there is no difference.
const NEARLY_EQUAL: f64 = 0.1;

/// Clamps values to the median ± `deviations · 1.4826 · MAD`.
///
/// A median absolute deviation of zero means that more than half of the values are equal. It then measures no spread,
/// and no value is clamped. Returns the number of clamped values.
pub(super) fn winsorize<'v>(values: impl Iterator<Item = &'v mut f64>, deviations: f64) -> usize {
    let mut values: Vec<&mut f64> = values.collect();
    let copies: Vec<f64> = values.iter().map(|value| **value).collect();
    let Some(middle) = median(&copies) else { return 0 };
    let distances: Vec<f64> = copies.iter().map(|value| (value - middle).abs()).collect();
    let reach = deviations * MAD_TO_STANDARD_DEVIATION * median(&distances).unwrap_or(0.0);
    if reach <= 0.0 {
        return 0;
    }
    values.iter_mut().for_each(|value| **value = value.clamp(middle - reach, middle + reach));
    distances.into_iter().filter(|distance| *distance > reach).count()
}

/// Returns the mean of log ratios as they are, if what is said of the winsorized mean would be wrong of it: more than a tenth of
/// the values lie beyond the bounds, and they move the mean by more than 0.05 and by more than half of it, against the
/// difference or where there is hardly one. Outliers that only make a difference larger take nothing away from it.
pub(super) fn mean_with_outliers(log_ratios: &[f64], deviations: f64) -> Option<f64> {
    let mut clamped_values = log_ratios.to_vec();
    let clamped = winsorize(clamped_values.iter_mut(), deviations);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (all, usual) = (mean(log_ratios), mean(&clamped_values));
    let are_too_many = clamped as f64 > MAX_OUTLIERS * log_ratios.len() as f64;
    let shift = all - usual;
    let is_against = shift * usual < 0.0 || usual.abs() < NEARLY_EQUAL;
    let is_moved = shift.abs() > MAX_SHIFT.max(usual.abs() / 2.0);
    (are_too_many && is_against && is_moved && all.is_finite()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns log ratios that vary a little around a value, with some rounds of another kind.
    fn log_ratios(usual: usize, others: usize) -> Vec<f64> {
        let usual = (0..usual).map(|round| -0.22 + 0.01 * (round % 5) as f64);
        usual.chain((0..others).map(|_| 5f64.ln())).collect()
    }

    #[test]
    fn evenings_are_no_outliers() {
        let mean = mean_with_outliers(&log_ratios(10, 7), 2.5).unwrap();
        assert!((mean - (10.0 * -0.2 + 7.0 * 5f64.ln()) / 17.0).abs() < 1e-12, "{mean}");
        assert_eq!(mean_with_outliers(&log_ratios(17, 1), 2.5), None);
        assert_eq!(mean_with_outliers(&log_ratios(17, 0), 2.5), None);
        let larger: Vec<f64> = log_ratios(10, 7).into_iter().map(|ratio| -ratio.abs()).collect();
        assert_eq!(mean_with_outliers(&larger, 2.5), None, "the same side, only more");
    }

    #[test]
    fn outliers_on_both_sides_move_nothing() {
        let noise: Vec<f64> = (0..50).map(|round| 0.01 * f64::from(round % 7 - 3)).collect();
        let outliers = [0.9, -0.9, 0.8, -0.8, 0.7, -0.7, 0.9, -0.9];
        assert_eq!(mean_with_outliers(&[&noise[..], &outliers].concat(), 2.5), None);
    }
}
