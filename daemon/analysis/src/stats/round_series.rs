//! The interval of the mean log ratio over the rounds that were made, valid at every look.
//!
//! It is a statement about the past: the mean over these rounds of the ratio that held at the time of each. It says
//! nothing about other days; for that, days are the replicates ([`super::DaySeries`]). Such a finite mean needs no
//! assumption about how the ratio wanders: the order of the targets is drawn anew in each round, so that what disturbs
//! runs disturbs both targets alike, and a ratio that wanders only widens the interval (Ham, Bojinov, Lindon and
//! Tingley, arXiv 2210.08639). The interval itself is the mixture of [`super::anytime_valid_half_width`]; that it keeps
//! its level for winsorized rounds was shown by simulation (docs/methodology.md#so-far).

use super::confidence_sequence::{MAX_LOG_RATIO, mixture_half_width};
use super::winsorize::{mean_with_outliers, winsorize};

/// Number of rounds from which there is an interval. With fewer, the spread is too uncertain to find outliers.
pub const MIN_ROUNDS_SO_FAR: usize = 14;
/// Precision of the mixture, `c²`. From 14 rounds on, 1 gives narrower intervals than the ½ of days: there are more
/// rounds than days, and a difference is smaller beside the spread of single rounds.
const MIXTURE_PRECISION: f64 = 1.0;
/// Winsorizing bound of rounds: distance from the median in scaled median absolute deviations. Single rounds have more
/// outliers than medians of days, so the bound is closer; the simulation chose it (docs/methodology.md#so-far).
const WINSORIZE_AT_DEVIATIONS: f64 = 2.5;

/// Summary of the log ratios of rounds: number of rounds, winsorized mean and its variance times the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundSeries {
    rounds: usize,
    mean: f64,
    variance: f64,
}

impl RoundSeries {
    /// Summarizes one log ratio for each round, winsorized at the median ± 2.5 · 1.4826 · MAD. `None` with fewer than
    /// [`MIN_ROUNDS_SO_FAR`] rounds, with a value that cannot be the log ratio of two durations, or if the mean of the rounds
    /// as they are is another one ([`log_ratio_with_outliers`]).
    pub fn from_rounds(log_ratios: &[f64]) -> Option<Self> {
        let is_log_ratio = |value: &f64| value.abs() <= MAX_LOG_RATIO;
        let is_usable = log_ratios.len() >= MIN_ROUNDS_SO_FAR && log_ratios.iter().all(is_log_ratio);
        if !is_usable || log_ratio_with_outliers(log_ratios).is_some() {
            return None;
        }
        let mut values = log_ratios.to_vec();
        let clamped = winsorize(values.iter_mut(), WINSORIZE_AT_DEVIATIONS);
        // Winsorizing hides a part of the spread (Dixon and Tukey, Technometrics 10, 1968).
        let inflation = (values.len() as f64 / (values.len() - clamped) as f64).powi(2);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { rounds: values.len(), mean, variance: inflation * squares / values.len() as f64 })
    }

    /// Returns the mean of the winsorized log ratios.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the interval of the mean log ratio at level `1 - alpha`.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = mixture_half_width(self.rounds, self.variance, alpha, MIXTURE_PRECISION);
        (self.mean - half, self.mean + half)
    }
}

/// Returns the mean log ratio of rounds as they are, if too many of them lie too far out to be called outliers, and they move
/// the mean; else `None` (docs/methodology.md#rounds-of-two-kinds).
pub fn log_ratio_with_outliers(log_ratios: &[f64]) -> Option<f64> {
    mean_with_outliers(log_ratios, WINSORIZE_AT_DEVIATIONS).filter(|_| log_ratios.len() >= MIN_ROUNDS_SO_FAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_that_of_the_rounds() {
        let rounds: Vec<f64> = (0..28).map(|round| if round % 2 == 0 { 0.18 } else { 0.02 }).collect();
        let (low, high) = RoundSeries::from_rounds(&rounds).unwrap().interval(0.05);
        // K = (√29/0.05)^(2/28), s² = 0.0064.
        let half = 0.0516582525;
        assert!((low - (0.1 - half)).abs() < 1e-9 && (high - (0.1 + half)).abs() < 1e-9, "{low} {high}");
    }

    #[test]
    fn single_hang_moves_the_mean_little() {
        let mut rounds: Vec<f64> = (0..28).map(|round| 0.01 * f64::from(round % 3)).collect();
        let before = RoundSeries::from_rounds(&rounds).unwrap().mean();
        rounds.push(3.0);
        let after = RoundSeries::from_rounds(&rounds).unwrap().mean();
        assert!(after > before && after - before < 0.06 / 29.0, "{before} {after}");
    }

    #[test]
    fn few_rounds_and_impossible_values_have_no_series() {
        assert_eq!(RoundSeries::from_rounds(&[0.1; MIN_ROUNDS_SO_FAR - 1]), None);
        assert_eq!(RoundSeries::from_rounds(&[f64::NAN; MIN_ROUNDS_SO_FAR]), None);
        assert_eq!(RoundSeries::from_rounds(&[f64::INFINITY; MIN_ROUNDS_SO_FAR]), None);
    }
}
