//! Pairs the readings of two targets by round, and summarizes them by day.
//!
//! The unit of a verdict is the day. The value of a day is the median of its rounds' log ratios, and a day is valid
//! only if enough of its rounds are complete (docs/methodology.md#days).

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use utoipa::ToSchema;

use super::window::{AnalysisWindow, Reading, readings_in};
use crate::stats::log_ratio_with_outliers;
use longhaul_model::{Outcome, RoundRecord, RoundStatus, RunRecord, median};

/// Number of complete rounds from which a day is valid, if at least as many are planned.
const FULL_DAY_ROUNDS: usize = 6;
/// Share of the planned rounds that must be complete on a day with fewer than [`FULL_DAY_ROUNDS`] planned rounds.
const MIN_SHARE_OF_PLANNED: f64 = 0.6;
/// Minimum number of complete rounds of a valid day. With fewer rounds a day there is never a verdict.
pub const MIN_ROUNDS_PER_DAY: usize = 3;

/// Readings of one metric on both targets of a pair in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PairedReading {
    /// Number of the round.
    pub(super) round: i64,
    /// Local day of the round, in days since 1970-01-01.
    pub(super) day: i64,
    pub(super) a: Reading,
    pub(super) b: Reading,
    /// Logarithm of the round trip time before the runs of both targets, in seconds; `None` if it was not measured.
    pub(super) ln_round_trip: Option<f64>,
}

/// Log ratio of a pair of targets in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RoundRatio {
    /// Local day of the round, in days since 1970-01-01.
    pub(super) day: i64,
    /// Logarithm of the time on `b` divided by the time on `a`.
    pub(super) log_ratio: f64,
    /// As in [`PairedReading`].
    pub(super) ln_round_trip: Option<f64>,
    /// Targets of which a run failed in the round.
    pub(super) failed: FailedSides,
}

/// Sides of a pair that failed in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FailedSides {
    pub(super) a: bool,
    pub(super) b: bool,
}

/// Two targets, given by their indices in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TargetPair {
    pub(super) a: usize,
    pub(super) b: usize,
}

/// Counts of the rounds of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct ComparedRounds {
    /// Number of rounds planned after the warm-up of both targets, including skipped and void rounds, without rounds of other
    /// targets alone.
    pub planned: usize,
    /// Number of rounds with a value of both targets.
    pub complete: usize,
    /// Number of rounds in which the first target was faster.
    pub won_by_a: usize,
    /// Number of rounds in which the second target was faster.
    pub won_by_b: usize,
    /// Number of complete rounds in which a run on the first target failed.
    pub failed_a: usize,
    /// Number of complete rounds in which a run on the second target failed.
    pub failed_b: usize,
    /// Number of rounds in which both targets failed. They contain no information about speed.
    pub both_failed: usize,
}

/// Rounds and daily values of a pair, for one metric or for several together.
#[derive(Debug, Clone, Default)]
pub(super) struct PairedDays {
    /// Log ratio (`b` over `a`) of each valid day, in chronological order.
    pub(super) log_ratio_by_day: Vec<(i64, f64)>,
    /// Median logarithm of the round trip time on each valid day on which at least half of the rounds have one.
    pub(super) ln_round_trip_by_day: Vec<(i64, f64)>,
    /// Number of days that have complete rounds, but too few to be valid.
    pub(super) incomplete_days: usize,
    /// Counts of the rounds.
    pub(super) rounds: ComparedRounds,
    /// Mean log ratio of the rounds as they are, if that of the usual rounds is another one.
    pub(super) log_ratio_with_outliers: Option<f64>,
    /// Median times of both targets in seconds, without failures; `None` without a time of either target.
    pub(super) median_seconds: Option<(f64, f64)>,
    /// Seconds waited on each target in complete rounds, by day; failures count as their cap.
    pub(super) wait_by_day: Vec<(i64, (f64, f64))>,
}

