//! The summary as one page that needs nothing else: no network, no script, its pictures and styles inside.

pub mod answer;
pub mod details;
pub mod pairs;
pub mod parts;

use longhaul_measure::summary::Weekly;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::charts::{self, Looks};
use crate::exchange::{Exchange, beside};
use crate::{Environment, method};
use parts::section;

/// How the page looks; the charts bring their own.
pub const STYLE: &str = include_str!("style.css");
/// Nothing may be loaded: whoever opens the page is not seen by anybody.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The page of a week.
pub fn html(weekly: &Weekly, environment: &Environment) -> String {
    html_beside(weekly, environment, &[])
}

/// The page of a week, and what others found.
pub fn html_beside(weekly: &Weekly, environment: &Environment, others: &[Exchange]) -> String {
    let looks = Looks::of(&weekly.targets);
    let environment = environment.anonymised();
    let title = format!("longhaul, week {}", weekly.week);
    let sections = sections(weekly, &environment, (&looks, others));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(charts::STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                a class="skip" href="#answer" { "To the answer" }
                (header(weekly))
                main {
                    (answer::first_screen(weekly, &looks))
                    nav aria-label="Contents" {
                        ul {
                            @for (id, heading, _) in &sections { li { a href={ "#" (id) } { (heading) } } }
                        }
                    }
                    @for (id, heading, body) in &sections { (section(id, heading, body)) }
                }
                footer {
                    p {
                        "Made by longhaul " (environment.longhaul) ". This page loads nothing and runs nothing. It names no \
                         person, machine, server or path; targets are called as the person called them."
                    }
                }
            }
        }
    };
    charts::svg::readable(&page.into_string())
}

/// A part of the page: what it is linked by, its heading, its body.
pub type Section = (&'static str, &'static str, Markup);

/// What follows the first screen. What has nothing to show is left out, but for what would be missed.
pub fn sections(
    weekly: &Weekly,
    environment: &Environment,
    (looks, others): (&Looks, &[Exchange]),
) -> Vec<Section> {
    let mut all: Vec<Section> = vec![];
    if !weekly.pairs.is_empty() {
        all.push(("pairs", "Pair by pair", pairs::pairs(weekly, looks)));
    }
    if !weekly.table.is_empty() {
        all.push(("times", "What each task took", details::times(weekly, looks)));
        all.push(("scores", "Three numbers, never one", details::scores(weekly)));
        all.push(("failures", "Failures and time waited", details::failures(weekly)));
    }
    if !others.is_empty() {
        all.push(("beside", "Beside others", beside::html(weekly, others)));
    }
    all.push(("journal", "Events of the week", details::journal(weekly)));
    all.push(("left-out", "What was left out, and why", details::left_out(weekly)));
    all.push(("method", "How it was measured and decided", method_of(weekly)));
    all.push(("environment", "Where the figures come from", details::environment(weekly, environment)));
    all
}

fn header(weekly: &Weekly) -> Markup {
    let scale = weekly.scale.map_or(String::new(), |scale| format!(" · {} scale", scale.name()));
    html! {
        header {
            p class="product" { "longhaul" }
            p { "Week " (weekly.week) ", " (weekly.first_day) " to " (weekly.last_day) " · " (format!("{:.0}", weekly.hours)) " hours" (scale) }
        }
    }
}

fn method_of(weekly: &Weekly) -> Markup {
    html! {
        ul { @for line in method::in_three_lines(weekly) { li { (line) } } }
        h3 { "What the figures do not show" }
        ul { @for line in method::LIMITS { li { (line) } } }
    }
}
