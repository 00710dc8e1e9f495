//! Day by day: the ratio of each day as a point, what was known after each day as a band. A day without data is a gap.

use jiff::civil::Date;
use longhaul_measure::stats::DaySeries;
use longhaul_measure::summary::{Comparison, JournalEntry, calendar};
use maud::{Markup, html};

use super::look::{Fill, Look, mark};
use super::scale::{DayScale, LogScale};
use super::svg::{Anchor, CHARACTER, Chart, Table, area, line, shortened, text};
use super::ticks::numbered;
use super::{ratio_text, tick_text};

/// Where the first and the last day are drawn, in per cent: on the left there is room for the axis.
const ACROSS: (f64, f64) = (13.0, 99.0);
/// Top and bottom of the plot, in lines.
const DOWN: (f64, f64) = (1.6, 14.0);
/// Names are cut to so many characters: the line on a phone holds no more.
const NAME: usize = 16;
/// 1970-01-01.
const EPOCH: Date = Date::constant(1970, 1, 1);

/// The ratios of a pair, day by day.
#[derive(Debug, Clone)]
pub struct Days {
    /// Unique on a page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Who takes less time below the line, and who above it.
    pub sides: (String, String),
    /// Each day that counts, in days since 1970-01-01, with its ratio.
    pub days: Vec<(i64, f64)>,
    /// What was known after each day: the interval of everything up to it.
    pub known: Vec<(i64, f64, f64)>,
    /// The final estimate, as text.
    pub found: Option<String>,
    /// From which ratio on a difference matters.
    pub threshold: f64,
    /// What the ratio was before or after these days, where it changed.
    pub level: Option<Level>,
    /// What happened.
    pub ticks: Vec<Tick>,
}

/// A mean ratio on the other side of a change. It has no interval and is a description.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// The first day after the change.
    pub day: i64,
    /// The mean ratio on the other side.
    pub ratio: f64,
    /// Over how many days.
    pub days: usize,
}

/// Something that happened, as a tick below the axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// When, in days since 1970-01-01.
    pub day: i64,
    /// What, in a few words.
    pub label: String,
}

/// A calendar day in days since 1970-01-01; `None` for what is none.
pub fn day_of(date: &str) -> Option<i64> {
    let date: Date = date.get(..10)?.parse().ok()?;
    Some(i64::from(date.since((jiff::Unit::Day, EPOCH)).ok()?.get_days()))
}

impl Days {
    /// The days of a comparison; `None` without any. The band is what [`DaySeries`] said after each day.
    pub fn of(comparison: &Comparison, threshold: f64, events: &[JournalEntry]) -> Option<Self> {
        let days: Vec<(i64, f64)> =
            comparison.days.iter().filter_map(|day| Some((day_of(&day.date)?, day.ratio))).collect();
        let (first, last) = (days.first()?.0, days.last()?.0);
        let known = (1..=days.len()).filter_map(|count| {
            let logs: Vec<(i64, f64)> = days[..count].iter().map(|(day, ratio)| (*day, ratio.ln())).collect();
            let (low, high) = DaySeries::of(&logs)?.interval(comparison.alpha);
            (low.is_finite() && high.is_finite()).then(|| (days[count - 1].0, low.exp(), high.exp()))
        });
        let level = comparison.change.as_ref().map(|change| match change.first_day > last {
            true => Level { day: change.first_day, ratio: change.ratio_after, days: change.days_after },
            false => Level { day: change.first_day, ratio: change.ratio_before, days: change.days_before },
        });
        let tick = |event: &JournalEntry| Some(Tick { day: day_of(&event.at)?, label: event.kind.clone() });
        Some(Self {
            id: format!("days-{}-{}", comparison.a, comparison.b),
            title: format!(
                "{} and {}, {}, day by day",
                comparison.a, comparison.b, comparison.subject.activity
            ),
            sides: (comparison.b.to_string(), comparison.a.to_string()),
            known: known.collect(),
            found: comparison.ratio.map(ratio_text),
            threshold,
            level,
            ticks: events.iter().filter_map(tick).filter(|tick| (first..=last).contains(&tick.day)).collect(),
            days,
        })
    }

