//! Three numbers for how a target feels, never one: speed, smoothness, reliability.

use serde::Serialize;
use utoipa::ToSchema;

use super::cell::Position;
use super::reliability::Failures;
use super::scope::{Reading, Scope};
use super::verdict::Estimate;
use crate::model::TargetName;
use crate::stats::median;

/// A task that takes so many times its usual time of the same day was not smooth.
pub const NOT_SMOOTH: f64 = 2.0;
/// Two-sided 95 % of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// How a target feels.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Scores {
    /// The target.
    pub target: TargetName,
    /// 100 for the reference target; 120: it does the mix of tasks in 100/120 of the time. `None`: not known yet.
    pub speed: Option<Estimate>,
    /// Share of tasks that took less than twice the usual time of their day.
    pub smoothness: Option<Share>,
    /// Share of rounds without a failure.
    pub reliability: Option<Share>,
    /// Between which places it may stand among the targets that are compared; 1 is best.
    pub rank: (usize, usize),
}

/// A share with its descriptive interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Share {
    /// The share, from 0 to 1.
    pub value: f64,
    /// Lower end of Wilson's interval at 95 %; it takes the counts as independent and is a description.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Of how many.
    pub of: usize,
}

impl Share {
    /// A share of a count; `None` of none. Wilson, Journal of the American Statistical Association 22, 1927.
    pub(super) fn of(count: usize, of: usize) -> Option<Self> {
        if of == 0 {
            return None;
        }
        let (n, value) = (of as f64, count as f64 / of as f64);
        let scale = 1.0 + Z * Z / n;
        let centre = (value + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (value * (1.0 - value) / n + Z * Z / (4.0 * n * n)).sqrt();
        Some(Self { value, low: (centre - half).max(0.0), high: (centre + half).min(1.0), of })
    }
}

/// The share of smooth tasks of a target, over all endpoints.
pub(super) fn smoothness(scope: &Scope<'_>, target: usize) -> Option<Share> {
    let (mut smooth, mut all) = (0, 0);
    for position in Position::all() {
        let times: Vec<(i64, f64)> = scope
            .readings(position.workload, position.place, target)
            .filter_map(|(_, day, reading)| match reading {
                Reading::Time(seconds) => Some((day, seconds)),
                Reading::Failed | Reading::Absent => None,
            })
            .collect();
        for day in times.chunk_by(|a, b| a.0 == b.0) {
            let usual = median(&day.iter().map(|(_, seconds)| *seconds).collect::<Vec<_>>());
            all += day.len();
            smooth += day
                .iter()
                .filter(|(_, seconds)| usual.is_some_and(|usual| *seconds < NOT_SMOOTH * usual))
                .count();
        }
    }
    Share::of(smooth, all)
}

/// The share of rounds without a failure.
pub(super) fn reliability(failures: &Failures) -> Option<Share> {
    Share::of(failures.rounds - failures.failed_rounds, failures.rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_a_share_is_wilsons() {
        // Newcombe, Statistics in Medicine 17, 1998, table I, method 3: 81/263 is 0.2553 to 0.3662.
        let share = Share::of(81, 263).unwrap();
        assert!((share.low - 0.2553).abs() < 5e-5 && (share.high - 0.3662).abs() < 5e-5, "{share:?}");
        assert_eq!(Share::of(0, 0), None);
        let all = Share::of(20, 20).unwrap();
        assert!(all.high <= 1.0 && (all.low - 0.8389).abs() < 5e-5, "{all:?}");
    }
}
