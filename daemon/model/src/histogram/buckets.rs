//! Buckets of a base-2 exponential histogram at scale 6, over microseconds.
//!
//! Bucket `i` holds the values in `(γ^i, γ^(i+1)]` µs with `γ = 2^(1/64)`: the OpenTelemetry ExponentialHistogram
//! definition at scale 6, so a histogram can be exported without loss. A bucket is 1.09 % wide; its relative midpoint
//! is at most 0.54 % from any value in it.

use std::sync::LazyLock;

/// Ratio of the upper and lower bound of a bucket, `γ = 2^(1/64)`.
const GAMMA: f64 = 1.010_889_286_052_284;
/// Number of buckets per doubling of the value: `2^scale`.
const BUCKETS_PER_DOUBLING: i32 = 64;
/// Index of the bucket that holds one nanosecond: `⌈log2(0.001) · 64⌉ - 1`.
const FIRST_INDEX: i32 = -638;
/// Number of buckets; they cover 1 ns to about 19 hours.
pub const BUCKET_COUNT: usize = 2944;

/// Largest whole number of nanoseconds in each bucket.
static UPPER_NS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    (0..BUCKET_COUNT as i32).map(|slot| upper_bound_ns(FIRST_INDEX + slot).floor() as u64).collect()
});

/// Bucket within a doubling, by the top eight mantissa bits of the value: the bucket of the smallest value with these
/// bits.
static INDEX_GUESSES: LazyLock<[u8; 256]> = LazyLock::new(|| {
    std::array::from_fn(|bits| ((1.0 + bits as f64 / 256.0).log2() * f64::from(BUCKETS_PER_DOUBLING)) as u8)
});

/// Returns the upper bound of a bucket in nanoseconds: `1000 · γ^(index+1)`.
pub fn upper_bound_ns(index: i32) -> f64 {
    1000.0 * (f64::from(index + 1) / f64::from(BUCKETS_PER_DOUBLING)).exp2()
}

/// Returns the relative midpoint of a bucket in nanoseconds, `2 · upper / (1 + γ)`. It differs by at most 0.54 % from
/// any value in the bucket.
pub fn midpoint_ns(index: i32) -> f64 {
    2.0 * upper_bound_ns(index) / (1.0 + GAMMA)
}

/// Returns the index of the bucket that contains a duration. Zero counts as one nanosecond, and longer durations than
/// the last bucket covers count in the last bucket; neither occurs in practice.
pub fn bucket_of(nanoseconds: u64) -> i32 {
    FIRST_INDEX + slot_of(nanoseconds) as i32
}

/// Returns the slot of a duration: the position of its bucket in an array that starts with the bucket of one
/// nanosecond.
///
/// The exponent and the top mantissa bits of the value as a float give a guess that is never too high. A table of exact
/// bounds corrects the guess.
pub fn slot_of(nanoseconds: u64) -> usize {
    let bits = (nanoseconds.max(1) as f64 / 1000.0).to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let guess = exponent * BUCKETS_PER_DOUBLING + i32::from(INDEX_GUESSES[(bits >> 44) as usize & 255]) - 1;
    let mut slot = usize::try_from(guess - FIRST_INDEX).unwrap_or(0);
    while slot < BUCKET_COUNT - 1 && UPPER_NS[slot.min(BUCKET_COUNT - 1)] < nanoseconds {
        slot += 1;
    }
    slot.min(BUCKET_COUNT - 1)
}

/// Returns the index of the bucket at a slot; see [`slot_of`].
pub fn index_of_slot(slot: usize) -> i32 {
    FIRST_INDEX + slot as i32
}

/// Returns the slot of a bucket; `None` if the bucket is out of range. See [`slot_of`].
pub fn slot_of_index(index: i32) -> Option<usize> {
    usize::try_from(index.checked_sub(FIRST_INDEX)?).ok().filter(|slot| *slot < BUCKET_COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn powers_of_two_are_upper_bounds_of_their_bucket() {
        for power in 0..20 {
            assert_eq!(bucket_of(1000 << power), 64 * power - 1, "2^{power} µs");
            assert_eq!(bucket_of((1000 << power) + 1), 64 * power, "just above 2^{power} µs");
        }
    }

    #[test]
    fn extreme_values_belong_to_the_first_and_last_bucket() {
        assert_eq!(slot_of(0), 0);
        assert_eq!(slot_of(1), 0);
        assert_eq!(slot_of(u64::MAX), BUCKET_COUNT - 1);
        assert!(upper_bound_ns(index_of_slot(BUCKET_COUNT - 1)) > 3600e9, "the buckets must cover an hour");
    }

    proptest! {
        #[test]
        fn value_lies_within_the_bounds_of_its_bucket(value in 1u64..(1 << 45)) {
            let slot = slot_of(value);
            prop_assert!(value <= UPPER_NS[slot]);
            prop_assert!(slot == 0 || value > UPPER_NS[slot - 1]);
        }
    }
}
