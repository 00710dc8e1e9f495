//! Heat map of the median time by hour of the day (columns) and day of the week (rows). A field without data stays
//! empty.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::calendar::WEEKDAYS;
use super::scale::{Extent, LogScale};
use super::style::{MarkFill, SeriesStyle, mark};
use super::svg::{Anchor, Chart, area, number, point, text, truncated};
use crate::table::Table;
use crate::units;

/// Horizontal range of the fields, in percent of the width.
const X_RANGE: Extent = Extent { from: 10.0, to: 99.5 };
/// Top of the first row, in lines (em).
const TOP: f64 = 1.8;
/// Height of a row, in lines (em).
const ROW_HEIGHT: f64 = 1.3;
/// Maximum length of a name; longer names are truncated.
const MAX_NAME_CHARS: usize = 24;
/// Number of shades.
const SHADES: usize = 6;
/// Minimum range of the shades, as a ratio. Below it, shades would show noise and start at the same rounded value.
const MIN_RANGE: f64 = 2.0;

/// Heat map of one target.
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// HTML id, unique on a page.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// Name of the target.
    pub name: String,
    /// Colour and shape of the target.
    pub style: SeriesStyle,
    /// Median in seconds and number of values, by weekday (Monday first) and hour; `None` without a value.
    pub cells: [[Option<(f64, u64)>; 24]; 7],
}

impl HeatMap {
    /// Returns a common scale of shades for several charts, so that equal shades mean equal times in all of them.
    pub fn shared_scale<'h>(all: impl IntoIterator<Item = &'h HeatMap>) -> LogScale {
        let fields = all.into_iter().flat_map(|heat| heat.cells.iter().flatten());
        let values: Vec<f64> = fields.filter_map(|field| field.map(|(seconds, _)| seconds)).collect();
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        LogScale::spanning(
            values.into_iter().chain([lowest * MIN_RANGE]),
            Extent { from: 0.0, to: SHADES as f64 },
        )
    }

    /// Draws the chart with a scale of shades.
    pub fn draw(&self, scale: LogScale) -> Chart {
        let bottom = TOP + 7.0 * ROW_HEIGHT;
        let count: u64 = self.cells.iter().flatten().filter_map(|field| field.map(|(_, count)| count)).sum();
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(count),
            height: bottom + 4.4,
            drawing: html! {
                (mark(point(X_RANGE.from + 1.6, 0.7), self.style, MarkFill::Solid))
                (text(point(X_RANGE.from + 4.5, 1.05), Anchor::Start, "strong", &truncated(&self.name, MAX_NAME_CHARS)))
                (text(point(100.0, 1.05), Anchor::End, "quiet", &format!("n {count}")))
                g class=(self.style.class()) { (self.draw_cells(scale)) }
                (axes(bottom))
                g class=(self.style.class()) { (self.legend(scale, bottom + 2.4)) }
            },
            notes: vec![],
            table: self.table(),
        }
    }

    /// Draws all fields of a shade as one path.
    fn draw_cells(&self, scale: LogScale) -> Markup {
        let mut fields: BTreeMap<Option<usize>, String> = BTreeMap::new();
        for (day, hours) in self.cells.iter().enumerate() {
            for (hour, field) in hours.iter().enumerate() {
                let shade = field.map(|(seconds, _)| shade(scale, seconds));
                *fields.entry(shade).or_default() += &format!("M{hour} {day}h.94v.9h-.94z");
            }
        }
        let width = X_RANGE.to - X_RANGE.from;
        html! {
            svg class="fields" x={ (number(X_RANGE.from)) "%" } y={ (number(TOP)) "em" } width={ (number(width)) "%" }
                height={ (number(7.0 * ROW_HEIGHT)) "em" } viewBox="0 0 24 7" preserveAspectRatio="none" {
                @for (shade, outline) in &fields {
                    @match shade {
                        Some(shade) => path class={ "h" (shade) } d=(outline) { title { (shade_text(scale, *shade)) } },
                        None => path class="unknown" d=(outline) { title { "no value" } },
                    }
                }
            }
        }
    }

    fn description(&self, count: u64) -> String {
        let known = self.cells.iter().enumerate().flat_map(|(day, hours)| {
            hours
                .iter()
                .enumerate()
                .filter_map(move |(hour, field)| field.map(|(seconds, _)| (seconds, day, hour)))
        });
        let slowest = known.max_by(|a, b| a.0.total_cmp(&b.0));
        let slowest = slowest.map_or(String::new(), |(seconds, day, hour)| {
            format!(
                " The slowest hour is {} from {hour}:00, with a median of {}.",
                WEEKDAYS[day],
                units::seconds(seconds)
            )
        });
        format!(
            "Each cell is the median of an hour of a weekday in local time. Darker cells are slower, in {SHADES} logarithmic \
             shades that all charts of this kind on the page share. An outlined cell has no value. {}: {count} values.{slowest}",
            self.name
        )
    }

    /// Returns the medians: a row for each hour, a column for each weekday.
    fn table(&self) -> Table {
        let mut table = Table::new(self.title.as_str()).words(["hour"]).figures(WEEKDAYS);
        for hour in 0..24 {
            let medians = self.cells.iter().map(|hours| hours[hour]);
            let cells: Vec<Option<(f64, u64)>> = medians.collect();
            if cells.iter().any(Option::is_some) {
                let median =
                    |cell: Option<(f64, u64)>| units::seconds_or_none(cell.map(|(seconds, _)| seconds));
                table.row([format!("{hour:02}:00")].into_iter().chain(cells.into_iter().map(median)));
            }
        }
        table
    }
}

fn hour_x(hour: usize) -> f64 {
    X_RANGE.from + hour as f64 / 24.0 * (X_RANGE.to - X_RANGE.from)
}

fn shade(scale: LogScale, seconds: f64) -> usize {
    (scale.position(seconds) as usize).min(SHADES - 1)
}

fn axes(bottom: f64) -> Markup {
    html! {
        @for (day, name) in WEEKDAYS.iter().enumerate() {
            (text(point(X_RANGE.from - 1.0, TOP + (day as f64 + 0.75) * ROW_HEIGHT), Anchor::End, "quiet", name))
        }
        @for hour in [0, 6, 12, 18] {
            (text(point(hour_x(hour), bottom + 1.1), Anchor::Start, "quiet", &format!("{hour:02}:00")))
        }
    }
}

impl HeatMap {
    /// Draws the legend: each shade that occurs, with its smallest value. It has two lines, because one line is too narrow on a phone.
    fn legend(&self, scale: LogScale, y: f64) -> Markup {
        let fields = self.cells.iter().flatten().flatten();
        let shades: BTreeSet<usize> = fields.map(|(seconds, _)| shade(scale, *seconds)).collect();
        let across = SHADES / 2;
        let width = (X_RANGE.to - X_RANGE.from) / across as f64;
        html! {
            @for (place, shade) in shades.into_iter().enumerate() {
                @let (x, y) = (X_RANGE.from + (place % across) as f64 * width, y + (place / across) as f64 * 1.3);
                (area(&format!("h{shade}"), point(x, y - 0.6), point(x + 3.0, y + 0.3)))
                (text(point(x + 3.8, y + 0.25), Anchor::Start, "quiet", &shade_text(scale, shade)))
            }
        }
    }
}

fn shade_text(scale: LogScale, shade: usize) -> String {
    format!("from {}", units::axis_duration(round_to_two_digits(scale.value(shade as f64))))
}

/// Rounds a value to two significant digits, which is as fine as a shade.
fn round_to_two_digits(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    (value / unit).round() * unit
}