impl AnalysisWindow<'_> {
    /// Returns the paired readings of one metric in all rounds of both targets' newest epochs, with the warm-up. `place`
    /// is the index of the metric within the workload.
    pub(super) fn paired_readings(
        &self,
        workload: usize,
        place: usize,
        pair: TargetPair,
    ) -> Vec<PairedReading> {
        let rounds = &self.epoch_rounds_by_workload[workload];
        let (of_a, of_b) = (readings_in(rounds, place, pair.a), readings_in(rounds, place, pair.b));
        let paired = of_a.zip(of_b).zip(rounds).map(|(((round, day, a), (_, _, b)), runs)| {
            let ln_round_trip = mean_ln_round_trip([pair.a, pair.b].map(|target| runs.runs[target]));
            PairedReading { round, day, a, b, ln_round_trip }
        });
        paired.collect()
    }

    /// Returns the first day after the warm-up of both targets; `None` if a target has no run.
    pub(super) fn first_counted_day(&self, pair: TargetPair) -> Option<i64> {
        Some(self.active_epochs[pair.a]?.first_counted_day.max(self.active_epochs[pair.b]?.first_counted_day))
    }

    /// Returns the number of rounds by day that were planned for a pair, from the first day after the warm-up of both targets.
    /// `daemon/fleet/sql/days_with.sql` counts the same ones.
    pub(super) fn planned_rounds_by_day(&self, pair: TargetPair) -> BTreeMap<i64, usize> {
        let runs = self.runs_by_round(pair);
        let is_of_others = |round: &RoundRecord| {
            runs.get(&round.number).is_some_and(|runs| runs.are_of_others(round.status))
        };
        let mut planned = BTreeMap::new();
        for round in self.first_counted_day(pair).into_iter().flat_map(|from| self.planned_rounds_from(from))
        {
            if !is_of_others(round) {
                *planned.entry(round.day()).or_default() += 1;
            }
        }
        planned
    }

    /// Returns what the runs of each round tell about its plan; nothing for a round without runs.
    fn runs_by_round(&self, pair: TargetPair) -> HashMap<i64, RunsOfRound> {
        let mut rounds: HashMap<i64, RunsOfRound> = HashMap::new();
        for runs in self.history.runs.chunk_by(|run, next| run.round == next.round) {
            let round = rounds.entry(runs[0].round).or_default();
            round.has_pair |= runs.iter().any(|run| [pair.a, pair.b].contains(&run.target));
            round.has_measured |= runs.iter().any(|run| run.outcome != Outcome::Unavailable);
        }
        rounds
    }
}

/// The runs of a round, as far as they tell for which targets it was planned. The plan itself is not part of a history.
#[derive(Debug, Clone, Copy, Default)]
struct RunsOfRound {
    /// True if a target of the pair has a run.
    has_pair: bool,
    /// True if a run met its target.
    has_measured: bool,
}

impl RunsOfRound {
    /// Returns whether the round was planned for other targets alone. A completed round has a run of each planned target, and so has
    /// a void one in which no target could be used. Any other may have ended before the turn of the pair.
    fn are_of_others(self, status: Option<RoundStatus>) -> bool {
        let are_complete = match status {
            Some(RoundStatus::Ok) => true,
            Some(RoundStatus::Void) => !self.has_measured,
            Some(RoundStatus::CutShort | RoundStatus::Skipped) | None => false,
        };
        are_complete && !self.has_pair
    }
}

/// Returns the log ratio (`b` over `a`) of a round; `None` if either reading is absent or both targets failed. A failure counts
/// as `cap` seconds, or as long as the other target took if that is more: it never counts as the faster one.
pub(super) fn log_ratio(paired: &PairedReading, cap: f64) -> Option<f64> {
    if (paired.a, paired.b) == (Reading::Failed, Reading::Failed) {
        return None;
    }
    let [a, b] = [paired.a, paired.b].map(Reading::time);
    let seconds = |reading: Reading, other: Option<f64>| reading.seconds(cap.max(other.unwrap_or(0.0)));
    Some((seconds(paired.b, a)? / seconds(paired.a, b)?).ln())
}

/// Returns the mean logarithm of the round trip times that were measured before two runs; `None` if neither was. A time of
/// zero is below the resolution of the measurement and counts as not measured.
fn mean_ln_round_trip(runs: [Option<&RunRecord>; 2]) -> Option<f64> {
    let times = runs.into_iter().flatten().filter_map(|run| run.rtt).filter(|time| !time.is_zero());
    mean(times.map(|time| time.as_secs_f64().ln()))
}

/// Returns the mean of values; `None` without one.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0).then_some(sum / count)
}

