//! Which time of the light probe is meant, and which of its questions.

use longhaul_measure::model::{Beside, ProbeKind, ProbeStep, Step};
use longhaul_report::units::plain;
use serde::Deserialize;

use super::Trouble;
use super::smoke::midnight;
use crate::shelf::zone;

pub const DAY_US: i64 = 86_400_000_000;
/// The shortest window.
const LEAST_US: i64 = 3_600_000_000;
/// A longer window is drawn day by day: hours would be a comb.
const MOST_DAYS_IN_HOURS: i64 = 14;

/// What is asked; an empty text is the default.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Asked {
    #[serde(default)]
    days: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    beside: String,
    #[serde(default)]
    until: String,
}

/// What is meant.
#[derive(Debug, Clone, PartialEq)]
pub struct Meant {
    /// How long the window is, in microseconds.
    pub length_us: i64,
    /// The question.
    pub kind: ProbeKind,
    /// What went on beside it; `None`: whatever did.
    pub beside: Option<Beside>,
    /// The end of the window, in microseconds since 1970 UTC.
    pub until_us: i64,
    now_us: i64,
}

impl Meant {
    /// The window and the question of an address: what is too short, too long or not yet there is brought within bounds.
    ///
    /// # Errors
    ///
    /// If something has no meaning.
    pub fn of(asked: &Asked, now_us: i64) -> Result<Self, Trouble> {
        let days = number(&asked.days, 7.0).ok_or_else(|| wrong("number of days", &asked.days))?;
        let until_us = number(&asked.until, now_us as f64)
            .ok_or_else(|| wrong("instant in microseconds", &asked.until))?;
        Ok(Self {
            length_us: ((days * DAY_US as f64) as i64).clamp(LEAST_US, Step::HalfDay.days_kept() * DAY_US),
            kind: chosen(&asked.kind, ProbeKind::from_name)
                .map_err(|name| wrong("kind of question", name))?
                .unwrap_or(ProbeKind::Read),
            beside: chosen(&asked.beside, Beside::from_name).map_err(|name| wrong("choice", name))?,
            until_us: (until_us as i64).clamp(0, now_us),
            now_us,
        })
    }

    /// Begin and end. Drawn day by day, it begins with a whole day.
    pub fn span_us(&self) -> (i64, i64) {
        let from_us = self.until_us - self.length_us;
        (if self.is_daily() { midnight(from_us, &zone()) } else { from_us }, self.until_us)
    }

    /// Whether it is drawn day by day.
    pub fn is_daily(&self) -> bool {
        self.length_us > MOST_DAYS_IN_HOURS * DAY_US
    }

    /// The steps that are read for it: the finest that are still kept.
    pub fn step(&self) -> Step {
        let ago_us = self.now_us - (self.until_us - self.length_us);
        Step::for_past_window(self.length_us / 1_000_000, ago_us / 1_000_000)
    }

    /// How long the steps are that are drawn, in microseconds.
    pub fn step_us(&self) -> i64 {
        if self.is_daily() { DAY_US } else { self.step().seconds() * 1_000_000 }
    }

    /// Its length in days, as it is written in an address.
    pub fn days(&self) -> String {
        plain(self.length_us as f64 / DAY_US as f64, 4)
    }

    /// The same question of a window of another length with another end, as an address has it.
    pub fn query(&self, length_us: i64, until_us: i64) -> String {
        let other = Self { length_us, ..self.clone() };
        let beside = self.beside.map_or("", Beside::name);
        format!("?days={}&kind={}&beside={beside}&until={until_us}", other.days(), self.kind.name())
    }

    /// Whether a step answers the question.
    pub fn is_answered_by(&self, step: &ProbeStep) -> bool {
        self.beside.is_none_or(|beside| step.beside == beside)
    }
}

fn wrong(what: &str, text: &str) -> Trouble {
    Trouble::Question(format!("`{text}` is no {what}."))
}

fn number(text: &str, default: f64) -> Option<f64> {
    if text.is_empty() { Some(default) } else { text.parse().ok().filter(|number: &f64| number.is_finite()) }
}

/// `None` for an empty text; a name that nothing has is the error.
fn chosen<T>(name: &str, from_name: impl Fn(&str) -> Option<T>) -> Result<Option<T>, &str> {
    if name.is_empty() { Ok(None) } else { from_name(name).map(Some).ok_or(name) }
}
