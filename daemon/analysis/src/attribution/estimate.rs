//! Estimates with the interval that is certain.

/// Seconds, with the least and the most that they can be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundedSeconds {
    /// Best value.
    pub value: f64,
    /// Least value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
}

impl BoundedSeconds {
    /// Zero seconds, certainly.
    pub const ZERO: BoundedSeconds = BoundedSeconds { value: 0.0, low: 0.0, high: 0.0 };

    /// Returns an estimate; the interval is widened to include the value, and nothing is negative.
    pub fn new(value: f64, low: f64, high: f64) -> Self {
        let value = value.max(0.0);
        Self { value, low: low.clamp(0.0, value), high: high.max(value) }
    }

    /// Returns an estimate that is at most `limit`.
    pub fn at_most(self, limit: f64) -> Self {
        Self { value: self.value.min(limit), low: self.low.min(limit), high: self.high.min(limit) }
    }

    /// Returns what remains of a certain total.
    pub fn rest_of(self, total: f64) -> Self {
        Self::new(total - self.value, total - self.high, total - self.low)
    }

    /// Returns the estimate times a factor that is not negative.
    pub fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// Returns the sum of two estimates.
    pub fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, low: self.low + other.low, high: self.high + other.high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rest_has_the_opposite_interval() {
        let rest = BoundedSeconds::new(3.0, 1.0, 4.0).rest_of(10.0);
        assert_eq!(rest, BoundedSeconds { value: 7.0, low: 6.0, high: 9.0 });
    }

    proptest! {
        #[test]
        fn an_interval_includes_its_value(value in -1e3..1e3f64, low in -1e3..1e3f64, high in -1e3..1e3f64) {
            let found = BoundedSeconds::new(value, low, high).at_most(100.0);
            prop_assert!(0.0 <= found.low && found.low <= found.value && found.value <= found.high);
        }
    }
}
