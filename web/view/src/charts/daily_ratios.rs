//! Chart of daily ratios: the ratio of each day as a point, and the interval up to each day as a band. A day without
//! data is a gap.

use std::ops::RangeInclusive;

use jiff::civil::Date;
use longhaul_analysis::stats::DaySeries;
use longhaul_analysis::summary::{Comparison, EventLine, date_of_day};
use maud::{Markup, html};

use super::ratio_text::{ratio_text, tick_text};
use super::scale::{DayScale, Extent, LogScale};
use super::style::{MarkFill, SeriesStyle, mark};
use super::svg::{Anchor, CHARACTER_WIDTH, Chart, area, line, point, text, truncated};
use super::ticks::{EventMark, event_lane, event_notes};
use crate::event_words::line_words;
use crate::table::Table;
use crate::units;

/// Horizontal range of the days, in percent of the width. The labels of the axis are on the left.
const X_RANGE: Extent = Extent { from: 13.0, to: 99.0 };
/// Top and bottom of the lane of events, in lines (em).
const EVENT_LANE: Extent = Extent { from: 1.5, to: 2.5 };
/// Top and bottom of the plot, in lines (em).
const Y_RANGE: Extent = Extent { from: 2.8, to: 14.0 };
/// Maximum length of a name; longer names do not fit on a phone and are truncated.
const MAX_NAME_CHARS: usize = 16;
/// Day 0 of day numbers, 1970-01-01.
const EPOCH: Date = Date::constant(1970, 1, 1);

/// Chart of the daily ratios of a pair.
#[derive(Debug, Clone)]
pub struct DailyRatios {
    /// HTML id, unique on a page.
    pub id: String,
    /// Title of the chart.
    pub title: String,
    /// Names of the target that takes less time below the line of no difference, and of the target above it.
    pub sides: (String, String),
    /// Valid days, in days since 1970-01-01, with their ratios.
    pub ratios: Vec<(i64, f64)>,
    /// Interval after each day, from all days up to that day: day, lower end, upper end.
    pub intervals: Vec<(i64, f64, f64)>,
    /// Latest estimate as text; `None` while the interval is infinite.
    pub estimate_text: Option<String>,
    /// True if the verdict is adjusted for the round trip time, as the days and intervals are not.
    pub is_verdict_adjusted: bool,
    /// Ratio from which a difference matters, above 1.
    pub threshold: f64,
    /// Mean ratio before or after the shown days, if the ratio changed; else `None`.
    pub other_level: Option<RatioLevel>,
    /// Events, shown as ticks.
    pub ticks: Vec<EventTick>,
}

/// Mean ratio on the other side of a change. It is descriptive and has no interval.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioLevel {
    /// First day after the change, in days since 1970-01-01.
    pub day: i64,
    /// Mean ratio on the other side of the change.
    pub ratio: f64,
    /// Number of days on the other side.
    pub days: usize,
}

/// An event, drawn as a tick on the axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTick {
    /// Day of the event, in days since 1970-01-01.
    pub day: i64,
    /// Label of a few words.
    pub label: String,
}

/// Converts the ISO date at the start of a text to days since 1970-01-01; `None` if there is no date.
pub fn day_of(date: &str) -> Option<i64> {
    let date: Date = date.get(..10)?.parse().ok()?;
    Some(i64::from(date.since((jiff::Unit::Day, EPOCH)).ok()?.get_days()))
}

impl DailyRatios {
    /// Creates the chart of a comparison; `None` without a valid day. The band is the interval of [`DaySeries`] after
    /// each day.
    pub fn from_comparison(comparison: &Comparison, threshold: f64, events: &[EventLine]) -> Option<Self> {
        let days: Vec<(i64, f64)> = comparison.days.iter().map(|day| (day.day, day.ratio)).collect();
        let (first, last) = (days.first()?.0, days.last()?.0);
        let logs: Vec<(i64, f64)> = days.iter().map(|(day, ratio)| (*day, ratio.ln())).collect();
        let known = (1..=days.len()).filter_map(|count| {
            let (low, high) = DaySeries::from_days(&logs[..count])?.interval(comparison.alpha);
            (low.is_finite() && high.is_finite()).then(|| (days[count - 1].0, low.exp(), high.exp()))
        });
        // The compared days may lie before or after the change; the level shows the other side.
        let level = comparison.change.as_ref().map(|change| match change.first_day > last {
            true => RatioLevel { day: change.first_day, ratio: change.ratio_after, days: change.days_after },
            false => {
                RatioLevel { day: change.first_day, ratio: change.ratio_before, days: change.days_before }
            }
        });
        let unadjusted = match &comparison.at_round_trip {
            Some(at) => at.unadjusted.ratio,
            None => comparison.ratio,
        };
        let tick = |event: &EventLine| Some(EventTick { day: day_of(&event.at)?, label: line_words(event) });
        Some(Self {
            id: format!("days-{}-{}", comparison.a, comparison.b),
            title: format!("{} and {}, day by day", comparison.a, comparison.b),
            sides: (comparison.b.to_string(), comparison.a.to_string()),
            intervals: known.collect(),
            estimate_text: unadjusted.map(ratio_text),
            is_verdict_adjusted: comparison.at_round_trip.is_some(),
            threshold,
            other_level: level,
            ticks: events.iter().filter_map(tick).filter(|tick| (first..=last).contains(&tick.day)).collect(),
            ratios: days,
        })
    }

