//! Pictures: pure values in, SVG out, each with its words and its figures.
//!
//! A chart is as wide as its place and its letters are as large as the page's (see [`svg`]), so one drawing serves a
//! phone, a wall and a printed page. Axes that are compared are shared, intervals are always drawn, gaps stay gaps.

pub mod calendar;
pub mod days;
pub mod ecdf;
pub mod forest;
pub mod heat;
pub mod look;
pub mod scale;
pub mod smoke;
pub mod svg;
pub mod ticks;
pub mod time;
pub mod times;

use longhaul_measure::summary::Estimate;

pub use calendar::{Availability, Calendar};
pub use days::{Days, Level, Tick};
pub use ecdf::{Curve, Ecdf};
pub use forest::{Forest, ForestGroup, ForestRow};
pub use heat::Heat;
pub use look::{Fill, Look, Looks, Shape};
pub use scale::{DayScale, LogScale};
pub use smoke::{Smoke, Spread};
pub use svg::{Chart, STYLE, Table};
pub use time::TimeScale;
pub use times::{TimeRow, TimeRows, TimesChart};

/// `0.82× (0.77 to 0.88)`, to the digits that the interval carries. An end that is not 1 is never rounded to it: on
/// which side of 1 it lies is what everything is about.
pub fn ratio_text(ratio: Estimate) -> String {
    let (value, low, high) = ratio_figures(ratio);
    format!("{value}× ({low} to {high})")
}

/// The same as short as a picture needs it: `0.82× (0.77–0.88)`.
fn ratio_label(ratio: Estimate) -> String {
    let (value, low, high) = ratio_figures(ratio);
    format!("{value}× ({low}–{high})")
}

fn ratio_figures(ratio: Estimate) -> (String, String, String) {
    let half = (ratio.high - ratio.low).abs() / 2.0;
    let fewest = if half >= 1.0 { 1 } else { 2 + usize::from(half < 0.01) };
    let shown = |value: f64, decimals: usize| format!("{value:.decimals$}");
    let hides_a_side = |decimals: &usize| {
        [ratio.low, ratio.high]
            .iter()
            .any(|end| *end != 1.0 && shown(*end, *decimals) == shown(1.0, *decimals))
    };
    let decimals = (fewest..4).find(|decimals| !hides_a_side(decimals)).unwrap_or(4);
    let one = |value: f64| if value >= 1000.0 { format!("{value:.1e}") } else { shown(value, decimals) };
    (one(ratio.value), one(ratio.low), one(ratio.high))
}

/// A ratio on an axis.
fn tick_text(ratio: f64) -> String {
    if (1e-3..1e4).contains(&ratio) {
        format!("{}×", crate::units::plain(ratio, 3))
    } else {
        format!("{ratio:e}×")
    }
}
