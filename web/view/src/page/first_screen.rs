//! The first screen of the page: the ranking, the overall comparisons and the problems.

use longhaul_analysis::summary::{PairSummary, WeeklySummary};
use maud::{Markup, html};

use crate::charts::{MarkFill, SeriesStyles};
use crate::render;
use crate::screens::checks::statements;
use crate::screens::{self, recommendation, sentences, week_charts, words};
use crate::text::Text;

/// Renders the first screen of the page.
pub fn first_screen(weekly: &WeeklySummary, styles: &SeriesStyles) -> Markup {
    html! {
        (heading(weekly, styles))
        div class="first" {
            div { @for pair in &weekly.pairs { (card(weekly, pair, styles)) } }
            div class="aside" { (problems(weekly, &html! {}, usize::MAX)) (confidence(weekly)) }
        }
    }
}

/// Renders the recommendation with its confidence, what it rests on, and what the shares wait for.
pub fn answer(weekly: &WeeklySummary, bottlenecks: Option<&Text>) -> Markup {
    let basis = recommendation::basis(weekly);
    html! {
        section id="answer" class="answer" aria-labelledby="answer-heading" {
            h1 id="answer-heading" { (recommendation::heading(weekly)) }
            p {
                @if let Some(label) = recommendation::confidence_label(weekly) { span class="confidence" { (label) } " " }
                (render::html::line(&basis, &SeriesStyles::default())) " "
                span class="muted" { "Data up to " a href={ "/weeks/" (weekly.week) } { "week " (weekly.week) } "." }
                @if let Some(found) = bottlenecks { " " (render::html::line(found, &SeriesStyles::default())) }
            }
        }
    }
}

/// Renders the recommendation, how far it can be trusted, and the targets.
fn heading(weekly: &WeeklySummary, styles: &SeriesStyles) -> Markup {
    html! {
        section id="answer" class="answer" aria-labelledby="answer-heading" {
            h1 id="answer-heading" { (recommendation::heading(weekly)) }
            p class="muted" { (ranking(weekly)) (words::confidence(weekly)) }
            @for left_out in words::unmeasured(weekly) { p class="muted" { (left_out) } }
            ul class="targets" role="list" aria-label="Targets" {
                @for target in &weekly.targets {
                    li {
                        (styles.legend_mark(&target.name)) strong { (target.name) } " "
                        (target.protocol.as_deref().unwrap_or("protocol not known"))
                        @if target.epochs > 1 { ", epoch " (target.epochs) }
                    }
                }
            }
        }
    }
}

/// Returns the ranking, if there are more shares than the recommendation speaks of.
fn ranking(weekly: &WeeklySummary) -> String {
    if weekly.scores.len() > 2 { format!("{}. ", words::ranking(weekly)) } else { String::new() }
}

/// Renders the answer about a pair, its cost in time and its failures.
fn card(weekly: &WeeklySummary, pair: &PairSummary, styles: &SeriesStyles) -> Markup {
    let fill = pair.headline.as_ref().map_or(MarkFill::Hollow, |headline| words::fill(headline.verdict));
    html! {
        article class={ "card " (fill.class()) "-card" } {
            h2 { (styles.legend_mark(&pair.a)) (pair.a) " and " (styles.legend_mark(&pair.b)) (pair.b)
                span class="state" { (words::pair_verdict_label(pair)) } }
            p class="headline" { (sentences::headline_without_round_trip(pair)) }
            @if let Some(minutes) = pair.weekly_minutes { p { (words::weekly_minutes(pair, &minutes)) } }
            p class="muted" {
                @if let Some(basis) = pair.headline.as_ref().and_then(words::basis) { (basis) " " }
                (sentences::reliability(pair))
                @if let Some(freshness) = statements::freshness_of_pair(weekly, pair) { " " (freshness) }
            }
        }
    }
}

/// Renders the problems of a week below those that the service has now. More than `shown` are shown only on request.
pub fn problems(weekly: &WeeklySummary, live: &Markup, shown: usize) -> Markup {
    let document = screens::problems::problems(weekly, shown);
    html! {
        section class="problems" aria-labelledby="problems-heading" {
            h2 id="problems-heading" { "Problems" }
            (live)
            (render::html::render(&document, &SeriesStyles::default()))
        }
    }
}

/// Renders the overall comparisons of all pairs on one axis.
fn confidence(weekly: &WeeklySummary) -> Markup {
    html! {
        @if let Some(chart) = week_charts::overall(weekly) {
            section class="certainty" aria-labelledby="confidence-heading" {
                h2 id="confidence-heading" { "Confidence" }
                (render::html::figure(&chart))
            }
        }
    }
}
