//! Calendar of good and bad days: one column per week, one row per day of the week. Days without data stay empty. A bad
//! day has a mark in addition to its colour.

use maud::{Markup, html};

use super::scale::Extent;
use super::style::{MarkFill, SeriesStyle, mark};
use super::svg::{Anchor, Chart, area, glyph, point, text, truncated};
use crate::table::Table;
use longhaul_analysis::summary::date_of_day;

/// Horizontal range of the weeks, in percent of the width.
const X_RANGE: Extent = Extent { from: 10.0, to: 99.5 };
/// Top of the first row, in lines (em).
const TOP: f64 = 1.8;
/// Height of a row, in lines (em).
const ROW_HEIGHT: f64 = 1.15;
/// Maximum width of a week, in percent of the width.
const MAX_WEEK_WIDTH: f64 = 4.0;
/// Maximum length of a name; longer names are truncated.
const MAX_NAME_CHARS: usize = 24;
/// Names of the rows.
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Availability of a target on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Availability {
    /// Number of answered requests.
    pub answers: u64,
    /// Number of answered requests that took longer than one second.
    pub slow: u64,
    /// Number of requests that failed or timed out.
    pub failed: u64,
}

/// Calendar chart of one target.
#[derive(Debug, Clone)]
pub struct Calendar {
    /// HTML id, unique on a page.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// Name of the target.
    pub name: String,
    /// Colour and shape of the target.
    pub style: SeriesStyle,
    /// Days with data, in days since 1970-01-01, in ascending order.
    pub days: Vec<(i64, Availability)>,
    /// First and last day of the chart, in days since 1970-01-01.
    pub span: (i64, i64),
}

impl Calendar {
    /// Draws the calendar.
    pub fn draw(&self) -> Chart {
        let bottom = TOP + 7.0 * ROW_HEIGHT;
        let count: u64 = self.days.iter().map(|(_, day)| day.answers).sum();
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: bottom + 3.4,
            drawing: html! {
                (mark(point(X_RANGE.from + 1.6, 0.7), self.style, MarkFill::Solid))
                (text(point(X_RANGE.from + 4.5, 1.05), Anchor::Start, "strong", &truncated(&self.name, MAX_NAME_CHARS)))
                (text(point(100.0, 1.05), Anchor::End, "quiet", &format!("n {count}")))
                @for (day, name) in WEEKDAYS.iter().enumerate() {
                    @if day % 2 == 0 { (text(point(X_RANGE.from - 1.0, TOP + (day as f64 + 0.8) * ROW_HEIGHT), Anchor::End, "quiet", name)) }
                }
                g class=(self.style.class()) { (self.cells()) }
                (legend(bottom + 2.6, self.style))
                (text(point(X_RANGE.from, bottom + 1.1), Anchor::Start, "quiet", &date_of_day(self.span.0).strftime("%-d %b %Y").to_string()))
                (text(point(100.0, bottom + 1.1), Anchor::End, "quiet", &date_of_day(self.span.1).strftime("%-d %b %Y").to_string()))
            },
            notes: vec![],
            table: self.table(),
        }
    }

    fn cells(&self) -> Markup {
        let weeks = (monday_before(self.span.1) - monday_before(self.span.0)) / 7 + 1;
        let width = ((X_RANGE.to - X_RANGE.from) / weeks as f64).min(MAX_WEEK_WIDTH);
        html! {
            @for day in self.span.0..=self.span.1 {
                @let x = X_RANGE.from + ((monday_before(day) - monday_before(self.span.0)) / 7) as f64 * width;
                @let y = TOP + (day - monday_before(day)) as f64 * ROW_HEIGHT;
                @let found = self.days.binary_search_by_key(&day, |(known, _)| *known).ok().map(|place| self.days[place].1);
                (area(class(found), point(x, y + 0.06), point(x + width * 0.9, y + ROW_HEIGHT - 0.06)))
                @if found.is_some_and(|day| day.failed > 0) { (glyph(point(x + width * 0.45, y + ROW_HEIGHT / 2.0), "failed", CROSS_OUTLINE)) }
            }
        }
    }

    fn description(&self) -> String {
        let with = |is: fn(&Availability) -> bool| self.days.iter().filter(|(_, day)| is(day)).count();
        format!(
            "One field per day, one column per week. {}: of {} days with data, {} were good, {} had a request slower than one second, \
             {} had a request that failed or timed out, marked ✗. A framed field has no data: no request was sent.",
            self.name,
            self.days.len(),
            with(|day| day.failed == 0 && day.slow == 0),
            with(|day| day.failed == 0 && day.slow > 0),
            with(|day| day.failed > 0),
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new(self.title.as_str()).words(["day"]).figures([
            "responses",
            "slower than 1 s",
            "errors or timeouts",
        ]);
        for (day, found) in &self.days {
            table.row([
                date_of_day(*day).to_string(),
                found.answers.to_string(),
                found.slow.to_string(),
                found.failed.to_string(),
            ]);
        }
        table
    }
}

/// SVG path of the cross that marks a day with failures.
const CROSS_OUTLINE: &str = "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5";

fn monday_before(day: i64) -> i64 {
    day - (day + 3).rem_euclid(7)
}

const fn class(day: Option<Availability>) -> &'static str {
    match day {
        None => "unknown",
        Some(Availability { failed: 1.., .. }) => "h5",
        Some(Availability { slow: 1.., .. }) => "h3",
        Some(_) => "h1",
    }
}

fn legend(y: f64, style: SeriesStyle) -> Markup {
    html! {
        g class=(style.class()) {
            @for (place, (class, words)) in [("h1", "good"), ("h3", "slow"), ("h5", "✗ failed"), ("unknown", "no value")].iter().enumerate() {
                @let x = X_RANGE.from + place as f64 * 22.0;
                (area(class, point(x, y - 0.6), point(x + 2.5, y + 0.3)))
                (text(point(x + 3.3, y + 0.25), Anchor::Start, "quiet", words))
            }
        }
    }
}
