//! Charts as SVG. Each chart has a description and a table of its data. All functions are pure.
//!
//! A chart is as wide as its container and uses the font size of the page (see [`svg`]), so the same drawing works on a
//! phone, on a large screen and on paper. Charts that are compared share their axes, intervals are always drawn, and
//! gaps in the data remain gaps.

pub mod bands;
pub mod calendar;
pub mod daily_ratios;
pub mod ecdf;
pub mod forest;
pub mod heat_map;
pub mod scale;
pub mod style;
pub mod svg;
pub mod ticks;
pub mod time_scale;
pub mod times;

use longhaul_analysis::summary::Estimate;

pub use bands::{BandChart, QuantileStep};
pub use calendar::{Availability, Calendar};
pub use daily_ratios::{DailyRatios, EventTick, RatioLevel};
pub use ecdf::{Curve, Ecdf};
pub use forest::{Forest, ForestGroup, ForestRow};
pub use heat_map::HeatMap;
pub use scale::{DayScale, LogScale};
pub use style::{MarkFill, SeriesStyle, SeriesStyles, Shape};
pub use svg::{Chart, STYLE};
pub use time_scale::TimeScale;
pub use times::{TimeRow, TimeRows, TimesChart};

/// Formats a ratio with its interval, for example `0.82× (0.77 to 0.88)`. An end of the interval that is not exactly 1
/// is never rounded to 1, because its side of 1 decides if there is a difference.
pub fn ratio_text(ratio: Estimate) -> String {
    let (value, low, high) = ratio_figures(ratio);
    format!("{value}× ({low} to {high})")
}

/// Formats a ratio with its interval in the short form for charts: `0.82× (0.77–0.88)`.
fn ratio_label(ratio: Estimate) -> String {
    let (value, low, high) = ratio_figures(ratio);
    format!("{value}× ({low}–{high})")
}

fn ratio_figures(ratio: Estimate) -> (String, String, String) {
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
fn tick_text(ratio: f64) -> String {
    if (1e-3..1e4).contains(&ratio) {
        format!("{}×", crate::units::decimal(ratio, 3))
    } else {
        format!("{ratio:e}×")
    }
}
