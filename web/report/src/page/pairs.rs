//! Pair by pair: every task on one axis, day by day, and in words.

use longhaul_measure::summary::{CONFOUNDED, JournalEntry, PairSummary, Weekly};
use maud::{Markup, html};

use super::answer::row;
use super::parts::figure;
use crate::charts::{Days, Forest, ForestGroup, LogScale, Looks};
use crate::words;

/// All pairs. Their plots share their axes: equal lengths mean equal ratios.
pub fn pairs(weekly: &Weekly, looks: &Looks) -> Markup {
    let forests: Vec<Forest> = weekly.pairs.iter().map(|pair| forest(pair, weekly, looks)).collect();
    let days: Vec<Option<Days>> =
        weekly.pairs.iter().map(|pair| days(pair, weekly, &weekly.events)).collect();
    let scale = Forest::shared_scale(&forests);
    let day_scale = Days::shared_scale(days.iter().flatten());
    html! {
        p { "All pairs are drawn on the same axes. A filled mark is decided, in the colour and shape of whoever is called \
             better, grey if nobody is; a hollow one is not decided. Within the shaded band no difference matters. Every line \
             is an interval that holds however often somebody looks." }
        @for (pair, (forest, days)) in weekly.pairs.iter().zip(forests.iter().zip(&days)) {
            (block(pair, looks, (forest, scale), days.as_ref().map(|days| (days, day_scale))))
        }
    }
}

fn block(
    pair: &PairSummary,
    looks: &Looks,
    (forest, scale): (&Forest, LogScale),
    days: Option<(&Days, LogScale)>,
) -> Markup {
    html! {
        article class="pair" {
            h3 { (looks.key(&pair.a)) (pair.a) " and " (looks.key(&pair.b)) (pair.b) }
            div class="two" {
                @if forest.groups.iter().any(|group| !group.rows.is_empty()) { (figure(&forest.draw(scale), &[])) }
                div {
                    @if let Some((days, scale)) = days { (figure(&days.draw(scale), &days.notes())) }
                    (in_words(pair))
                }
            }
        }
    }
}

fn in_words(pair: &PairSummary) -> Markup {
    html! {
        @if let Some(headline) = &pair.headline { p class="muted" { "All tasks together rest on " (words::basis(headline)) "." } }
        @for part in &pair.by_presence { p { (part.text) } }
        details {
            summary { "Task by task, in words" }
            ul class="tasks" {
                @for task in &pair.tasks {
                    li { (task.text) " " span class="muted" { "Rounds won: " (words::rounds_won(task)) "." } }
                }
                @for weeks in &pair.sequential { li { (weeks.text(pair.a.as_str(), pair.b.as_str())) } }
            }
            @if !pair.sequential.is_empty() { p class="warning" { (CONFOUNDED) } }
        }
    }
}

/// Every task of a pair on one axis.
pub fn forest(pair: &PairSummary, weekly: &Weekly, looks: &Looks) -> Forest {
    let comparisons = pair.headline.iter().chain(&pair.tasks);
    let rows = comparisons.map(|task| row(task, (words::subject(&task.subject), looks)));
    Forest {
        id: format!("tasks-{}-{}", pair.a, pair.b),
        title: format!("{} and {}, task by task", pair.a, pair.b),
        groups: vec![ForestGroup {
            left: pair.b.to_string(),
            right: pair.a.to_string(),
            rows: rows.collect(),
        }],
        threshold: weekly.premises.threshold,
    }
}

/// A pair day by day with what happened, as far as it concerns the pair; `None` without a headline.
pub fn days(pair: &PairSummary, weekly: &Weekly, journal: &[JournalEntry]) -> Option<Days> {
    let concerns = |target: &longhaul_measure::model::TargetName| *target == pair.a || *target == pair.b;
    let events: Vec<_> = journal
        .iter()
        .filter(|event| event.target.as_ref().is_none_or(concerns))
        .map(crate::private::event)
        .collect();
    Days::of(pair.headline.as_ref()?, weekly.premises.threshold, &events)
}
