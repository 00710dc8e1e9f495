//! The time window of an export.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A time window that includes its start and excludes its end. The default is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Start of the window, in microseconds since 1970 UTC. `None`: unlimited.
    pub from_us: Option<i64>,
    /// End of the window (exclusive), in microseconds since 1970 UTC. `None`: unlimited.
    pub to_us: Option<i64>,
}

/// An error in the text of a window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The text is neither a day nor a time with a UTC offset.
    #[error("`{0}` is neither a day (2026-11-09) nor a time with a UTC offset (2026-11-09T18:00:00+01:00)")]
    Unparsable(String),
    /// The end of the window is not after its start.
    #[error("the period from {0} to {1} is empty: the end must be after the start")]
    Empty(String, String),
}

impl Window {
    /// Returns the window between two texts, each a day in `zone` or an RFC 3339 time with a UTC offset. A day
    /// means its start, 00:00 local time. `None`: unlimited.
    ///
    /// # Errors
    ///
    /// [`WindowError`].
    pub fn between(from: Option<&str>, to: Option<&str>, zone: &TimeZone) -> Result<Self, WindowError> {
        let read = |text: Option<&str>| text.map(|text| parse_timestamp_us(text, zone)).transpose();
        let window = Self { from_us: read(from)?, to_us: read(to)? };
        let is_empty = window.from_us.zip(window.to_us).is_some_and(|(from_us, to_us)| from_us >= to_us);
        let shown = |text: Option<&str>| text.unwrap_or_default().to_owned();
        if is_empty { Err(WindowError::Empty(shown(from), shown(to))) } else { Ok(window) }
    }

    /// Returns true if the window contains this time, in microseconds since 1970 UTC.
    pub fn contains(&self, at_us: i64) -> bool {
        self.from_us.is_none_or(|from_us| from_us <= at_us) && self.to_us.is_none_or(|to_us| at_us < to_us)
    }
}

fn parse_timestamp_us(text: &str, zone: &TimeZone) -> Result<i64, WindowError> {
    let unknown = || WindowError::Unparsable(text.to_owned());
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_microsecond());
    }
    // Jiff also parses a time without a UTC offset as a day and ignores the time, which the user did not mean.
    // Only texts of the length of a day are accepted.
    let day: Date = text.parse().ok().filter(|_| text.len() == "2026-11-09".len()).ok_or_else(unknown)?;
    Ok(day.to_zoned(zone.clone()).map_err(|_| unknown())?.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use longhaul_model::time::HOUR_US;

    use super::*;

    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn local_day_has_23_hours_when_summer_time_starts() {
        let window = Window::between(Some("2026-03-29"), Some("2026-03-30"), &berlin()).unwrap();
        let hours = (window.to_us.unwrap() - window.from_us.unwrap()) / HOUR_US;
        assert_eq!((window.from_us, hours), (Some(1_774_738_800_000_000), 23));
        assert!(window.contains(1_774_738_800_000_000) && !window.contains(window.to_us.unwrap()));
    }

    #[test]
    fn time_with_an_offset_ignores_the_zone() {
        let window = Window::between(Some("2026-03-29T00:00:00+01:00"), None, &TimeZone::UTC).unwrap();
        assert_eq!(window, Window { from_us: Some(1_774_738_800_000_000), to_us: None });
    }

    #[test]
    fn ambiguous_or_empty_windows_are_refused() {
        for bad in ["2026-03-29T10:00", "yesterday", "", "29.03.2026", "2026-02-30", "2026-W13"] {
            assert_eq!(Window::between(Some(bad), None, &berlin()), Err(WindowError::Unparsable(bad.into())));
        }
        let same = Some("2026-03-29");
        assert!(matches!(Window::between(same, same, &berlin()), Err(WindowError::Empty(_, _))));
    }
}
