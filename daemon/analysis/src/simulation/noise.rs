//! Random numbers and random processes for simulated worlds.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A seeded source of random numbers.
pub(super) struct Noise(ChaCha8Rng);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns a uniform random number in `(0, 1]`.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Returns true with probability `chance`.
    pub(super) fn bernoulli(&mut self, chance: f64) -> bool {
        self.uniform() <= chance
    }

    /// Returns a uniform random integer from 0 to `bound - 1`; 0 if `bound` is 0.
    pub(super) fn uniform_below(&mut self, bound: u64) -> u64 {
        ((self.uniform() * bound as f64) as u64).min(bound.saturating_sub(1))
    }

    /// Returns a normal random number with mean 0 and variance 1 (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Returns a random number from Student's t with four degrees of freedom, scaled to variance 1.
    pub(super) fn student_t4(&mut self) -> f64 {
        let chi_squared = -2.0 * (self.uniform() * self.uniform()).ln();
        self.normal() / (chi_squared / 4.0).sqrt() / 2f64.sqrt()
    }

    /// Returns an exponential random number with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Returns the target indices in random order (Fisher-Yates shuffle).
    pub(super) fn random_order<const TARGETS: usize>(&mut self) -> [usize; TARGETS] {
        let mut order = std::array::from_fn(|target| target);
        for last in (1..TARGETS).rev() {
            order.swap(last, self.uniform_below(last as u64 + 1) as usize);
        }
        order
    }
}

/// A random level that reverts to zero (Ornstein-Uhlenbeck process).
pub(super) struct AutoregressiveNoise {
    deviation: f64,
    correlation_hours: f64,
    level: f64,
    hour: f64,
}

impl AutoregressiveNoise {
    /// Creates a process in equilibrium at hour zero. `memory_hours` is the time after which the correlation is `1/e`.
    pub(super) fn new(deviation: f64, memory_hours: f64, noise: &mut Noise) -> Self {
        Self { deviation, correlation_hours: memory_hours, level: deviation * noise.normal(), hour: 0.0 }
    }

    /// Returns the level at the hour to which the process was last advanced.
    pub(super) fn level(&self) -> f64 {
        self.level
    }

    /// Advances the process to a later hour and returns the level.
    pub(super) fn value_at(&mut self, hour: f64, noise: &mut Noise) -> f64 {
        let correlation = (-(hour - self.hour).max(0.0) / self.correlation_hours).exp();
        self.level = correlation * self.level
            + self.deviation * (1.0 - correlation * correlation).sqrt() * noise.normal();
        self.hour = hour;
        self.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (n, sum, squares) = values.fold((0.0, 0.0, 0.0), |(n, s, q), x| (n + 1.0, s + x, q + x * x));
        (sum / n, squares / n - (sum / n).powi(2))
    }

    #[test]
    fn random_numbers_have_the_expected_moments() {
        let mut noise = Noise::new(1);
        let (mean, variance) = moments((0..200_000).map(|_| noise.normal()));
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "normal {mean} {variance}");
        let (mean, variance) = moments((0..200_000).map(|_| noise.student_t4()));
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.15, "heavy {mean} {variance}");
        let (mean, variance) = moments((0..200_000).map(|_| noise.exponential()));
        assert!((mean - 1.0).abs() < 0.01 && (variance - 1.0).abs() < 0.05, "exponential {mean} {variance}");
    }

    #[test]
    fn process_has_the_given_variance_and_correlation() {
        let mut noise = Noise::new(2);
        let mut process = AutoregressiveNoise::new(0.5, 6.0, &mut noise);
        let levels: Vec<f64> =
            (0..100_000).map(|i| process.value_at(f64::from(i) * 3.0, &mut noise)).collect();
        let (_, variance) = moments(levels.iter().copied());
        let (lagged, _) = moments(levels.windows(2).map(|pair| pair[0] * pair[1]));
        assert!((variance - 0.25).abs() < 0.01, "{variance}");
        assert!((lagged / variance - (-0.5f64).exp()).abs() < 0.02, "{}", lagged / variance);
    }
}
