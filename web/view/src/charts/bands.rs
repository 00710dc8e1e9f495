//! Band chart: the distribution of a time over time steps, similar to the charts of SmokePing. A pale band goes from
//! the 5th to the 95th percentile, a darker band from the 25th to the 75th, and a line shows the median. A step without
//! a value is a gap in the chart. Failures are marked at their step.

use std::time::Duration;

use maud::{Markup, html};

use super::scale::{Extent, LogScale};
use super::style::{MarkFill, SeriesStyle, mark};
use super::svg::{Anchor, Chart, failure_cross, line, number, point, text, truncated};
use super::ticks::{EventMark, event_lane, event_notes};
use super::time_scale::TimeScale;
use crate::table::Table;
use crate::units;
use longhaul_model::Timestamp;
use longhaul_model::time::{DAY, HOUR};

/// Horizontal range of the steps, in percent of the width. The labels of the axis are on the left.
const X_RANGE: Extent = Extent { from: 13.0, to: 99.5 };
/// Top and bottom of the lane of events, in lines (em).
const EVENT_LANE: Extent = Extent { from: 1.5, to: 2.5 };
/// Top and bottom of the plot, in lines (em).
const Y_RANGE: Extent = Extent { from: 2.8, to: 11.0 };
/// Height of the axis of time, below the lane of failures.
const AXIS: f64 = 12.2;
/// Maximum length of a name; longer names are truncated.
const MAX_NAME_CHARS: usize = 24;
/// Width and height of the nested drawing of the bands, in its own units: about as many as a chart has pixels.
const DRAWING_WIDTH: f64 = 600.0;
const DRAWING_HEIGHT: f64 = 200.0;

/// Quantiles of one time step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileStep {
    /// Start of the step.
    pub at: Timestamp,
    /// 5th, 25th, 50th, 75th and 95th percentile in seconds; `None` without a value.
    pub quantiles: Option<[f64; 5]>,
    /// Maximum in seconds; `None` without a value.
    pub max: Option<f64>,
    /// Number of values.
    pub count: u64,
    /// Number of failures, which have no time.
    pub failed: u64,
}

/// Band chart of one target.
#[derive(Debug, Clone)]
pub struct BandChart {
    /// HTML id, unique on a page.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// Name of the target.
    pub name: String,
    /// Colour and shape of the target.
    pub style: SeriesStyle,
    /// Time steps, oldest first.
    pub steps: Vec<QuantileStep>,
    /// Longer steps for the table, if there are too many for a reader; empty to use the same.
    pub table_steps: Vec<QuantileStep>,
    /// Length of a step of the table.
    pub table_step: Duration,
    /// Length of a step.
    pub step: Duration,
    /// Time axis of the chart.
    pub time: TimeScale,
    /// Events: time, and what happened in a few words.
    pub events: Vec<(Timestamp, String)>,
}

