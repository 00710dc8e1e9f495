//! Texts for ratios in charts and sentences.

use longhaul_analysis::summary::RatioEstimate;

/// Formats a ratio with its interval, for example `0.82× (0.77 to 0.88)`. An end of the interval that is not exactly 1
/// is never rounded to 1, because its side of 1 decides if there is a difference.
pub fn ratio_text(ratio: RatioEstimate) -> String {
    let (value, low, high) = ratio_figures(ratio);
    format!("{value}× ({low} to {high})")
}

/// Formats a ratio with its interval in the short form for charts: `0.82× (0.77–0.88)`.
pub fn ratio_label(ratio: RatioEstimate) -> String {
    let (value, low, high) = ratio_figures(ratio);
    format!("{value}× ({low}–{high})")
}

fn ratio_figures(ratio: RatioEstimate) -> (String, String, String) {
    let half = (ratio.high - ratio.low).abs() / 2.0;
    let min_decimals = if half >= 1.0 { 1 } else { 2 + usize::from(half < 0.01) };
    let shown = |value: f64, decimals: usize| format!("{value:.decimals$}");
    let hides_a_side = |decimals: &usize| {
        [ratio.low, ratio.high]
            .iter()
            .any(|end| *end != 1.0 && shown(*end, *decimals) == shown(1.0, *decimals))
    };
    let decimals = (min_decimals..4).find(|decimals| !hides_a_side(decimals)).unwrap_or(4);
    let one = |value: f64| if value >= 1000.0 { format!("{value:.1e}") } else { shown(value, decimals) };
    (one(ratio.value), one(ratio.low), one(ratio.high))
}

/// Formats a ratio for the label of an axis.
pub fn tick_text(ratio: f64) -> String {
    if (1e-3..1e4).contains(&ratio) {
        format!("{}×", crate::units::decimal(ratio, 3))
    } else {
        format!("{ratio:e}×")
    }
}
