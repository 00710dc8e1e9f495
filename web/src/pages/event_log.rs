//! The events page: events and epochs in order of time, and the ratios before and after a day.

use axum::extract::Query;
use axum::response::Response;
use jiff::civil::Date;
use longhaul_analysis::summary::{EventLine, WeeklyQuery, WeeklySummary, before_after, detail_text};
use longhaul_model::{Event, History};
use longhaul_view::charts::SeriesStyles;
use longhaul_view::charts::daily_ratios::day_of;
use longhaul_view::render::html::{figure, render, section, table};
use longhaul_view::screens::events::{EXPLANATION, Entry, event_log};
use longhaul_view::screens::{self, week_charts};
use longhaul_view::time;
use maud::{Markup, html};

use serde::Deserialize;

use super::{NavItem, PageError, render_page};
use crate::app_state::AppState;
use crate::cache::local_zone;

/// Query of the events page: the day for the comparison before and after; empty for none.
#[derive(Debug, Default, Deserialize)]
pub struct EventsParams {
    #[serde(default)]
    at: String,
}

/// Serves the events page.
pub async fn events_page(app: AppState, Query(wanted): Query<EventsParams>) -> Response {
    render_page(app, NavItem::Events, move |cache| {
        let at = match wanted.at.as_str() {
            "" => None,
            text => Some(text.parse::<Date>().map_err(|_| PageError::BadRequest(format!("`{text}` is not a date: write it like 2026-11-12.")))?),
        };
        let newest = cache.newest_week()?;
        let (history, weekly) = (cache.history()?, cache.weekly(newest)?);
        let (stored, epochs) = (cache.reader.events(None)?, cache.reader.epochs()?);
        let mut entries: Vec<Entry> = stored.into_iter().map(|stored| Entry::Event(stored.event)).collect();
        entries.extend(epochs.into_iter().map(Entry::Epoch));
        let styles = SeriesStyles::for_targets(&weekly.targets);
        Ok(html! {
            h1 { "Events" }
            p { (EXPLANATION) }
            (section("line", "Timeline", &ratio_charts(&weekly, &history)))
            @if let Some(date) = at { (section("around", &format!("Before and after {date}"), &before_after_section(&history, &weekly, date))) }
            (section("events", "All events", &render(&event_log(entries, &local_zone()), &styles)))
        })
    })
    .await
}

/// Renders the daily ratio of each pair, with events as ticks.
fn ratio_charts(weekly: &WeeklySummary, history: &History) -> Markup {
    let ticks: Vec<EventLine> = history.events.iter().map(event_line).collect();
    let days: Vec<_> = week_charts::days(weekly, &ticks).into_iter().flatten().collect();
    html! {
        @if days.is_empty() { p { "No pair has a ratio yet." } }
        div class="chart-grid" { @for days in &days { (figure(days)) } }
    }
}

/// Formats an event for a chart, with its local time.
fn event_line(event: &Event) -> EventLine {
    EventLine {
        at: time::timestamp(event.at_us, &local_zone()),
        target: event.target.clone(),
        kind: event.kind.clone(),
        detail: detail_text(&event.detail),
    }
}

/// Renders the comparison before and after a day for every task of every pair, as `longhaul report --pair --at`
/// prints it.
fn before_after_section(history: &History, weekly: &WeeklySummary, date: Date) -> Markup {
    let question = WeeklyQuery { week: weekly.week, scale: weekly.scale, zone: local_zone() };
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
