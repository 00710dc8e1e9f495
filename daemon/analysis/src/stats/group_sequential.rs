//! The interval of a decision by a fixed date: a group sequential test with planned looks.
//!
//! The looks are fixed beforehand, and the chance of an error is spent over them: by the look at a fraction `t` of the
//! planned time, `α · t²` of it (Kim and DeMets, Biometrika 1987, with ρ = 2; in calendar time, Lan and DeMets, Statistics
//! in Medicine 1989). The bounds follow from the joint normal distribution of the means at the looks, by the recursion of
//! Armitage, McPherson and Rowe (JRSS A 1969). With few days, a bound becomes the quantile of Student's t distribution at
//! the same level (Jennison and Turnbull, Group Sequential Methods, 1999, section 11.4). The intervals of all looks
//! together miss the true mean with a chance of at most alpha (repeated confidence intervals, same book, chapter 9).

use std::f64::consts::{PI, SQRT_2};

use statrs::function::erf::erfc;

use super::confidence_sequence::DaySeries;
use super::student::student_critical;

/// Exponent of the spending function.
const SPENDING_EXPONENT: i32 = 2;
/// Number of points on which the density of the sum is computed, odd for Simpson's rule.
const GRID: usize = 201;
/// Bound beyond which a normal variable lies with a chance below 1e-15.
const FAR: f64 = 8.0;

/// A planned look: a moment at which the data is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedLook {
    /// Fraction of the planned time, from 0 to 1.
    pub fraction: f64,
    /// Number of valid days up to the look.
    pub days: usize,
}

/// Returns half the width of the interval at the last of the given looks, for the series of all days up to it. Infinite
/// without a look, or with fewer than two days.
pub fn planned_half_width(series: &DaySeries, looks: &[PlannedLook], alpha: f64) -> f64 {
    let days = series.days() as f64;
    if days < 2.0 {
        return f64::INFINITY;
    }
    let variance = series.variance() * days / (days - 1.0) * series.variance_inflation();
    let level = level_of_last_look(looks, alpha);
    student_critical(level, days - 1.0) * (variance / days).sqrt()
}

/// Returns the two-sided level at which the last look is read, so that all looks together err with a chance of `alpha`; 0
/// without a look. A look with no more days than the one before is no look.
pub fn level_of_last_look(looks: &[PlannedLook], alpha: f64) -> f64 {
    let mut walk = Walk::new();
    let mut level = 0.0;
    let mut spent = 0.0;
    for look in looks.iter().filter(|look| look.days > 0) {
        if look.days as f64 > walk.days {
            let by_now = alpha * look.fraction.clamp(0.0, 1.0).powi(SPENDING_EXPONENT);
            let bound = walk.bound(look.days as f64, by_now - spent);
            walk.go_on(look.days as f64, bound);
            spent = by_now;
            level = erfc(bound / SQRT_2);
        }
    }
    level
}

/// Density of the sum of the days, for the paths that have not crossed a bound so far.
struct Walk {
    /// Number of days of the last look.
    days: f64,
    /// Points of the sum with their density times the weight of the integration.
    mass: Vec<(f64, f64)>,
}

impl Walk {
    fn new() -> Self {
        Self { days: 0.0, mass: vec![(0.0, 1.0)] }
    }

    /// Returns the chance that the standardized mean of `days` days crosses a bound.
    fn chance(&self, days: f64, bound: f64) -> f64 {
        let (limit, spread) = (bound * days.sqrt(), (days - self.days).sqrt());
        let crossing = |sum: f64| tail((limit - sum) / spread) + tail((limit + sum) / spread);
        self.mass.iter().map(|(sum, mass)| mass * crossing(*sum)).sum()
    }

    /// Returns the bound that is crossed with a given chance.
    fn bound(&self, days: f64, chance: f64) -> f64 {
        let (mut low, mut high) = (0.0, FAR);
        // 60 bisections reach the precision of a double.
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.chance(days, middle) > chance { low = middle } else { high = middle }
        }
        high
    }

    /// Goes on to the look after `days` days, with the paths that do not cross the bound there.
    fn go_on(&mut self, days: f64, bound: f64) {
        self.mass = self.within(bound * days.sqrt(), (days - self.days).sqrt());
        self.days = days;
    }

    /// Returns the density after the next days on a grid between `-limit` and `limit`.
    fn within(&self, limit: f64, spread: f64) -> Vec<(f64, f64)> {
        let step = 2.0 * limit / (GRID - 1) as f64;
        let density = |sum: f64| -> f64 {
            self.mass
                .iter()
                .map(|(before, mass)| mass * normal_density((sum - before) / spread) / spread)
                .sum()
        };
        (0..GRID)
            .map(|index| {
                let sum = -limit + step * index as f64;
                (sum, density(sum) * simpson_weight(index) * step / 3.0)
            })
            .collect()
    }
}

fn simpson_weight(index: usize) -> f64 {
    match index {
        0 => 1.0,
        last if last == GRID - 1 => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    }
}

fn normal_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// Returns the chance that a standard normal variable exceeds `z`.
fn tail(z: f64) -> f64 {
    0.5 * erfc(z / SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal_looks(count: usize) -> Vec<PlannedLook> {
        (1..=count)
            .map(|look| PlannedLook { fraction: look as f64 / count as f64, days: 10 * look })
            .collect()
    }

    /// Returns the chance that the mean of equal groups of days ever crosses the bound of its look.
    fn chance_of_any(bounds: &[f64]) -> f64 {
        let mut walk = Walk::new();
        let looks = (1..).map(|look| f64::from(10 * look)).zip(bounds);
        looks
            .map(|(days, bound)| {
                let chance = walk.chance(days, *bound);
                walk.go_on(days, *bound);
                chance
            })
            .sum()
    }

    /// Checks published bounds at 0.05, two-sided (Jennison and Turnbull, tables 2.1 and 2.3).
    #[test]
    fn published_bounds_are_crossed_with_their_chance() {
        let obrien_fleming = [1.0, 2.0, 3.0, 4.0, 5.0f64].map(|look| 2.040 * (5.0 / look).sqrt());
        for bounds in [&[2.178; 2][..], &[2.289; 3], &[2.413; 5], &obrien_fleming] {
            let chance = chance_of_any(bounds);
            assert!((chance - 0.05).abs() < 1e-4, "{bounds:?}: {chance}");
        }
    }

    #[test]
    fn bounds_of_all_looks_together_spend_alpha() {
        let looks = equal_looks(8);
        let critical = |seen: usize| student_critical(level_of_last_look(&looks[..seen], 0.05), 1e6);
        let bounds: Vec<f64> = (1..=8).map(critical).collect();
        assert!((chance_of_any(&bounds) - 0.05).abs() < 1e-5, "{bounds:?}");
        assert!(bounds.is_sorted_by(|one, next| one > next) && bounds[7] < 2.2, "{bounds:?}");
    }

    #[test]
    fn single_look_is_the_ordinary_test() {
        assert!((level_of_last_look(&equal_looks(1), 0.05) - 0.05).abs() < 1e-9);
    }

    #[test]
    fn looks_without_new_days_spend_nothing() {
        let one = [PlannedLook { fraction: 1.0, days: 20 }];
        let again = [PlannedLook { fraction: 0.0, days: 0 }, one[0], one[0]];
        assert_eq!(level_of_last_look(&again, 0.05), level_of_last_look(&one, 0.05));
        assert_eq!(level_of_last_look(&[], 0.05), 0.0);
    }
}