    /// Returns the chart with only the days, intervals and events within a range; `None` without a day there.
    pub fn within(mut self, days: &RangeInclusive<i64>) -> Option<Self> {
        self.ratios.retain(|(day, _)| days.contains(day));
        self.intervals.retain(|(day, ..)| days.contains(day));
        self.ticks.retain(|tick| days.contains(&tick.day));
        self.other_level = self.other_level.filter(|level| days.contains(&level.day));
        (!self.ratios.is_empty()).then_some(self)
    }

    /// Returns a common axis of ratios for several charts.
    pub fn shared_scale<'d>(all: impl IntoIterator<Item = &'d DailyRatios>) -> LogScale {
        let mut values = vec![1.0];
        for days in all {
            values.extend([days.threshold, 1.0 / days.threshold]);
            values.extend(days.ratios.iter().map(|(_, ratio)| *ratio));
            values.extend(days.other_level.iter().map(|level| level.ratio));
            values.extend(days.intervals.last().iter().flat_map(|(_, low, high)| [*low, *high]));
        }
        // Only the last interval of each chart is included: the wide intervals of the first days would compress the
        // plot.
        LogScale::spanning(values, Y_RANGE.reversed())
    }

    /// Draws the chart on an axis of ratios; ratios above 1 are at the top.
    pub fn draw(&self, ratios: LogScale) -> Chart {
        let axis = self.day_axis();
        let events = self.event_marks(&axis);
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(),
            height: Y_RANGE.to + 5.0,
            drawing: html! {
                (self.background(ratios))
                (self.date_axis(&axis))
                @for (day, low, high) in &self.intervals {
                    g class="cn" {
                        (area("sure", point(axis.day_start(*day), ratios.position(*high)),
                            point(axis.day_start(*day) + axis.day_width(), ratios.position(*low))))
                    }
                }
                @if let Some(level) = &self.other_level { (self.draw_level(level, &axis, ratios)) }
                @for (day, ratio) in &self.ratios {
                    g {
                        title { (short_date(*day)) ": " (format!("{ratio:.2}")) "×" }
                        (mark(point(axis.day_middle(*day), ratios.position(*ratio)), SeriesStyle::NEUTRAL, MarkFill::Solid))
                    }
                }
                (event_lane(&events, EVENT_LANE))
            },
            notes: event_notes(&events),
            table: self.table(),
        }
    }

    fn day_axis(&self) -> DayScale {
        let (first, last) = match (self.ratios.first(), self.ratios.last()) {
            (Some((first, _)), Some((last, _))) => (*first, *last),
            _ => (0, 0),
        };
        // The mean on the other side of a change gets a tenth of the width.
        let room = ((last - first) / 9).max(1);
        match &self.other_level {
            Some(level) if level.day > last => DayScale::new(first, last + room, X_RANGE),
            Some(_) => DayScale::new(first - room, last, X_RANGE),
            None => DayScale::new(first, last, X_RANGE),
        }
    }

    fn background(&self, ratios: LogScale) -> Markup {
        let (low, high) =
            (truncated(&self.sides.0, MAX_NAME_CHARS), truncated(&self.sides.1, MAX_NAME_CHARS));
        let percent = units::decimal((self.threshold - 1.0) * 100.0, 1);
        let band = (ratios.position(self.threshold), ratios.position(1.0 / self.threshold));
        html! {
            (area("band", point(X_RANGE.from, band.0), point(X_RANGE.to, band.1)))
            @for tick in ratios.ticks(1.7) {
                (line("grid", point(X_RANGE.from, ratios.position(tick)), point(X_RANGE.to, ratios.position(tick))))
                (text(point(0.0, ratios.position(tick) + 0.35), Anchor::Start, "quiet", &tick_text(tick)))
            }
            (line("one", point(X_RANGE.from, ratios.position(1.0)), point(X_RANGE.to, ratios.position(1.0))))
            (text(point(X_RANGE.from, 1.0), Anchor::Start, "quiet", &format!("▴ less time on {high}")))
            (text(point(X_RANGE.from, Y_RANGE.to + 3.1), Anchor::Start, "quiet", &format!("▾ less time on {low}")))
            (text(point(X_RANGE.from, Y_RANGE.to + 4.5), Anchor::Start, "quiet", &format!("1×: no difference; band: ±{percent} %")))
        }
    }

    fn date_axis(&self, axis: &DayScale) -> Markup {
        html! {
            (line("one", point(X_RANGE.from, Y_RANGE.to), point(X_RANGE.to, Y_RANGE.to)))
            @for day in axis.ticks(7.0 * CHARACTER_WIDTH) {
                (line("one", point(axis.day_middle(day), Y_RANGE.to), point(axis.day_middle(day), Y_RANGE.to + 0.35)))
                @let words = short_date(day);
                (text(point(axis.day_middle(day), Y_RANGE.to + 1.5), Anchor::around(axis.day_middle(day), words.len()), "quiet", &words))
            }
        }
    }

    fn draw_level(&self, level: &RatioLevel, axis: &DayScale, ratios: LogScale) -> Markup {
        let at = axis.day_start(level.day);
        let is_after = self.ratios.last().is_some_and(|(last, _)| level.day > *last);
        let (from, to) = if is_after { (at, X_RANGE.to) } else { (X_RANGE.from, at) };
        let (y, words) = (ratios.position(level.ratio), if is_after { "after" } else { "before" });
        let words = format!("{words}: {:.2}×, {}", level.ratio, units::count(level.days, "day"));
        let above = if y < Y_RANGE.from + 1.6 { 1.2 } else { -0.4 };
        html! {
            (line("change", point(at, Y_RANGE.from), point(at, Y_RANGE.to)))
            (line("level", point(from, y), point(to, y)))
            @if is_after { (text(point(to, y + above), Anchor::End, "", &words)) }
            @else { (text(point(from, y + above), Anchor::Start, "", &words)) }
        }
    }

    fn event_marks(&self, axis: &DayScale) -> Vec<EventMark> {
        let mark = |tick: &EventTick| EventMark {
            x: axis.day_middle(tick.day),
            words: format!("{}, {}", tick.label, short_date(tick.day)),
        };
        self.ticks.iter().map(mark).collect()
    }

    fn description(&self) -> String {
        let dates = match (self.ratios.first(), self.ratios.last()) {
            (Some((first, _)), Some((last, _))) => {
                format!("{} to {}", date_of_day(*first), date_of_day(*last))
            }
            _ => "no day".to_owned(),
        };
        let missing = self.ratios.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1).sum::<i64>();
        let found = match (&self.estimate_text, self.intervals.last()) {
            (Some(text), _) => format!("Latest estimate: {text}"),
            (None, Some((_, low, high))) => format!("Latest interval: {low:.2} to {high:.2}"),
            (None, None) => "No interval yet".to_owned(),
        };
        let adjusted = match self.is_verdict_adjusted {
            true => " The verdict is adjusted for the round trip time; these days and intervals are not.",
            false => "",
        };
        format!(
            "Each point is the median ratio of a day: time on {} divided by time on {}, on a logarithmic axis. The grey steps are \
             the interval from all days up to then. {dates}; valid days: {}; days without a value, blank: {missing}. \
             {found}.{adjusted}",
            self.sides.0,
            self.sides.1,
            self.ratios.len(),
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new(self.title.as_str()).words(["day"]).figures([
            "ratio of the day",
            "interval up to then, from",
            "to",
        ]);
        for (day, ratio) in &self.ratios {
            let known = self.intervals.iter().find(|(known, _, _)| known == day);
            let of = |value: Option<f64>| units::or_no_value(value.map(|value| format!("{value:.3}")));
            table.row([
                date_of_day(*day).to_string(),
                format!("{ratio:.3}"),
                of(known.map(|(_, low, _)| *low)),
                of(known.map(|(_, _, high)| *high)),
            ]);
        }
        table
    }
}

fn short_date(day: i64) -> String {
    date_of_day(day).strftime("%-d %b").to_string()
}
