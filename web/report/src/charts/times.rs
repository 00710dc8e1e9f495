//! What a task takes on each target: the median as a mark, the medians of days as a range, all of a family on one axis.

use longhaul_measure::summary::Times;
use maud::{Markup, html};

use super::look::{Fill, Look, mark};
use super::scale::LogScale;
use super::svg::{Anchor, CHARACTER, Chart, Table, line, shortened, text};
use crate::units;

/// Where the axis is drawn, in per cent: names on its left, counts on its right.
const ACROSS: (f64, f64) = (32.0, 79.0);
/// Names are cut to so many characters: the room on their side holds no more on a phone.
const NAME: usize = 12;

/// The times of tasks that belong together, on one axis.
#[derive(Debug, Clone)]
pub struct TimesChart {
    /// Unique on a page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Task by task.
    pub tasks: Vec<TimeRows>,
}

/// One task.
#[derive(Debug, Clone)]
pub struct TimeRows {
    /// What it is, cold and warm being tasks of their own.
    pub label: String,
    /// Target by target.
    pub rows: Vec<TimeRow>,
}

/// One task on one target.
#[derive(Debug, Clone)]
pub struct TimeRow {
    /// The target's name.
    pub name: String,
    /// Its look.
    pub look: Look,
    /// Its times, in seconds.
    pub times: Times,
}

impl TimesChart {
    /// The axis of all its tasks.
    pub fn scale(&self) -> LogScale {
        let rows = self.tasks.iter().flat_map(|task| &task.rows);
        let values = rows.flat_map(|row| {
            let (low, high) = row.times.days_range.unzip();
            [row.times.median, low, high, row.times.p95].into_iter().flatten()
        });
        LogScale::over(values, ACROSS)
    }

    /// Draws it on an axis.
    pub fn draw(&self, scale: LogScale) -> Chart {
        let (mut y, mut parts) = (0.0, vec![]);
        for task in &self.tasks {
            parts.push(text((0.0, y + 1.0), Anchor::Start, "strong", &task.label));
            y += 1.5;
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
            drawing: html! { (ground(scale, y)) @for part in parts { (part) } },
            table: self.table(),
        }
    }

    fn description(&self) -> String {
        let mut out = "On one logarithmic axis of seconds: the mark is the median of all times since the target settled, the \
                       line goes from the lowest to the highest median of a day, the small bar is the 95th percentile. \
                       Failures have no time and are counted apart."
            .to_owned();
        for task in &self.tasks {
            for row in &task.rows {
                out += &format!(" {} on {}: {}.", task.label, row.name, row.in_words());
            }
        }
        out
    }

    fn table(&self) -> Table {
        let mut table =
            Table::new(["task", "target", "median", "days from", "to", "p95", "n", "days", "failed"]);
        let of = |seconds: Option<f64>| seconds.map_or("–".to_owned(), units::seconds);
        for task in &self.tasks {
            for row in &task.rows {
                let (low, high) = row.times.days_range.unzip();
                table.rows.push(vec![
                    task.label.clone(),
                    row.name.clone(),
                    of(row.times.median),
                    of(low),
                    of(high),
                    of(row.times.p95),
                    row.times.times.to_string(),
                    row.times.days.to_string(),
                    row.times.failed.to_string(),
                ]);
            }
        }
        table
    }
}

fn ground(scale: LogScale, bottom: f64) -> Markup {
    html! {
        @for tick in scale.ticks(6.0 * CHARACTER) {
            @let x = scale.at(tick);
            (line("grid", (x, 0.0), (x, bottom)))
            (text((x, bottom + 1.1), Anchor::Middle, "quiet", &units::duration(tick)))
        }
        (text((50.0, bottom + 2.5), Anchor::Middle, "quiet", "logarithmic"))
    }
}

impl TimeRow {
    fn draw(&self, scale: LogScale, y: f64) -> Markup {
        let Times { median, days_range, p95, .. } = self.times;
        html! {
            (mark((1.6, y), self.look, Fill::Solid))
            (text((4.5, y + 0.35), Anchor::Start, "", &shortened(&self.name, NAME)))
            g class=(self.look.class()) {
                @if let Some((low, high)) = days_range { (line("range", (scale.at(low), y), (scale.at(high), y))) }
                @if let Some(p95) = p95 {
                    (line("cap", (scale.at(p95), y - 0.5), (scale.at(p95), y + 0.5)))
                }
            }
            @if let Some(median) = median { (mark((scale.at(median), y), self.look, Fill::Solid)) }
            (text((100.0, y + 0.35), Anchor::End, "quiet", &self.counted()))
        }
    }

    /// How many there are, and how many failed.
    fn counted(&self) -> String {
        let Times { times, failed, .. } = self.times;
        if failed > 0 { format!("n {times} ✗{failed}") } else { format!("n {times}") }
    }

    fn in_words(&self) -> String {
        let Times { median, times, failed, days, .. } = self.times;
        let median =
            median.map_or("no time".to_owned(), |median| format!("median {}", units::seconds(median)));
        format!("{median}, {times} times on {days} days, {failed} failed")
    }
}
