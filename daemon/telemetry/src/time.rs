//! Instants as OpenTelemetry counts them.

/// Microseconds since 1970 UTC as nanoseconds. What lies before 1970 becomes its begin.
pub fn nanoseconds(us: i64) -> u64 {
    us.max(0).cast_unsigned().saturating_mul(1000)
}

/// So many seconds after an instant, in nanoseconds since 1970 UTC, to the nanosecond.
pub fn after(us: i64, seconds: f64) -> u64 {
    nanoseconds(us).saturating_add((seconds.max(0.0) * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_lies_outside_is_held_at_the_ends() {
        assert_eq!((nanoseconds(-1), nanoseconds(i64::MAX)), (0, u64::MAX));
        assert_eq!((after(5, -1.0), after(5, f64::INFINITY)), (5000, u64::MAX));
    }

    proptest! {
        #[test]
        fn an_instant_comes_back_to_the_microsecond(us in 0..4_000_000_000_000_000i64, length_us in 0..86_400_000_000i64) {
            prop_assert_eq!(nanoseconds(us) / 1000, us.cast_unsigned());
            let end = after(us, length_us as f64 / 1e6);
            prop_assert_eq!((end + 500) / 1000, (us + length_us).cast_unsigned());
        }
    }
}
