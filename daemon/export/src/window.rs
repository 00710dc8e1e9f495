//! The time window of an export.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use longhaul_model::Timestamp;

/// A time window that includes its start and excludes its end. The default is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Start of the window. `None`: unlimited.
    pub from: Option<Timestamp>,
    /// End of the window (exclusive). `None`: unlimited.
    pub to: Option<Timestamp>,
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
    pub fn between(from: Option<&str>, to: Option<&str>, zone: &TimeZone) -> Result<Self, WindowError> {
        let read = |text: Option<&str>| text.map(|text| parse_timestamp(text, zone)).transpose();
        let window = Self { from: read(from)?, to: read(to)? };
        let is_empty = window.from.zip(window.to).is_some_and(|(from, to)| from >= to);
        let shown = |text: Option<&str>| text.unwrap_or_default().to_owned();
        if is_empty { Err(WindowError::Empty(shown(from), shown(to))) } else { Ok(window) }
    }

    /// Returns true if the window contains this time.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to)
    }
}

fn parse_timestamp(text: &str, zone: &TimeZone) -> Result<Timestamp, WindowError> {
    let unknown = || WindowError::Unparsable(text.to_owned());
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp::from_us(time.as_microsecond()));
    }
    // Jiff also parses a time without a UTC offset as a day and ignores the time, which the user did not mean.
    // Only texts of the length of a day are accepted.
    let day: Date = text.parse().ok().filter(|_| text.len() == "2026-11-09".len()).ok_or_else(unknown)?;
    let start = day.to_zoned(zone.clone()).map_err(|_| unknown())?.timestamp();
    Ok(Timestamp::from_us(start.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use longhaul_model::time::HOUR;

    use super::*;

    /// 29 March 2026, 00:00 in Berlin.
    const MIDNIGHT: Timestamp = Timestamp::from_us(1_774_738_800_000_000);

    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn local_day_has_23_hours_when_summer_time_starts() {
        let window = Window::between(Some("2026-03-29"), Some("2026-03-30"), &berlin()).unwrap();
        let length = window.to.unwrap().since(window.from.unwrap());
        assert_eq!((window.from, length), (Some(MIDNIGHT), 23 * HOUR));
        assert!(window.contains(MIDNIGHT) && !window.contains(window.to.unwrap()));
    }

    #[test]
    fn time_with_an_offset_ignores_the_zone() {
        let window = Window::between(Some("2026-03-29T00:00:00+01:00"), None, &TimeZone::UTC).unwrap();
        assert_eq!(window, Window { from: Some(MIDNIGHT), to: None });
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
