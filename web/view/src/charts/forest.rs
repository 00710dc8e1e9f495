//! Forest plot: ratios with their intervals on one axis, relative to the line of no difference.

use longhaul_analysis::summary::RatioEstimate;
use maud::{Markup, html};

use super::ratio_text::{ratio_label, ratio_text, tick_text};
use super::scale::{Extent, LogScale};
use super::style::{MarkFill, SeriesStyle, mark};
use super::svg::{Anchor, AxisRows, CHARACTER_WIDTH, Chart, glyph, line, point, text, truncated};
use crate::table::Table;
use crate::units;

/// Comparisons of the same two targets.
#[derive(Debug, Clone)]
pub struct ForestGroup {
    /// Name of the target that takes less time if the ratio is below 1.
    pub left: String,
    /// Name of the target that takes less time if the ratio is above 1.
    pub right: String,
    /// Comparisons, one row each.
    pub rows: Vec<ForestRow>,
}

/// Row of the plot: one comparison.
#[derive(Debug, Clone)]
pub struct ForestRow {
    /// Name of the compared metric.
    pub label: String,
    /// Time on the left target divided by time on the right target; `None` while the interval is infinite.
    pub ratio: Option<RatioEstimate>,
    /// Verdict in a few words.
    pub verdict_text: String,
    /// Style of the mark: the style of the faster target, or neutral if neither is faster.
    pub style: SeriesStyle,
    /// Fill of the mark: solid if decided.
    pub fill: MarkFill,
}

/// A forest plot.
#[derive(Debug, Clone)]
pub struct Forest {
    /// HTML id, unique on a page.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// Comparisons, grouped by pair of targets.
    pub groups: Vec<ForestGroup>,
    /// Ratio from which a difference matters, above 1.
    pub threshold: f64,
}

/// Maximum drawn extent of an interval, as a multiple of the largest absolute logarithm of an estimate. An interval
/// that extends further ends in an arrow.
const MAX_INTERVAL_EXTENT: f64 = 2.5;
/// Minimum extent of the axis, as a ratio.
const MIN_AXIS_RATIO: f64 = 1.5;
/// Horizontal range of the axis, in percent of the width. The figures are on its right.
const X_RANGE: Extent = Extent { from: 3.0, to: 50.0 };
/// Height of a row, in lines (em): its label, and below it its interval.
const ROW_HEIGHT: f64 = 2.8;
/// Maximum length of a name in a group's heading, so that both names fit on a phone. Longer names are truncated.
const MAX_NAME_CHARS: usize = 12;

