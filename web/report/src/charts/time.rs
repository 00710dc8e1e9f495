//! Instants on an axis, in the person's time zone.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use maud::{Markup, html};

use super::svg::{Anchor, CHARACTER, line, text};

/// Hours between two labels, where a window is short.
const HOURS: [i64; 5] = [1, 2, 3, 6, 12];
/// Days between two labels.
const DAYS: [i64; 9] = [1, 2, 7, 14, 28, 56, 91, 182, 364];
const HOUR_US: i64 = 3_600_000_000;

/// A window of time.
#[derive(Debug, Clone)]
pub struct TimeScale {
    /// Its begin and its end, in microseconds since 1970 UTC.
    pub span_us: (i64, i64),
    /// The person's time zone.
    pub zone: TimeZone,
}

impl TimeScale {
    /// Where an instant lies, from 0 to 1.
    pub fn share(&self, at_us: i64) -> f64 {
        let (from, to) = self.span_us;
        ((at_us - from) as f64 / (to - from).max(1) as f64).clamp(0.0, 1.0)
    }

    /// Local date and time of an instant.
    pub fn label(&self, at_us: i64) -> String {
        self.local(at_us)
            .map_or_else(|| format!("{at_us} µs since 1970"), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
    }

    fn local(&self, at_us: i64) -> Option<Zoned> {
        Some(Timestamp::from_microsecond(at_us).ok()?.to_zoned(self.zone.clone()))
    }

    /// Instants to write on the axis with their labels: local hours or local days, `gap` apart as a share of the window.
    pub fn ticks(&self, gap: f64) -> Vec<(i64, String)> {
        let least_us = (gap * (self.span_us.1 - self.span_us.0) as f64) as i64;
        let Some(midnight) = self.local(self.span_us.0).and_then(|at| at.start_of_day().ok()) else {
            return vec![];
        };
        if let Some(hours) = HOURS.into_iter().find(|hours| hours * HOUR_US >= least_us) {
            return self.every(&midnight, (hours.hours(), if hours < 12 { "%H:%M" } else { "%-d %b %H:%M" }));
        }
        let days = DAYS.into_iter().find(|days| days * 24 * HOUR_US >= least_us).unwrap_or(728);
        let monday = if days >= 7 { i64::from(midnight.weekday().to_monday_zero_offset()) } else { 0 };
        let first = midnight.checked_sub(monday.days()).unwrap_or(midnight);
        self.every(&first, (days.days(), if days >= 91 { "%b %Y" } else { "%-d %b" }))
    }

    fn every(&self, first: &Zoned, (step, form): (jiff::Span, &str)) -> Vec<(i64, String)> {
        let mut found = vec![];
        let mut place = 0;
        while let Ok(at) = step.checked_mul(place).and_then(|by| first.checked_add(by)) {
            let at_us = at.timestamp().as_microsecond();
            if at_us >= self.span_us.1 || place > 2_000 {
                break;
            }
            if at_us >= self.span_us.0 {
                found.push((at_us, at.strftime(form).to_string()));
            }
            place += 1;
        }
        found
    }

    /// Draws the axis below a plot.
    pub fn draw(&self, (from, to): (f64, f64), y: f64) -> Markup {
        let room = 9.0 * CHARACTER / (to - from);
        html! {
            @for (at_us, label) in self.ticks(room) {
                @let x = from + self.share(at_us) * (to - from);
                (line("one", (x, y), (x, y + 0.35)))
                (text((x, y + 1.5), Anchor::around(x, label.chars().count()), "quiet", &label))
            }
        }
    }
}
