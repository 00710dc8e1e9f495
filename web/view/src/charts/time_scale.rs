//! Time axis in the user's time zone.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};
use longhaul_model::{Event, TargetName, Timestamp};
use maud::{Markup, html};

use super::scale::Extent;
use super::svg::{Anchor, CHARACTER_WIDTH, line, point, text};
use crate::event_words::event_words;
use crate::time::{instant, zoned};
use longhaul_model::time::{DAY, HOUR};

/// Hours between two labels, for a short window.
const HOUR_STEPS: [u32; 5] = [1, 2, 3, 6, 12];
/// Days between two labels, for a long window.
const DAY_STEPS: [u32; 9] = [1, 2, 7, 14, 28, 56, 91, 182, 364];

/// Time axis of a window.
#[derive(Debug, Clone)]
pub struct TimeScale {
    /// Start and end of the window.
    pub span: (Timestamp, Timestamp),
    /// Time zone of the user.
    pub zone: TimeZone,
}

impl TimeScale {
    /// Returns the position of a time in the window, from 0 to 1; times outside are clamped.
    pub fn fraction(&self, at: Timestamp) -> f64 {
        let (from, to) = self.span;
        let length = to.since(from).as_micros().max(1);
        (at.since(from).as_micros() as f64 / length as f64).min(1.0)
    }

    /// Formats a time as local date and time.
    pub fn label(&self, at: Timestamp) -> String {
        self.local(at).map_or_else(
            || format!("{} µs since 1970", at.as_us()),
            |at| at.strftime("%Y-%m-%d %H:%M").to_string(),
        )
    }

    /// Formats the local day of a time in a few characters, for example `14 Nov`.
    pub fn day_label(&self, at: Timestamp) -> String {
        self.local(at).map_or_else(|| self.label(at), |at| at.strftime("%-d %b").to_string())
    }

    fn local(&self, at: Timestamp) -> Option<Zoned> {
        zoned(at, &self.zone)
    }

    /// Returns the times to label on the axis, with their labels: local hours or local days. `gap` is the minimum
    /// distance of two labels, as a share of the window.
    pub fn ticks(&self, gap: f64) -> Vec<(Timestamp, String)> {
        let length = self.span.1.since(self.span.0);
        let least = Duration::from_micros((gap * length.as_micros() as f64) as u64);
        let Some(midnight) = self.local(self.span.0).and_then(|at| at.start_of_day().ok()) else {
            return vec![];
        };
        if let Some(hours) = HOUR_STEPS.into_iter().find(|hours| *hours * HOUR >= least) {
            return self.ticks_every(
                &midnight,
                i64::from(hours).hours(),
                if hours < 12 { "%H:%M" } else { "%-d %b %H:%M" },
            );
        }
        let days = DAY_STEPS.into_iter().find(|days| *days * DAY >= least).unwrap_or(728);
        let monday = if days >= 7 { i64::from(midnight.weekday().to_monday_zero_offset()) } else { 0 };
        let first = midnight.checked_sub(monday.days()).unwrap_or(midnight);
        self.ticks_every(&first, i64::from(days).days(), if days >= 91 { "%b %Y" } else { "%-d %b" })
    }

    fn ticks_every(&self, first: &Zoned, step: jiff::Span, form: &str) -> Vec<(Timestamp, String)> {
        let mut found = vec![];
        let mut index = 0;
        while let Ok(at) = step.checked_mul(index).and_then(|by| first.checked_add(by)) {
            let time = instant(&at);
            if time >= self.span.1 || index > 2_000 {
                break;
            }
            if time >= self.span.0 {
                found.push((time, at.strftime(form).to_string()));
            }
            index += 1;
        }
        found
    }

    /// Draws the axis at height `y` (in lines), between two horizontal positions (in percent).
    pub fn draw(&self, Extent { from, to }: Extent, y: f64) -> Markup {
        let room = 9.0 * CHARACTER_WIDTH / (to - from);
        html! {
            @for (at, label) in self.ticks(room) {
                @let x = from + self.fraction(at) * (to - from);
                (line("one", point(x, y), point(x, y + 0.35)))
                (text(point(x, y + 1.5), Anchor::around(x, label.chars().count()), "quiet", &label))
            }
        }
    }
}

/// Returns all events on the machine or on one target in words, with their times, oldest first.
pub fn event_ticks(events: &[Event], name: &TargetName) -> Vec<(Timestamp, String)> {
    let concerns = |event: &&Event| event.target.as_ref().is_none_or(|target| target == name);
    events.iter().filter(concerns).map(|event| (event.at_us, event_words(event))).collect()
}
