//! From when to when.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A stretch of time: from its begin, up to but without its end. The default is all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Its begin, in microseconds since 1970 UTC; `None`: from ever.
    pub from_us: Option<i64>,
    /// Its end, likewise.
    pub to_us: Option<i64>,
}

/// Why a window cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Neither a day nor a moment.
    #[error("`{0}` is neither a day (2026-11-09) nor a moment with its zone (2026-11-09T18:00:00+01:00)")]
    Moment(String),
    /// The end is not after the begin.
    #[error(
        "nothing lies between {0} and {1}: the first is the begin, the second is the first moment after the end"
    )]
    Empty(String, String),
}

impl Window {
    /// The window between two days of this zone, or moments as RFC 3339 writes them. A day means its begin.
    ///
    /// # Errors
    ///
    /// [`WindowError`].
    pub fn between(from: Option<&str>, to: Option<&str>, zone: &TimeZone) -> Result<Self, WindowError> {
        let read = |text: Option<&str>| text.map(|text| moment_us(text, zone)).transpose();
        let window = Self { from_us: read(from)?, to_us: read(to)? };
        let is_empty = window.from_us.zip(window.to_us).is_some_and(|(from_us, to_us)| from_us >= to_us);
        let words = |text: Option<&str>| text.unwrap_or_default().to_owned();
        if is_empty { Err(WindowError::Empty(words(from), words(to))) } else { Ok(window) }
    }

    /// Whether a moment lies in it, in microseconds since 1970 UTC.
    pub fn contains(&self, at_us: i64) -> bool {
        self.from_us.is_none_or(|from_us| from_us <= at_us) && self.to_us.is_none_or(|to_us| at_us < to_us)
    }
}

fn moment_us(text: &str, zone: &TimeZone) -> Result<i64, WindowError> {
    let unknown = || WindowError::Moment(text.to_owned());
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment.as_microsecond());
    }
    // Jiff also reads the day out of a time without a zone, which would be another moment than the one that was meant.
    let day: Date = text.parse().ok().filter(|_| text.len() == "2026-11-09".len()).ok_or_else(unknown)?;
    Ok(day.to_zoned(zone.clone()).map_err(|_| unknown())?.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn days_are_local_and_have_23_hours_where_the_clock_goes_forward() {
        let window = Window::between(Some("2026-03-29"), Some("2026-03-30"), &berlin()).unwrap();
        let hours = (window.to_us.unwrap() - window.from_us.unwrap()) / 3_600_000_000;
        assert_eq!((window.from_us, hours), (Some(1_774_738_800_000_000), 23));
        assert!(window.contains(1_774_738_800_000_000) && !window.contains(window.to_us.unwrap()));
    }

    #[test]
    fn a_moment_brings_its_own_zone() {
        let window = Window::between(Some("2026-03-29T00:00:00+01:00"), None, &TimeZone::UTC).unwrap();
        assert_eq!(window, Window { from_us: Some(1_774_738_800_000_000), to_us: None });
    }

    #[test]
    fn what_could_mean_two_moments_is_refused() {
        for bad in ["2026-03-29T10:00", "yesterday", "", "29.03.2026", "2026-02-30", "2026-W13"] {
            assert_eq!(Window::between(Some(bad), None, &berlin()), Err(WindowError::Moment(bad.into())));
        }
        let same = Some("2026-03-29");
        assert!(matches!(Window::between(same, same, &berlin()), Err(WindowError::Empty(_, _))));
    }
}
