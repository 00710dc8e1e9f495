//! Points in time, and units of time. A day here has 24 hours, whatever the time zone.

use std::ops::{Add, RangeInclusive, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A second.
pub const SECOND: Duration = Duration::from_secs(1);
/// An hour.
pub const HOUR: Duration = Duration::from_hours(1);
/// A day.
pub const DAY: Duration = Duration::from_hours(24);

/// A point on the wall clock, in whole microseconds since 1970 UTC. JSON and the database contain this number;
/// names of fields and columns with a time end in `_us`. Arithmetic saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest time.
    pub const MIN: Self = Self(i64::MIN);
    /// The start of 1970 in UTC, which is also the default.
    pub const UNIX_EPOCH: Self = Self(0);
    /// The latest time.
    pub const MAX: Self = Self(i64::MAX);

    /// Creates the time that is `microseconds` after the start of 1970 in UTC.
    pub const fn from_us(microseconds: i64) -> Self {
        Self(microseconds)
    }

    /// Returns the microseconds since the start of 1970 in UTC.
    pub const fn as_us(self) -> i64 {
        self.0
    }

    /// Returns the time that has passed since `earlier`; zero if `earlier` is later than this time.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0).max(0).cast_unsigned())
    }

    /// Returns the seconds from `other` to this time; negative if `other` is later.
    pub fn seconds_since(self, other: Self) -> f64 {
        self.0.saturating_sub(other.0) as f64 / 1e6
    }

    /// Returns the latest multiple of `step`, counted from 1970, that is not later than this time.
    pub fn floor(self, step: Duration) -> Self {
        self - Duration::from_micros(self.0.rem_euclid(microseconds(step).max(1)).cast_unsigned())
    }

    /// Returns the local calendar day of this time, in days since 1970-01-01.
    pub fn local_day(self, utc_offset_seconds: i32) -> i64 {
        let utc_seconds = self.0.div_euclid(microseconds(SECOND));
        utc_seconds.saturating_add(i64::from(utc_offset_seconds)).div_euclid(DAY.as_secs().cast_signed())
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(microseconds(length)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(microseconds(length)))
    }
}

/// Returns the whole microseconds of a duration. 292,000 years and more count as `i64::MAX`.
fn microseconds(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

/// Returns the delay after a number of failures in a row: the shortest one, doubled with each further failure up to the longest
/// one, then multiplied by a factor between 0.5 and 1. `jitter`, from 0 to 1, keeps many computers apart.
pub fn backoff(delays: RangeInclusive<Duration>, failures: u32, jitter: f64) -> Duration {
    let doubled = delays.start().saturating_mul(2u32.saturating_pow(failures.saturating_sub(1)));
    doubled.min(*delays.end()).mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_span_is_never_negative_unless_asked_for() {
        let (early, late) = (Timestamp::from_us(-1_500_000), Timestamp::from_us(1_000_000));
        assert_eq!((late.since(early), early.since(late)), (Duration::from_millis(2500), Duration::ZERO));
        assert_eq!((late.seconds_since(early), early.seconds_since(late)), (2.5, -2.5));
        assert_eq!((early + Duration::from_millis(2500), late - Duration::from_millis(2500)), (late, early));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(
            (Timestamp::MAX + SECOND, Timestamp::MIN - Duration::MAX),
            (Timestamp::MAX, Timestamp::MIN)
        );
        assert_eq!(Timestamp::MAX.since(Timestamp::MIN), Duration::from_micros(i64::MAX.cast_unsigned()));
    }

    #[test]
    fn days_and_steps_before_1970_start_earlier() {
        let before = Timestamp::from_us(-1);
        assert_eq!((before.local_day(0), before.local_day(3600)), (-1, 0));
        assert_eq!(before.floor(DAY), Timestamp::UNIX_EPOCH - DAY);
    }

    #[test]
    fn a_time_is_stored_as_a_number() {
        assert_eq!(serde_json::to_string(&Timestamp::from_us(7)).unwrap(), "7");
        assert_eq!(serde_json::from_str::<Timestamp>("-7").unwrap(), Timestamp::from_us(-7));
    }

    #[test]
    fn delay_doubles_with_each_failure_up_to_the_longest() {
        let delay = |failures, jitter| backoff(2 * SECOND..=600 * SECOND, failures, jitter).as_secs_f64();
        let full = [1, 2, 3, 4, 11, u32::MAX].map(|failures| delay(failures, 1.0));
        assert_eq!(full, [2.0, 4.0, 8.0, 16.0, 600.0, 600.0]);
        assert_eq!(delay(3, 0.0), 4.0, "a jitter of 0 halves the delay");
    }

    proptest! {
        #[test]
        fn delays_are_within_limits_and_never_shrink(failures: u32, jitter in -1.0f64..2.0) {
            let delay = |failures| backoff(2 * SECOND..=600 * SECOND, failures, jitter);
            prop_assert!(delay(failures) >= SECOND && delay(failures) <= 600 * SECOND);
            prop_assert!(delay(failures.saturating_add(1)) >= delay(failures));
        }
    }
}
