//! A round trip time that wanders, and its effect on targets that need different numbers of round trips.

use super::noise::{AutoregressiveNoise, Noise};

/// Mixed into the seed of a replicate, so that the round trip times are drawn apart from all other noise: a world with
/// them has the same load, gusts and hangs as the one without.
const SEED_OF_ROUND_TRIPS: u64 = 0x5274_7400_0000_0000;

/// Parameters of a round trip time that wanders around its median. Deviations are in natural logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTripWander {
    /// Median over all time, in milliseconds.
    pub median_ms: f64,
    /// Standard deviation of the wandering.
    pub deviation: f64,
    /// Correlation time of the wandering, in hours.
    pub memory_hours: f64,
    /// Standard deviation of the noise of a measurement of the round trip time.
    pub measurement_deviation: f64,
    /// Share of an undisturbed run that is spent in round trips at the median: of the first target of a pair, and of the
    /// second.
    pub shares: [f64; 2],
}

impl RoundTripWander {
    /// Targets with 150 and 60 round trips of 28 ms in an undisturbed run of 6 s, measured with 10 % noise before each
    /// run; the round trip time remembers two days.
    pub const fn with_deviation(deviation: f64) -> Self {
        Self {
            median_ms: 28.0,
            deviation,
            memory_hours: 48.0,
            measurement_deviation: 0.1,
            shares: [150.0 * 0.028 / 6.0, 60.0 * 0.028 / 6.0],
        }
    }

    /// Returns the logarithm of the factor by which a run on a target takes longer at a round trip time than at the
    /// median.
    pub fn ln_factor(&self, target: usize, round_trip_ms: f64) -> f64 {
        let share = self.shares[target % 2];
        (1.0 - share + share * round_trip_ms / self.median_ms).ln()
    }

    /// Returns the true log ratio of the second target of a pair to the first at a round trip time, if both take equally
    /// long at the median.
    pub fn ln_ratio(&self, round_trip_ms: f64) -> f64 {
        self.ln_factor(1, round_trip_ms) - self.ln_factor(0, round_trip_ms)
    }

    /// Returns the round trip time in milliseconds at which both targets take equally long, if the second one takes
    /// `ratio` times as long at the median; `None` if there is none.
    pub fn break_even_ms(&self, ratio: f64) -> Option<f64> {
        let [first, second] = self.shares;
        let times = (ratio * (1.0 - second) - (1.0 - first)) / (first - ratio * second);
        (times.is_finite() && times > 0.0).then_some(times * self.median_ms)
    }
}

/// Round trip time at the current simulated time.
pub(super) struct RoundTripState {
    parameters: RoundTripWander,
    level: AutoregressiveNoise,
    noise: Noise,
}

impl RoundTripState {
    pub(super) fn new(parameters: RoundTripWander, seed: u64) -> Self {
        let mut noise = Noise::new(seed ^ SEED_OF_ROUND_TRIPS);
        let level = AutoregressiveNoise::new(parameters.deviation, parameters.memory_hours, &mut noise);
        Self { parameters, level, noise }
    }

    /// Advances to an hour and returns the measured round trip time in milliseconds.
    pub(super) fn measure_at(&mut self, hour: f64) -> f64 {
        let level = self.level.value_at(hour, &mut self.noise);
        self.parameters.median_ms
            * (level + self.parameters.measurement_deviation * self.noise.normal()).exp()
    }

    /// Returns the logarithm of the factor by which a run on a target takes longer at the current hour.
    pub(super) fn ln_factor(&self, target: usize) -> f64 {
        self.parameters.ln_factor(target, self.parameters.median_ms * self.level.level().exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_one_at_the_median_and_falls_with_the_round_trip() {
        let wander = RoundTripWander::with_deviation(0.3);
        assert_eq!(wander.ln_ratio(28.0), 0.0);
        // 6 s with 150 round trips and with 60: at twice the round trip time 10.2 s and 7.68 s.
        assert!((wander.ln_ratio(56.0) - (7.68f64 / 10.2).ln()).abs() < 1e-12);
        assert!(wander.ln_ratio(14.0) > 0.2);
        let crossing = wander.break_even_ms(1.1).unwrap();
        assert!((1.1f64.ln() + wander.ln_ratio(crossing)).abs() < 1e-12 && crossing > 28.0, "{crossing}");
    }
}
