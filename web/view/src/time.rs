//! Formats points in time.

use jiff::Zoned;
use jiff::tz::TimeZone;
use longhaul_model::Timestamp;

use crate::units;

/// Formats a time as date and time of a time zone, to the second.
pub fn timestamp(at: Timestamp, zone: &TimeZone) -> String {
    match zoned(at, zone) {
        Some(local) => local.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => format!("{} µs since 1970", at.as_us()),
    }
}

/// Converts a time to a time zone; `None` more than 9,999 years from now.
pub fn zoned(at: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    Some(jiff::Timestamp::from_microsecond(at.as_us()).ok()?.to_zoned(zone.clone()))
}

/// Formats a future time and its distance from `now`. A time that has passed is "due now".
pub fn until(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let distance = match at.since(now).as_secs() {
        0 => "due now".to_owned(),
        seconds => format!("in {}", units::estimated_duration(seconds as f64)),
    };
    format!("{}, {distance}", timestamp(at, zone))
}

/// Returns the offset of local time from UTC at a given time, in seconds.
pub fn utc_offset_at(at: Timestamp, zone: &TimeZone) -> i32 {
    zoned(at, zone).map_or(0, |local| local.offset().seconds())
}

/// Returns the start of the local day that contains a time.
pub fn local_midnight(at: Timestamp, zone: &TimeZone) -> Timestamp {
    let begin = zoned(at, zone).and_then(|local| local.start_of_day().ok());
    begin.map_or(at, |begin| instant(&begin))
}

/// Returns the point in time of a local date and time.
pub fn instant(local: &Zoned) -> Timestamp {
    Timestamp::from_us(local.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::time::HOUR;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::from_us(1_800_000_000_000_000);
    const NOW_TEXT: &str = "2027-01-15 08:00:00";

    #[test]
    fn time_that_has_passed_is_due_now() {
        for at in [NOW, NOW + Duration::from_micros(999_999)] {
            assert_eq!(until(at, NOW, &TimeZone::UTC), format!("{NOW_TEXT}, due now"));
        }
        assert!(until(NOW - HOUR, NOW, &TimeZone::UTC).ends_with(", due now"));
    }

    #[test]
    fn future_time_shows_its_distance() {
        for (seconds, distance) in
            [(1, "1 s"), (59, "59 s"), (119, "2 min"), (7199, "2 h"), (7500, "2 h 5 min")]
        {
            let text = until(NOW + Duration::from_secs(seconds), NOW, &TimeZone::UTC);
            assert!(text.ends_with(&format!(", in {distance}")), "{text}");
        }
    }
}