impl BandChart {
    /// Returns a common axis for several charts, so that equal heights mean equal times in all of them.
    pub fn shared_scale<'s>(all: impl IntoIterator<Item = &'s BandChart>) -> LogScale {
        let steps = all.into_iter().flat_map(|chart| &chart.steps);
        let values = steps.filter_map(|step| step.quantiles).flat_map(|[low, .., high]| [low, high]);
        LogScale::spanning(values, Y_RANGE.reversed())
    }

    /// Draws the chart on an axis.
    pub fn draw(&self, scale: LogScale) -> Chart {
        if self.steps.iter().all(|step| step.quantiles.is_none()) {
            let (_, failed) = self.totals();
            return Chart::sentence(
                &self.id,
                &self.title,
                format!("No value in this period; {}.", units::count(failed, "failure")),
            );
        }
        let events = self.event_marks();
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: AXIS + 2.0,
            drawing: html! {
                (self.heading())
                (background(scale))
                (self.bands(scale))
                (self.failure_marks())
                (event_lane(&events, EVENT_LANE))
                (self.time.draw(X_RANGE, AXIS))
            },
            notes: event_notes(&events),
            table: self.table(),
        }
    }

    fn heading(&self) -> Markup {
        let (count, failed) = self.totals();
        let failed = if failed > 0 { format!(" ✗{failed}") } else { String::new() };
        html! {
            (mark(point(X_RANGE.from + 1.6, 0.7), self.style, MarkFill::Solid))
            (text(point(X_RANGE.from + 4.5, 1.05), Anchor::Start, "strong", &truncated(&self.name, MAX_NAME_CHARS)))
            (text(point(100.0, 1.05), Anchor::End, "quiet", &format!("n {count}{failed}")))
        }
    }

    fn totals(&self) -> (u64, u64) {
        self.steps.iter().fold((0, 0), |(count, failed), step| (count + step.count, failed + step.failed))
    }

    /// Draws the bands. Each sequence of steps without a gap is one path.
    fn bands(&self, scale: LogScale) -> Markup {
        let runs = self.steps.split(|step| step.quantiles.is_none());
        // The tolerance is needed because a day has 25 hours when daylight saving time ends.
        let follows = |a: &QuantileStep, b: &QuantileStep| b.at.since(a.at) <= self.step + self.step / 20;
        let runs: Vec<&[QuantileStep]> = runs.flat_map(|run| run.chunk_by(follows)).collect();
        let path = |low: usize, high: usize| {
            runs.iter().map(|run| self.band_path(run, low, high, scale)).collect::<String>()
        };
        let medians: String = runs.iter().map(|run| self.median_path(run, scale)).collect();
        html! {
            svg class={ "bands " (self.style.class()) } x={ (number(X_RANGE.from)) "%" } y={ (number(Y_RANGE.from)) "em" }
                width={ (number(X_RANGE.to - X_RANGE.from)) "%" } height={ (number(Y_RANGE.to - Y_RANGE.from)) "em" }
                viewBox={ "0 0 " (DRAWING_WIDTH) " " (DRAWING_HEIGHT) } preserveAspectRatio="none" {
                path class="outer" d=(path(0, 4)) {}
                path class="inner" d=(path(1, 3)) {}
                path class="median" d=(medians) {}
            }
        }
    }

    fn band_path(&self, run: &[QuantileStep], low: usize, high: usize, scale: LogScale) -> String {
        let known = run.iter().filter_map(|step| Some((step.at, step.quantiles?)));
        let boxes: Vec<[i64; 4]> = known
            .map(|(at, q)| {
                [self.band_x(at), self.band_x(at + self.step), band_y(scale, q[high]), band_y(scale, q[low])]
            })
            .collect();
        let Some([first, _, top, _]) = boxes.first() else { return String::new() };
        let mut path = StepPath::starting_at(*first, *top);
        for [_, to, top, _] in &boxes {
            path.step(*to, *top);
        }
        for [from, _, _, bottom] in boxes.iter().rev() {
            path.step(*from, *bottom);
        }
        path.outline + "Z"
    }

    fn median_path(&self, run: &[QuantileStep], scale: LogScale) -> String {
        let known = run.iter().filter_map(|step| Some((step.at, step.quantiles?[2])));
        let mut path: Option<StepPath> = None;
        for (at, median) in known {
            let (from, to, y) = (self.band_x(at), self.band_x(at + self.step), band_y(scale, median));
            path.get_or_insert_with(|| StepPath::starting_at(from, y)).step(to, y);
        }
        path.map_or(String::new(), |path| path.outline)
    }

    fn band_x(&self, at: Timestamp) -> i64 {
        (self.time.fraction(at) * DRAWING_WIDTH).round() as i64
    }

    /// Draws a cross at each step with a failure.
    fn failure_marks(&self) -> Markup {
        let failed = self.steps.iter().filter(|step| step.failed > 0);
        html! {
            @for step in failed {
                (failure_cross(point(self.x_position(step.at + self.step / 2), AXIS - 0.6)))
            }
        }
    }

    /// Returns the events of the window.
    fn event_marks(&self) -> Vec<EventMark> {
        let (from, to) = self.time.span;
        let visible = self.events.iter().filter(|(at, _)| (from..to).contains(at));
        let mark = |(at, words): &(Timestamp, String)| EventMark {
            x: self.x_position(*at),
            words: format!("{words}, {}", self.time.day_label(*at)),
        };
        visible.map(mark).collect()
    }

    /// Returns the horizontal position of a time, in percent of the width.
    fn x_position(&self, at: Timestamp) -> f64 {
        X_RANGE.from + self.time.fraction(at) * (X_RANGE.to - X_RANGE.from)
    }

    fn description(&self) -> String {
        let (count, failed) = self.totals();
        let gaps = self.steps.iter().filter(|step| step.quantiles.is_none()).count();
        format!(
            "Times on a logarithmic axis of seconds that all charts of this kind on the page share: the line is the median of a step, \
             the dark band goes from the 25th to the 75th percentile, the pale band from the 5th to the 95th. A step is {}. {}: {} \
             in {}; {}, marked ✗ below, without a time; {} without a value, blank.{}",
            units::duration(self.step.as_secs_f64()),
            self.name,
            units::count(count, "value"),
            units::count(self.steps.len() - gaps, "step"),
            units::count(failed, "failure"),
            units::count(gaps, "step"),
            self.table_note(),
        )
    }

    /// Returns that the table has longer steps than the chart, to follow a sentence; empty if it has the same.
    fn table_note(&self) -> String {
        if self.table_steps.is_empty() {
            return String::new();
        }
        format!(" Table: by {}.", step_name(self.table_step))
    }

    fn table(&self) -> Table {
        let mut table = Table::new(self.title.as_str())
            .words([step_name(self.table_step).as_str()])
            .figures(["n", "failed", "p5", "p25", "median", "p75", "p95", "max"]);
        let steps = if self.table_steps.is_empty() { &self.steps } else { &self.table_steps };
        for step in steps {
            let mut row = vec![self.time.label(step.at), step.count.to_string(), step.failed.to_string()];
            row.extend((0..5).map(|place| units::seconds_or_none(step.quantiles.map(|all| all[place]))));
            row.push(units::seconds_or_none(step.max));
            table.row(row);
        }
        table
    }
}

