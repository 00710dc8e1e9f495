//! The query of the latency page: a window of time, a probe operation and a load filter.

use std::time::Duration;

use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{LoadContext, ProbeKind, Resolution, Timestamp};
use longhaul_view::screens::latency_charts::LatencyWindow;
use longhaul_view::time::local_midnight;
use longhaul_view::units::decimal;
use serde::Deserialize;

use super::PageError;
use crate::cache::local_zone;

/// The shortest window.
const MIN_WINDOW: Duration = HOUR;
/// Longest window that is drawn in hourly steps, in days. In a longer one, the daily cycle would hide the trend.
const MAX_HOURLY_DAYS: u32 = 14;

/// Raw query parameters of the latency page; an empty text selects the default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyParams {
    #[serde(default)]
    days: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    during: String,
    #[serde(default)]
    until: String,
}

/// Validated query of the latency page.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyQuery {
    /// Length of the window.
    pub length: Duration,
    /// Operation of the probe.
    pub kind: ProbeKind,
    /// Load filter: samples during rounds, or while idle; `None` for both.
    pub during: Option<LoadContext>,
    /// End of the window.
    pub until: Timestamp,
    now: Timestamp,
}

impl LatencyQuery {
    /// Parses the query of a URL. A window that is too short, too long or ends in the future is clamped.
    ///
    /// # Errors
    ///
    /// If a number, an operation or the load filter is invalid.
    pub fn parse(params: &LatencyParams, now: Timestamp) -> Result<Self, PageError> {
        let days =
            parse_number(&params.days, 7.0).ok_or_else(|| bad_request("number of days", &params.days))?;
        let until_us = parse_number(&params.until, now.as_us() as f64)
            .ok_or_else(|| bad_request("time in microseconds", &params.until))?;
        Ok(Self {
            length: Duration::from_micros((days * DAY.as_micros() as f64) as u64)
                .clamp(MIN_WINDOW, Resolution::HalfDay.days_kept() * DAY),
            kind: parse_choice(&params.kind, ProbeKind::from_name)
                .map_err(|name| bad_request("probe operation", name))?
                .unwrap_or(ProbeKind::Read),
            during: parse_choice(&params.during, LoadContext::from_name)
                .map_err(|name| bad_request("load filter", name))?,
            until: Timestamp::from_us(until_us as i64).clamp(Timestamp::UNIX_EPOCH, now),
            now,
        })
    }

    /// Returns the start and end of the window. If it is drawn day by day, it starts at a local midnight.
    pub fn span(&self) -> (Timestamp, Timestamp) {
        let from = self.until - self.length;
        (if self.is_daily() { local_midnight(from, &local_zone()) } else { from }, self.until)
    }

    /// Returns whether the window is drawn in daily steps.
    fn is_daily(&self) -> bool {
        self.length > MAX_HOURLY_DAYS * DAY
    }

    /// Returns the step that is read from the database: the finest one still stored for this window.
    pub fn step(&self) -> Resolution {
        Resolution::for_past_window(self.length, self.now.since(self.until - self.length))
    }

    /// Returns the window as it is drawn.
    pub fn window(&self) -> LatencyWindow {
        LatencyWindow {
            span: self.span(),
            step: if self.is_daily() { DAY } else { self.step().length() },
            kind: self.kind,
            during: self.during,
            zone: local_zone(),
        }
    }

    /// Returns the length of the window in days, as a URL contains it.
    pub fn days(&self) -> String {
        decimal(self.length.div_duration_f64(DAY), 4)
    }

    /// Returns the query string of a URL for a window up to now, with the same operation and load filter.
    pub fn to_newest(&self, length: Duration) -> String {
        let days = Self { length, ..self.clone() }.days();
        let during = self.during_parameter();
        format!("?days={days}&kind={}{during}", self.kind.name())
    }

    /// Returns true if the window has this length, to the day, and goes up to now.
    pub fn shows_newest(&self, length: Duration) -> bool {
        self.until == self.now && self.length.as_secs() / DAY.as_secs() == length.as_secs() / DAY.as_secs()
    }

    fn during_parameter(&self) -> String {
        self.during.map_or(String::new(), |context| format!("&during={}", context.name()))
    }

    /// Returns the query string of a URL for another window with the same operation and load filter.
    pub fn to_query_string(&self, length: Duration, until: Timestamp) -> String {
        let other = Self { length, ..self.clone() };
        let during = self.during_parameter();
        let (days, until_us) = (other.days(), until.as_us());
        format!("?days={days}&kind={}{during}&until={until_us}", self.kind.name())
    }
}

fn bad_request(what: &str, text: &str) -> PageError {
    PageError::BadRequest(format!("`{text}` is not a valid {what}."))
}

fn parse_number(text: &str, default: f64) -> Option<f64> {
    if text.is_empty() { Some(default) } else { text.parse().ok().filter(|number: &f64| number.is_finite()) }
}

/// Parses an optional name: `None` for an empty text, the name itself as error if it is unknown.
fn parse_choice<T>(name: &str, from_name: impl Fn(&str) -> Option<T>) -> Result<Option<T>, &str> {
    if name.is_empty() { Ok(None) } else { from_name(name).map(Some).ok_or(name) }
}