/// Returns the log ratio of a round with its day and round trip time; `None` as for [`log_ratio`].
pub(super) fn round_ratio(paired: &PairedReading, cap: f64) -> Option<RoundRatio> {
    let PairedReading { day, ln_round_trip, .. } = *paired;
    let failed = FailedSides { a: paired.a == Reading::Failed, b: paired.b == Reading::Failed };
    Some(RoundRatio { day, log_ratio: log_ratio(paired, cap)?, ln_round_trip, failed })
}

impl PairedDays {
    /// Summarizes the rounds of a pair on one metric. `cap` is the failure cap in seconds, `planned` the number of
    /// planned rounds by day.
    pub(super) fn for_metric(paired: &[PairedReading], cap: f64, planned: &BTreeMap<i64, usize>) -> Self {
        let rounds = paired.iter().filter_map(|paired| round_ratio(paired, cap));
        let failed = |paired: &&PairedReading| (paired.a, paired.b) == (Reading::Failed, Reading::Failed);
        let days = Self::from_log_ratios(rounds, planned);
        Self {
            rounds: ComparedRounds { both_failed: paired.iter().filter(failed).count(), ..days.rounds },
            median_seconds: median_seconds(paired),
            wait_by_day: wait_by_day(paired, cap),
            ..days
        }
    }

    /// Summarizes the log ratios of a pair's rounds by day.
    pub(super) fn from_log_ratios(
        rounds: impl Iterator<Item = RoundRatio>,
        planned: &BTreeMap<i64, usize>,
    ) -> Self {
        let mut counts = ComparedRounds { planned: planned.values().sum(), ..ComparedRounds::default() };
        let mut by_day: BTreeMap<i64, Vec<RoundRatio>> = BTreeMap::new();
        for round in rounds {
            by_day.entry(round.day).or_default().push(round);
            counts.complete += 1;
            counts.won_by_a += usize::from(round.log_ratio > 0.0);
            counts.won_by_b += usize::from(round.log_ratio < 0.0);
            counts.failed_a += usize::from(round.failed.a);
            counts.failed_b += usize::from(round.failed.b);
        }
        let mut pairing = Self { rounds: counts, ..Self::default() };
        let all: Vec<f64> = by_day.values().flatten().map(|round| round.log_ratio).collect();
        pairing.log_ratio_with_outliers = log_ratio_with_outliers(&all);
        for (day, rounds) in by_day {
            pairing.add_day(day, &rounds, planned.get(&day).copied().unwrap_or(rounds.len()));
        }
        pairing
    }

    /// Adds a day with its complete rounds and the number of planned ones.
    fn add_day(&mut self, day: i64, rounds: &[RoundRatio], planned: usize) {
        let ratios: Vec<f64> = rounds.iter().map(|round| round.log_ratio).collect();
        let Some(value) = median(&ratios).filter(|_| ratios.len() >= min_rounds(planned)) else {
            self.incomplete_days += 1;
            return;
        };
        self.log_ratio_by_day.push((day, value));
        let times: Vec<f64> = rounds.iter().filter_map(|round| round.ln_round_trip).collect();
        let time = median(&times).filter(|_| 2 * times.len() >= rounds.len());
        self.ln_round_trip_by_day.extend(time.map(|time| (day, time)));
    }
}

/// Returns the number of complete rounds that make a day valid, for the number of rounds planned on that day.
fn min_rounds(planned: usize) -> usize {
    if planned >= FULL_DAY_ROUNDS {
        return FULL_DAY_ROUNDS;
    }
    ((MIN_SHARE_OF_PLANNED * planned as f64).ceil() as usize).max(MIN_ROUNDS_PER_DAY)
}

pub(super) fn median_seconds(paired: &[PairedReading]) -> Option<(f64, f64)> {
    let times = |reading: fn(&PairedReading) -> Reading| {
        let times = paired.iter().filter_map(|paired| reading(paired).time());
        median(&times.collect::<Vec<_>>())
    };
    times(|paired| paired.a).zip(times(|paired| paired.b))
}

fn wait_by_day(paired: &[PairedReading], cap: f64) -> Vec<(i64, (f64, f64))> {
    let of_both =
        |paired: &PairedReading| Some((paired.day, paired.a.seconds(cap).zip(paired.b.seconds(cap))?));
    sum_by_day(paired.iter().filter_map(of_both))
}