impl Forest {
    /// Returns a common axis for several plots, so that equal lengths mean equal ratios in all of them.
    pub fn shared_scale<'f>(forests: impl IntoIterator<Item = &'f Forest>) -> LogScale {
        let mut values = vec![1.0];
        let mut ends = vec![];
        for forest in forests {
            values.extend([forest.threshold, 1.0 / forest.threshold]);
            let ratios = forest.groups.iter().flat_map(|group| &group.rows).filter_map(|row| row.ratio);
            for ratio in ratios {
                values.push(ratio.value);
                ends.extend([ratio.low, ratio.high]);
            }
        }
        let furthest = values.iter().filter(|value| **value > 0.0).map(|value| value.ln().abs());
        let limit =
            furthest.fold(0.0, f64::max).mul_add(MAX_INTERVAL_EXTENT, 0.0).max(MIN_AXIS_RATIO.ln()).exp();
        values.extend(ends.into_iter().map(|end| end.clamp(1.0 / limit, limit)));
        LogScale::spanning(values, X_RANGE)
    }

    /// Draws the plot on an axis.
    pub fn draw(&self, scale: LogScale) -> Chart {
        let (mut y, mut rows, mut axis) = (1.4, vec![], AxisRows::default());
        for group in &self.groups {
            rows.push(group.heading(y));
            y += 1.7;
            for row in &group.rows {
                rows.push(row.draw(scale, y));
                axis.add(Extent { from: y + 1.25, to: y + ROW_HEIGHT - 0.1 });
                y += ROW_HEIGHT;
            }
            y += 0.3;
        }
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: y + 3.1,
            drawing: html! {
                (self.background(scale, &axis))
                (self.axis_labels(scale, y))
                @for row in rows { (row) }
            },
            notes: vec![],
            table: self.table(),
        }
    }

    /// Draws the background of the rows: the band in which differences are too small to matter, the grid, and the line of no
    /// difference.
    fn background(&self, scale: LogScale, rows: &AxisRows) -> Markup {
        let band = Extent { from: scale.position(1.0 / self.threshold), to: scale.position(self.threshold) };
        let ticks: Vec<f64> = axis_ticks(scale).into_iter().map(|tick| scale.position(tick)).collect();
        html! {
            (rows.area("band", band))
            (rows.lines("grid", &ticks))
            (rows.lines("one", &[scale.position(1.0)]))
        }
    }

    fn axis_labels(&self, scale: LogScale, bottom: f64) -> Markup {
        let (one, label) = (scale.position(1.0), "no difference");
        html! {
            (text(point(one, 0.9), Anchor::around(one, label.len()), "quiet", label))
            @for tick in axis_ticks(scale) {
                (text(point(scale.position(tick), bottom + 1.1), Anchor::Middle, "quiet", &tick_text(tick)))
            }
            (text(point(0.0, bottom + 2.5), Anchor::Start, "quiet", &self.axis()))
        }
    }

    fn axis(&self) -> String {
        match self.groups.as_slice() {
            [only] => {
                let (left, right) =
                    (truncated(&only.left, MAX_NAME_CHARS), truncated(&only.right, MAX_NAME_CHARS));
                format!("time on {left} ÷ on {right}, logarithmic")
            }
            _ => "time on left ÷ on right, logarithmic".to_owned(),
        }
    }

    fn description(&self) -> String {
        let percent = units::decimal((self.threshold - 1.0) * 100.0, 1);
        let mut out = format!(
            "Each line is an interval and its mark is the estimate, on a logarithmic axis of time ratios. At 1× there is no \
             difference; within the shaded band of ±{percent} % a difference is too small to matter. Hollow marks are not decided."
        );
        for group in &self.groups {
            for row in &group.rows {
                let found = row.ratio.map_or("no interval yet".to_owned(), ratio_description);
                out += &format!(
                    " {} against {}, {}: {found}; {}.",
                    group.left, group.right, row.label, row.verdict_text
                );
            }
        }
        out
    }

    fn table(&self) -> Table {
        let mut table = Table::new(self.title.as_str())
            .words(["left", "right", "task"])
            .figures(["ratio left ÷ right", "from", "to", "days"])
            .words(["verdict"]);
        for group in &self.groups {
            for row in &group.rows {
                let of = |value: Option<f64>| units::or_no_value(value.map(|value| format!("{value:.3}")));
                table.row([
                    group.left.clone(),
                    group.right.clone(),
                    row.label.clone(),
                    of(row.ratio.map(|ratio| ratio.value)),
                    of(row.ratio.map(|ratio| ratio.low)),
                    of(row.ratio.map(|ratio| ratio.high)),
                    units::or_no_value(row.ratio.map(|ratio| ratio.days.to_string())),
                    row.verdict_text.clone(),
                ]);
            }
        }
        table
    }
}

fn ratio_description(ratio: RatioEstimate) -> String {
    format!("{}, {}", ratio_text(ratio), units::count(ratio.days, "day"))
}

impl ForestGroup {
    /// Draws the heading: the name of the target that takes less time on either side.
    fn heading(&self, y: f64) -> Markup {
        let is_short = self.left.chars().count() + self.right.chars().count() <= MAX_NAME_CHARS;
        let less = if is_short { "less time on" } else { "less on" };
        let side = |name: &str| format!("{less} {}", truncated(name, MAX_NAME_CHARS));
        html! {
            (line("divide", point(0.0, y - 0.15), point(100.0, y - 0.15)))
            (text(point(0.0, y + 1.1), Anchor::Start, "strong", &format!("◂ {}", side(&self.left))))
            (text(point(100.0, y + 1.1), Anchor::End, "strong", &format!("{} ▸", side(&self.right))))
        }
    }
}

impl ForestRow {
    fn draw(&self, scale: LogScale, top: f64) -> Markup {
        let y = top + 1.95;
        html! {
            (text(point(0.0, top + 1.0), Anchor::Start, "", &self.label))
            @match self.ratio {
                Some(ratio) => {
                    (text(point(100.0, top + 1.0), Anchor::End, "quiet", &units::count(ratio.days, "day")))
                    (text(point(100.0, y + 0.35), Anchor::End, "", &ratio_label(ratio)))
                    (self.interval(ratio, scale, y))
                }
                None => { (text(point(100.0, y + 0.35), Anchor::End, "quiet", "no interval yet")) }
            }
        }
    }

    fn interval(&self, ratio: RatioEstimate, scale: LogScale, y: f64) -> Markup {
        let (low, high) = (scale.position(ratio.low), scale.position(ratio.high));
        html! {
            g {
                title { (self.label) ": " (ratio_description(ratio)) "; " (self.verdict_text) }
                g class=(self.style.class()) {
                    (line("range", point(low, y), point(high, y)))
                    @if !scale.contains(ratio.low) { (glyph(point(low, y), "arrow", "M5 -4.5L0 0L5 4.5")) }
                    @if !scale.contains(ratio.high) { (glyph(point(high, y), "arrow", "M-5 -4.5L0 0L-5 4.5")) }
                }
                (mark(point(scale.position(ratio.value), y), self.style, self.fill))
            }
        }
    }
}

fn axis_ticks(scale: LogScale) -> Vec<f64> {
    scale.ticks(5.5 * CHARACTER_WIDTH)
}
