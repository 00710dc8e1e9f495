//! The first screen: which one, how sure, what is wrong.

use longhaul_measure::summary::{Comparison, PairSummary, Weekly};
use maud::{Markup, html};

use super::parts::figure;
use crate::charts::{Fill, Forest, ForestGroup, ForestRow, Look, Looks};
use crate::findings::{Finding, Weight, all_is_well, findings};
use crate::words;

/// The first screen.
pub fn first_screen(weekly: &Weekly, looks: &Looks) -> Markup {
    let overview = overview(weekly, looks);
    html! {
        section id="answer" class="answer" aria-labelledby="answer-heading" {
            h1 id="answer-heading" { (words::ranking(weekly)) }
            @if !weekly.pairs.is_empty() { p class="muted" { (words::how_sure()) } }
            (targets(weekly, looks))
        }
        div class="first" {
            div { @for pair in &weekly.pairs { (card(pair, looks)) } }
            div class="aside" {
                section class="wrong" aria-labelledby="wrong-heading" {
                    h2 id="wrong-heading" { "What is wrong" }
                    (wrong(weekly))
                }
                @if !overview.groups.is_empty() {
                    section class="certainty" aria-labelledby="sure-heading" {
                        h2 id="sure-heading" { "How sure" }
                        (figure(&overview.draw(Forest::shared_scale([&overview])), &[]))
                    }
                }
            }
        }
    }
}

fn card(pair: &PairSummary, looks: &Looks) -> Markup {
    let fill = pair.headline.as_ref().map_or(Fill::Hollow, |headline| words::fill(headline.verdict));
    html! {
        article class={ "card " (fill.class()) "-card" } {
            h2 { (looks.key(&pair.a)) (pair.a) " and " (looks.key(&pair.b)) (pair.b)
                span class="state" { (words::state_of_pair(pair)) } }
            p class="said" { (words::headline(pair)) }
            @if let Some(minutes) = pair.minutes_a_week { p { (words::minutes(pair, &minutes)) } }
            p class="muted" { (pair.reliability_text) }
        }
    }
}

/// The targets with their marks and protocols.
pub fn targets(weekly: &Weekly, looks: &Looks) -> Markup {
    html! {
        ul class="targets" aria-label="Targets" {
            @for target in &weekly.targets {
                li {
                    (looks.key(&target.name)) strong { (target.name) } " "
                    (target.protocol.as_deref().unwrap_or("protocol not known"))
                    @if target.epochs > 1 { ", epoch " (target.epochs) }
                }
            }
        }
    }
}

/// What is wrong with the figures of a week.
pub fn wrong(weekly: &Weekly) -> Markup {
    let found = findings(weekly);
    html! {
        @if found.is_empty() { p { (all_is_well(weekly)) } }
        @else { ul { @for Finding { weight, text } in &found { (finding(*weight, text)) } } }
    }
}

fn finding(weight: Weight, text: &str) -> Markup {
    match weight {
        Weight::Serious => html! { li class="serious" { strong { "Failure: " } (text) } },
        Weight::Caveat => html! { li { (text) } },
    }
}

/// All headlines on one axis.
pub fn overview(weekly: &Weekly, looks: &Looks) -> Forest {
    let group = |pair: &PairSummary| {
        let headline = pair.headline.as_ref()?;
        Some(ForestGroup {
            left: pair.b.to_string(),
            right: pair.a.to_string(),
            rows: vec![row(headline, (words::state_of_pair(pair), looks))],
        })
    };
    Forest {
        id: "overview".to_owned(),
        title: "All tasks together, pair by pair".to_owned(),
        groups: weekly.pairs.iter().filter_map(group).collect(),
        threshold: weekly.premises.threshold,
    }
}

/// One comparison on a forest plot.
pub fn row(comparison: &Comparison, (label, looks): (String, &Looks)) -> ForestRow {
    ForestRow {
        label,
        ratio: comparison.ratio,
        said: words::state(comparison.verdict).to_owned(),
        look: comparison.winner().map_or(Look::NEUTRAL, |winner| looks.look(winner)),
        fill: words::fill(comparison.verdict),
    }
}
