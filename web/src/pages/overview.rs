//! The first screen: which one, how sure, what is wrong; then what goes on now, and every task.

use axum::extract::State;
use axum::response::Response;
use longhaul_measure::summary::{PairSummary, Scores, Weekly};
use longhaul_report::charts::{Fill, Forest, Looks};
use longhaul_report::page::{
    answer, details, pairs,
    parts::{figure, section},
};
use longhaul_report::words;
use maud::{Markup, html};

use super::{Now, Place, framed};
use crate::face::Face;

/// The page.
pub async fn overview(State(face): State<Face>) -> Response {
    let now = face.now();
    framed(face, Place::Overview, move |book| {
        let newest = book.newest()?;
        let weekly = book.weekly(newest)?;
        Ok(body(&weekly, &now))
    })
    .await
}

fn body(weekly: &Weekly, now: &Now) -> Markup {
    let looks = Looks::of(&weekly.targets);
    html! {
        (answered(weekly, &looks))
        div class="first" {
            div {
                @for pair in &weekly.pairs { (card(pair, &looks)) }
                section class="now" aria-labelledby="now-heading" {
                    h2 id="now-heading" { "Now" }
                    div data-live="round" { (now.round()) }
                }
            }
            div class="aside" {
                section class="wrong" aria-labelledby="wrong-heading" {
                    h2 id="wrong-heading" { "What is wrong" }
                    ul class="now-wrong" role="status" data-live="troubles" { (now.troubles()) }
                    (answer::wrong(weekly))
                }
                (certainty(weekly, &looks))
            }
        }
        (scores(weekly, &looks))
        (tasks(weekly, &looks))
    }
}

fn answered(weekly: &Weekly, looks: &Looks) -> Markup {
    html! {
        section class="answer" aria-labelledby="answer" {
            h1 id="answer" { (words::ranking(weekly)) }
            p class="muted" {
                @if !weekly.pairs.is_empty() { (words::how_sure()) " " }
                "Everything up to the end of " a href={ "/weeks/" (weekly.week) } { "week " (weekly.week) } "."
            }
            (answer::targets(weekly, looks))
        }
    }
}

/// The answer of a pair in a sentence; what it costs and how often each fails a touch away.
fn card(pair: &PairSummary, looks: &Looks) -> Markup {
    let fill = pair.headline.as_ref().map_or(Fill::Hollow, |headline| words::fill(headline.verdict));
    let needed = pair.headline.as_ref().and_then(|headline| headline.days_still_needed);
    html! {
        article class={ "card " (fill.class()) "-card" } {
            h2 { (looks.key(&pair.a)) (pair.a) " and " (looks.key(&pair.b)) (pair.b)
                span class="state" { (words::state_of_pair(pair)) } }
            p class="said" { (words::headline(pair)) }
            @if let Some(days) = needed { p class="muted" { "Still needed: about " (days) @if days == 1 { " day." } @else { " days." } } }
            details {
                summary { "What it costs, and failures" }
                @if let Some(minutes) = pair.minutes_a_week { p { (words::minutes(pair, &minutes)) } }
                p { (pair.reliability_text) }
            }
        }
    }
}

/// A card for each share: three numbers, rounds, and the time that was waited in vain.
fn scores(weekly: &Weekly, looks: &Looks) -> Markup {
    html! {
        div class="scores" {
            @for scores in &weekly.scores { (score(scores, weekly, looks)) }
        }
    }
}

fn score(scores: &Scores, weekly: &Weekly, looks: &Looks) -> Markup {
    let failures = weekly.failures.iter().find(|failures| failures.target == scores.target);
    let protocol = weekly.targets.iter().find(|target| target.name == scores.target);
    let protocol = protocol.and_then(|target| target.protocol.as_deref()).unwrap_or("protocol not known");
    html! {
        article class="score" {
            h2 { (looks.key(&scores.target)) (scores.target) " " span class="muted" { (protocol) } }
            dl {
                dt { "Speed" } dd { (words::speed(scores)) }
                dt { "Smoothness" } dd { (words::share(scores.smoothness)) }
                dt { "Reliability" } dd { (words::share(scores.reliability)) }
                @if let Some(failures) = failures {
                    dt { "Rounds" } dd { (failures.rounds) ", of which " (failures.failed_rounds) " failed" }
                    dt { "Hung" } dd { (words::waited(failures.hung_seconds)) }
                }
            }
        }
    }
}

fn certainty(weekly: &Weekly, looks: &Looks) -> Markup {
    let overview = answer::overview(weekly, looks);
    html! {
        @if !overview.groups.is_empty() {
            section class="certainty" aria-labelledby="sure-heading" {
                h2 id="sure-heading" { "How sure" }
                (figure(&overview.draw(Forest::shared_scale([&overview])), &[]))
            }
        }
    }
}

/// Every task of every pair, on one axis.
fn tasks(weekly: &Weekly, looks: &Looks) -> Markup {
    let forests: Vec<Forest> = weekly.pairs.iter().map(|pair| pairs::forest(pair, weekly, looks)).collect();
    let scale = Forest::shared_scale(&forests);
    let drawn = forests.iter().filter(|forest| forest.groups.iter().any(|group| !group.rows.is_empty()));
    html! {
        @if !forests.is_empty() {
            (section("tasks", "Task by task", &html! {
                p { "All pairs on one logarithmic axis. A filled mark is decided, a hollow one is not; within the shaded band no \
                     difference matters. Every line is an interval that holds however often somebody looks." }
                div class="many" { @for forest in drawn { (figure(&forest.draw(scale), &[])) } }
            }))
        }
        (section("failures", "Failures and time waited", &details::failures(weekly)))
    }
}
