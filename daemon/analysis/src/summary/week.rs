//! ISO 8601 weeks in the user's local calendar.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, ISOWeekDate, Weekday, date};
use jiff::tz::TimeZone;
use jiff::{SpanRelativeTo, ToSpan, Unit};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A week of ISO 8601: Monday to Sunday, `2026-W46`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Week {
    /// Monday of the week, in days since 1970-01-01.
    monday: i64,
}

impl PartialSchema for Week {
    fn schema() -> RefOr<Schema> {
        String::schema()
    }
}

impl ToSchema for Week {}

/// Error: a text is not an ISO week. Holds the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a week: write it as year and ISO week, as in 2026-W46")]
pub struct WeekError(String);

/// 1970-01-01, a Thursday.
const UNIX_EPOCH_DATE: Date = date(1970, 1, 1);

impl Week {
    /// Returns the week that contains a day, given in days since 1970-01-01.
    pub fn of_day(day: i64) -> Self {
        // Day 0 is a Thursday, three days after a Monday.
        Self { monday: day - (day + 3).rem_euclid(7) }
    }

    /// Returns the week's Monday, in days since 1970-01-01.
    pub fn first_day(self) -> i64 {
        self.monday
    }

    /// Returns the week's Sunday, in days since 1970-01-01.
    pub fn last_day(self) -> i64 {
        self.monday + 6
    }

    /// Returns true if the week contains a day, given in days since 1970-01-01.
    pub fn contains(self, day: i64) -> bool {
        (self.first_day()..=self.last_day()).contains(&day)
    }

    /// Returns the number of hours of the week in a time zone: 168, or 167 or 169 if daylight saving time changes.
    pub fn hours(self, zone: &TimeZone) -> f64 {
        let midnight = |day: i64| date_of_day(day).to_zoned(zone.clone()).ok();
        let hours = midnight(self.monday).zip(midnight(self.monday + 7)).and_then(|(from, to)| {
            let span = from.until((Unit::Second, &to)).ok()?;
            span.total((Unit::Hour, SpanRelativeTo::days_are_24_hours())).ok()
        });
        hours.unwrap_or(168.0)
    }
}

/// Returns the calendar date of a day, given in days since 1970-01-01. Days that `jiff` cannot represent are
/// clamped to the supported range.
pub fn date_of_day(day: i64) -> Date {
    let bounded = day.clamp(-700_000, 2_900_000);
    UNIX_EPOCH_DATE.checked_add(bounded.days()).unwrap_or(UNIX_EPOCH_DATE)
}

impl fmt::Display for Week {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let week = date_of_day(self.monday).iso_week_date();
        f.pad(&format!("{:04}-W{:02}", week.year(), week.week()))
    }
}

impl FromStr for Week {
    type Err = WeekError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (year, week) = text.split_once("-W").filter(|(_, week)| week.len() == 2)?;
            let monday = ISOWeekDate::new(year.parse().ok()?, week.parse().ok()?, Weekday::Monday).ok()?;
            let days = monday.date().since((Unit::Day, UNIX_EPOCH_DATE)).ok()?.get_days();
            Some(Self { monday: i64::from(days) })
        };
        parse().ok_or_else(|| WeekError(text.to_owned()))
    }
}

impl TryFrom<String> for Week {
    type Error = WeekError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Week> for String {
    fn from(week: Week) -> Self {
        week.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn weeks_at_new_year_follow_iso_8601() {
        // 2026-01-01 is a Thursday, so it lies in the first week of 2026. 2027-01-01 is a Friday, so it lies in
        // week 53 of 2026.
        let week_of = |year, month, day: i8| {
            let days = date(year, month, day).since((Unit::Day, UNIX_EPOCH_DATE)).unwrap().get_days();
            Week::of_day(i64::from(days)).to_string()
        };
        assert_eq!(week_of(2025, 12, 29), "2026-W01");
        assert_eq!(week_of(2026, 11, 15), "2026-W46");
        assert_eq!(week_of(2027, 1, 3), "2026-W53");
        assert_eq!(week_of(2027, 1, 4), "2027-W01");
    }

    #[test]
    fn week_with_clock_change_has_167_or_169_hours() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let hours = |week: &str| week.parse::<Week>().unwrap().hours(&berlin);
        assert_eq!([hours("2026-W13"), hours("2026-W43"), hours("2026-W46")], [167.0, 169.0, 168.0]);
    }

    #[test]
    fn invalid_week_is_rejected_with_an_example() {
        for bad in ["", "2026", "2026-W1", "2026-W54", "2026-W00", "2025-W53", "W46", "2026-W4x", "-W01"] {
            assert!(bad.parse::<Week>().is_err(), "{bad}");
        }
        assert!("x".parse::<Week>().unwrap_err().to_string().contains("2026-W46"));
    }

    proptest! {
        #[test]
        fn week_contains_its_day_and_round_trips_as_text(day in -100_000i64..200_000) {
            let week = Week::of_day(day);
            prop_assert!(week.contains(day) && !week.contains(week.last_day() + 1));
            prop_assert_eq!(week.to_string().parse::<Week>(), Ok(week));
        }

        #[test]
        fn parsing_any_text_does_not_panic(text in "\\PC{0,12}", day: i64) {
            let _ = text.parse::<Week>();
            let _ = date_of_day(day);
        }
    }
}
