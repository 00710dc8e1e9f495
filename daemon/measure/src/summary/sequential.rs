//! One protocol per week, for a NAS that is reached by one at a time: what such weeks can say, and what they cannot.
//!
//! The unit is a pair of neighbouring weeks, one with each target, in the order ABBA BAAB; a verdict needs four pairs
//! (`knowledge/statistics.md`, section 1, sequential weeks).

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::cell::Position;
use super::comparison::Subject;
use super::pairing::Pair;
use super::scope::{Reading, Scope};
use super::week::Week;
use crate::stats::{WEEK_PAIRS_NEEDED, median, week_pairs_half};

/// Days that make a week count.
const DAYS_A_WEEK: usize = 3;

/// What has to stand beside every result of this design.
pub const CONFOUNDED: &str = "Weeks with one and weeks with the other are different weeks. If anything else changed (neighbours' \
     Wi-Fi, a system update, the disk filling up), this design cannot tell it from the protocol. In simulation a plain 4+4-week \
     comparison of two identical protocols names a winner about half the time.";

/// Two targets that never ran in the same round, on one endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SequentialWeeks {
    /// What it is about.
    pub subject: Subject,
    /// Weeks with the first target only, and weeks with the second only.
    pub weeks: (usize, usize),
    /// Pairs of neighbouring weeks, one with each.
    pub pairs: usize,
    /// The time on the second divided by that on the first; `None` below four pairs.
    pub ratio: Option<WeekRatio>,
}

/// A ratio of weeks, with its interval at 95 % for one look at the planned end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct WeekRatio {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs of weeks.
    pub pairs: usize,
}

/// Every endpoint of a pair that was measured in turns.
pub(super) fn sequential_weeks(scope: &Scope<'_>, pair: Pair) -> Vec<SequentialWeeks> {
    let on = |position: Position| {
        let weeks = [pair.a, pair.b].map(|target| log_medians(scope, position, target));
        let found = of_weeks(&weeks[0], &weeks[1]);
        let (weeks, differences) = found?;
        Some(SequentialWeeks {
            subject: Subject::of(position),
            weeks,
            pairs: differences.len(),
            ratio: interval(&differences),
        })
    };
    Position::all().filter_map(on).collect()
}

/// By week: the median over its days of the logarithm of the day's median.
fn log_medians(scope: &Scope<'_>, position: Position, target: usize) -> BTreeMap<Week, f64> {
    let mut days: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (_, day, reading) in scope.readings(position.workload, position.place, target) {
        if let Reading::Time(seconds) = reading {
            days.entry(day).or_default().push(seconds.ln());
        }
    }
    let mut weeks: BTreeMap<Week, Vec<f64>> = BTreeMap::new();
    for (day, values) in days {
        weeks.entry(Week::of_day(day)).or_default().extend(median(&values));
    }
    let whole = weeks.into_iter().filter(|(_, days)| days.len() >= DAYS_A_WEEK);
    whole.filter_map(|(week, days)| Some((week, median(&days)?))).collect()
}

/// How many weeks each has to itself, and the log ratio of each pair of neighbours. `None` unless both have some.
fn of_weeks(a: &BTreeMap<Week, f64>, b: &BTreeMap<Week, f64>) -> Option<((usize, usize), Vec<f64>)> {
    let mut turns: Vec<(Week, Turn)> = a
        .iter()
        .filter(|(week, _)| !b.contains_key(week))
        .map(|(week, value)| (*week, Turn::A(*value)))
        .collect();
    let of_a = turns.len();
    turns.extend(
        b.iter().filter(|(week, _)| !a.contains_key(week)).map(|(week, value)| (*week, Turn::B(*value))),
    );
    let of_b = turns.len() - of_a;
    turns.sort_by_key(|(week, _)| *week);
    let mut differences = vec![];
    let mut rest = turns.as_slice();
    while let [first, second, ..] = rest {
        match (first.1, second.1) {
            (Turn::A(a), Turn::B(b)) | (Turn::B(b), Turn::A(a))
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

/// Whose week it was, and its log median.
#[derive(Debug, Clone, Copy)]
enum Turn {
    A(f64),
    B(f64),
}

/// The mean difference with its interval.
fn interval(differences: &[f64]) -> Option<WeekRatio> {
    let half = week_pairs_half(differences, super::verdict::ALPHA)?;
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    let (value, low, high) = (mean.exp(), (mean - half).exp(), (mean + half).exp());
    Some(WeekRatio { value, low, high, pairs: differences.len() })
}

impl SequentialWeeks {
    /// What may be said, without the warning that has to stand beside.
    pub fn text(&self, a: &str, b: &str) -> String {
        let what = &self.subject.activity;
        let weeks = format!(
            "{} weeks with {a} and {} with {b}, {} neighbouring pairs",
            self.weeks.0, self.weeks.1, self.pairs
        );
        match self.ratio {
            None => format!("No verdict for {what}: {weeks}; {WEEK_PAIRS_NEEDED} pairs are needed."),
            Some(ratio) if ratio.low > 1.0 || ratio.high < 1.0 => format!(
                "{what}: {b} took {:.2}× the time of {a} ({:.2} to {:.2}; {weeks}).",
                ratio.value, ratio.low, ratio.high
            ),
            Some(ratio) => format!(
                "Not decided for {what}: {b} took anything from {:.2}× to {:.2}× the time of {a} ({weeks}).",
                ratio.low, ratio.high
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weeks(numbers: &[i64], value: f64) -> BTreeMap<Week, f64> {
        let wobble = |number: i64| value + 0.01 * (number % 3) as f64;
        numbers.iter().map(|number| (Week::of_day(20_724 + 7 * number), wobble(*number))).collect()
    }

    #[test]
    fn abba_baab_gives_four_pairs_and_an_interval() {
        let (counts, differences) = of_weeks(&weeks(&[0, 3, 5, 6], 0.0), &weeks(&[1, 2, 4, 7], 0.5)).unwrap();
        assert_eq!((counts, differences.len()), ((4, 4), 4));
        let ratio = interval(&differences).unwrap();
        assert!(ratio.low < 0.5f64.exp() && ratio.high > 0.5f64.exp() && ratio.low > 1.0, "{ratio:?}");
    }

    #[test]
    fn one_switch_from_a_to_b_is_one_pair_and_no_verdict() {
        let (_, differences) = of_weeks(&weeks(&[0, 1, 2, 3], 0.0), &weeks(&[4, 5, 6, 7], 0.5)).unwrap();
        assert_eq!((differences.len(), interval(&differences)), (1, None));
    }

    #[test]
    fn weeks_with_both_or_far_apart_make_no_pair() {
        let (counts, differences) = of_weeks(&weeks(&[0, 1, 2], 0.0), &weeks(&[1, 5], 0.5)).unwrap();
        assert_eq!((counts, differences.len()), ((2, 1), 0));
        assert_eq!(of_weeks(&weeks(&[1], 0.0), &weeks(&[1], 0.0)), None);
    }
}
