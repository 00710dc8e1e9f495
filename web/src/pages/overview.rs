//! The overview page: the ranking with confidence and problems, then the round in progress and every task.

use axum::extract::State;
use axum::response::Response;
use longhaul_analysis::summary::{Scores, WeeklySummary};
use longhaul_view::charts::SeriesStyles;
use longhaul_view::page::first_screen::{Extent, card, confidence, heading, problems};
use longhaul_view::render;
use longhaul_view::screens;
use maud::{Markup, html};

use super::{NavItem, render_page};
use crate::app_state::AppState;
use crate::live::LiveState;

/// Serves the overview page.
pub async fn overview(State(app): State<AppState>) -> Response {
    let now = app.live_state();
    render_page(app, NavItem::Overview, move |cache| {
        let newest = cache.newest_week()?;
        let weekly = cache.weekly(newest)?;
        Ok(body(&weekly, &now))
    })
    .await
}

fn body(weekly: &WeeklySummary, now: &LiveState) -> Markup {
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let note = html! { "Includes all data up to the end of " a href={ "/weeks/" (weekly.week) } { "week " (weekly.week) } "." };
    let live =
        html! { ul class="live-problems" role="status" data-live="problems" { (now.problems_html()) } };
    html! {
        (heading(weekly, &styles, &note))
        div class="first" {
            div {
                @for pair in &weekly.pairs { (card(pair, &styles, Extent::Answer)) }
                section class="now" aria-labelledby="now-heading" {
                    h2 id="now-heading" { "Now" }
                    div data-live="round" { (now.round_html()) }
                }
            }
            div class="aside" { (problems(weekly, &live)) (confidence(weekly)) }
        }
        div class="scores" { @for scores in &weekly.scores { (score_card(scores, weekly, &styles)) } }
        (render::html::render(&screens::overview::details(weekly), &styles))
    }
}

/// Renders the card of a share: its three scores, its rounds and its hang time.
fn score_card(scores: &Scores, weekly: &WeeklySummary, styles: &SeriesStyles) -> Markup {
    let target = weekly.targets.iter().find(|target| target.name == scores.target);
    let protocol = target.and_then(|target| target.protocol.as_deref()).unwrap_or("protocol not known");
    html! {
        article class="score" {
            h2 { (styles.legend_mark(&scores.target)) (scores.target) " " span class="muted" { (protocol) } }
            (render::html::render(&screens::overview::scores(scores, weekly), styles))
        }
    }
}