/// Returns the name of a step of a table: a unit of time, or its length.
fn step_name(step: Duration) -> String {
    const UNITS: [(Duration, &str); 4] =
        [(HOUR, "hour"), (DAY, "day"), (DAY.saturating_mul(7), "week"), (DAY.saturating_mul(28), "4 weeks")];
    let unit = UNITS.iter().find(|(length, _)| *length == step);
    unit.map_or_else(|| units::duration(step.as_secs_f64()), |(_, name)| (*name).to_owned())
}

/// Outline of steps, with relative coordinates, which are the shortest.
struct StepPath {
    outline: String,
    x: i64,
    y: i64,
}

impl StepPath {
    fn starting_at(x: i64, y: i64) -> Self {
        Self { outline: format!("M{x} {y}"), x, y }
    }

    /// Goes up or down to a height, then along to a position.
    fn step(&mut self, x: i64, y: i64) {
        for (command, distance) in [('v', y - self.y), ('h', x - self.x)] {
            if distance != 0 {
                self.outline += &format!("{command}{distance}");
            }
        }
        (self.x, self.y) = (x, y);
    }
}

/// Returns the vertical position of a value in the nested drawing of the bands.
fn band_y(scale: LogScale, seconds: f64) -> i64 {
    scale.with_range(Extent { from: DRAWING_HEIGHT, to: 0.0 }).position(seconds).round() as i64
}

fn background(scale: LogScale) -> Markup {
    html! {
        @for tick in scale.ticks(1.9) {
            @let y = scale.position(tick);
            (line("grid", point(X_RANGE.from, y), point(X_RANGE.to, y)))
            (text(point(X_RANGE.from - 1.0, y + 0.35), Anchor::End, "quiet", &units::axis_duration(tick)))
        }
        (line("one", point(X_RANGE.from, AXIS), point(X_RANGE.to, AXIS)))
    }
}
