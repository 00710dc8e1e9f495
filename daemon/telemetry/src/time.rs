//! Conversion of times to nanoseconds since 1970 UTC, the unit of OpenTelemetry.

use longhaul_model::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Converts a time to nanoseconds since 1970 UTC. Times before 1970 become 0.
pub fn nanoseconds(at: Timestamp) -> u64 {
    at.as_us().max(0).cast_unsigned().saturating_mul(1000)
}

/// Returns the time `seconds` after `at`, in nanoseconds since 1970 UTC.
pub fn nanoseconds_after(at: Timestamp, seconds: f64) -> u64 {
    nanoseconds(at).saturating_add((seconds.max(0.0) * 1e9).round() as u64)
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
        assert_eq!((nanoseconds(Timestamp::from_us(-1)), nanoseconds(Timestamp::MAX)), (0, u64::MAX));
        let at = Timestamp::from_us(5);
        assert_eq!((nanoseconds_after(at, -1.0), nanoseconds_after(at, f64::INFINITY)), (5000, u64::MAX));
    }

    proptest! {
        #[test]
        fn conversion_is_exact_to_the_microsecond(us in 0..4_000_000_000_000_000i64, length_us in 0..86_400_000_000i64) {
            let at = Timestamp::from_us(us);
            prop_assert_eq!(nanoseconds(at) / 1000, us.cast_unsigned());
            let end = nanoseconds_after(at, length_us as f64 / 1e6);
            prop_assert_eq!((end + 500) / 1000, (us + length_us).cast_unsigned());
        }
    }
}
