//! Strips of marks: how the last rounds went on each target.

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{RecentRounds, RoundState, TargetLine};
use maud::{Markup, html};

use crate::charts::SeriesStyles;
use crate::render;
use crate::screens::round_strips::{
    ROUNDS_SHOWN, STATES, counts, description, explanation, started, table, word,
};

/// Renders a strip for each target; a sentence if there was no round.
pub fn round_strips(
    all: &[RecentRounds<'_>],
    targets: &[TargetLine],
    styles: &SeriesStyles,
    zone: &TimeZone,
) -> Markup {
    let of_target = |target: &TargetLine| all.iter().find(|rounds| *rounds.target == target.name);
    html! {
        @if all.iter().all(|rounds| rounds.rounds.is_empty()) { p { "No round has ended yet." } }
        @else {
            ul class="strips" role="list" {
                @for (target, rounds) in targets.iter().filter_map(|target| Some((target, of_target(target)?))) {
                    li {
                        span class="strip-name" { (styles.legend_mark(&target.name)) strong { (target.name) } " "
                            span class="muted" { (target.protocol.as_deref().unwrap_or("protocol not known")) } }
                        span class="muted strip-counts" { (counts(rounds)) }
                        (strip(rounds, zone))
                    }
                }
            }
            (legend())
            details {
                summary { "Description and data" }
                p { (explanation()) }
                (render::html::table(&table(all, zone), styles))
            }
        }
    }
}

/// Draws the rounds from left to right. Height, form and colour show the state.
fn strip(rounds: &RecentRounds<'_>, zone: &TimeZone) -> Markup {
    // The newest round is always at the right edge.
    let first = ROUNDS_SHOWN.saturating_sub(rounds.rounds.len());
    html! {
        svg class="strip" role="img" aria-label=(description(rounds)) viewBox={ "0 0 " (ROUNDS_SHOWN) " 10" }
            preserveAspectRatio="none" tabindex="0" {
            @for (place, (round, state)) in rounds.rounds.iter().enumerate() {
                @if let Some(outline) = outline(*state) {
                    path class={ "r-" (word(*state)) } d={ "M" (first + place) (outline) } {
                        title { (started(round, zone)) ": " (word(*state)) }
                    }
                }
            }
        }
    }
}

/// Returns the outline of a mark from its left edge, one unit wide and ten units high; `None`: there is a gap instead.
const fn outline(state: RoundState) -> Option<&'static str> {
    Some(match state {
        RoundState::Ok => " 4h.8v6h-.8z",
        RoundState::Slow => " 0h.8v10h-.8z",
        RoundState::Failed => " 0l.8 10m0-10l-.8 10",
        RoundState::Missed => " 8.5h.8v1.5h-.8z",
        RoundState::Absent => return None,
    })
}

fn legend() -> Markup {
    html! {
        p class="muted legend" {
            "Oldest left, newest right. "
            @for (state, word) in STATES {
                span class="legend-entry" {
                    svg class="strip-key" viewBox="0 0 1 10" preserveAspectRatio="none" aria-hidden="true" {
                        path class={ "r-" (word) } d={ "M.1" (outline(state).unwrap_or_default()) } {}
                    }
                    (word)
                } " "
            }
        }
    }
}
