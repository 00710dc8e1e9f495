//! Scores of a target: speed, smoothness and reliability, never combined to one number (docs/methodology.md#scores).

use serde::Serialize;
use utoipa::ToSchema;

use super::pair_data::MetricIndex;
use super::reliability::Failures;
use super::verdict::RatioEstimate;
use super::window::AnalysisWindow;
use longhaul_model::{TargetName, median};

/// Factor from which a task is not smooth: it took at least this many times the median of its day.
pub const ROUGH_FACTOR: f64 = 2.0;
/// Quantile of the normal distribution for a two-sided 95 % interval.
const Z: f64 = 1.959_963_984_540_054;

/// Scores of a target.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Scores {
    /// Target that is scored.
    pub target: TargetName,
    /// True for the reference target, which has no speed of its own.
    #[serde(skip)]
    pub is_reference: bool,
    /// Speed relative to the reference target, which has 100; at 120 a target does the same tasks in 100/120 of the
    /// time. `None` if unknown.
    pub speed: Option<RatioEstimate>,
    /// Share of task times below twice the median of their day; `None` without a time.
    pub smoothness: Option<Proportion>,
    /// Share of rounds without a failure; `None` without a round.
    pub reliability: Option<Proportion>,
    /// Best and worst possible rank among the compared targets; 1 is best.
    pub rank: (usize, usize),
}

/// A proportion with its descriptive interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Proportion {
    /// Proportion, from 0 to 1.
    pub value: f64,
    /// Lower end of Wilson's 95 % interval. The interval is descriptive, because it assumes independent counts.
    pub low: f64,
    /// Upper end of Wilson's 95 % interval.
    pub high: f64,
    /// Number of observations.
    pub total: usize,
}

impl Proportion {
    /// Returns the proportion of `count` out of `of` with Wilson's interval; `None` if `of` is 0. Source: Wilson,
    /// Journal of the American Statistical Association 22, 1927.
    pub(super) fn of(count: usize, of: usize) -> Option<Self> {
        if of == 0 {
            return None;
        }
        let (n, value) = (of as f64, count as f64 / of as f64);
        let scale = 1.0 + Z * Z / n;
        let centre = (value + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (value * (1.0 - value) / n + Z * Z / (4.0 * n * n)).sqrt();
        // Rounding must not leave the value outside of its interval.
        let (low, high) = ((centre - half).clamp(0.0, value), (centre + half).clamp(value, 1.0));
        Some(Self { value, low, high, total: of })
    }
}

/// Returns the smoothness score of a target: the share of smooth task times, over all metrics.
pub(super) fn smoothness(scope: &AnalysisWindow<'_>, target: usize) -> Option<Proportion> {
    let (mut smooth, mut all) = (0, 0);
    for position in MetricIndex::all() {
        let times: Vec<(i64, f64)> = scope
            .readings(position.workload, position.index, target)
            .filter_map(|(_, day, reading)| Some((day, reading.time()?)))
            .collect();
        for day in times.chunk_by(|a, b| a.0 == b.0) {
            let usual = median(&day.iter().map(|(_, seconds)| *seconds).collect::<Vec<_>>());
            all += day.len();
            smooth += day
                .iter()
                .filter(|(_, seconds)| usual.is_some_and(|usual| *seconds < ROUGH_FACTOR * usual))
                .count();
        }
    }
    Proportion::of(smooth, all)
}

/// Returns the reliability score of a target: the share of rounds without a failure.
pub(super) fn reliability(failures: &Failures) -> Option<Proportion> {
    Proportion::of(failures.rounds - failures.failed_rounds, failures.rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_matches_published_wilson_values() {
        // Newcombe, Statistics in Medicine 17, 1998, table I, method 3 gives 0.2553 to 0.3662 for 81/263.
        let share = Proportion::of(81, 263).unwrap();
        assert!((share.low - 0.2553).abs() < 5e-5 && (share.high - 0.3662).abs() < 5e-5, "{share:?}");
        assert_eq!(Proportion::of(0, 0), None);
        let all = Proportion::of(20, 20).unwrap();
        assert!(all.high <= 1.0 && (all.low - 0.8389).abs() < 5e-5, "{all:?}");
    }
}
