//! How large the photos of a batch are.

use super::MINIMUM_PHOTO_BYTES;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Spread of the logarithm of the sizes: the photos of one camera, from the flat sky to the forest. The largest of a
/// batch is then about twice the mean, which bounds the memory that decoding it takes.
const SIGMA: f64 = 0.25;

/// Log-normal sizes in bytes for `count` photos whose sum is exactly `total_bytes`.
///
/// Each is the least size of a photo plus a log-normal share (sigma 0.25) of what is left. If `total_bytes` is less than
/// `count` photos need, each has the least size and the sum is larger. A photo above
/// [`MAXIMUM_PHOTO_BYTES`](super::MAXIMUM_PHOTO_BYTES) cannot be made: with a mean of up to 4 MiB no draw of a batch comes
/// near it.
pub fn photo_sizes(seed: u64, count: usize, total_bytes: u64) -> Vec<u64> {
    let spare = total_bytes.saturating_sub(MINIMUM_PHOTO_BYTES * count as u64);
    let weights = weights(seed, count);
    let sum: f64 = weights.iter().sum();
    let mut sizes: Vec<u64> = weights.iter().map(|weight| (spare as f64 * (weight / sum)) as u64).collect();
    level(&mut sizes, spare);
    sizes.iter().map(|share| MINIMUM_PHOTO_BYTES + share).collect()
}

/// Brings the sum of shares that were rounded to exactly `sum`, from the first share on.
fn level(shares: &mut [u64], sum: u64) {
    for index in 0..shares.len() {
        let now: u64 = shares.iter().sum();
        shares[index] = (shares[index] + sum).saturating_sub(now);
        if shares.iter().sum::<u64>() == sum {
            return;
        }
    }
}

fn weights(seed: u64, count: usize) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| exponential(SIGMA * normal(&mut random))).collect()
}

/// A draw that is close to the standard normal distribution: the sum of twelve uniform ones, less six.
///
/// Only additions and multiplications, which IEEE 754 makes the same everywhere: a logarithm of the system's library may
/// differ in its last bit after an update, and with it the size of a file that was written weeks before.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let unit = |random: &mut ChaCha8Rng| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    (0..12).map(|_| unit(random)).sum::<f64>() - 6.0
}

/// `e^x` for `|x| < 3`, by its series, for the same reason.
fn exponential(x: f64) -> f64 {
    (1..=30).rev().fold(1.0, |sum, term| 1.0 + sum * x / f64::from(term))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_standard_batch_has_the_spread_it_should_have() {
        let sizes = photo_sizes(1, 155, 415_000_000);
        assert_eq!(sizes.len(), 155);
        assert_eq!(sizes.iter().sum::<u64>(), 415_000_000);
        let logarithms: Vec<f64> = sizes.iter().map(|size| (*size as f64).ln()).collect();
        let mean = logarithms.iter().sum::<f64>() / 155.0;
        let variance = logarithms.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 154.0;
        assert!((0.2..0.3).contains(&variance.sqrt()), "sigma {}", variance.sqrt());
    }

    #[test]
    fn the_series_is_the_exponential() {
        for x in [-2.7, -1.0, 0.0, 0.3, 2.7_f64] {
            assert!((exponential(x) / x.exp() - 1.0).abs() < 1e-12, "{x}");
        }
    }

    #[test]
    fn too_little_for_all_gives_each_the_least() {
        assert_eq!(photo_sizes(1, 3, 10), [MINIMUM_PHOTO_BYTES; 3]);
        assert!(photo_sizes(1, 0, 10).is_empty());
    }

    proptest! {
        #[test]
        fn the_sum_is_exact_and_no_photo_is_too_small(seed: u64, count in 1usize..300, spare in 0u64..1 << 42) {
            let total = MINIMUM_PHOTO_BYTES * count as u64 + spare;
            let sizes = photo_sizes(seed, count, total);
            prop_assert_eq!(sizes.iter().sum::<u64>(), total);
            prop_assert!(sizes.iter().all(|size| *size >= MINIMUM_PHOTO_BYTES));
        }
    }
}
