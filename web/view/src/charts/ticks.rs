//! Ticks for events on time axes, in a lane of their own above the plot, so that they cover no mark.

use maud::{Markup, html};

use super::scale::Extent;
use super::svg::{Anchor, CHARACTER_WIDTH, line, point, text};

/// Maximum number of events that have a number. If there are more, only their ticks are drawn, and the reader is referred to the
/// event log.
pub const MAX_LISTED_EVENTS: usize = 8;

/// An event on a time axis.
#[derive(Debug, Clone, PartialEq)]
pub struct EventMark {
    /// Horizontal position in percent of the width.
    pub x: f64,
    /// The event in words, with its day.
    pub words: String,
}

/// Draws events, in ascending order of their positions, over this height. A single event is named if there is room; several have
/// numbers, which [`event_notes`] explains. Ticks that are too close share a label, for example `2–4`.
pub fn event_lane(events: &[EventMark], height: Extent) -> Markup {
    let y = height.to - 0.15;
    let numbered: Vec<(usize, f64)> =
        events.iter().enumerate().map(|(index, event)| (index + 1, event.x)).collect();
    html! {
        @for event in events { (line("event", point(event.x, height.from), point(event.x, height.to))) }
        @match events {
            [only] if has_room(only) => { (text(point(only.x, y), side(only.x), "quiet", &only.words)) }
            _ if events.len() > MAX_LISTED_EVENTS => {}
            _ => {
                @for group in numbered.chunk_by(|a, b| b.1 - a.1 < 6.0 * CHARACTER_WIDTH) { (tick_label(group, y)) }
            }
        }
    }
}

/// Returns the notes on the events of a lane, with their numbers; none if the lane names them.
pub fn event_notes(events: &[EventMark]) -> Vec<String> {
    match events {
        [only] if has_room(only) => vec![],
        many if many.len() > MAX_LISTED_EVENTS => vec![format!("{} events: see the event log", many.len())],
        few => {
            few.iter().enumerate().map(|(index, event)| format!("{} {}", index + 1, event.words)).collect()
        }
    }
}

/// Returns true if the words fit next to the tick, also on the narrowest page.
fn has_room(event: &EventMark) -> bool {
    let room = if event.x < 50.0 { 98.0 - event.x } else { event.x - 2.0 };
    (event.words.chars().count() + 1) as f64 * CHARACTER_WIDTH <= room
}

const fn side(x: f64) -> Anchor {
    if x < 50.0 { Anchor::After } else { Anchor::Before }
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
    let (x, anchor) = if to < 88.0 { (to, Anchor::After) } else { (from, Anchor::Before) };
    text(point(x, y), anchor, "strong", &label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(x: f64, words: &str) -> EventMark {
        EventMark { x, words: words.to_owned() }
    }

    #[test]
    fn single_event_is_named_at_its_tick() {
        let lane = [event(30.0, "macOS 26.1 installed, 14 Nov")];
        assert!(
            event_lane(&lane, Extent { from: 1.0, to: 2.0 })
                .into_string()
                .contains("macOS 26.1 installed, 14 Nov")
        );
        assert_eq!(event_notes(&lane), [] as [&str; 0]);
        let narrow = [event(50.0, "a very long name of an event, 14 Nov")];
        assert_eq!(event_notes(&narrow), ["1 a very long name of an event, 14 Nov"]);
    }

    #[test]
    fn many_events_are_only_counted() {
        let lane: Vec<EventMark> =
            (0..9).map(|place| event(f64::from(place) * 10.0, "woke up, 1 Nov")).collect();
        assert_eq!(event_notes(&lane), ["9 events: see the event log"]);
        assert!(!event_lane(&lane, Extent { from: 1.0, to: 2.0 }).into_string().contains("<text"));
    }
}
