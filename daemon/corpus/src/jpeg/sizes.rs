//! Random sizes for the photos of a batch.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Minimum size of a photo in bytes. The Exif part with the thumbnail takes 13 KiB, the rest is the picture.
pub const MINIMUM_PHOTO_BYTES: u64 = 32 * 1024;
/// Maximum size of a photo in bytes: about 112 megapixels.
pub const MAXIMUM_PHOTO_BYTES: u64 = 64 * 1024 * 1024;
/// Standard deviation of the logarithm of the sizes. It resembles photos of one camera, from plain sky to forest.
/// The largest photo of a batch is about twice the mean, which limits the memory for decoding.
const LOG_SIZE_SIGMA: f64 = 0.25;

/// Returns log-normal sizes in bytes for `count` photos whose sum is exactly `total_bytes`.
///
/// Each size is the minimum size of a photo plus a log-normal share (sigma 0.25) of the remaining bytes. If
/// `total_bytes` is too small for `count` photos, each photo has the minimum size and the sum is larger. Bytes above
/// [`MAXIMUM_PHOTO_BYTES`] go to other photos; if none has room for them, the sum is smaller.
pub fn photo_sizes(seed: u64, count: usize, total_bytes: u64) -> Vec<u64> {
    let spare = total_bytes.saturating_sub(MINIMUM_PHOTO_BYTES * count as u64);
    let weights = weights(seed, count);
    let sum: f64 = weights.iter().sum();
    let mut sizes: Vec<u64> = weights.iter().map(|weight| (spare as f64 * (weight / sum)) as u64).collect();
    distribute_rounding_error(&mut sizes, spare);
    sizes.iter_mut().for_each(|size| *size += MINIMUM_PHOTO_BYTES);
    limit_sizes(&mut sizes);
    sizes
}

/// Limits each size to the maximum size of a photo, and adds the excess to the first photos that have room for it.
fn limit_sizes(sizes: &mut [u64]) {
    let mut excess: u64 = sizes.iter().map(|size| size.saturating_sub(MAXIMUM_PHOTO_BYTES)).sum();
    for size in sizes {
        *size = (*size).min(MAXIMUM_PHOTO_BYTES);
        let added = excess.min(MAXIMUM_PHOTO_BYTES - *size);
        *size += added;
        excess -= added;
    }
}

/// Adjusts rounded shares, starting with the first, until their sum is exactly `sum`.
fn distribute_rounding_error(shares: &mut [u64], sum: u64) {
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
    (0..count).map(|_| exponential(LOG_SIZE_SIGMA * normal(&mut random))).collect()
}

/// Returns an approximately standard normal random number: the sum of twelve uniform random numbers, minus six.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    // Only additions and multiplications are used, because IEEE 754 defines their results exactly. A logarithm of
    // the system library may differ in its last bit after an update, and then the expected size of a file that was
    // written weeks before would differ as well.
    let unit = |random: &mut ChaCha8Rng| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    (0..12).map(|_| unit(random)).sum::<f64>() - 6.0
}

/// Returns `e^x` for `|x| < 3`. It uses the power series instead of the system library, so that results are the
/// same on every machine and after every update.
fn exponential(x: f64) -> f64 {
    (1..=30).rev().fold(1.0, |sum, term| 1.0 + sum * x / f64::from(term))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_of_the_standard_batch_have_the_configured_sigma() {
        let sizes = photo_sizes(1, 155, 415_000_000);
        assert_eq!(sizes.len(), 155);
        assert_eq!(sizes.iter().sum::<u64>(), 415_000_000);
        let logarithms: Vec<f64> = sizes.iter().map(|size| (*size as f64).ln()).collect();
        let mean = logarithms.iter().sum::<f64>() / 155.0;
        let variance = logarithms.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 154.0;
        assert!((0.2..0.3).contains(&variance.sqrt()), "sigma {}", variance.sqrt());
    }

    #[test]
    fn power_series_equals_the_exponential_function() {
        for x in [-2.7, -1.0, 0.0, 0.3, 2.7_f64] {
            assert!((exponential(x) / x.exp() - 1.0).abs() < 1e-12, "{x}");
        }
    }

    #[test]
    fn too_small_total_gives_each_photo_the_minimum_size() {
        assert_eq!(photo_sizes(1, 3, 10), [MINIMUM_PHOTO_BYTES; 3]);
        assert!(photo_sizes(1, 0, 10).is_empty());
    }

    #[test]
    fn too_large_total_gives_each_photo_the_maximum_size() {
        assert_eq!(photo_sizes(1, 3, u64::MAX / 2), [MAXIMUM_PHOTO_BYTES; 3]);
    }

    proptest! {
        #[test]
        fn sum_is_exact_and_every_size_is_allowed(seed: u64, count in 1usize..300, mean in 0u64..1 << 27) {
            let mean = mean.max(MINIMUM_PHOTO_BYTES);
            let sizes = photo_sizes(seed, count, mean * count as u64);
            prop_assert_eq!(sizes.iter().sum::<u64>(), mean.min(MAXIMUM_PHOTO_BYTES) * count as u64);
            let allowed = MINIMUM_PHOTO_BYTES..=MAXIMUM_PHOTO_BYTES;
            prop_assert!(sizes.iter().all(|size| allowed.contains(size)));
        }
    }
}
