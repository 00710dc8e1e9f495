//! Random numbers from a seed, fast enough for hundreds of millions of calls (SplitMix64).

/// A generator of random numbers.
#[derive(Debug, Clone, Copy)]
pub struct Random(u64);

impl Random {
    /// Creates the generator of a stream: the same parts give the same numbers.
    pub fn of(parts: [u64; 3]) -> Self {
        let mix = |seed: u64, part: u64| Self(seed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next();
        Self(parts.into_iter().fold(0x6c6f_6e67, mix))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number from 0 up to 1.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Returns a normal number with mean 0 and standard deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
