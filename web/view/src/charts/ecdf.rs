//! Chart of the empirical cumulative distribution: the share of attempts that took at most a given time. All values are
//! used without smoothing.

use maud::{Markup, html};

use super::scale::{Extent, LogScale};
use super::style::{MarkFill, SeriesStyle, mark};
use super::svg::{Anchor, CHARACTER_WIDTH, Chart, line, number, point, text, truncated};
use crate::table::Table;
use crate::units;

/// Horizontal range of the curves, in percent of the width.
const X_RANGE: Extent = Extent { from: 9.0, to: 99.0 };
/// Top and bottom of the curves, in lines (em).
const Y_RANGE: Extent = Extent { from: 0.6, to: 10.0 };
/// Maximum length of a name; longer names are truncated.
const MAX_NAME_CHARS: usize = 16;
/// Width and height of the nested drawing of a curve, in its own units.
const DRAWING_UNITS: f64 = 1000.0;
/// Minimum height of a drawn step: half a percent, which is finer than a screen can show.
const MIN_STEP: f64 = DRAWING_UNITS / 200.0;

/// Times of one target.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Name of the target.
    pub name: String,
    /// Colour and shape of the target.
    pub style: SeriesStyle,
    /// All times in seconds, in ascending order.
    pub times: Vec<f64>,
    /// Number of failures. They have no time, so the curve ends below 100 %.
    pub failed: usize,
}

/// Chart with the curves of several targets on one axis.
#[derive(Debug, Clone)]
pub struct Ecdf {
    /// HTML id, unique on a page.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// Curves of the targets.
    pub curves: Vec<Curve>,
}

impl Ecdf {
    /// Returns a common axis for several charts.
    pub fn shared_scale<'e>(all: impl IntoIterator<Item = &'e Ecdf>) -> LogScale {
        let curves = all.into_iter().flat_map(|ecdf| &ecdf.curves);
        LogScale::spanning(curves.flat_map(|curve| curve.times.iter().copied()), X_RANGE)
    }

    /// Draws the chart on an axis.
    pub fn draw(&self, scale: LogScale) -> Chart {
        if self.curves.iter().all(|curve| curve.times.is_empty()) {
            return Chart::sentence(&self.id, &self.title, "No time was measured in this range.".to_owned());
        }
        let legend = Y_RANGE.to + 3.0;
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: legend + 1.4 * self.curves.len() as f64 + 0.4,
            drawing: html! {
                (background(scale))
                @for (place, curve) in self.curves.iter().enumerate() {
                    (curve.draw(scale, place, self.curves.len()))
                    (curve.legend_entry(legend + 1.4 * place as f64))
                }
            },
            notes: vec![],
            table: self.table(),
        }
    }

    fn description(&self) -> String {
        let mut out = "Vertical axis: the proportion of attempts that took at most this long. Horizontal axis: seconds, logarithmic, \
                       shared by all charts of this kind on the page. A curve further left is faster. A curve that ends below \
                       100 % belongs to a target with failed attempts."
            .to_owned();
        for curve in &self.curves {
            out += &format!(" {}: {}.", curve.name, curve.description());
        }
        out
    }

    fn table(&self) -> Table {
        let mut table = Table::new(self.title.as_str())
            .words(["target"])
            .figures(["n", "failed", "p5", "p25", "median", "p75", "p95"]);
        for curve in &self.curves {
            let mut row = vec![curve.name.clone(), curve.times.len().to_string(), curve.failed.to_string()];
            row.extend([0.05, 0.25, 0.5, 0.75, 0.95].map(|q| curve.quantile(q)));
            table.row(row);
        }
        table
    }
}

impl Curve {
    fn quantile(&self, q: f64) -> String {
        units::seconds_or_none(longhaul_model::quantile(&self.times, q))
    }

    fn description(&self) -> String {
        let measured = units::count(self.times.len(), "measurement");
        format!("median {}, {measured}, {} failed", self.quantile(0.5), self.failed)
    }

    /// Draws the curve as steps, with the target's mark on it. The marks of the curves have different heights, so that
    /// they do not overlap.
    fn draw(&self, scale: LogScale, place: usize, of: usize) -> Markup {
        let attempts = (self.times.len() + self.failed).max(1) as f64;
        let units = scale.with_range(Extent { from: 0.0, to: DRAWING_UNITS });
        let (mut path, mut drawn) = (String::new(), 0.0);
        for (rank, time) in self.times.iter().enumerate() {
            let (x, height) = (units.position(*time), DRAWING_UNITS * (rank + 1) as f64 / attempts);
            let is_last = rank + 1 == self.times.len();
            // Skips steps that are too small to see, which keeps the SVG of a large sample small.
            if rank > 0 && height - drawn < MIN_STEP && !is_last {
                continue;
            }
            let y = DRAWING_UNITS - height;
            path += &if rank == 0 {
                format!("M{x:.0} {DRAWING_UNITS:.0}V{y:.0}")
            } else {
                format!("H{x:.0}V{y:.0}")
            };
            drawn = height;
        }
        let height = (place + 1) as f64 / (of + 1) as f64;
        let at = ((attempts * height) as usize).min(self.times.len().saturating_sub(1));
        html! {
            svg class={ "bands " (self.style.class()) } x={ (number(X_RANGE.from)) "%" } y={ (number(Y_RANGE.from)) "em" }
                width={ (number(X_RANGE.to - X_RANGE.from)) "%" } height={ (number(Y_RANGE.to - Y_RANGE.from)) "em" }
                viewBox={ "0 0 " (DRAWING_UNITS) " " (DRAWING_UNITS) } preserveAspectRatio="none" { path class="median" d=(path) {} }
            @if let Some(time) = self.times.get(at) {
                @let y = Y_RANGE.to - (at + 1) as f64 / attempts * (Y_RANGE.to - Y_RANGE.from);
                (mark(point(scale.position(*time), y), self.style, MarkFill::Solid))
            }
        }
    }

    fn legend_entry(&self, y: f64) -> Markup {
        let failed = if self.failed > 0 { format!(" ✗{}", self.failed) } else { String::new() };
        html! {
            (mark(point(X_RANGE.from + 1.6, y), self.style, MarkFill::Solid))
            (text(point(X_RANGE.from + 4.5, y + 0.35), Anchor::Start, "", &truncated(&self.name, MAX_NAME_CHARS)))
            (text(point(100.0, y + 0.35), Anchor::End, "quiet", &format!("n {}{failed}", self.times.len())))
        }
    }
}

fn background(scale: LogScale) -> Markup {
    html! {
        @for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            @let y = Y_RANGE.to - share * (Y_RANGE.to - Y_RANGE.from);
            (line("grid", point(X_RANGE.from, y), point(X_RANGE.to, y)))
            (text(point(X_RANGE.from - 0.8, y + 0.35), Anchor::End, "quiet", &format!("{}%", share * 100.0)))
        }
        @for tick in scale.ticks(7.0 * CHARACTER_WIDTH) {
            @let x = scale.position(tick);
            (line("grid", point(x, Y_RANGE.from), point(x, Y_RANGE.to)))
            (text(point(x, Y_RANGE.to + 1.2), Anchor::around(x, 6), "quiet", &units::axis_duration(tick)))
        }
    }
}
