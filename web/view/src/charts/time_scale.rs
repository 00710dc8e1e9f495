//! Time axis in the user's time zone.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use longhaul_model::{Event, TargetName};
use maud::{Markup, html};

use super::scale::Extent;
use super::svg::{Anchor, CHARACTER_WIDTH, line, point, text};
use longhaul_model::time::{DAY_US, HOUR_US};

/// Hours between two labels, for a short window.
const HOUR_STEPS: [i64; 5] = [1, 2, 3, 6, 12];
/// Days between two labels, for a long window.
const DAY_STEPS: [i64; 9] = [1, 2, 7, 14, 28, 56, 91, 182, 364];

/// Time axis of a window.
#[derive(Debug, Clone)]
pub struct TimeScale {
    /// Start and end of the window, in microseconds since 1970 UTC.
    pub span_us: (i64, i64),
    /// Time zone of the user.
    pub zone: TimeZone,
}

impl TimeScale {
    /// Returns the position of a time in the window, from 0 to 1; times outside are clamped.
    pub fn fraction(&self, at_us: i64) -> f64 {
        let (from, to) = self.span_us;
        ((at_us - from) as f64 / (to - from).max(1) as f64).clamp(0.0, 1.0)
    }

    /// Formats a time as local date and time.
    pub fn label(&self, at_us: i64) -> String {
        self.local(at_us)
            .map_or_else(|| format!("{at_us} µs since 1970"), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
    }

    fn local(&self, at_us: i64) -> Option<Zoned> {
        Some(Timestamp::from_microsecond(at_us).ok()?.to_zoned(self.zone.clone()))
    }

    /// Returns the times to label on the axis, with their labels: local hours or local days. `gap` is the minimum
    /// distance of two labels, as a share of the window.
    pub fn ticks(&self, gap: f64) -> Vec<(i64, String)> {
        let least_us = (gap * (self.span_us.1 - self.span_us.0) as f64) as i64;
        let Some(midnight) = self.local(self.span_us.0).and_then(|at| at.start_of_day().ok()) else {
            return vec![];
        };
        if let Some(hours) = HOUR_STEPS.into_iter().find(|hours| hours * HOUR_US >= least_us) {
            return self.ticks_every(
                &midnight,
                hours.hours(),
                if hours < 12 { "%H:%M" } else { "%-d %b %H:%M" },
            );
        }
        let days = DAY_STEPS.into_iter().find(|days| days * DAY_US >= least_us).unwrap_or(728);
        let monday = if days >= 7 { i64::from(midnight.weekday().to_monday_zero_offset()) } else { 0 };
        let first = midnight.checked_sub(monday.days()).unwrap_or(midnight);
        self.ticks_every(&first, days.days(), if days >= 91 { "%b %Y" } else { "%-d %b" })
    }

    fn ticks_every(&self, first: &Zoned, step: jiff::Span, form: &str) -> Vec<(i64, String)> {
        let mut found = vec![];
        let mut index = 0;
        while let Ok(at) = step.checked_mul(index).and_then(|by| first.checked_add(by)) {
            let at_us = at.timestamp().as_microsecond();
            if at_us >= self.span_us.1 || index > 2_000 {
                break;
            }
            if at_us >= self.span_us.0 {
                found.push((at_us, at.strftime(form).to_string()));
            }
            index += 1;
        }
        found
    }

    /// Draws the axis at height `y` (in lines), between two horizontal positions (in percent).
    pub fn draw(&self, Extent { from, to }: Extent, y: f64) -> Markup {
        let room = 9.0 * CHARACTER_WIDTH / (to - from);
        html! {
            @for (at_us, label) in self.ticks(room) {
                @let x = from + self.fraction(at_us) * (to - from);
                (line("one", point(x, y), point(x, y + 0.35)))
                (text(point(x, y + 1.5), Anchor::around(x, label.chars().count()), "quiet", &label))
            }
        }
    }
}

/// Returns time and kind of all events on the machine or on one target, oldest first, as ticks for a time axis.
pub fn event_ticks(events: &[Event], name: &TargetName) -> Vec<(i64, String)> {
    let concerns = |event: &&Event| event.target.as_ref().is_none_or(|target| target == name);
    events.iter().filter(concerns).map(|event| (event.at_us, event.kind.clone())).collect()
}
