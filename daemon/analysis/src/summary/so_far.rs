//! Ratio of two targets over the rounds made so far, from the first day on (docs/methodology.md#so-far).

use serde::Serialize;
use utoipa::ToSchema;

use super::pairing::RoundRatio;
use super::verdict::RatioEstimate;
use crate::stats::{RoundSeries, log_ratio_with_outliers};

/// Ratio of two targets over the rounds made so far, with the warm-up. A statement about the past only: the verdict
/// says what holds on other days.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct SoFar {
    /// Time on the second target divided by the time on the first: the geometric mean over the rounds, with an interval
    /// that is valid however often the report is read. `None` with too few rounds, or if there is a ratio with outliers.
    pub ratio: Option<RatioEstimate>,
    /// Geometric mean over all rounds, if more than a tenth of them lie so far out that it is another one than without them;
    /// else missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_with_outliers: Option<f64>,
    /// Number of rounds with a value of both targets. A failure counts as its cap.
    pub rounds: usize,
    /// Number of these rounds in which a run on the first target failed.
    pub failed_a: usize,
    /// Number of these rounds in which a run on the second target failed.
    pub failed_b: usize,
}

impl SoFar {
    /// Summarizes the rounds of a comparison, in chronological order. `alpha` is the maximum chance that the interval
    /// ever excludes the ratio that held on average in these rounds.
    pub(super) fn from_rounds(rounds: &[RoundRatio], alpha: f64) -> Self {
        let log_ratios: Vec<f64> = rounds.iter().map(|round| round.log_ratio).collect();
        let days = rounds.chunk_by(|before, after| before.day == after.day).count();
        let ratio = RoundSeries::from_rounds(&log_ratios).and_then(|series| {
            let (low, high) = series.interval(alpha);
            let (value, low, high) = (series.mean().exp(), low.exp(), high.exp());
            (low > 0.0 && high.is_finite()).then_some(RatioEstimate { value, low, high, days })
        });
        Self {
            ratio,
            ratio_with_outliers: log_ratio_with_outliers(&log_ratios).map(f64::exp),
            rounds: rounds.len(),
            failed_a: rounds.iter().filter(|round| round.failed.a).count(),
            failed_b: rounds.iter().filter(|round| round.failed.b).count(),
        }
    }
}
