//! Numbered ticks for events on time axes. The events themselves are listed below the chart.

use maud::{Markup, html};

use super::scale::Extent;
use super::svg::{Anchor, CHARACTER_WIDTH, line, point, text_with_gap};

/// Draws ticks at horizontal positions (in percent, ascending), numbered from 1, over this height. Ticks that are too close share a
/// label, for example `2–4`.
pub fn numbered_ticks(positions: &[f64], height: Extent) -> Markup {
    let numbered: Vec<(usize, f64)> =
        positions.iter().enumerate().map(|(index, x)| (index + 1, *x)).collect();
    html! {
        @for x in positions { (line("event", point(*x, height.from), point(*x, height.to))) }
        @for group in numbered.chunk_by(|a, b| b.1 - a.1 < 6.0 * CHARACTER_WIDTH) {
            (tick_label(group, height.to - 0.25))
        }
    }
}

/// Draws the label of a group of ticks: to the right of the last tick, or to the left of the first tick near the right
/// edge.
fn tick_label(group: &[(usize, f64)], y: f64) -> Markup {
    let ((first, from), (last, to)) = match group {
        [first, .., last] => (*first, *last),
        [only] => (*only, *only),
        [] => return Markup::default(),
    };
    let label = if first == last { first.to_string() } else { format!("{first}–{last}") };
    let (x, anchor) = if to < 88.0 { (to, Anchor::Start) } else { (from, Anchor::End) };
    text_with_gap(point(x, y), anchor, "strong", &label)
}
