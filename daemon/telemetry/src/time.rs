//! Conversion of times to nanoseconds since 1970 UTC, the unit of OpenTelemetry.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Converts microseconds since 1970 UTC to nanoseconds since 1970 UTC. Times before 1970 become 0.
pub fn nanoseconds(us: i64) -> u64 {
    us.max(0).cast_unsigned().saturating_mul(1000)
}

/// Returns the time `seconds` after `us` (microseconds since 1970 UTC), in nanoseconds since 1970 UTC.
pub fn nanoseconds_after(us: i64, seconds: f64) -> u64 {
    nanoseconds(us).saturating_add((seconds.max(0.0) * 1e9).round() as u64)
}

/// Converts nanoseconds since 1970 UTC to the time type of the OpenTelemetry SDK.
pub fn system_time(ns: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(ns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_out_of_range_are_clamped() {
        assert_eq!((nanoseconds(-1), nanoseconds(i64::MAX)), (0, u64::MAX));
        assert_eq!((nanoseconds_after(5, -1.0), nanoseconds_after(5, f64::INFINITY)), (5000, u64::MAX));
    }

    proptest! {
        #[test]
        fn conversion_is_exact_to_the_microsecond(us in 0..4_000_000_000_000_000i64, length_us in 0..86_400_000_000i64) {
            prop_assert_eq!(nanoseconds(us) / 1000, us.cast_unsigned());
            let end = nanoseconds_after(us, length_us as f64 / 1e6);
            prop_assert_eq!((end + 500) / 1000, (us + length_us).cast_unsigned());
        }
    }
}
