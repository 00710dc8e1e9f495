//! Converts the difference between two targets to minutes a week, using the user's usage profile
//! (docs/methodology.md#minutes-a-week).

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::pair_data::{DayRange, MetricIndex, PairData};
use super::pairing::PairedReading;
use super::window::Reading;
use crate::stats::DaySeries;
use longhaul_model::median;

/// Additional minutes a week that the second target of a pair costs, for the user's usage profile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct WeeklyMinutes {
    /// Additional minutes a week on the second target; negative if it costs less.
    pub value: f64,
    /// Lower end of the interval in minutes, valid however often the report is read.
    pub low: f64,
    /// Upper end of the interval in minutes.
    pub high: f64,
    /// Number of days that the estimate rests on.
    pub days: usize,
    /// Share of the usage profile, by count of activities, that was measured on both targets, from 0 to 1.
    pub measured_share: f64,
    /// Number of days over which the usage profile was counted; `None` if it was not.
    #[serde(skip)]
    pub counted_days: Option<f64>,
    /// True if the usual days stand for all days. If not, days of another kind make most of the minutes, no one number is right, and
    /// none is shown; but the mean of all days has the same sign.
    #[serde(skip)]
    pub is_of_all_days: bool,
}

const MINUTES_PER_HOUR: f64 = 60.0;

/// Returns the additional minutes a week of a pair on the given days. `mix` is the usage profile: times a week by
/// metric key. `None` without a usage profile, while the interval is infinite, or if the usual days and all days disagree about
/// which target costs more.
pub(super) fn weekly_minutes(
    pair_data: &PairData<'_, '_>,
    mix: &BTreeMap<String, f64>,
    alpha: f64,
    days: &DayRange,
) -> Option<WeeklyMinutes> {
    let wanted: Vec<(MetricIndex, f64)> = MetricIndex::all()
        .filter_map(|position| Some((position, *mix.get(&position.key())?)))
        .filter(|(_, count)| *count > 0.0)
        .collect();
    let measured: Vec<(&[PairedReading], f64)> = wanted
        .iter()
        .filter_map(|(position, count)| Some((pair_data.current_rounds(*position)?, *count)))
        .collect();
    let mut hours: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    for (rounds, count) in &measured {
        for (day, seconds) in daily_differences(rounds).into_iter().filter(|(day, _)| days.contains(day)) {
            let entry = hours.entry(day).or_default();
            *entry = (entry.0 + count * seconds / 3600.0, entry.1 + 1);
        }
    }
    // A day without one of the metrics would count too few minutes.
    let complete = hours.into_iter().filter(|(_, (_, count))| *count == measured.len());
    let by_day: Vec<(i64, f64)> = complete.map(|(day, (hours, _))| (day, hours)).collect();
    let series = DaySeries::of_values(&by_day)?;
    let (low, high) = series.interval(alpha);
    // Of days of two kinds, the usual ones may cost minutes, and all together save them, or save many more.
    let all = by_day.iter().map(|(_, hours)| hours).sum::<f64>() / by_day.len() as f64;
    let shift = (all - series.mean()).abs();
    let is_moved = DaySeries::has_two_kinds(&by_day) && shift > series.mean().abs() / 2.0;
    let is_noticeable = |hours: f64| hours.abs() * MINUTES_PER_HOUR >= 1.0;
    let has_same_sign = all * series.mean() > 0.0;
    let is_of_all_days = (has_same_sign || !is_noticeable(all)) && !(is_moved && is_noticeable(shift));
    let total: f64 = wanted.iter().map(|(_, count)| count).sum();
    let covered: f64 = measured.iter().map(|(_, count)| count).sum();
    let is_usable = low.is_finite() && high.is_finite() && total > 0.0;
    (is_usable && (is_of_all_days || has_same_sign)).then(|| WeeklyMinutes {
        value: series.mean() * MINUTES_PER_HOUR,
        low: low * MINUTES_PER_HOUR,
        high: high * MINUTES_PER_HOUR,
        days: series.days(),
        measured_share: covered / total,
        counted_days: None,
        is_of_all_days,
    })
}

/// Returns the median over rounds of the additional seconds on the second target, by day. Rounds with a failure are
/// ignored, because a failure has no time.
fn daily_differences(rounds: &[PairedReading]) -> Vec<(i64, f64)> {
    let mut by_day: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for paired in rounds {
        if let (Reading::Time(a), Reading::Time(b)) = (paired.a, paired.b) {
            by_day.entry(paired.day).or_default().push(b - a);
        }
    }
    by_day.into_iter().filter_map(|(day, seconds)| Some((day, median(&seconds)?))).collect()
}
