//! Random numbers and processes of a simulated world.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A seeded source of random numbers.
pub(super) struct Noise(ChaCha8Rng);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Uniform in `(0, 1]`.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// True with that chance.
    pub(super) fn happens(&mut self, chance: f64) -> bool {
        self.uniform() <= chance
    }

    /// A whole number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((self.uniform() * bound as f64) as u64).min(bound.saturating_sub(1))
    }

    /// Normal with mean 0 and variance 1 (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Student's t with four degrees of freedom, scaled to variance 1.
    pub(super) fn heavy(&mut self) -> f64 {
        let chi_squared = -2.0 * (self.uniform() * self.uniform()).ln();
        self.normal() / (chi_squared / 4.0).sqrt() / 2f64.sqrt()
    }

    /// Exponential with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// The targets in a drawn order.
    pub(super) fn order<const TARGETS: usize>(&mut self) -> [usize; TARGETS] {
        let mut order = std::array::from_fn(|target| target);
        for last in (1..TARGETS).rev() {
            order.swap(last, self.below(last as u64 + 1) as usize);
        }
        order
    }
}

/// A level that is pushed about at random and pulled back to zero (Ornstein and Uhlenbeck).
pub(super) struct Wander {
    deviation: f64,
    memory_hours: f64,
    level: f64,
    hour: f64,
}

impl Wander {
    /// One in equilibrium at hour zero: its standard deviation, and after how many hours its correlation is `1/e`.
    pub(super) fn new(deviation: f64, memory_hours: f64, noise: &mut Noise) -> Self {
        Self { deviation, memory_hours, level: deviation * noise.normal(), hour: 0.0 }
    }

    /// The level at a later hour.
    pub(super) fn at(&mut self, hour: f64, noise: &mut Noise) -> f64 {
        let kept = (-(hour - self.hour).max(0.0) / self.memory_hours).exp();
        self.level = kept * self.level + self.deviation * (1.0 - kept * kept).sqrt() * noise.normal();
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
    fn numbers_have_the_moments_that_they_say() {
        let mut noise = Noise::new(1);
        let (mean, variance) = moments((0..200_000).map(|_| noise.normal()));
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "normal {mean} {variance}");
        let (mean, variance) = moments((0..200_000).map(|_| noise.heavy()));
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.15, "heavy {mean} {variance}");
        let (mean, variance) = moments((0..200_000).map(|_| noise.exponential()));
        assert!((mean - 1.0).abs() < 0.01 && (variance - 1.0).abs() < 0.05, "exponential {mean} {variance}");
    }

    #[test]
    fn a_wandering_level_keeps_its_spread_and_forgets_as_fast_as_it_says() {
        let mut noise = Noise::new(2);
        let mut wander = Wander::new(0.5, 6.0, &mut noise);
        let levels: Vec<f64> = (0..100_000).map(|i| wander.at(f64::from(i) * 3.0, &mut noise)).collect();
        let (_, variance) = moments(levels.iter().copied());
        let (lagged, _) = moments(levels.windows(2).map(|pair| pair[0] * pair[1]));
        assert!((variance - 0.25).abs() < 0.01, "{variance}");
        assert!((lagged / variance - (-0.5f64).exp()).abs() < 0.02, "{}", lagged / variance);
    }
}