/// Sums the seconds of both targets for each day.
pub(super) fn sum_by_day(waits: impl Iterator<Item = (i64, (f64, f64))>) -> Vec<(i64, (f64, f64))> {
    let mut by_day: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (day, (a, b)) in waits {
        let sums = by_day.entry(day).or_default();
        *sums = (sums.0 + a, sums.1 + b);
    }
    by_day.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(day: i64, a: Reading, b: Reading) -> PairedReading {
        PairedReading { round: day, day, a, b, ln_round_trip: None }
    }

    #[test]
    fn one_failure_counts_as_cap_and_two_give_no_ratio() {
        let (time, failed, absent) = (Reading::Time(6.0), Reading::Failed, Reading::Absent);
        assert_eq!(log_ratio(&paired(0, time, failed), 60.0), Some(10f64.ln()));
        assert_eq!(log_ratio(&paired(0, failed, time), 60.0), Some(0.1f64.ln()));
        assert_eq!(log_ratio(&paired(0, failed, failed), 60.0), None);
        assert_eq!(log_ratio(&paired(0, time, absent), 60.0), None);
        assert_eq!(log_ratio(&paired(0, Reading::Time(600.0), time), 60.0), Some(0.01f64.ln()));
        assert_eq!(log_ratio(&paired(0, Reading::Time(600.0), failed), 60.0), Some(0.0));
    }

    #[test]
    fn round_trip_time_of_zero_counts_as_not_measured() {
        let run = |us: Option<u64>| RunRecord {
            number: 1,
            round: 1,
            epoch: 1,
            target: 0,
            workload: 0,
            scale: longhaul_model::Scale::Standard,
            outcome: longhaul_model::Outcome::Ok,
            started: longhaul_model::Timestamp::UNIX_EPOCH,
            seconds: 1.0,
            times: longhaul_model::MetricTimes::NONE,
            rtt: us.map(std::time::Duration::from_micros),
        };
        let (zero, unknown, known) = (run(Some(0)), run(None), run(Some(4_000)));
        assert_eq!(mean_ln_round_trip([Some(&zero), Some(&unknown)]), None);
        let alone = mean_ln_round_trip([Some(&known), Some(&zero)]).unwrap();
        assert!((alone - 0.004f64.ln()).abs() < 1e-12);
        let both = mean_ln_round_trip([Some(&known), Some(&run(Some(1_000)))]).unwrap();
        assert!((both - 0.002f64.ln()).abs() < 1e-12);
        assert_eq!(mean_ln_round_trip([None, None]), None);
    }

    #[test]
    fn valid_day_needs_six_rounds_or_most_of_the_planned() {
        let needed: Vec<usize> = [0, 2, 3, 4, 5, 6, 10, 24].into_iter().map(min_rounds).collect();
        assert_eq!(needed, [3, 3, 3, 3, 3, 6, 6, 6]);
    }

    #[test]
    fn day_value_is_median_and_incomplete_days_are_counted() {
        let planned = BTreeMap::from([(1, 17), (2, 17)]);
        let ratio = |day, log_ratio| RoundRatio {
            day,
            log_ratio,
            ln_round_trip: None,
            failed: FailedSides::default(),
        };
        let rounds = [0.1, 0.2, 0.3, 0.4, 0.5, 9.0].map(|log_ratio| ratio(1, log_ratio));
        let pairing = PairedDays::from_log_ratios(rounds.into_iter().chain([ratio(2, -0.5); 5]), &planned);
        assert_eq!(pairing.log_ratio_by_day, [(1, 0.35)]);
        assert_eq!((pairing.incomplete_days, pairing.rounds.complete, pairing.rounds.planned), (1, 11, 34));
        assert_eq!((pairing.rounds.won_by_a, pairing.rounds.won_by_b), (6, 5));
    }

    #[test]
    fn time_waited_includes_failures_and_median_ignores_them() {
        let rounds = [
            paired(1, Reading::Time(2.0), Reading::Time(4.0)),
            paired(1, Reading::Time(3.0), Reading::Failed),
            paired(2, Reading::Absent, Reading::Time(4.0)),
        ];
        assert_eq!(wait_by_day(&rounds, 60.0), [(1, (5.0, 64.0))]);
        assert_eq!(median_seconds(&rounds), Some((2.5, 4.0)));
    }
}
