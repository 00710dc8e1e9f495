//! Chart of the times of tasks on each target: the median as a mark, the range of daily medians as a line. Related
//! tasks share one axis.

use longhaul_analysis::summary::TimeSummary;
use maud::{Markup, html};

use super::scale::{Extent, LogScale};
use super::style::{MarkFill, SeriesStyle, mark};
use super::svg::{Anchor, AxisRows, CHARACTER_WIDTH, Chart, line, point, text, truncated};
use crate::table::Table;
use crate::units;

/// Horizontal range of the axis, in percent of the width. Names are on its left, counts on its right.
const X_RANGE: Extent = Extent { from: 32.0, to: 79.0 };
/// Maximum length of a name; longer names do not fit on a phone and are truncated.
const MAX_NAME_CHARS: usize = 12;

/// Chart of the times of related tasks on one axis.
#[derive(Debug, Clone)]
pub struct TimesChart {
    /// HTML id, unique on a page.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// Tasks of the chart.
    pub tasks: Vec<TimeRows>,
}

/// Times of one task on all targets.
#[derive(Debug, Clone)]
pub struct TimeRows {
    /// Name of the task; cold and warm are separate tasks.
    pub label: String,
    /// Times of each target.
    pub rows: Vec<TimeRow>,
}

/// Times of one task on one target.
#[derive(Debug, Clone)]
pub struct TimeRow {
    /// Name of the target.
    pub name: String,
    /// Colour and shape of the target.
    pub style: SeriesStyle,
    /// Summary of the times, in seconds.
    pub times: TimeSummary,
}

impl TimesChart {
    /// Returns the axis that holds the times of all tasks.
    pub fn scale(&self) -> LogScale {
        let rows = self.tasks.iter().flat_map(|task| &task.rows);
        let values = rows.flat_map(|row| {
            let (low, high) = row.times.daily_range.unzip();
            [row.times.median, low, high, row.times.p95].into_iter().flatten()
        });
        LogScale::spanning(values, X_RANGE)
    }

    /// Draws the chart on an axis.
    pub fn draw(&self, scale: LogScale) -> Chart {
        let (mut y, mut parts, mut axis) = (0.0, vec![], AxisRows::default());
        for task in &self.tasks {
            parts.push(text(point(0.0, y + 1.0), Anchor::Start, "strong", &task.label));
            y += 1.5;
            axis.add(Extent { from: y, to: y + 1.5 * task.rows.len() as f64 });
            for row in &task.rows {
                parts.push(row.draw(scale, y + 0.7));
                y += 1.5;
            }
            y += 0.7;
        }
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: y + 2.9,
            drawing: html! { (background(scale, &axis)) (axis_labels(scale, y)) @for part in parts { (part) } },
            notes: vec![],
            table: self.table(),
        }
    }

    fn description(&self) -> String {
        let mut out = "Times in seconds on one logarithmic axis: the mark is the median of all times after the warm-up, the \
                       line goes from the lowest to the highest daily median, the small bar is the 95th percentile. \
                       Failures have no time and are counted separately."
            .to_owned();
        for task in &self.tasks {
            for row in &task.rows {
                out += &format!(" {} on {}: {}.", task.label, row.name, row.description());
            }
        }
        out
    }

    fn table(&self) -> Table {
        let mut table = Table::new(self.title.as_str()).words(["task", "target"]).figures([
            "median",
            "lowest day",
            "highest day",
            "p95",
            "n",
            "days",
            "failed",
        ]);
        let of = units::seconds_or_none;
        for task in &self.tasks {
            for row in &task.rows {
                let (low, high) = row.times.daily_range.unzip();
                table.row([
                    task.label.clone(),
                    row.name.clone(),
                    of(row.times.median),
                    of(low),
                    of(high),
                    of(row.times.p95),
                    row.times.count.to_string(),
                    row.times.days.to_string(),
                    row.times.failed.to_string(),
                ]);
            }
        }
        table
    }
}

fn background(scale: LogScale, rows: &AxisRows) -> Markup {
    let ticks: Vec<f64> = axis_ticks(scale).into_iter().map(|tick| scale.position(tick)).collect();
    rows.lines("grid", &ticks)
}

fn axis_ticks(scale: LogScale) -> Vec<f64> {
    scale.ticks(6.0 * CHARACTER_WIDTH)
}

fn axis_labels(scale: LogScale, bottom: f64) -> Markup {
    html! {
        @for tick in axis_ticks(scale) {
            (text(point(scale.position(tick), bottom + 1.1), Anchor::Middle, "quiet", &units::axis_duration(tick)))
        }
        (text(point(50.0, bottom + 2.5), Anchor::Middle, "quiet", "logarithmic"))
    }
}

impl TimeRow {
    fn draw(&self, scale: LogScale, y: f64) -> Markup {
        let TimeSummary { median, daily_range, p95, .. } = self.times;
        html! {
            (mark(point(1.6, y), self.style, MarkFill::Solid))
            (text(point(4.5, y + 0.35), Anchor::Start, "", &truncated(&self.name, MAX_NAME_CHARS)))
            g class=(self.style.class()) {
                @if let Some((low, high)) = daily_range { (line("range", point(scale.position(low), y), point(scale.position(high), y))) }
                @if let Some(p95) = p95 {
                    (line("cap", point(scale.position(p95), y - 0.5), point(scale.position(p95), y + 0.5)))
                }
            }
            @if let Some(median) = median {
                g { title { (self.name) ": " (self.description()) } (mark(point(scale.position(median), y), self.style, MarkFill::Solid)) }
            }
            (text(point(100.0, y + 0.35), Anchor::End, "quiet", &self.count_text()))
        }
    }

    /// Returns the number of times, and the number of failures if there are any.
    fn count_text(&self) -> String {
        let TimeSummary { count: times, failed, .. } = self.times;
        if failed > 0 { format!("n {times} ✗{failed}") } else { format!("n {times}") }
    }

    fn description(&self) -> String {
        let TimeSummary { median, count: times, failed, days, .. } = self.times;
        let median =
            median.map_or("no time".to_owned(), |median| format!("median {}", units::seconds(median)));
        let (measured, days) = (units::count(times, "measurement"), units::count(days, "day"));
        format!("{median}, {measured} on {days}, {failed} failed")
    }
}
