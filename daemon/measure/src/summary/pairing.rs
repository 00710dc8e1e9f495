//! Two targets, round by round and day by day.
//!
//! The unit of a verdict is the day: a day's value is the median of its rounds' log ratios, and a day counts only if
//! enough of its rounds are complete (`knowledge/statistics.md`, section 4).

use std::collections::BTreeMap;

use super::scope::{Reading, Scope};
use crate::stats::median;

/// So many complete rounds make a day count...
const ROUNDS_A_DAY: usize = 6;
/// ... or, where fewer are planned, this share of them...
const SHARE_OF_PLANNED: f64 = 0.6;
/// ... but never fewer than this: with fewer rounds a day there is never a verdict.
pub const FEWEST_ROUNDS_A_DAY: usize = 3;

/// One round of a pair: the day, and what each of the two says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paired {
    pub(super) round: i64,
    pub(super) day: i64,
    pub(super) a: Reading,
    pub(super) b: Reading,
}

/// Two targets by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) a: usize,
    pub(super) b: usize,
}

/// A pair on one endpoint, or over all.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairing {
    /// The log ratio (`b` over `a`) of each day that counts.
    pub(super) days: Vec<(i64, f64)>,
    /// Days that have complete rounds, but too few.
    pub(super) thin_days: usize,
    /// Rounds that were planned while both were settled, those that were skipped or void included.
    pub(super) planned: usize,
    /// Rounds with a value of both.
    pub(super) complete: usize,
    /// Rounds in which `a` was faster.
    pub(super) won_by_a: usize,
    /// Rounds in which `b` was faster.
    pub(super) won_by_b: usize,
    /// Rounds in which both failed: they say nothing about speed.
    pub(super) both_failed: usize,
    /// Median of the times of each, in seconds, without failures.
    pub(super) typical: Option<(f64, f64)>,
    /// By day: the seconds waited on each in complete rounds, failures at their cap.
    pub(super) waited: Vec<(i64, (f64, f64))>,
}

impl Scope<'_> {
    /// The rounds of a pair on one endpoint, from the day on which both had settled.
    pub(super) fn paired(&self, workload: usize, place: usize, pair: Pair) -> Vec<Paired> {
        let from = self.settled(pair);
        let of_a = self.readings(workload, place, pair.a);
        let of_b = self.readings(workload, place, pair.b);
        let paired = of_a.zip(of_b).map(|((round, day, a), (_, _, b))| Paired { round, day, a, b });
        paired.filter(|paired| from.is_some_and(|from| paired.day >= from)).collect()
    }

    /// The first day on which both of a pair had settled.
    pub(super) fn settled(&self, pair: Pair) -> Option<i64> {
        Some(self.lives[pair.a]?.settled.max(self.lives[pair.b]?.settled))
    }

    /// How many rounds were planned on each day from the one on which both had settled.
    pub(super) fn planned_by_day(&self, pair: Pair) -> BTreeMap<i64, usize> {
        let mut planned = BTreeMap::new();
        for round in self.settled(pair).into_iter().flat_map(|from| self.planned_from(from)) {
            *planned.entry(round.day()).or_default() += 1;
        }
        planned
    }
}

/// The log ratio of a round, failures at the cap; `None` if either is absent or both failed.
pub(super) fn log_ratio(paired: &Paired, cap: f64) -> Option<f64> {
    if (paired.a, paired.b) == (Reading::Failed, Reading::Failed) {
        return None;
    }
    Some((paired.b.capped(cap)? / paired.a.capped(cap)?).ln())
}

impl Pairing {
    /// A pair on one endpoint.
    pub(super) fn of_endpoint(paired: &[Paired], cap: f64, planned: &BTreeMap<i64, usize>) -> Self {
        let rounds = paired.iter().filter_map(|paired| Some((paired.day, log_ratio(paired, cap)?)));
        let failed = |paired: &&Paired| (paired.a, paired.b) == (Reading::Failed, Reading::Failed);
        Self {
            both_failed: paired.iter().filter(failed).count(),
            typical: typical(paired),
            waited: waited(paired, cap),
            ..Self::of_rounds(rounds, planned)
        }
    }

