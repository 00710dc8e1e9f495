//! Evaluates the sequential-weeks design: one protocol per week, for a NAS that can only be mounted with one protocol
//! at a time.
//!
//! The unit is a pair of adjacent weeks, one with each target, in the order ABBA BAAB. The interval is that of days: it stays
//! valid however often it is read (docs/methodology.md#sequential-weeks).

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::comparison::Subject;
use super::pair_data::MetricIndex;
use super::pairing::TargetPair;
use super::week::Week;
use super::window::{AnalysisWindow, Reading};
use crate::stats::anytime_valid_half_width;
use longhaul_model::{RoundRecord, median};

/// Minimum number of days with data for a week to count.
const MIN_DAYS_PER_WEEK: usize = 3;

/// Warning that must be shown next to every result of the sequential-weeks design.
pub const CONFOUNDING_NOTE: &str = "Weeks with one protocol and weeks with another are different weeks: if anything else changed (the \
     neighbours' Wi-Fi, a system update, a fuller disk), this design cannot tell it from the protocol.";

/// Result of the sequential-weeks design for one metric of two targets that have no valid day in common.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SequentialWeeks {
    /// Metric that is compared.
    pub subject: Subject,
    /// Number of weeks with only the first target, and number of weeks with only the second.
    pub weeks: (usize, usize),
    /// Number of pairs of adjacent weeks, one week with each target.
    pub pairs: usize,
    /// Number of pairs that an interval needs.
    pub pairs_needed: usize,
    /// Time on the second target divided by the time on the first; `None` with fewer pairs.
    pub ratio: Option<WeekRatio>,
}

/// A ratio from pairs of weeks, with an interval that is valid at every look. The intervals of all metrics and pairs of shares hold
/// together at 95 %, if the pairs of weeks are independent and normal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct WeekRatio {
    /// Estimated ratio.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of pairs of weeks.
    pub pairs: usize,
}

/// Returns the result for every metric of a pair that was measured in alternating weeks. `alpha` is the maximum chance that any
/// interval of the pair ever excludes the true ratio.
pub(super) fn sequential_weeks(
    scope: &AnalysisWindow<'_>,
    pair: TargetPair,
    alpha: f64,
) -> Vec<SequentialWeeks> {
    // Bonferroni over all metrics: the level must not depend on which of them have weeks by now.
    let alpha = alpha / MetricIndex::all().count() as f64;
    let pairs_needed = pairs_needed(alpha);
    let on = |position: MetricIndex| {
        let weeks = [pair.a, pair.b].map(|target| weekly_log_medians(scope, position, target));
        let found = adjacent_differences(&weeks[0], &weeks[1]);
        let (weeks, differences) = found?;
        Some(SequentialWeeks {
            subject: Subject::for_metric(position),
            weeks,
            pairs: differences.len(),
            pairs_needed,
            ratio: interval(&differences, alpha),
        })
    };
    MetricIndex::all().filter_map(on).collect()
}

/// Returns for each week that has ended and has enough days the median over days of the logarithm of the day's median time in
/// seconds.
fn weekly_log_medians(
    scope: &AnalysisWindow<'_>,
    position: MetricIndex,
    target: usize,
) -> BTreeMap<Week, f64> {
    let mut days: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (_, day, reading) in scope.readings(position.workload, position.index, target) {
        if let Reading::Time(seconds) = reading {
            days.entry(day).or_default().push(seconds.ln());
        }
    }
    let mut weeks: BTreeMap<Week, Vec<f64>> = BTreeMap::new();
    for (day, values) in days {
        weeks.entry(Week::of_day(day)).or_default().extend(median(&values));
    }
    // The value of a week that still goes on changes until it ends, and intervals count on values that stay.
    let last_round = scope.history.rounds.last().map_or(i64::MIN, RoundRecord::day);
    let has_ended = |week: &Week| week.last_day() <= scope.last_day && week.last_day() < last_round;
    let complete =
        weeks.into_iter().filter(|(week, days)| has_ended(week) && days.len() >= MIN_DAYS_PER_WEEK);
    complete.filter_map(|(week, days)| Some((week, median(&days)?))).collect()
}

