//! What a difference means in a person's own week.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::cell::{Days, Evidence, Position};
use super::pairing::Paired;
use super::scope::Reading;
use crate::stats::{DaySeries, median};

/// Minutes a week that one target costs more than another, for the person's own mix of activities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct MinutesAWeek {
    /// Minutes that the second target costs more; negative: less.
    pub value: f64,
    /// Lower end of the interval, valid however often somebody looks.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Days.
    pub days: usize,
    /// Share of the mix, by count, that has been measured on both.
    pub covered: f64,
}

const MINUTES_AN_HOUR: f64 = 60.0;

/// The minutes for a mix (times a week, by endpoint) on some days; `None` without a mix, or while anything fits.
pub(super) fn minutes_a_week(
    evidence: &Evidence<'_, '_>,
    mix: &BTreeMap<String, f64>,
    alpha: f64,
    days: &Days,
) -> Option<MinutesAWeek> {
    let wanted: Vec<(Position, f64)> =
        Position::all().filter_map(|position| Some((position, *mix.get(&position.key())?))).collect();
    let measured: Vec<(&[Paired], f64)> = wanted
        .iter()
        .filter_map(|(position, count)| Some((evidence.rounds.get(position)?.0.as_slice(), *count)))
        .collect();
    let mut hours: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    for (rounds, count) in &measured {
        for (day, seconds) in differences(rounds).into_iter().filter(|(day, _)| days.contains(day)) {
            let entry = hours.entry(day).or_default();
            *entry = (entry.0 + count * seconds / 3600.0, entry.1 + 1);
        }
    }
    let whole = hours.into_iter().filter(|(_, (_, count))| *count == measured.len());
    let by_day: Vec<(i64, f64)> = whole.map(|(day, (hours, _))| (day, hours)).collect();
    let series = DaySeries::of(&by_day)?;
    let (low, high) = series.interval(alpha);
    let total: f64 = wanted.iter().map(|(_, count)| count).sum();
    let covered: f64 = measured.iter().map(|(_, count)| count).sum();
    (low.is_finite() && high.is_finite() && total > 0.0).then(|| MinutesAWeek {
        value: series.mean() * MINUTES_AN_HOUR,
        low: low * MINUTES_AN_HOUR,
        high: high * MINUTES_AN_HOUR,
        days: series.days(),
        covered: covered / total,
    })
}

/// By day: the median over rounds of how many seconds the second took longer. Failures have no time.
fn differences(rounds: &[Paired]) -> Vec<(i64, f64)> {
    let mut by_day: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for paired in rounds {
        if let (Reading::Time(a), Reading::Time(b)) = (paired.a, paired.b) {
            by_day.entry(paired.day).or_default().push(b - a);
        }
    }
    by_day.into_iter().filter_map(|(day, seconds)| Some((day, median(&seconds)?))).collect()
}
