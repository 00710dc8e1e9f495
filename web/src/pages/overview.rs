//! The overview page: the recommendation, each task, the last rounds, problems and the round in progress on the first screen; what
//! changed, stalls and the method below.

use axum::response::Response;
use longhaul_analysis::checks::integrity_lines;
use longhaul_analysis::summary::{WeeklySummary, recent_rounds};
use longhaul_model::time::DAY;
use longhaul_model::{History, Resolution, Stall, Timestamp};
use longhaul_store::{Reader, SampleFilter};
use longhaul_view::Document;
use longhaul_view::charts::SeriesStyles;
use longhaul_view::page::first_screen::{answer, problems};
use longhaul_view::page::round_strips::round_strips;
use longhaul_view::page::task_bars::task_bars;
use longhaul_view::render::html::{render, section};
use longhaul_view::screens::checks::CheckResults;
use longhaul_view::screens::overview::{DAYS_SHOWN, checks_in_brief, method, stalls_in_brief, what_changed};
use longhaul_view::screens::round_strips::ROUNDS_SHOWN;
use longhaul_view::screens::why::bottlenecks_in_brief;
use longhaul_view::text::Text;
use maud::{Markup, html};

use super::{NavItem, render_page};
use crate::app_state::AppState;
use crate::cache::local_zone;
use crate::live::{LiveState, page_part};

/// Number of days of which the overview lists stalls.
const STALL_DAYS: u32 = 7;

/// Number of problems of the week that are shown at once, so that the first screen has room for the round in progress.
const PROBLEMS_SHOWN: usize = 2;

/// Data of the page.
struct Overview<'c> {
    weekly: &'c WeeklySummary,
    history: &'c History,
    /// Stalls of the last days; `None` if nothing was measured in them.
    stalls: Option<Vec<Stall>>,
    bottlenecks: Option<Text>,
    checks: Option<Document>,
    now: Timestamp,
}

/// Serves the overview page.
pub async fn overview(app: AppState) -> Response {
    let (live, now) = (app.live_state(), app.now());
    render_page(app, NavItem::Overview, move |cache| {
        let newest = cache.newest_week()?;
        let (weekly, history) = (cache.weekly(newest)?, cache.history()?);
        let stalls = recent_stalls(&cache.reader, &history, now)?;
        let bottlenecks = bottlenecks_in_brief(&weekly, &cache.attributions()?);
        let checks = checks(&weekly, &cache.reader)?;
        let overview = Overview { weekly: &weekly, history: &history, stalls, bottlenecks, checks, now };
        Ok(html! { (first_screen(&overview, &live)) (below(&overview)) })
    })
    .await
}

/// Returns the stalls of the last days; `None` if no run and no sample of the probe is of that time.
fn recent_stalls(
    reader: &Reader,
    history: &History,
    now: Timestamp,
) -> longhaul_store::Result<Option<Vec<Stall>>> {
    let since = now - STALL_DAYS * DAY;
    let stalls = reader.stalls(since)?;
    let samples = SampleFilter { target: None, kind: None, step: Resolution::HalfDay, since, until: now };
    let was_measured = !stalls.is_empty()
        || history.runs.iter().any(|run| run.started >= since)
        || !reader.probe_steps(&samples)?.is_empty();
    Ok(was_measured.then_some(stalls))
}

fn first_screen(overview: &Overview<'_>, live: &LiveState) -> Markup {
    let weekly = overview.weekly;
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let strips = recent_rounds(overview.history, ROUNDS_SHOWN);
    let live_problems = html! { div role="status" { ul class="live-problems" data-live="problems" { (live.problems_html()) } } };
    html! {
        (answer(weekly, overview.bottlenecks.as_ref()))
        div class="first" {
            section class="tasks" aria-labelledby="tasks-heading" {
                h2 id="tasks-heading" { "Typical times" }
                (task_bars(weekly, &styles))
            }
            div class="aside" {
                section class="rounds" aria-labelledby="rounds-heading" {
                    h2 id="rounds-heading" { "Last " (ROUNDS_SHOWN) " rounds" }
                    (round_strips(&strips, &weekly.targets, &styles, &local_zone()))
                }
                (problems(weekly, &live_problems, PROBLEMS_SHOWN))
                section class="now" aria-labelledby="now-heading" {
                    h2 id="now-heading" { "Now" }
                    div data-live="round" { (live.round_html()) }
                }
                @if let Some(checks) = &overview.checks { (section("checks", "Checks", &page_part(checks))) }
            }
        }
    }
}

/// Returns the results of the checks, one sentence each.
fn checks(weekly: &WeeklySummary, reader: &Reader) -> longhaul_store::Result<Option<Document>> {
    Ok(checks_in_brief(&CheckResults {
        freshness: &weekly.freshness,
        integrity: &integrity_lines(&reader.verified_totals()?, &reader.mismatches(None)?),
        fidelity: &reader.fidelity()?,
    }))
}

fn below(overview: &Overview<'_>) -> Markup {
    let Overview { weekly, history, now, .. } = *overview;
    let (zone, styles) = (local_zone(), SeriesStyles::for_targets(&weekly.targets));
    let changed = what_changed(weekly, &history.events, now - DAYS_SHOWN * DAY, &zone);
    let stalls = stalls_in_brief(overview.stalls.as_deref(), (now - STALL_DAYS * DAY, now));
    html! {
        div class="below" {
            (section("changed", "What changed", &render(&changed, &styles)))
            (section("stalls", &format!("Stalls of the last {STALL_DAYS} days"), &render(&stalls, &styles)))
            (section("method", "Method", &render(&method(weekly), &styles)))
        }
    }
}
