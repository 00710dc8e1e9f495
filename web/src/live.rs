//! The live parts of pages, rendered both for a new page and for the event stream of open ones.

use longhaul_service::status::{LiveStatus, State, Status};
use longhaul_view::charts::SeriesStyles;
use longhaul_view::render::html::{line, render};
use longhaul_view::screens::{live, status, targets};
use longhaul_view::{Document, time};
use maud::{Markup, html};

use crate::cache::local_zone;

/// State of the service at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveState {
    /// Status of the service; `None` while it starts.
    pub status: Option<Status>,
    /// The round in progress; `None` if there is none.
    pub live: Option<LiveStatus>,
}

impl LiveState {
    /// Renders the activity of the service in a few words.
    pub fn state_html(&self) -> Markup {
        let Some(status) = &self.status else { return html! { "starting" } };
        let class = match status.state {
            State::Measuring => "busy",
            State::Waiting | State::Idle => "idle",
            State::Paused { .. } | State::SafeMode | State::Stopping => "paused",
        };
        let next = status.next_round_us.filter(|_| matches!(status.state, State::Waiting));
        html! {
            span class={ "dot " (class) } aria-hidden="true" {}
            (status::state(status, &local_zone()))
            @if let Some(next) = next { ": " (time::timestamp(next, &local_zone())) }
        }
    }

    /// Renders the problems that the service knows of: ongoing stalls, targets that cannot be used, and its own
    /// problems.
    pub fn problems_html(&self) -> Markup {
        let Some(status) = &self.status else { return Markup::default() };
        let (zone, styles) = (local_zone(), SeriesStyles::default());
        html! {
            @for text in status::all_problems(status, &zone) { li { (line(&text, &styles)) } }
        }
    }

    /// Renders each target with its state.
    pub fn targets_html(&self) -> Markup {
        let Some(status) = &self.status else { return Markup::default() };
        page_part(&targets::targets(status, &local_zone()))
    }

    /// Renders the round in progress; without one, the last and the next round.
    pub fn round_html(&self) -> Markup {
        match (&self.live, &self.status) {
            (Some(live), _) => round_in_progress(live),
            (None, Some(status)) => page_part(&live::idle(status, &local_zone())),
            (None, None) => html! { p { "The service is starting." } },
        }
    }
}

fn round_in_progress(live: &LiveStatus) -> Markup {
    let (done, all) = live.runs;
    html! {
        p { (line(&live::progress(live), &SeriesStyles::default())) }
        progress max=(all.max(1)) value=(done) aria-label="Completed runs of this round" {}
        (page_part(&live::run(live)))
    }
}

/// Renders a document without the marks of targets.
pub fn page_part(document: &Document) -> Markup {
    render(document, &SeriesStyles::default())
}
