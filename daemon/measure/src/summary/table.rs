//! The table of a week: what each task took on each target.

use serde::Serialize;
use utoipa::ToSchema;

use super::cell::Position;
use super::comparison::Subject;
use super::scope::{Reading, Scope};
use super::week::Week;
use crate::model::TargetName;
use crate::stats::{carries_quantile, median, quantile};

/// One endpoint, target by target.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EndpointRow {
    /// What it is about.
    pub subject: Subject,
    /// What each target shows, in their order.
    pub targets: Vec<TimesOnTarget>,
}

/// The times of one endpoint on one target, in seconds, failures apart.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TimesOnTarget {
    /// The target.
    pub target: TargetName,
    /// This week.
    pub week: Times,
    /// From the first settled day of the epoch to the end of this week.
    pub epoch: Times,
}

/// Some times, described.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default, ToSchema)]
pub struct Times {
    /// The median; `None` without a time.
    pub median: Option<f64>,
    /// The lowest and the highest median of a day: how much it moves.
    pub days_range: Option<(f64, f64)>,
    /// The 95th percentile, once 20 values lie beyond it and there are five days.
    pub p95: Option<f64>,
    /// How many times.
    pub times: usize,
    /// On how many days.
    pub days: usize,
    /// How many failures, which have no time.
    pub failed: usize,
}

/// The rows of every endpoint that was measured.
pub(super) fn rows(scope: &Scope<'_>, week: Week) -> Vec<EndpointRow> {
    let row = |position: Position| {
        let targets: Vec<TimesOnTarget> = (0..scope.lives.len())
            .filter(|target| scope.lives[*target].is_some())
            .map(|target| times_on_target(scope, (position, target), week))
            .collect();
        let is_measured = targets.iter().any(|on| on.epoch.times + on.epoch.failed > 0);
        is_measured.then(|| EndpointRow { subject: Subject::of(position), targets })
    };
    Position::all().filter_map(row).collect()
}

fn times_on_target(scope: &Scope<'_>, cell: (Position, usize), week: Week) -> TimesOnTarget {
    let (position, target) = cell;
    let readings: Vec<(i64, Reading)> = scope
        .readings(position.workload, position.place, target)
        .map(|(_, day, reading)| (day, reading))
        .collect();
    let in_week: Vec<(i64, Reading)> =
        readings.iter().copied().filter(|(day, _)| week.contains(*day)).collect();
    TimesOnTarget {
        target: scope.history.targets[target].name.clone(),
        week: times(&in_week),
        epoch: times(&readings),
    }
}

/// Describes readings, which are in order of their days.
fn times(readings: &[(i64, Reading)]) -> Times {
    let timed: Vec<(i64, f64)> = readings
        .iter()
        .filter_map(|(day, reading)| match reading {
            Reading::Time(seconds) => Some((*day, *seconds)),
            Reading::Failed | Reading::Absent => None,
        })
        .collect();
    let values: Vec<f64> = timed.iter().map(|(_, seconds)| *seconds).collect();
    let of_day = |day: &[(i64, f64)]| median(&day.iter().map(|(_, seconds)| *seconds).collect::<Vec<_>>());
    let days: Vec<f64> = timed.chunk_by(|a, b| a.0 == b.0).filter_map(of_day).collect();
    let lowest = days.iter().copied().reduce(f64::min);
    let carries = carries_quantile(values.len() as u64, 0.95, days.len());
    Times {
        median: median(&values),
        days_range: lowest.zip(days.iter().copied().reduce(f64::max)),
        p95: quantile(&values, 0.95).filter(|_| carries),
        times: values.len(),
        days: days.len(),
        failed: readings.iter().filter(|(_, reading)| *reading == Reading::Failed).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_p95_stands_once_twenty_values_lie_beyond_it_on_five_days() {
        let readings = |count: i64, days: i64| -> Vec<(i64, Reading)> {
            (0..count).map(|at| (at * days / count, Reading::Time(1.0 + at as f64))).collect()
        };
        assert_eq!(times(&readings(399, 10)).p95, None);
        assert_eq!(times(&readings(400, 4)).p95, None);
        assert_eq!(times(&readings(400, 5)).p95, Some(380.0));
    }

    #[test]
    fn failures_have_no_time_and_absences_are_nothing() {
        let readings = [
            (1, Reading::Time(2.0)),
            (1, Reading::Failed),
            (1, Reading::Time(4.0)),
            (2, Reading::Absent),
            (3, Reading::Time(9.0)),
        ];
        let found = times(&readings);
        assert_eq!((found.median, found.days_range), (Some(4.0), Some((3.0, 9.0))));
        assert_eq!((found.times, found.days, found.failed), (3, 2, 1));
    }
}
