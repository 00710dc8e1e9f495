//! Formats points in time.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use crate::units;

/// Formats a time (microseconds since 1970 UTC) as date and time of a time zone, to the second.
pub fn timestamp(at_us: i64, zone: &TimeZone) -> String {
    match Timestamp::from_microsecond(at_us) {
        Ok(instant) => instant.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => format!("{at_us} µs since 1970"),
    }
}

/// Formats a future time and its distance from `now_us`, both in microseconds since 1970 UTC. A time that has passed is
/// "due now".
pub fn until(at_us: i64, now_us: i64, zone: &TimeZone) -> String {
    let distance = match at_us.saturating_sub(now_us) / 1_000_000 {
        ..=0 => "due now".to_owned(),
        seconds => format!("in {}", units::estimated_duration(seconds as f64)),
    };
    format!("{}, {distance}", timestamp(at_us, zone))
}

/// Returns the time zone with a fixed offset from UTC, in seconds.
pub fn fixed_zone(utc_offset_seconds: i32) -> TimeZone {
    Offset::from_seconds(utc_offset_seconds).map_or(TimeZone::UTC, TimeZone::fixed)
}

/// Returns the offset of local time from UTC at a given time, in seconds.
pub fn utc_offset_at(at_us: i64, zone: &TimeZone) -> i32 {
    Timestamp::from_microsecond(at_us).map_or(0, |at| zone.to_offset(at).seconds())
}

/// Returns the start of the local day that contains a time, in microseconds since 1970 UTC.
pub fn local_midnight(at_us: i64, zone: &TimeZone) -> i64 {
    let local = Timestamp::from_microsecond(at_us).map(|at| at.to_zoned(zone.clone()));
    let begin = local.and_then(|local| local.start_of_day());
    begin.map_or(at_us, |begin| begin.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: i64 = 1_800_000_000_000_000;
    const NOW: &str = "2027-01-15 08:00:00";

    #[test]
    fn time_that_has_passed_is_due_now() {
        for us in [NOW_US, NOW_US + 999_999] {
            assert_eq!(until(us, NOW_US, &TimeZone::UTC), format!("{NOW}, due now"));
        }
        assert!(until(NOW_US - 3_600_000_000, NOW_US, &TimeZone::UTC).ends_with(", due now"));
    }

    #[test]
    fn future_time_shows_its_distance() {
        for (seconds, distance) in
            [(1, "1 s"), (59, "59 s"), (119, "2 min"), (7199, "2 h"), (7500, "2 h 5 min")]
        {
            let text = until(NOW_US + seconds * 1_000_000, NOW_US, &TimeZone::UTC);
            assert!(text.ends_with(&format!(", in {distance}")), "{text}");
        }
    }
}
