//! The buckets of a base-2 exponential histogram at scale 6, over microseconds.
//!
//! Bucket `i` holds the values in `(γ^i, γ^(i+1)]` µs with `γ = 2^(1/64)`: the OpenTelemetry ExponentialHistogram
//! definition at scale 6, so a histogram can be exported without loss. A bucket is 1.09 % wide; its relative midpoint
//! is at most 0.54 % from any value in it.

use std::sync::LazyLock;

/// The relative width of a bucket, `γ = 2^(1/64)`.
const GAMMA: f64 = 1.010_889_286_052_284;
/// Buckets per doubling of the value: `2^scale`.
const PER_DOUBLING: i32 = 64;
/// Index of the bucket that holds one nanosecond: `⌈log2(0.001) · 64⌉ - 1`.
const FIRST: i32 = -638;
/// How many buckets cover 1 ns to about 19 hours.
pub const BUCKETS: usize = 2944;

/// Largest whole number of nanoseconds in each bucket.
static UPPER_NS: LazyLock<Vec<u64>> =
    LazyLock::new(|| (0..BUCKETS as i32).map(|slot| upper_bound_ns(FIRST + slot).floor() as u64).collect());

/// For each value of the top eight mantissa bits, the sub-bucket in which that stretch begins.
static GUESS: LazyLock<[u8; 256]> = LazyLock::new(|| {
    std::array::from_fn(|bits| ((1.0 + bits as f64 / 256.0).log2() * f64::from(PER_DOUBLING)) as u8)
});

/// The upper bound of a bucket in nanoseconds: `1000 · γ^(index+1)`.
pub fn upper_bound_ns(index: i32) -> f64 {
    1000.0 * (f64::from(index + 1) / f64::from(PER_DOUBLING)).exp2()
}

/// The relative middle of a bucket in nanoseconds, `2 · upper / (1 + γ)`: at most 0.54 % from any value in it.
pub(super) fn middle_ns(index: i32) -> f64 {
    2.0 * upper_bound_ns(index) / (1.0 + GAMMA)
}

/// The index of the bucket that holds a duration. Zero counts as one nanosecond, and what exceeds the last bucket is
/// held by it: both are beyond any clock and any cap that is used here.
pub fn bucket_of(nanoseconds: u64) -> i32 {
    FIRST + slot_of(nanoseconds) as i32
}

/// The place of a duration's bucket in an array that begins with the bucket of one nanosecond.
///
/// The float's exponent and top mantissa bits give a guess that is never too high; the table of exact bounds corrects it.
pub(crate) fn slot_of(nanoseconds: u64) -> usize {
    let bits = (nanoseconds.max(1) as f64 / 1000.0).to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let guess = exponent * PER_DOUBLING + i32::from(GUESS[(bits >> 44) as usize & 255]) - 1;
    let mut slot = usize::try_from(guess - FIRST).unwrap_or(0);
    while slot < BUCKETS - 1 && UPPER_NS[slot.min(BUCKETS - 1)] < nanoseconds {
        slot += 1;
    }
    slot.min(BUCKETS - 1)
}

/// The bucket at a place of that array.
pub(crate) fn index_of_slot(slot: usize) -> i32 {
    FIRST + slot as i32
}

/// The place of a bucket in that array; `None` if it is outside.
pub(crate) fn slot_of_index(index: i32) -> Option<usize> {
    usize::try_from(index.checked_sub(FIRST)?).ok().filter(|slot| *slot < BUCKETS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_powers_of_two_belong_to_the_bucket_they_close() {
        for power in 0..20 {
            assert_eq!(bucket_of(1000 << power), 64 * power - 1, "2^{power} µs");
            assert_eq!(bucket_of((1000 << power) + 1), 64 * power, "just above 2^{power} µs");
        }
    }

    #[test]
    fn the_ends_are_held_by_the_end_buckets() {
        assert_eq!(slot_of(0), 0);
        assert_eq!(slot_of(1), 0);
        assert_eq!(slot_of(u64::MAX), BUCKETS - 1);
        assert!(upper_bound_ns(index_of_slot(BUCKETS - 1)) > 3600e9, "an hour fits");
    }

    proptest! {
        #[test]
        fn a_value_lies_between_the_bounds_of_its_bucket(value in 1u64..(1 << 45)) {
            let slot = slot_of(value);
            prop_assert!(value <= UPPER_NS[slot]);
            prop_assert!(slot == 0 || value > UPPER_NS[slot - 1]);
        }
    }
}
