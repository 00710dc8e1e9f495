//! Computes the interval after each simulated day, and counts how often it was wrong.
//!
//! A "look" is one reading of the interval, from all days up to then.

use std::collections::BTreeMap;

use super::noise::Noise;
use super::rounds::SimulatedRound;
use crate::stats::{DaySeries, RoundSeries};
use longhaul_model::median;

/// Minimum number of complete rounds of a valid day.
const MIN_ROUNDS: usize = 6;

/// Interval computed from all days up to one day: one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalAtDay {
    /// Number of valid days up to the look.
    pub days: usize,
    /// Interval of the mean log ratio at the look.
    pub interval: (f64, f64),
}

impl IntervalAtDay {
    /// Returns true if the interval excludes a log ratio.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.interval.0 || self.interval.1 < value
    }
}

/// Returns the daily log ratios of two targets: the median over complete rounds, without days that have fewer than
/// [`MIN_ROUNDS`] rounds. `a` and `b` are the indices of the targets.
pub fn day_medians<const TARGETS: usize>(
    rounds: &[SimulatedRound<TARGETS>],
    a: usize,
    b: usize,
) -> Vec<(i64, f64)> {
    let mut days: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for round in rounds.iter().filter(|round| !(round.hung[a] && round.hung[b])) {
        let ratio = (round.seconds[b] / round.seconds[a]).ln();
        days.entry(round.day).or_default().push(ratio);
    }
    days.retain(|_, ratios| ratios.len() >= MIN_ROUNDS);
    days.into_iter().filter_map(|(day, ratios)| Some((day, median(&ratios)?))).collect()
}

/// Returns the interval after every valid day, from the day number `first` on.
pub fn daily_intervals(by_day: &[(i64, f64)], first: usize, alpha: f64) -> Vec<IntervalAtDay> {
    (first..=by_day.len())
        .filter_map(|days| {
            Some(IntervalAtDay { days, interval: DaySeries::from_days(&by_day[..days])?.interval(alpha) })
        })
        .collect()
}

/// Interval of the rounds made so far, computed after one of them: one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalAtRound {
    /// Number of days with a round before this one, the last of them with its fraction.
    pub days: f64,
    /// Interval of the mean log ratio over the rounds.
    pub interval: (f64, f64),
    /// Mean over the same rounds of the true log ratio at the time of each.
    pub truth: f64,
}

impl IntervalAtRound {
    /// Returns true if the interval excludes the truth about the rounds.
    pub fn misses(&self) -> bool {
        self.truth < self.interval.0 || self.interval.1 < self.truth
    }
}

/// Returns the interval of two targets after every round with a value of both, from the first round that has one.
pub fn intervals_after_rounds(rounds: &[SimulatedRound<2>], alpha: f64) -> Vec<IntervalAtRound> {
    let complete: Vec<_> = rounds.iter().filter(|round| round.hung != [true; 2]).collect();
    let ratio = |of: [f64; 2]| of[1] - of[0];
    let found: Vec<f64> = complete.iter().map(|round| ratio(round.seconds.map(f64::ln))).collect();
    let (mut looks, mut sum, mut full_days) = (vec![], 0.0, 0);
    for (made, round) in (1..).zip(&complete) {
        full_days += usize::from(made > 1 && complete[made - 2].day != round.day);
        sum += ratio(round.true_ln_ratios);
        if let Some(series) = RoundSeries::from_rounds(&found[..made]) {
            looks.push(IntervalAtRound {
                days: full_days as f64 + round.hour as f64 / 24.0,
                interval: series.interval(alpha),
                truth: sum / made as f64,
            });
        }
    }
    looks
}

/// Returns days of independent normal noise with variance 1. For such days the guarantee of the interval is exact
/// (docs/methodology.md#interval).
pub fn normal_days(days: i64, seed: u64) -> Vec<(i64, f64)> {
    let mut noise = Noise::new(seed);
    (0..days).map(|day| (day, noise.normal())).collect()
}

/// Error counts over many replicates of a simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorRates {
    /// Number of replicates.
    pub replicates: usize,
    /// Number of replicates in which any look excluded "no difference".
    pub declared: usize,
    /// Number of replicates in which the first look that excluded "no difference" lay on the side of the truth.
    pub correct: usize,
    /// Number of replicates in which any look excluded the truth.
    pub missed: usize,
    /// Half width of the interval at the last look of each replicate.
    pub half_widths: Vec<f64>,
    /// Number of valid days at the first look that excluded "no difference", for each replicate; infinite if none did.
    pub first_days: Vec<f64>,
}

impl ErrorRates {
    /// Adds the looks of one replicate. `truth` is the true log ratio.
    pub fn add(&mut self, looks: &[IntervalAtDay], truth: f64) {
        let first = looks.iter().find(|look| look.excludes(0.0));
        let is_right = |look: &IntervalAtDay| (look.interval.0 > 0.0) == (truth > 0.0) && truth != 0.0;
        self.replicates += 1;
        self.declared += usize::from(first.is_some());
        self.correct += usize::from(first.is_some_and(is_right));
        self.missed += usize::from(looks.iter().any(|look| look.excludes(truth)));
        self.half_widths.extend(looks.last().map(|look| (look.interval.1 - look.interval.0) / 2.0));
        self.first_days.push(first.map_or(f64::INFINITY, |look| look.days as f64));
    }

    /// Returns a count as a share of the replicates.
    pub fn share(&self, count: usize) -> f64 {
        count as f64 / self.replicates as f64
    }
}
