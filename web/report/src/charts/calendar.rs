//! Which days were well: weeks across, days of the week down. What is not known stays empty; a bad day has a shape, not only
//! a colour.

use maud::{Markup, html};

use super::look::{Fill, Look, mark};
use super::svg::{Anchor, Chart, Table, area, glyph, shortened, text};
use longhaul_measure::summary::calendar;

/// Where the weeks are drawn, in per cent; in lines.
const ACROSS: (f64, f64) = (10.0, 99.5);
const TOP: f64 = 1.8;
const ROW: f64 = 1.15;
/// A week is no wider, however few there are.
const WIDEST: f64 = 4.0;
/// Names are cut to so many characters.
const NAME: usize = 24;
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// How one day was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Availability {
    /// Answers.
    pub answers: u64,
    /// Of them, how many took longer than a second.
    pub slow: u64,
    /// Questions that failed or were lost.
    pub failed: u64,
}

/// One target, day by day.
#[derive(Debug, Clone)]
pub struct Calendar {
    /// Unique on a page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The target's name.
    pub name: String,
    /// Its look.
    pub look: Look,
    /// The days that something is known of, from 1970-01-01, in order.
    pub days: Vec<(i64, Availability)>,
    /// The first and the last day that are shown.
    pub span: (i64, i64),
}

impl Calendar {
    /// Draws it.
    pub fn draw(&self) -> Chart {
        let bottom = TOP + 7.0 * ROW;
        let count: u64 = self.days.iter().map(|(_, day)| day.answers).sum();
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: bottom + 3.4,
            drawing: html! {
                (mark((ACROSS.0 + 1.6, 0.7), self.look, Fill::Solid))
                (text((ACROSS.0 + 4.5, 1.05), Anchor::Start, "strong", &shortened(&self.name, NAME)))
                (text((100.0, 1.05), Anchor::End, "quiet", &format!("n {count}")))
                @for (day, name) in WEEKDAYS.iter().enumerate() {
                    @if day % 2 == 0 { (text((ACROSS.0 - 1.0, TOP + (day as f64 + 0.8) * ROW), Anchor::End, "quiet", name)) }
                }
                g class=(self.look.class()) { (self.fields()) }
                (legend(bottom + 2.6, self.look))
                (text((ACROSS.0, bottom + 1.1), Anchor::Start, "quiet", &calendar(self.span.0).strftime("%-d %b %Y").to_string()))
                (text((100.0, bottom + 1.1), Anchor::End, "quiet", &calendar(self.span.1).strftime("%-d %b %Y").to_string()))
            },
            table: self.table(),
        }
    }

    fn fields(&self) -> Markup {
        let weeks = (monday(self.span.1) - monday(self.span.0)) / 7 + 1;
        let width = ((ACROSS.1 - ACROSS.0) / weeks as f64).min(WIDEST);
        html! {
            @for day in self.span.0..=self.span.1 {
                @let x = ACROSS.0 + ((monday(day) - monday(self.span.0)) / 7) as f64 * width;
                @let y = TOP + (day - monday(day)) as f64 * ROW;
                @let found = self.days.binary_search_by_key(&day, |(known, _)| *known).ok().map(|place| self.days[place].1);
                (area(class(found), (x, y + 0.06), (x + width * 0.9, y + ROW - 0.06)))
                @if found.is_some_and(|day| day.failed > 0) { (glyph((x + width * 0.45, y + ROW / 2.0), "failed", CROSS)) }
            }
        }
    }

    fn description(&self) -> String {
        let with = |is: fn(&Availability) -> bool| self.days.iter().filter(|(_, day)| is(day)).count();
        format!(
            "One field a day, a column a week. {}: of {} days that something is known of, {} were well, {} had an answer slower than a \
             second, {} had a question that failed or was lost, marked ✗. A framed field has no value: nobody asked.",
            self.name,
            self.days.len(),
            with(|day| day.failed == 0 && day.slow == 0),
            with(|day| day.failed == 0 && day.slow > 0),
            with(|day| day.failed > 0),
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["day", "answers", "slower than 1 s", "failed or lost"]);
        for (day, found) in &self.days {
            table.rows.push(vec![
                calendar(*day).to_string(),
                found.answers.to_string(),
                found.slow.to_string(),
                found.failed.to_string(),
            ]);
        }
        table
    }
}

const CROSS: &str = "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5";

fn monday(day: i64) -> i64 {
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

fn legend(y: f64, look: Look) -> Markup {
    html! {
        g class=(look.class()) {
            @for (place, (class, words)) in [("h1", "well"), ("h3", "slow"), ("h5", "✗ failed"), ("unknown", "no value")].iter().enumerate() {
                @let x = ACROSS.0 + place as f64 * 22.0;
                (area(class, (x, y - 0.6), (x + 2.5, y + 0.3)))
                (text((x + 3.3, y + 0.25), Anchor::Start, "quiet", words))
            }
        }
    }
}
