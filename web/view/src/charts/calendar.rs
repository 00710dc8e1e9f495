//! Calendar of good and bad days: one column per week, one row per day of the week. Days without data stay empty. A bad
//! day has a mark in addition to its colour.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::scale::Extent;
use super::style::{MarkFill, SeriesStyle, mark};
use super::svg::{Anchor, Chart, area, failure_cross, number, point, text, truncated};
use crate::table::Table;
use crate::units;
use longhaul_analysis::summary::{Week, date_of_day};

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
/// Names of the rows: the days of the week, Monday first.
pub(super) const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

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
                (text(point(X_RANGE.from, bottom + 1.1), Anchor::Start, "quiet", &self.dates()))
            },
            notes: vec![],
            table: self.table(),
        }
    }

    /// Draws all days of one kind as one path.
    fn cells(&self) -> Markup {
        let weeks = self.week_of(self.span.1) + 1;
        let width = ((X_RANGE.to - X_RANGE.from) / weeks as f64).min(MAX_WEEK_WIDTH);
        let mut days: BTreeMap<&str, String> = BTreeMap::new();
        for day in self.span.0..=self.span.1 {
            let (week, weekday) = (self.week_of(day), day - monday_before(day));
            *days.entry(class(self.found(day))).or_default() += &format!("M{week} {weekday}h.9v.9h-.9z");
        }
        html! {
            svg class="fields" x={ (number(X_RANGE.from)) "%" } y={ (number(TOP)) "em" } width={ (number(width * weeks as f64)) "%" }
                height={ (number(7.0 * ROW_HEIGHT)) "em" } viewBox={ "0 0 " (weeks) " 7" } preserveAspectRatio="none" {
                @for (class, outline) in &days { path class=(class) d=(outline) { title { (words(class)) } } }
            }
            @for (day, _) in self.days.iter().filter(|(_, found)| found.failed > 0) {
                @let x = X_RANGE.from + (self.week_of(*day) as f64 + 0.45) * width;
                @let y = TOP + ((day - monday_before(*day)) as f64 + 0.45) * ROW_HEIGHT;
                g { title { (date_of_day(*day).strftime("%-d %b").to_string()) ": failed" } (failure_cross(point(x, y))) }
            }
        }
    }

    fn dates(&self) -> String {
        let date = |day: i64| date_of_day(day).strftime("%-d %b %Y").to_string();
        format!("{} to {}", date(self.span.0), date(self.span.1))
    }

    fn week_of(&self, day: i64) -> i64 {
        (monday_before(day) - monday_before(self.span.0)) / 7
    }

    fn found(&self, day: i64) -> Option<Availability> {
        let place = self.days.binary_search_by_key(&day, |(known, _)| *known).ok()?;
        Some(self.days[place].1)
    }

    fn description(&self) -> String {
        let with = |is: fn(&Availability) -> bool| self.days.iter().filter(|(_, day)| is(day)).count();
        format!(
            "One cell per day, one column per week. {}: {} with data, of which {} good, {} with a request slower than one second, \
             {} with a request that failed or timed out, marked ✗. An outlined cell: no such request on that day.",
            self.name,
            units::count(self.days.len(), "day"),
            with(|day| day.failed == 0 && day.slow == 0),
            with(|day| day.failed == 0 && day.slow > 0),
            with(|day| day.failed > 0),
        )
    }

    /// Returns a row for each week.
    fn table(&self) -> Table {
        let mut table = Table::new(self.title.as_str()).words(["week from"]).figures([
            "days with data",
            "responses",
            "slower than 1 s",
            "errors or timeouts",
        ]);
        for week in self.days.chunk_by(|a, b| monday_before(a.0) == monday_before(b.0)) {
            let sum =
                |of: fn(&Availability) -> u64| week.iter().map(|(_, day)| of(day)).sum::<u64>().to_string();
            table.row([
                date_of_day(monday_before(week[0].0)).to_string(),
                week.len().to_string(),
                sum(|day| day.answers),
                sum(|day| day.slow),
                sum(|day| day.failed),
            ]);
        }
        table
    }
}

fn monday_before(day: i64) -> i64 {
    Week::of_day(day).first_day()
}

const fn class(day: Option<Availability>) -> &'static str {
    match day {
        None => "unknown",
        Some(Availability { failed: 1.., .. }) => "h0",
        Some(Availability { slow: 1.., .. }) => "h3",
        Some(_) => "h1",
    }
}

/// CSS classes of the days with their words.
const KINDS: [(&str, &str); 4] =
    [("h1", "good"), ("h3", "slow"), ("h0", "✗ failed"), ("unknown", "no value")];

fn words(class: &str) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == class).map_or("", |(_, words)| words)
}

fn legend(y: f64, style: SeriesStyle) -> Markup {
    html! {
        g class=(style.class()) {
            @for (place, (class, words)) in KINDS.iter().enumerate() {
                @let x = X_RANGE.from + place as f64 * 22.0;
                (area(class, point(x, y - 0.6), point(x + 2.5, y + 0.3)))
                (text(point(x + 3.3, y + 0.25), Anchor::Start, "quiet", words))
            }
        }
    }
}
