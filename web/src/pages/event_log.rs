//! The events page: events and epochs in order of time, and the ratios before and after a day.

use axum::response::Response;
use jiff::civil::Date;
use longhaul_analysis::summary::{EventLine, WeeklyQuery, WeeklySummary, before_after};
use longhaul_model::stored::StoredEpoch;
use longhaul_model::time::DAY;
use longhaul_model::{Event, History, Timestamp};
use longhaul_view::charts::SeriesStyles;
use longhaul_view::charts::daily_ratios::day_of;
use longhaul_view::render::html::{figure, render, section, table};
use longhaul_view::screens::events::{EXPLANATION, Entry, event_log};
use longhaul_view::screens::{self, week_charts};
use longhaul_view::time::{self, utc_offset_at};
use maud::{Markup, html};

use serde::Deserialize;

use super::shell::{RangeLink, range_picker};
use super::{NavItem, PageError, render_page};
use crate::app_state::AppState;
use crate::cache::local_zone;
use crate::params::Params;

/// Ranges up to now that the page offers, in days; the last one has all.
const RANGES: [(&str, Option<u32>); 4] =
    [("24 h", Some(1)), ("7 d", Some(7)), ("30 d", Some(30)), ("all", None)];

/// Query of the events page.
#[derive(Debug, Default, Deserialize)]
pub struct EventsParams {
    /// Day for the comparison before and after; empty for none.
    #[serde(default)]
    at: String,
    /// Number of days up to now that are shown; empty for all.
    #[serde(default)]
    days: String,
}

impl EventsParams {
    fn date(&self) -> Result<Option<Date>, PageError> {
        let wrong =
            |_| PageError::BadRequest(format!("`{}` is not a date: write it like 2026-11-12.", self.at));
        (!self.at.is_empty()).then(|| self.at.parse().map_err(wrong)).transpose()
    }

    fn days(&self) -> Result<Option<u32>, PageError> {
        let wrong = |_| PageError::BadRequest(format!("`{}` is not a number of days.", self.days));
        (!self.days.is_empty()).then(|| self.days.parse().map_err(wrong)).transpose()
    }
}

/// Returns the links to the ranges. `shown`: the number of days of this page; `None` for all.
fn ranges(shown: Option<u32>) -> impl Iterator<Item = RangeLink> {
    RANGES.into_iter().map(move |(label, days)| RangeLink {
        label,
        address: days.map_or("/events".to_owned(), |days| format!("/events?days={days}")),
        is_current: days == shown,
    })
}

/// Serves the events page.
pub async fn events_page(app: AppState, Params(wanted): Params<EventsParams>) -> Response {
    let now = app.now();
    render_page(app, NavItem::Events, move |cache| {
        let (at, days) = (wanted.date()?, wanted.days()?);
        let since = days.map(|days| now - days * DAY);
        let newest = cache.newest_week()?;
        let (history, weekly) = (cache.history()?, cache.weekly(newest)?);
        let (stored, epochs) = (cache.reader.events(since)?, cache.reader.epochs()?);
        let mut entries: Vec<Entry> = stored.into_iter().map(|stored| Entry::Event(stored.event)).collect();
        let is_shown = |epoch: &StoredEpoch| since.is_none_or(|since| epoch.opened >= since);
        entries.extend(epochs.into_iter().filter(is_shown).map(Entry::Epoch));
        let styles = SeriesStyles::for_targets(&weekly.targets);
        Ok(html! {
            h1 { "Events" }
            p { (EXPLANATION) }
            div class="controls" { (range_picker(ranges(days))) }
            (section("line", "Timeline", &ratio_charts(&weekly, &history, since)))
            @if let Some(date) = at { (section("around", &format!("Before and after {date}"), &before_after_section(&history, &weekly, date))) }
            (section("events", if since.is_some() { "Events and epochs" } else { "All events and epochs" }, &render(&event_log(entries, &local_zone()), &styles)))
        })
    })
    .await
}

/// Renders the daily ratio of each pair, with events as ticks. `since`: the time from which they are shown; `None` for all.
fn ratio_charts(weekly: &WeeklySummary, history: &History, since: Option<Timestamp>) -> Markup {
    let ticks: Vec<EventLine> = history.events.iter().map(event_line).collect();
    let first = since.map_or(i64::MIN, |since| since.local_day(utc_offset_at(since, &local_zone())));
    let days: Vec<_> =
        week_charts::days_within(weekly, &ticks, &(first..=i64::MAX)).into_iter().flatten().collect();
    html! {
        @if days.is_empty() {
            p { @if since.is_some() { "No pair has a ratio in this period." } @else { "No pair has a ratio yet." } }
        }
        div class="chart-grid" { @for days in &days { (figure(days)) } }
    }
}

/// Formats an event for a chart, with its local time.
fn event_line(event: &Event) -> EventLine {
    EventLine {
        at: time::timestamp(event.at_us, &local_zone()),
        target: event.target.clone(),
        kind: event.kind.clone(),
        detail: event.detail.clone(),
    }
}

/// Renders the comparison before and after a day for every task of every pair, as `longhaul report --pair --at`
/// prints it.
fn before_after_section(history: &History, weekly: &WeeklySummary, date: Date) -> Markup {
    let question = WeeklyQuery { week: weekly.week, scale: weekly.scale, since: None, zone: local_zone() };
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let day = day_of(&date.to_string()).unwrap_or_default();
    let judged = weekly.pairs.iter().filter_map(|pair| {
        let rows = before_after(history, &question, pair, day)?;
        Some((pair, screens::before_after::table(pair, &rows)))
    });
    html! {
        p class="muted" { (screens::before_after::note()) }
        @for (pair, changes) in judged {
            h3 { (pair.a) " and " (pair.b) }
            (table(&changes, &styles))
        }
    }
}
