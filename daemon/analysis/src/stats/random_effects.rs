//! Random-effects pooling: one estimate from many machines whose true values differ (docs/sharing.md#pooled-ratio).

use super::bisection::bisect;
use super::student::student_critical;

/// Smallest variance of an estimate. An estimate without any scatter would outweigh all others.
const MIN_VARIANCE: f64 = 1e-8;

/// Estimate of one machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineEstimate {
    /// Estimated value, such as a mean log ratio.
    pub value: f64,
    /// Variance of the estimate: the square of its standard error.
    pub variance: f64,
}

/// Pooled estimate of many machines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PooledEstimate {
    /// Mean over machines.
    pub mean: f64,
    /// Half width of the interval of the mean for one look, by Hartung and Knapp. Infinite for one machine.
    pub half_width: f64,
    /// Standard deviation of the true values between machines.
    pub between: f64,
    /// Number of machines.
    pub machines: usize,
}

/// Pools the estimates of machines; `None` without a machine.
///
/// The variance between machines is that of Paule and Mandel (1982): the root of `Σ w(y − μ)² = k − 1` with
/// `w = 1/(v + τ²)`, or zero. The interval is that of Hartung and Knapp (2001), `μ ± t(k − 1) · √(q/Σw)` with
/// `q = Σ w(y − μ)²/(k − 1)`, and `q` at least 1 (Röver, Knapp and Friede 2015), so that agreement by chance makes it no
/// narrower than without a spread.
pub fn pool(machines: &[MachineEstimate], alpha: f64) -> Option<PooledEstimate> {
    let count = machines.len();
    let between = between_variance(machines);
    let (mean, weight) = weighted_mean(machines, between)?;
    let freedom = count as f64 - 1.0;
    let half_width = if count < 2 {
        f64::INFINITY
    } else {
        let scale = (heterogeneity(machines, between) / freedom).max(1.0);
        student_critical(alpha, freedom) * (scale / weight).sqrt()
    };
    Some(PooledEstimate { mean, half_width, between: between.sqrt(), machines: count })
}

/// Returns the weighted mean, and the sum of the weights.
fn weighted_mean(machines: &[MachineEstimate], between: f64) -> Option<(f64, f64)> {
    let weight = |machine: &MachineEstimate| 1.0 / (machine.variance.max(MIN_VARIANCE) + between);
    let sum: f64 = machines.iter().map(weight).sum();
    let mean = machines.iter().map(|machine| weight(machine) * machine.value).sum::<f64>() / sum;
    (sum > 0.0 && mean.is_finite()).then_some((mean, sum))
}

/// Returns the weighted sum of squared deviations from the mean.
fn heterogeneity(machines: &[MachineEstimate], between: f64) -> f64 {
    let Some((mean, _)) = weighted_mean(machines, between) else { return 0.0 };
    let square =
        |one: &MachineEstimate| (one.value - mean).powi(2) / (one.variance.max(MIN_VARIANCE) + between);
    machines.iter().map(square).sum()
}

fn between_variance(machines: &[MachineEstimate]) -> f64 {
    let target = machines.len() as f64 - 1.0;
    if target < 1.0 || heterogeneity(machines, 0.0) <= target {
        return 0.0;
    }
    let mut high = 1.0;
    while heterogeneity(machines, high) > target {
        high *= 2.0;
    }
    // The sum falls with the variance.
    let (low, high) = bisect(0.0, high, |between| heterogeneity(machines, between) > target);
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The 13 trials of the BCG vaccine (Colditz et al. 1994): cases and others, vaccinated and not.
    const BCG: [[f64; 4]; 13] = [
        [4.0, 119.0, 11.0, 128.0],
        [6.0, 300.0, 29.0, 274.0],
        [3.0, 228.0, 11.0, 209.0],
        [62.0, 13536.0, 248.0, 12619.0],
        [33.0, 5036.0, 47.0, 5761.0],
        [180.0, 1361.0, 372.0, 1079.0],
        [8.0, 2537.0, 10.0, 619.0],
        [505.0, 87886.0, 499.0, 87892.0],
        [29.0, 7470.0, 45.0, 7232.0],
        [17.0, 1699.0, 65.0, 1600.0],
        [186.0, 50448.0, 141.0, 27197.0],
        [5.0, 2493.0, 3.0, 2338.0],
        [27.0, 16886.0, 29.0, 17825.0],
    ];

    fn trial([a, b, c, d]: [f64; 4]) -> MachineEstimate {
        let value = (a / (a + b)).ln() - (c / (c + d)).ln();
        MachineEstimate { value, variance: 1.0 / a - 1.0 / (a + b) + 1.0 / c - 1.0 / (c + d) }
    }

    #[test]
    fn published_trials_give_the_published_estimate() {
        let pooled = pool(&BCG.map(trial), 0.05).unwrap();
        // The package metafor of R gives these for method = "PM": variance 0.3181, mean -0.7150.
        assert!((pooled.between.powi(2) - 0.3181).abs() < 2e-4, "{pooled:?}");
        assert!((pooled.mean + 0.7150).abs() < 2e-4, "{pooled:?}");
        assert!((pooled.half_width - 0.395).abs() < 0.01, "{pooled:?}");
    }

    #[test]
    fn equal_machines_have_no_spread_and_one_has_no_interval() {
        let same = [MachineEstimate { value: 0.1, variance: 0.01 }; 4];
        let pooled = pool(&same, 0.05).unwrap();
        assert_eq!((pooled.between, pooled.machines), (0.0, 4));
        assert!((pooled.mean - 0.1).abs() < 1e-12 && pooled.half_width > 0.0);
        assert!(pool(&same[..1], 0.05).unwrap().half_width.is_infinite());
        assert_eq!(pool(&[], 0.05), None);
    }

    proptest! {
        #[test]
        fn mean_lies_between_the_machines(values in proptest::collection::vec((-2.0..2.0f64, 0.0..0.5f64), 1..30)) {
            let machines: Vec<MachineEstimate> =
                values.iter().map(|(value, variance)| MachineEstimate { value: *value, variance: *variance }).collect();
            let pooled = pool(&machines, 0.05).unwrap();
            let low = values.iter().map(|(value, _)| *value).fold(f64::INFINITY, f64::min);
            let high = values.iter().map(|(value, _)| *value).fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(low - 1e-9 <= pooled.mean && pooled.mean <= high + 1e-9, "{:?}", pooled);
            prop_assert!(pooled.between.is_finite());
        }
    }
}