    /// A pair from the log ratios of its rounds, in order, each with its day.
    pub(super) fn of_rounds(
        rounds: impl Iterator<Item = (i64, f64)>,
        planned: &BTreeMap<i64, usize>,
    ) -> Self {
        let mut pairing = Self { planned: planned.values().sum(), ..Self::default() };
        let mut by_day: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (day, ratio) in rounds {
            by_day.entry(day).or_default().push(ratio);
            pairing.complete += 1;
            pairing.won_by_a += usize::from(ratio > 0.0);
            pairing.won_by_b += usize::from(ratio < 0.0);
        }
        for (day, ratios) in by_day {
            let planned = planned.get(&day).copied().unwrap_or(ratios.len());
            match median(&ratios).filter(|_| ratios.len() >= rounds_needed(planned)) {
                Some(value) => pairing.days.push((day, value)),
                None => pairing.thin_days += 1,
            }
        }
        pairing
    }
}

/// How many complete rounds a day needs, by how many were planned on it.
fn rounds_needed(planned: usize) -> usize {
    if planned >= ROUNDS_A_DAY {
        return ROUNDS_A_DAY;
    }
    ((SHARE_OF_PLANNED * planned as f64).ceil() as usize).max(FEWEST_ROUNDS_A_DAY)
}

fn typical(paired: &[Paired]) -> Option<(f64, f64)> {
    let times = |reading: fn(&Paired) -> Reading| {
        let times = paired.iter().filter_map(|paired| match reading(paired) {
            Reading::Time(seconds) => Some(seconds),
            Reading::Failed | Reading::Absent => None,
        });
        median(&times.collect::<Vec<_>>())
    };
    times(|paired| paired.a).zip(times(|paired| paired.b))
}

fn waited(paired: &[Paired], cap: f64) -> Vec<(i64, (f64, f64))> {
    let mut by_day: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for paired in paired {
        if let Some((a, b)) = paired.a.capped(cap).zip(paired.b.capped(cap)) {
            let sums = by_day.entry(paired.day).or_default();
            *sums = (sums.0 + a, sums.1 + b);
        }
    }
    by_day.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(day: i64, a: Reading, b: Reading) -> Paired {
        Paired { round: day, day, a, b }
    }

    #[test]
    fn a_failure_counts_as_the_cap_and_two_failures_say_nothing() {
        let (time, failed, absent) = (Reading::Time(6.0), Reading::Failed, Reading::Absent);
        assert_eq!(log_ratio(&paired(0, time, failed), 60.0), Some(10f64.ln()));
        assert_eq!(log_ratio(&paired(0, failed, time), 60.0), Some(0.1f64.ln()));
        assert_eq!(log_ratio(&paired(0, failed, failed), 60.0), None);
        assert_eq!(log_ratio(&paired(0, time, absent), 60.0), None);
        assert_eq!(log_ratio(&paired(0, Reading::Time(600.0), time), 60.0), Some(0.1f64.ln()));
    }

    #[test]
    fn a_day_counts_from_six_rounds_on_or_from_most_of_the_few_that_were_planned() {
        let needed: Vec<usize> = [0, 2, 3, 4, 5, 6, 10, 24].into_iter().map(rounds_needed).collect();
        assert_eq!(needed, [3, 3, 3, 3, 3, 6, 6, 6]);
    }

    #[test]
    fn thin_days_are_counted_apart_and_a_day_is_its_median() {
        let planned = BTreeMap::from([(1, 17), (2, 17)]);
        let rounds = [0.1, 0.2, 0.3, 0.4, 0.5, 9.0].map(|ratio| (1, ratio));
        let pairing = Pairing::of_rounds(rounds.into_iter().chain([(2, -0.5); 5]), &planned);
        assert_eq!(pairing.days, [(1, 0.35)]);
        assert_eq!((pairing.thin_days, pairing.complete, pairing.planned), (1, 11, 34));
        assert_eq!((pairing.won_by_a, pairing.won_by_b), (6, 5));
    }

    #[test]
    fn time_waited_counts_failures_at_their_cap_and_typical_time_leaves_them_out() {
        let rounds = [
            paired(1, Reading::Time(2.0), Reading::Time(4.0)),
            paired(1, Reading::Time(3.0), Reading::Failed),
            paired(2, Reading::Absent, Reading::Time(4.0)),
        ];
        assert_eq!(waited(&rounds, 60.0), [(1, (5.0, 64.0))]);
        assert_eq!(typical(&rounds), Some((2.5, 4.0)));
    }
}
