//! The latency page: probe latency over time, by weekday and hour, and day by day, and the list of stalls.

use std::time::Duration;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use longhaul_analysis::stalls::explain_stalls;
use longhaul_model::time::DAY;
use longhaul_model::{Event, LoadContext, ProbeKind, ProbeStep, Resolution, Timestamp};
use longhaul_store::SampleFilter;
use longhaul_view::charts::SeriesStyles;
use longhaul_view::json::LatencySeries;
use longhaul_view::screens::latency::EXPLANATION;
use longhaul_view::screens::latency_charts::{HEAT_MAP_WEEKS, LatencyCharts, LatencySamples, latency_page};
use longhaul_view::time::{timestamp, utc_offset_at};
use maud::{Markup, html};

use super::latency_query::{LatencyParams, LatencyQuery};
use super::runs::select_field;
use super::shell::{RangeLink, chart_links, range_picker, read_cache, svg_response};
use super::{NavItem, PageError, render_page};
use crate::app_state::AppState;
use crate::cache::{CacheEntry, local_zone};
use crate::live::page_part;
use crate::params::Params;

/// Windows up to now that the page offers, in days.
const RANGES: [(&str, u32); 3] = [("24 h", 1), ("7 d", 7), ("30 d", 30)];

/// Serves the latency page.
pub async fn latency(app: AppState, Params(params): Params<LatencyParams>) -> Response {
    let now = app.now();
    render_page(app, NavItem::Latency, move |cache| {
        let query = LatencyQuery::parse(&params, now)?;
        let samples = read_samples(cache, &query)?;
        let charts = LatencyCharts::draw(&samples, &query.window(), &styles(cache)?);
        let links = query.to_query_string(query.length, query.until);
        let since_first = cache.history()?.rounds.first().map_or(DAY, |round| now.since(round.started_us));
        Ok(html! {
            h1 { "Latency" }
            p { (EXPLANATION) }
            div class="controls" { (range_picker(ranges(&query, since_first))) (filter_form(&query)) }
            (time_navigation(&query, now))
            p id="zoom-hint" class="muted" hidden { "Drag across a chart to zoom in; double-click to reset. Keyboard: arrow keys move, \
                 + and - zoom, 0 resets." }
            (page_part(&latency_page(&samples, &query.window(), &charts)))
            (chart_links("/latency/charts", &links, charts.all()))
        })
    })
    .await
}

/// Serves one chart of the page as SVG.
pub async fn latency_chart(
    app: AppState,
    Path(file): Path<String>,
    Params(params): Params<LatencyParams>,
) -> Response {
    let now = app.now();
    let found = read_cache(app, move |cache| {
        let query = LatencyQuery::parse(&params, now)?;
        let charts = LatencyCharts::draw(&read_samples(cache, &query)?, &query.window(), &styles(cache)?);
        let id = file.strip_suffix(".svg").unwrap_or_default();
        Ok(charts.all().find(|chart| chart.id == id).cloned())
    });
    found.await.map_or_else(|error| error.status().into_response(), svg_response)
}

/// Returns the windows up to now; the last one goes back to the first round.
fn ranges(query: &LatencyQuery, since_first: Duration) -> impl Iterator<Item = RangeLink> {
    let lengths =
        RANGES.map(|(label, days)| (label, days * DAY)).into_iter().chain([("all", since_first + DAY)]);
    lengths.map(|(label, length)| RangeLink {
        label,
        address: format!("/latency{}", query.to_newest(length)),
        is_current: query.shows_newest(length),
    })
}

fn filter_form(query: &LatencyQuery) -> Markup {
    let kinds = ProbeKind::ALL.map(ProbeKind::name);
    html! {
        form class="search" {
            input type="hidden" name="days" value=(query.days());
            label { "Request "
                select name="kind" { @for one in kinds { option value=(one) selected[one == query.kind.name()] { (one) } } }
            }
            (select_field("during", "During", &LoadContext::ALL.map(LoadContext::name), query.during.map_or("", LoadContext::name)))
            button { "Show" }
        }
    }
}

/// Renders the links to an earlier or later window, and to zoom in or out.
fn time_navigation(query: &LatencyQuery, now: Timestamp) -> Markup {
    let (from, until) = query.span();
    let (length, half) = (query.length, query.length / 2);
    let to = |length: Duration, until: Timestamp| {
        format!("/latency{}", query.to_query_string(length, until.min(now)))
    };
    html! {
        nav class="time-nav" aria-label="Time" data-from=(from.as_us()) data-until=(until.as_us()) {
            a id="earlier" href=(to(length, until - half)) { "‹ earlier" }
            p { (timestamp(from, &local_zone())) " to " (timestamp(until, &local_zone())) " · "
                a id="zoom-in" href=(to(half, until - half / 2)) { "zoom in" } " · "
                a id="zoom-out" href=(to(length * 2, until + half)) { "zoom out" } }
            @if until < now { a id="later" href=(to(length, until + half)) { "later ›" } }
            @else { span {} }
        }
    }
}

fn styles(cache: &mut CacheEntry) -> Result<SeriesStyles, PageError> {
    let newest = cache.newest_week()?;
    Ok(SeriesStyles::for_targets(&cache.weekly(newest)?.targets))
}

fn read_samples(cache: &CacheEntry, query: &LatencyQuery) -> Result<LatencySamples, PageError> {
    let (from, until) = query.span();
    // The calendar shows at least a year, whatever the window is.
    let year = (until - query.length.max(364 * DAY), until);
    let year = read_probe_steps(cache, query, (Resolution::HalfDay, year))?;
    let weeks = (until - HEAT_MAP_WEEKS * 7 * DAY, until);
    let window = match query.step() {
        // A window that is drawn in steps of half a day is part of the year above, so it is not read a second time.
        Resolution::HalfDay => {
            let first = Resolution::HalfDay.start(from);
            year.iter().filter(|step| step.at_us >= first).cloned().collect()
        }
        step @ (Resolution::FiveMinutes | Resolution::Hour) => {
            read_probe_steps(cache, query, (step, (from, until)))?
        }
    };
    let mut stalls = cache.reader.stall_records(from, until)?;
    stalls.stalls.retain(|stall| stall.started_us < until);
    Ok(LatencySamples {
        window,
        weeks: read_probe_steps(cache, query, (Resolution::Hour, weeks))?,
        year,
        events: read_events(cache, from)?,
        stalls: explain_stalls(&stalls, utc_offset_at(until, &local_zone())),
    })
}

fn read_events(cache: &CacheEntry, from: Timestamp) -> Result<Vec<Event>, PageError> {
    Ok(cache.reader.events(Some(from))?.into_iter().map(|stored| stored.event).collect())
}

/// Reads the probe steps of all targets for a query, within a span.
fn read_probe_steps(
    cache: &CacheEntry,
    query: &LatencyQuery,
    (step, (since, until)): (Resolution, (Timestamp, Timestamp)),
) -> Result<Vec<ProbeStep>, PageError> {
    let filter = SampleFilter { target: None, kind: Some(query.kind), step, since, until };
    Ok(cache.reader.probe_steps(&filter)?)
}

/// Reads the series of all targets for a query, as numbers.
pub fn read_latency_series(cache: &CacheEntry, query: &LatencyQuery) -> Result<LatencySeries, PageError> {
    let window = query.window();
    let own = read_probe_steps(cache, query, (query.step(), window.span))?;
    Ok(LatencySeries::new(&window, &own, &read_events(cache, window.span.0)?))
}
