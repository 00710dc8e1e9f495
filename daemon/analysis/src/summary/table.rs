//! Builds the weekly table of times by metric and target.

use serde::Serialize;
use utoipa::ToSchema;

use super::comparison::Subject;
use super::pair_data::MetricIndex;
use super::week::Week;
use super::window::{AnalysisWindow, Reading};
use longhaul_model::{TargetName, median, quantile, supports_quantile};

/// Row of the table: one metric with its times on each target.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MetricRow {
    /// Metric of the row.
    pub subject: Subject,
    /// Times on each target, in the order of the targets.
    pub targets: Vec<TimesOnTarget>,
}

/// Times of one metric on one target in seconds; failures are counted separately.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TimesOnTarget {
    /// Target of the times.
    pub target: TargetName,
    /// Times of the shown week.
    pub week: TimeSummary,
    /// Times from the end of the epoch's warm-up to the end of the shown week.
    pub epoch: TimeSummary,
}

/// Summary statistics of a set of times, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default, ToSchema)]
pub struct TimeSummary {
    /// Median; `None` without a time.
    pub median: Option<f64>,
    /// Lowest and highest daily median; `None` without a time.
    pub daily_range: Option<(f64, f64)>,
    /// 95th percentile; `None` with fewer than 20 values beyond it or fewer than five days
    /// (docs/methodology.md#histograms-and-quantiles).
    pub p95: Option<f64>,
    /// Number of measured times.
    pub count: usize,
    /// Number of days with a measured time.
    pub days: usize,
    /// Number of failures; a failure has no time.
    pub failed: usize,
}

/// Returns the rows of all metrics that were measured on at least one target.
pub(super) fn metric_rows(scope: &AnalysisWindow<'_>, week: Week) -> Vec<MetricRow> {
    let row = |position: MetricIndex| {
        let targets: Vec<TimesOnTarget> = (0..scope.active_epochs.len())
            .filter(|target| scope.active_epochs[*target].is_some())
            .map(|target| times_on_target(scope, position, target, week))
            .collect();
        let is_measured = targets.iter().any(|on| on.epoch.count + on.epoch.failed > 0);
        is_measured.then(|| MetricRow { subject: Subject::for_metric(position), targets })
    };
    MetricIndex::all().filter_map(row).collect()
}

fn times_on_target(
    scope: &AnalysisWindow<'_>,
    position: MetricIndex,
    target: usize,
    week: Week,
) -> TimesOnTarget {
    let readings: Vec<(i64, Reading)> = scope
        .readings(position.workload, position.index, target)
        .map(|(_, day, reading)| (day, reading))
        .collect();
    let in_week: Vec<(i64, Reading)> =
        readings.iter().copied().filter(|(day, _)| week.contains(*day)).collect();
    TimesOnTarget {
        target: scope.history.targets[target].name.clone(),
        week: summarize_times(&in_week),
        epoch: summarize_times(&readings),
    }
}

/// Summarizes readings with their days. The readings must be sorted by day.
fn summarize_times(readings: &[(i64, Reading)]) -> TimeSummary {
    let timed: Vec<(i64, f64)> =
        readings.iter().filter_map(|(day, reading)| Some((*day, reading.time()?))).collect();
    let values: Vec<f64> = timed.iter().map(|(_, seconds)| *seconds).collect();
    let of_day = |day: &[(i64, f64)]| median(&day.iter().map(|(_, seconds)| *seconds).collect::<Vec<_>>());
    let days: Vec<f64> = timed.chunk_by(|a, b| a.0 == b.0).filter_map(of_day).collect();
    let lowest = days.iter().copied().reduce(f64::min);
    let is_supported = supports_quantile(values.len() as u64, 0.95, days.len());
    TimeSummary {
        median: median(&values),
        daily_range: lowest.zip(days.iter().copied().reduce(f64::max)),
        p95: quantile(&values, 0.95).filter(|_| is_supported),
        count: values.len(),
        days: days.len(),
        failed: readings.iter().filter(|(_, reading)| *reading == Reading::Failed).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p95_needs_twenty_values_beyond_it_and_five_days() {
        let readings = |count: i64, days: i64| -> Vec<(i64, Reading)> {
            (0..count).map(|at| (at * days / count, Reading::Time(1.0 + at as f64))).collect()
        };
        assert_eq!(summarize_times(&readings(399, 10)).p95, None);
        assert_eq!(summarize_times(&readings(400, 4)).p95, None);
        assert_eq!(summarize_times(&readings(400, 5)).p95, Some(380.0));
    }

    #[test]
    fn failures_are_counted_and_absent_readings_ignored() {
        let readings = [
            (1, Reading::Time(2.0)),
            (1, Reading::Failed),
            (1, Reading::Time(4.0)),
            (2, Reading::Absent),
            (3, Reading::Time(9.0)),
        ];
        let found = summarize_times(&readings);
        assert_eq!((found.median, found.daily_range), (Some(4.0), Some((3.0, 9.0))));
        assert_eq!((found.count, found.days, found.failed), (3, 2, 1));
    }
}