/// Returns the number of weeks with only target A and with only target B, and the log ratio (B over A) of each pair of
/// adjacent weeks. `None` unless both targets have at least one such week.
fn adjacent_differences(
    a: &BTreeMap<Week, f64>,
    b: &BTreeMap<Week, f64>,
) -> Option<((usize, usize), Vec<f64>)> {
    let mut turns: Vec<(Week, WeekMedian)> = a
        .iter()
        .filter(|(week, _)| !b.contains_key(week))
        .map(|(week, value)| (*week, WeekMedian::A(*value)))
        .collect();
    let of_a = turns.len();
    turns.extend(
        b.iter()
            .filter(|(week, _)| !a.contains_key(week))
            .map(|(week, value)| (*week, WeekMedian::B(*value))),
    );
    let of_b = turns.len() - of_a;
    turns.sort_by_key(|(week, _)| *week);
    let mut differences = vec![];
    let mut rest = turns.as_slice();
    // Each week belongs to at most one pair, so that the pairs are independent.
    while let [first, second, ..] = rest {
        match (first.1, second.1) {
            (WeekMedian::A(a), WeekMedian::B(b)) | (WeekMedian::B(b), WeekMedian::A(a))
                if first.0.last_day() + 1 == second.0.first_day() =>
            {
                differences.push(b - a);
                rest = &rest[2..];
            }
            _ => rest = &rest[1..],
        }
    }
    (of_a > 0 && of_b > 0).then_some(((of_a, of_b), differences))
}

/// Log median of a week, tagged with the target of the week.
#[derive(Debug, Clone, Copy)]
enum WeekMedian {
    A(f64),
    B(f64),
}

/// Returns the mean of the log ratios as a ratio with its interval at level `1 - alpha`; `None` with too few pairs.
fn interval(differences: &[f64], alpha: f64) -> Option<WeekRatio> {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|difference| (difference - mean).powi(2)).sum::<f64>() / n;
    let half = anytime_valid_half_width(differences.len(), variance, alpha);
    let (value, low, high) = (mean.exp(), (mean - half).exp(), (mean + half).exp());
    half.is_finite().then_some(WeekRatio { value, low, high, pairs: differences.len() })
}

/// Returns the number of pairs from which on there is an interval at level `1 - alpha`.
fn pairs_needed(alpha: f64) -> usize {
    const MOST: usize = 1_000;
    let has_interval = |pairs: &usize| anytime_valid_half_width(*pairs, 1.0, alpha).is_finite();
    (1..MOST).find(has_interval).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::normal_days;
    use crate::stats::pairwise_alpha;

    fn weeks(numbers: &[i64], value: f64) -> BTreeMap<Week, f64> {
        let wobble = |number: i64| value + 0.01 * (number % 3) as f64;
        numbers.iter().map(|number| (Week::of_day(20_724 + 7 * number), wobble(*number))).collect()
    }

    #[test]
    fn abba_baab_gives_four_pairs_and_an_interval() {
        let (counts, differences) =
            adjacent_differences(&weeks(&[0, 3, 5, 6], 0.0), &weeks(&[1, 2, 4, 7], 0.5)).unwrap();
        assert_eq!((counts, differences.len()), ((4, 4), 4));
        let ratio = interval(&differences, 0.05).unwrap();
        assert!(ratio.low < 0.5f64.exp() && ratio.high > 0.5f64.exp() && ratio.low > 1.0, "{ratio:?}");
    }

    #[test]
    fn single_switch_gives_one_pair_and_no_interval() {
        let (_, differences) =
            adjacent_differences(&weeks(&[0, 1, 2, 3], 0.0), &weeks(&[4, 5, 6, 7], 0.5)).unwrap();
        assert_eq!((differences.len(), interval(&differences, 0.05)), (1, None));
    }

    /// Reads the interval of one metric of two equal targets with each new pair, up to a year of weeks.
    #[test]
    fn looks_at_equal_targets_rarely_show_a_difference() {
        let alpha = 0.05 / MetricIndex::all().count() as f64;
        let is_wrong = |seed: &u64| {
            let pairs: Vec<f64> = normal_days(26, *seed).into_iter().map(|(_, value)| value).collect();
            let mut looks = (pairs_needed(alpha)..=26).filter_map(|count| interval(&pairs[..count], alpha));
            looks.any(|ratio| ratio.low > 1.0 || ratio.high < 1.0)
        };
        let wrong = (0..20_000).filter(is_wrong).count();
        assert!((5..=66).contains(&wrong), "{wrong} of 20000");
    }

    #[test]
    fn interval_of_many_metrics_needs_more_pairs() {
        let metrics = MetricIndex::all().count() as f64;
        assert_eq!((pairs_needed(0.05), pairs_needed(0.05 / metrics)), (4, 6));
        assert_eq!(pairs_needed(pairwise_alpha(0.05, 3) / metrics), 7, "three shares");
        assert_eq!(interval(&[0.1, 0.2, 0.3, 0.2, 0.1], 0.05 / metrics), None);
    }

    #[test]
    fn shared_or_distant_weeks_form_no_pair() {
        let (counts, differences) =
            adjacent_differences(&weeks(&[0, 1, 2], 0.0), &weeks(&[1, 5], 0.5)).unwrap();
        assert_eq!((counts, differences.len()), ((2, 1), 0));
        assert_eq!(adjacent_differences(&weeks(&[1], 0.0), &weeks(&[1], 0.0)), None);
    }
}
