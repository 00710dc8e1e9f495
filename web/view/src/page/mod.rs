//! Renders the weekly summary as a self-contained HTML page: no network, no scripts; charts and styles are embedded.

pub mod first_screen;
pub mod round_strips;
mod share_card;
pub mod task_bars;

use longhaul_analysis::summary::WeeklySummary;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::charts::{self, SeriesStyles};
use crate::document::Document;
use crate::screens::week::{self, WeekReport};
use crate::screens::words;
use crate::{Environment, redaction, render};
use first_screen::first_screen;
pub use share_card::share_card;

/// CSS of the page, without the CSS of the charts ([`charts::STYLE`]).
pub const STYLE: &str = include_str!("style.css");
/// Content security policy of the page. It forbids all network requests, so that opening the page discloses nothing.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Renders the page of a week.
pub fn html(weekly: &WeeklySummary, environment: &Environment) -> String {
    let weekly = &redaction::redact_week(weekly);
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let environment = &environment.anonymised();
    let report = WeekReport { environment: Some(environment), ..WeekReport::new(weekly) };
    let details = week::details(&report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&format!("longhaul, week {}", weekly.week)))
            body {
                a class="skip" href="#answer" { "Skip to the answer" }
                header { p class="product" { "longhaul" } p { "Week " (words::dates_and_scale(weekly)) } }
                main {
                    (first_screen(weekly, &styles))
                    (contents(&details))
                    (render::html::render(&details, &styles))
                }
                footer {
                    p {
                        "Created by longhaul " (environment.longhaul) ". This page loads no resources and runs no scripts. It does \
                         not name users, machines, servers or paths; target names are the ones that the user chose."
                    }
                }
            }
        }
    };
    charts::svg::strip_control_characters(&page.into_string())
}

/// Renders a document as a page of its own, without network and scripts.
pub fn document_page(title: &str, document: &Document) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                header { p class="product" { "longhaul" } p { (title) } }
                main { (contents(document)) (render::html::render(document, &SeriesStyles::default())) }
                footer { p { "This page loads no resources and runs no scripts." } }
            }
        }
    };
    charts::svg::strip_control_characters(&page.into_string())
}

/// Renders the head of a page without network and scripts.
fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta http-equiv="Content-Security-Policy" content=(CONTENT_SECURITY_POLICY);
            link rel="icon" href="data:,";
            title { (title) }
            style { (PreEscaped(charts::STYLE)) (PreEscaped(STYLE)) }
        }
    }
}

/// Renders the table of contents of a document.
pub fn contents(document: &Document) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul { @for section in document.sections() { li { a href={ "#" (section.id) } { (section.heading) } } } }
        }
    }
}
