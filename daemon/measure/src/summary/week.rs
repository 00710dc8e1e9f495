//! ISO weeks in the person's own calendar.

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
    monday: i64,
}

impl PartialSchema for Week {
    fn schema() -> RefOr<Schema> {
        String::schema()
    }
}

impl ToSchema for Week {}

/// Why a text is not a week.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a week: write it as year and ISO week, as in 2026-W46")]
pub struct WeekError(String);

/// 1970-01-01, a Thursday.
const EPOCH: Date = date(1970, 1, 1);

impl Week {
    /// The week that a day, counted from 1970-01-01, lies in.
    pub fn of_day(day: i64) -> Self {
        Self { monday: day - (day + 3).rem_euclid(7) }
    }

    /// Its Monday, in days since 1970-01-01.
    pub fn first_day(self) -> i64 {
        self.monday
    }

    /// Its Sunday, in days since 1970-01-01.
    pub fn last_day(self) -> i64 {
        self.monday + 6
    }

    /// Whether a day lies in it.
    pub fn contains(self, day: i64) -> bool {
        (self.first_day()..=self.last_day()).contains(&day)
    }

    /// How many hours it has in a time zone: 167 and 169 where the clock is changed.
    pub fn hours(self, zone: &TimeZone) -> f64 {
        let midnight = |day: i64| calendar(day).to_zoned(zone.clone()).ok();
        let hours = midnight(self.monday).zip(midnight(self.monday + 7)).and_then(|(from, to)| {
            let span = from.until((Unit::Second, &to)).ok()?;
            span.total((Unit::Hour, SpanRelativeTo::days_are_24_hours())).ok()
        });
        hours.unwrap_or(168.0)
    }
}

/// The calendar day of a number of days since 1970-01-01; the nearest one that calendars have.
pub fn calendar(day: i64) -> Date {
    let bounded = day.clamp(-700_000, 2_900_000);
    EPOCH.checked_add(bounded.days()).unwrap_or(EPOCH)
}

impl fmt::Display for Week {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let week = calendar(self.monday).iso_week_date();
        f.pad(&format!("{:04}-W{:02}", week.year(), week.week()))
    }
}

impl FromStr for Week {
    type Err = WeekError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (year, week) = text.split_once("-W").filter(|(_, week)| week.len() == 2)?;
            let monday = ISOWeekDate::new(year.parse().ok()?, week.parse().ok()?, Weekday::Monday).ok()?;
            let days = monday.date().since((Unit::Day, EPOCH)).ok()?.get_days();
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
    fn weeks_of_the_turn_of_the_year_are_those_of_the_calendar() {
        // 2026-01-01 is a Thursday: its week is the first; 2027-01-01 is a Friday: its week is 2026's 53rd.
        let week_of = |year, month, day: i8| {
            let days = date(year, month, day).since((Unit::Day, EPOCH)).unwrap().get_days();
            Week::of_day(i64::from(days)).to_string()
        };
        assert_eq!(week_of(2025, 12, 29), "2026-W01");
        assert_eq!(week_of(2026, 11, 15), "2026-W46");
        assert_eq!(week_of(2027, 1, 3), "2026-W53");
        assert_eq!(week_of(2027, 1, 4), "2027-W01");
    }

    #[test]
    fn a_week_in_which_the_clock_changes_has_167_or_169_hours() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let hours = |week: &str| week.parse::<Week>().unwrap().hours(&berlin);
        assert_eq!([hours("2026-W13"), hours("2026-W43"), hours("2026-W46")], [167.0, 169.0, 168.0]);
    }

    #[test]
    fn what_is_no_week_is_refused_with_an_example() {
        for bad in ["", "2026", "2026-W1", "2026-W54", "2026-W00", "2025-W53", "W46", "2026-W4x", "-W01"] {
            assert!(bad.parse::<Week>().is_err(), "{bad}");
        }
        assert!("x".parse::<Week>().unwrap_err().to_string().contains("2026-W46"));
    }

    proptest! {
        #[test]
        fn every_day_lies_in_its_week_and_the_week_reads_back(day in -100_000i64..200_000) {
            let week = Week::of_day(day);
            prop_assert!(week.contains(day) && !week.contains(week.last_day() + 1));
            prop_assert_eq!(week.to_string().parse::<Week>(), Ok(week));
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "\\PC{0,12}", day: i64) {
            let _ = text.parse::<Week>();
            let _ = calendar(day);
        }
    }
}