    /// The axis that holds several of them.
    pub fn shared_scale<'d>(all: impl IntoIterator<Item = &'d Days>) -> LogScale {
        let mut values = vec![1.0];
        for days in all {
            values.extend([days.threshold, 1.0 / days.threshold]);
            values.extend(days.days.iter().map(|(_, ratio)| *ratio));
            values.extend(days.level.iter().map(|level| level.ratio));
            values.extend(days.known.last().iter().flat_map(|(_, low, high)| [*low, *high]));
        }
        // A day on which one side hung lies far away; what is known of the others stays readable.
        LogScale::over(values, (DOWN.1, DOWN.0))
    }

    /// Draws them on an axis of ratios; above 1 is up.
    pub fn draw(&self, ratios: LogScale) -> Chart {
        let axis = self.day_axis();
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: DOWN.1 + 5.0,
            drawing: html! {
                (self.ground(ratios))
                (self.dates(&axis))
                @for (day, low, high) in &self.known {
                    g class="cn" {
                        (area("sure", (axis.begin(*day), ratios.at(*high)),
                            (axis.begin(*day) + axis.day_width(), ratios.at(*low))))
                    }
                }
                @if let Some(level) = &self.level { (self.level(level, &axis, ratios)) }
                @for (day, ratio) in &self.days {
                    (mark((axis.middle(*day), ratios.at(*ratio)), Look::NEUTRAL, Fill::Solid))
                }
                (self.happened(&axis))
            },
            table: self.table(),
        }
    }

    fn day_axis(&self) -> DayScale {
        let (first, last) = match (self.days.first(), self.days.last()) {
            (Some((first, _)), Some((last, _))) => (*first, *last),
            _ => (0, 0),
        };
        // The other side of a change gets a tenth of the width.
        let room = ((last - first) / 9).max(1);
        match &self.level {
            Some(level) if level.day > last => DayScale::new((first, last + room), ACROSS),
            Some(_) => DayScale::new((first - room, last), ACROSS),
            None => DayScale::new((first, last), ACROSS),
        }
    }

    fn ground(&self, ratios: LogScale) -> Markup {
        let (low, high) = (shortened(&self.sides.0, NAME), shortened(&self.sides.1, NAME));
        let percent = crate::units::plain((self.threshold - 1.0) * 100.0, 1);
        let band = (ratios.at(self.threshold), ratios.at(1.0 / self.threshold));
        html! {
            (area("band", (ACROSS.0, band.0), (ACROSS.1, band.1)))
            @for tick in ratios.ticks(1.7) {
                (line("grid", (ACROSS.0, ratios.at(tick)), (ACROSS.1, ratios.at(tick))))
                (text((0.0, ratios.at(tick) + 0.35), Anchor::Start, "quiet", &tick_text(tick)))
            }
            (line("one", (ACROSS.0, ratios.at(1.0)), (ACROSS.1, ratios.at(1.0))))
            (text((ACROSS.0, DOWN.0 - 0.6), Anchor::Start, "quiet", &format!("▴ less time on {high}")))
            (text((ACROSS.0, DOWN.1 + 3.1), Anchor::Start, "quiet", &format!("▾ less time on {low}")))
            (text((ACROSS.0, DOWN.1 + 4.5), Anchor::Start, "quiet", &format!("1×: no difference; band: ±{percent} %")))
        }
    }

    fn dates(&self, axis: &DayScale) -> Markup {
        let label = |day: i64| calendar(day).strftime("%-d %b").to_string();
        html! {
            (line("one", (ACROSS.0, DOWN.1), (ACROSS.1, DOWN.1)))
            @for day in axis.ticks(7.0 * CHARACTER) {
                (line("one", (axis.middle(day), DOWN.1), (axis.middle(day), DOWN.1 + 0.35)))
                @let words = label(day);
                (text((axis.middle(day), DOWN.1 + 1.5), Anchor::around(axis.middle(day), words.len()), "quiet", &words))
            }
        }
    }

    fn level(&self, level: &Level, axis: &DayScale, ratios: LogScale) -> Markup {
        let at = axis.begin(level.day);
        let is_after = self.days.last().is_some_and(|(last, _)| level.day > *last);
        let (from, to) = if is_after { (at, ACROSS.1) } else { (ACROSS.0, at) };
        let (y, words) = (ratios.at(level.ratio), if is_after { "after" } else { "before" });
        let words = format!("{words}: {:.2}×, {} days", level.ratio, level.days);
        let above = if y < DOWN.0 + 1.6 { 1.2 } else { -0.4 };
        html! {
            (line("change", (at, DOWN.0), (at, DOWN.1)))
            (line("level", (from, y), (to, y)))
            @if is_after { (text((to, y + above), Anchor::End, "", &words)) }
            @else { (text((from, y + above), Anchor::Start, "", &words)) }
        }
    }

    fn happened(&self, axis: &DayScale) -> Markup {
        let places: Vec<f64> = self.ticks.iter().map(|tick| axis.middle(tick.day)).collect();
        numbered(&places, (DOWN.1 - 0.9, DOWN.1))
    }

    /// The events, numbered as in the picture.
    pub fn notes(&self) -> Vec<String> {
        let note =
            |(place, tick): (usize, &Tick)| format!("{} {} ({})", place + 1, tick.label, calendar(tick.day));
        self.ticks.iter().enumerate().map(note).collect()
    }

    fn description(&self) -> String {
        let dates = match (self.days.first(), self.days.last()) {
            (Some((first, _)), Some((last, _))) => format!("{} to {}", calendar(*first), calendar(*last)),
            _ => "no day".to_owned(),
        };
        let missing = self.days.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1).sum::<i64>();
        let found = self.found.as_ref().map_or("anything fits so far".to_owned(), Clone::clone);
        format!(
            "Each point is the median ratio of a day, time on {} divided by time on {}, logarithmic; the grey steps are the \
             interval of everything known up to that day. {dates}: {} days that count, {missing} days without, left blank. \
             Last: {found}.",
            self.sides.0,
            self.sides.1,
            self.days.len(),
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["day", "ratio of the day", "interval so far from", "to"]);
        for (day, ratio) in &self.days {
            let known = self.known.iter().find(|(known, _, _)| known == day);
            let of = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
            table.rows.push(vec![
                calendar(*day).to_string(),
                format!("{ratio:.3}"),
                of(known.map(|(_, low, _)| *low)),
                of(known.map(|(_, _, high)| *high)),
            ]);
        }
        table
    }
}
