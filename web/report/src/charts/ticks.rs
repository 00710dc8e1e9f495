//! Ticks for what happened, on every axis of time: numbers in the picture, words in the list below it.

use maud::{Markup, html};

use super::svg::{Anchor, CHARACTER, line, text_beside};

/// Ticks at places across, in order, with their numbers. Neighbours share a label: `2–4`.
pub fn numbered(places: &[f64], (top, bottom): (f64, f64)) -> Markup {
    let numbered: Vec<(usize, f64)> = places.iter().enumerate().map(|(place, x)| (place + 1, *x)).collect();
    html! {
        @for x in places { (line("event", (*x, top), (*x, bottom))) }
        @for group in numbered.chunk_by(|a, b| b.1 - a.1 < 6.0 * CHARACTER) {
            (numbers(group, bottom - 0.25))
        }
    }
}

/// The numbers of neighbouring ticks, beside the last of them or, at the right edge, before the first.
fn numbers(group: &[(usize, f64)], y: f64) -> Markup {
    let ((first, from), (last, to)) = match group {
        [first, .., last] => (*first, *last),
        [only] => (*only, *only),
        [] => return Markup::default(),
    };
    let words = if first == last { first.to_string() } else { format!("{first}–{last}") };
    let (x, anchor) = if to < 88.0 { (to, Anchor::Start) } else { (from, Anchor::End) };
    text_beside((x, y), anchor, "strong", &words)
}
