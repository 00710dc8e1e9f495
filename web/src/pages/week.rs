//! The page of one week, with the same content as `longhaul report`, and its downloads.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Redirect, Response};
use longhaul_analysis::summary::{Week, WeeklySummary, client_caching};
use longhaul_view::charts::SeriesStyles;
use longhaul_view::json;
use longhaul_view::page::{contents, first_screen::first_screen};
use longhaul_view::screens::week::{WeekReport, details, times_for_spreadsheet};
use longhaul_view::screens::{week_charts, words};
use longhaul_view::{Environment, html as report, markdown, redaction, render};
use maud::{Markup, html};

use super::shell::{chart_links, read_cache, requested_week, svg_response};
use super::{NavItem, PageError, render_page};
use crate::app_state::AppState;
use crate::cache::{CacheEntry, current_week};
use crate::{badges, environment::report_environment};

/// Redirects to the newest week with a round.
pub async fn newest_week(app: AppState) -> Response {
    match read_cache(app.clone(), |cache| Ok(cache.newest_week()?)).await {
        Ok(week) => Redirect::to(&format!("/weeks/{week}")).into_response(),
        Err(error) => render_page(app, NavItem::Week, |_| Err(error)).await,
    }
}

/// Serves the page of a week.
pub async fn week(app: AppState, Path(week): Path<String>) -> Response {
    render_page(app, NavItem::Week, move |cache| {
        let week = requested_week(cache, &week)?;
        let weekly = cache.weekly(week)?;
        let environment = environment(cache, week)?;
        let around = adjacent_weeks(cache, week)?;
        Ok(body(&weekly, &environment, around))
    })
    .await
}

/// Returns the weeks before and after this one; `None` outside the range from the first round to today.
fn adjacent_weeks(cache: &mut CacheEntry, week: Week) -> Result<[Option<Week>; 2], PageError> {
    let (first, last) = cache.week_range()?.unwrap_or((week, week));
    let (before, after) = (Week::of_day(week.first_day() - 1), Week::of_day(week.last_day() + 1));
    let last = last.max(current_week());
    Ok([Some(before).filter(|before| *before >= first), Some(after).filter(|after| *after <= last)])
}

fn environment(cache: &mut CacheEntry, week: Week) -> Result<Environment, PageError> {
    let history = cache.history()?;
    Ok(report_environment(week, &history, &cache.reader.epochs()?).anonymised())
}

fn body(weekly: &WeeklySummary, environment: &Environment, around: [Option<Week>; 2]) -> Markup {
    let weekly = &redaction::redact_week(weekly);
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let overall = week_charts::overall(weekly);
    let details = details(&WeekReport { environment: Some(environment), ..WeekReport::new(weekly) });
    html! {
        (week_navigation(weekly, around))
        (first_screen(weekly, &styles))
        (download_links(weekly))
        (contents(&details))
        (render::html::render(&details, &styles))
        (chart_links(&format!("/weeks/{}/charts", weekly.week), "", overall.iter().chain(details.charts_shown())))
    }
}

fn week_navigation(weekly: &WeeklySummary, [before, after]: [Option<Week>; 2]) -> Markup {
    html! {
        nav class="time-nav" aria-label="Weeks" {
            @match before { Some(week) => { a rel="prev" href={ "/weeks/" (week) } { "‹ " (week) } } None => { span {} } }
            p { "Week " (words::dates_and_scale(weekly)) }
            @match after { Some(week) => { a rel="next" href={ "/weeks/" (week) } { (week) " ›" } } None => { span {} } }
        }
    }
}

fn download_links(weekly: &WeeklySummary) -> Markup {
    html! {
        p class="muted downloads" {
            "Download: "
            @for (place, (ending, name)) in DOWNLOADS.iter().enumerate() {
                @if place > 0 { ", " }
                a href={ "/weeks/" (weekly.week) "/longhaul-" (weekly.week) "." (ending) } download { (name) }
            }
            ". The HTML and Markdown files contain no user name, machine name or path; target names are those that you chose. \
             To print a report, print this page."
        }
    }
}

const DOWNLOADS: [(&str, &str); 4] = [
    ("html", "one HTML page"),
    ("md", "Markdown"),
    ("csv", "times in seconds as CSV"),
    ("json", "everything as JSON"),
];

/// Serves a week as a file to download, in the format of its extension.
pub async fn download(app: AppState, Path((week, file)): Path<(String, String)>) -> Response {
    let made = read_cache(app.clone(), move |cache| {
        let week = requested_week(cache, &week)?;
        let ending = file.strip_prefix(&format!("longhaul-{week}.")).unwrap_or_default().to_owned();
        let weekly = cache.weekly(week)?;
        let (kind, text) = match ending.as_str() {
            "html" => ("text/html; charset=utf-8", report(&weekly, &environment(cache, week)?)),
            "md" => ("text/markdown; charset=utf-8", markdown(&weekly)),
            "csv" => ("text/csv; charset=utf-8", times_for_spreadsheet(&weekly).csv()),
            "json" => ("application/json", week_json(&weekly, cache)?),
            _ => return Err(PageError::NotFound(format!("file `{file}`"))),
        };
        Ok((kind, format!("attachment; filename=\"longhaul-{week}.{ending}\""), text))
    });
    match made.await {
        Ok((kind, name, text)) => {
            ([(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, name)], text).into_response()
        }
        Err(error) => render_page(app, NavItem::Week, |_| Err(error)).await,
    }
}

fn week_json(weekly: &WeeklySummary, cache: &CacheEntry) -> Result<String, PageError> {
    let caching = client_caching(&cache.reader.rereads()?);
    serde_json::to_string_pretty(&json::week(weekly, &caching))
        .map_err(|error| PageError::Internal(error.to_string()))
}

/// Serves one chart of a week as SVG.
pub async fn week_chart(app: AppState, Path((week, file)): Path<(String, String)>) -> Response {
    let found = read_cache(app, move |cache| {
        let week = requested_week(cache, &week)?;
        let weekly = cache.weekly(week)?;
        let id = file.strip_suffix(".svg").unwrap_or_default();
        Ok(week_charts::all(&weekly).into_iter().find(|chart| chart.id == id))
    });
    found.await.map_or_else(|error| error.status().into_response(), svg_response)
}

/// Serves the badge of a pair as SVG: the verdict in a few words.
pub async fn badge(app: AppState, Path((a, b)): Path<(String, String)>) -> Response {
    let found = read_cache(app, move |cache| {
        let newest = cache.newest_week()?;
        let weekly = cache.weekly(newest)?;
        let b = b.strip_suffix(".svg").unwrap_or(&b);
        let is_meant = |x: &str, y: &str| (x == a && y == b) || (x == b && y == a);
        let pair = weekly.pairs.iter().find(|pair| is_meant(pair.a.as_str(), pair.b.as_str()));
        Ok(pair.map(badges::badge))
    });
    match found.await {
        Ok(Some(svg)) => ([(CONTENT_TYPE, "image/svg+xml")], svg).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => error.status().into_response(),
    }
}
