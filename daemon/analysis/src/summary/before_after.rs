//! Compares a pair of targets before and after a given day, to test if a change on that day had an effect
//! (docs/methodology.md#changes-of-the-ratio).

use serde::Serialize;

use super::comparison::Subject;
use super::pair_data::{MetricIndex, PairData};
use super::pair_summary::PairSummary;
use super::pairing::TargetPair;
use super::weekly::WeeklyQuery;
use super::window::{AnalysisWindow, Reading};
use crate::stats::split_at_event;
use longhaul_model::{History, TargetName, median};

/// Maximum number of days on either side of the change that are compared.
pub const MAX_DAYS_PER_SIDE: usize = 14;

/// One metric of a pair of targets, before and after a given day.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeAfter {
    /// Metric that is compared.
    pub subject: Subject,
    /// Number of valid days of the pair before and after the day of the change, at most 14 each.
    pub days: (usize, usize),
    /// Ratio of the pair before and after; a drift common to both targets cancels out. `None` if either side has
    /// fewer than 14 days.
    pub ratio: Option<RatioChange>,
    /// Median time of each target before and after, in seconds. Descriptive only, because the times of a single
    /// target also drift without a cause.
    pub levels: [Option<(f64, f64)>; 2],
}

/// Ratio of a pair before and after a change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatioChange {
    /// Geometric mean of the ratio before the change.
    pub before: f64,
    /// Geometric mean of the ratio after the change.
    pub after: f64,
    /// True if the ratios differ, with a chance of a false positive of 1 %.
    pub changed: bool,
}

/// Compares every metric of a pair before and after a day; the day itself belongs to neither side. `None` if either
/// target is unknown or has no run.
pub fn before_after(
    history: &History,
    query: &WeeklyQuery,
    pair: &PairSummary,
    day: i64,
) -> Option<Vec<BeforeAfter>> {
    let scope = query.window(history);
    let place = |name: &TargetName| history.targets.iter().position(|target| target.name == *name);
    let pair = TargetPair { a: place(&pair.a)?, b: place(&pair.b)? };
    scope.active_epochs[pair.a].and(scope.active_epochs[pair.b])?;
    let caps = MetricIndex::all()
        .map(|position| (position, scope.failure_cap(position.workload, position.index)))
        .collect();
    let pair_data = PairData::new(&scope, pair, &caps);
    Some(MetricIndex::all().filter_map(|position| compare_around(&pair_data, position, day)).collect())
}

fn compare_around(pair_data: &PairData<'_, '_>, position: MetricIndex, day: i64) -> Option<BeforeAfter> {
    let days = pair_data.daily_ratios(position)?;
    let before = days.iter().filter(|(known, _)| *known < day).count();
    let after = days.iter().filter(|(known, _)| *known > day).count();
    let ratio = split_at_event(&days, day, 1).map(|split| RatioChange {
        before: split.means.0.exp(),
        after: split.means.1.exp(),
        changed: split.is_change(),
    });
    Some(BeforeAfter {
        subject: Subject::for_metric(position),
        days: (before.min(MAX_DAYS_PER_SIDE), after.min(MAX_DAYS_PER_SIDE)),
        ratio,
        levels: [pair_data.pair.a, pair_data.pair.b]
            .map(|target| median_levels(pair_data.window, position, target, day)),
    })
}

/// Returns the median time of a target in the 14 calendar days before and after a day, in seconds.
fn median_levels(
    scope: &AnalysisWindow<'_>,
    position: MetricIndex,
    target: usize,
    day: i64,
) -> Option<(f64, f64)> {
    let around = MAX_DAYS_PER_SIDE as i64;
    let within = |days: std::ops::Range<i64>| {
        let times =
            scope.readings(position.workload, position.index, target).filter_map(|(_, day, reading)| {
                match reading {
                    Reading::Time(seconds) if days.contains(&day) => Some(seconds),
                    Reading::Time(_) | Reading::Failed | Reading::Absent => None,
                }
            });
        median(&times.collect::<Vec<_>>())
    };
    within(day - around..day).zip(within(day + 1..day + 1 + around))
}
