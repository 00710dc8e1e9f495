//! Looking at simulated rounds day after day, and counting how often a look was wrong.

use std::collections::BTreeMap;

use super::SimulatedRound;
use super::noise::Noise;
use crate::stats::{DaySeries, median};

/// A day with fewer complete rounds does not count.
const ROUNDS_NEEDED: usize = 6;

/// One look at everything measured so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Days that counted so far.
    pub days: usize,
    /// The interval of the log ratio that was shown.
    pub interval: (f64, f64),
}

impl Look {
    /// Whether its interval excludes a value.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.interval.0 || self.interval.1 < value
    }
}

/// The log ratio of two targets, day by day: the median over complete rounds, without days that have too few.
pub fn day_medians<const TARGETS: usize>(
    rounds: &[SimulatedRound<TARGETS>],
    pair: (usize, usize),
) -> Vec<(i64, f64)> {
    let mut days: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for round in rounds.iter().filter(|round| !(round.hung[pair.0] && round.hung[pair.1])) {
        let ratio = (round.seconds[pair.1] / round.seconds[pair.0]).ln();
        days.entry(round.day).or_default().push(ratio);
    }
    days.retain(|_, ratios| ratios.len() >= ROUNDS_NEEDED);
    days.into_iter().filter_map(|(day, ratios)| Some((day, median(&ratios)?))).collect()
}

/// A look on every day that counts, from the `first` such day on.
pub fn daily_looks(by_day: &[(i64, f64)], first: usize, alpha: f64) -> Vec<Look> {
    (first..=by_day.len())
        .filter_map(|days| Some(Look { days, interval: DaySeries::of(&by_day[..days])?.interval(alpha) }))
        .collect()
}

/// Days of nothing but independent normal noise of variance 1: here the formula's promise is exact.
pub fn normal_days(days: i64, seed: u64) -> Vec<(i64, f64)> {
    let mut noise = Noise::new(seed);
    (0..days).map(|day| (day, noise.normal())).collect()
}

/// What came out of many replicates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// How many.
    pub replicates: usize,
    /// In how many some look excluded "no difference".
    pub declared: usize,
    /// In how many the first look that did so lay on the side of the truth.
    pub right: usize,
    /// In how many some look excluded the truth.
    pub missed: usize,
    /// Half the width of each replicate's last look.
    pub half_widths: Vec<f64>,
    /// Days that counted at the first look that excluded "no difference"; infinite if none did.
    pub first_days: Vec<f64>,
}

impl Tally {
    /// Adds the looks at one replicate.
    pub fn add(&mut self, looks: &[Look], truth: f64) {
        let first = looks.iter().find(|look| look.excludes(0.0));
        let is_right = |look: &Look| (look.interval.0 > 0.0) == (truth > 0.0) && truth != 0.0;
        self.replicates += 1;
        self.declared += usize::from(first.is_some());
        self.right += usize::from(first.is_some_and(is_right));
        self.missed += usize::from(looks.iter().any(|look| look.excludes(truth)));
        self.half_widths.extend(looks.last().map(|look| (look.interval.1 - look.interval.0) / 2.0));
        self.first_days.push(first.map_or(f64::INFINITY, |look| look.days as f64));
    }

    /// A count as a share of the replicates.
    pub fn share(&self, count: usize) -> f64 {
        count as f64 / self.replicates as f64
    }
}
