//! Units of time. Times are microseconds since 1970 UTC (`*_us`); a day here has 24 hours, whatever the time zone.

use std::time::Duration;

/// A day.
pub const DAY: Duration = Duration::from_secs(DAY_SECONDS.cast_unsigned());
/// A second, in microseconds.
pub const SECOND_US: i64 = 1_000_000;
/// An hour, in microseconds.
pub const HOUR_US: i64 = 3_600 * SECOND_US;
/// A day, in microseconds.
pub const DAY_US: i64 = DAY_SECONDS * SECOND_US;
/// A day, in seconds.
pub const DAY_SECONDS: i64 = 86_400;
