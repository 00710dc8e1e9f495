//! Limits the influence of outliers: values far from the median are moved closer to it.

use longhaul_model::median;

/// Factor from a median absolute deviation to a standard deviation: `1 / Φ⁻¹(¾)`.
const MAD_TO_STANDARD_DEVIATION: f64 = 1.4826;

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
