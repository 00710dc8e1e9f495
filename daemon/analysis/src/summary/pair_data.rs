//! Input data of one comparison: two targets on one metric, or on all weighted metrics together.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::change::{ChangePart, LastingChange, find_change};
use super::pairing::{
    FailedSides, PairedDays, PairedReading, RoundRatio, TargetPair, log_ratio, mean, median_seconds,
    round_ratio, sum_by_day,
};
use super::recent_days::recent_from;
use super::round_trips::RoundTrips;
use super::window::{AnalysisWindow, Reading};
use crate::stats::DaySeries;
use longhaul_model::{TASKS, WaitMetric};

/// Index of a metric: the workload's position in [`TASKS`] and the metric's position within that workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MetricIndex {
    pub(super) workload: usize,
    pub(super) index: usize,
}

impl MetricIndex {
    /// Iterates over all metrics, in the order of [`TASKS`].
    pub(super) fn all() -> impl Iterator<Item = MetricIndex> {
        TASKS.iter().enumerate().flat_map(|(workload, known)| {
            (0..known.metrics().len()).map(move |index| MetricIndex { workload, index })
        })
    }

    /// Returns the metric at this index.
    pub(super) fn metric(self) -> &'static WaitMetric {
        &TASKS[self.workload].metrics()[self.index]
    }

    /// Returns the metric's key as `workload/name`, the form used in exports and in the configuration.
    pub(super) fn key(self) -> String {
        format!("{}/{}", TASKS[self.workload].name(), self.metric().name)
    }
}

/// Daily data of one metric for a pair of targets, before the verdict rule is applied.
#[derive(Debug, Clone)]
pub(super) struct MetricComparison {
    /// Rounds and days of `days`.
    pub(super) paired_days: PairedDays,
    /// Series that the verdict is made from: at the round trip time of the days if it is adjusted for it, else the log
    /// ratios of the valid days; `None` without a valid day.
    pub(super) series: Option<DaySeries>,
    /// Log ratios of the valid days as a series, not adjusted for anything; `None` without a valid day.
    pub(super) unadjusted: Option<DaySeries>,
    /// Adjustment of the days for the round trip time.
    pub(super) round_trips: RoundTrips,
    /// Detected change of the ratio; if present, `paired_days` and `series` only cover the days in `days`.
    pub(super) change: Option<LastingChange>,
    /// Days that the comparison uses: all days after the warm-up, or one side of the change.
    pub(super) days: DayRange,
    /// Log ratios of all rounds of the epoch in chronological order, with the warm-up and both sides of a change.
    pub(super) so_far: Vec<RoundRatio>,
    /// Median times of both targets in the same rounds as `so_far`, in seconds; `None` for several metrics together.
    pub(super) so_far_seconds: Option<(f64, f64)>,
}

impl MetricComparison {
    /// Returns the comparison of paired days, without what is known about other days.
    fn of_days(paired_days: PairedDays, round_trips: RoundTrips) -> Self {
        let unadjusted = DaySeries::from_days(&paired_days.log_ratio_by_day);
        // One line through days of two kinds would hide the others as a mean does.
        let are_of_two_kinds = unadjusted.is_none() && round_trips.series().is_some();
        let round_trips = if are_of_two_kinds { RoundTrips::Unknown } else { round_trips };
        Self {
            series: round_trips.series().or(unadjusted),
            unadjusted,
            round_trips,
            paired_days,
            change: None,
            days: i64::MIN..=i64::MAX,
            so_far: vec![],
            so_far_seconds: None,
        }
    }
}

/// Rounds of a pair of targets, for all metrics.
pub(super) struct PairData<'s, 'h> {
    pub(super) window: &'s AnalysisWindow<'h>,
    pub(super) pair: TargetPair,
    /// Days after the warm-up of both targets.
    pub(super) counted_days: DayRange,
    /// Rounds of each metric that has a log ratio in at least one round.
    rounds: BTreeMap<MetricIndex, MetricRounds>,
    /// Day from which on a metric must have a log ratio to be part of the comparison over all metrics.
    recent_from: i64,
    /// Number of rounds by day that were planned for the pair.
    planned_rounds: BTreeMap<i64, usize>,
    /// Seconds waited on each target, over all workloads, by day after the warm-up; empty if waits are not described.
    waits: Vec<(i64, (f64, f64))>,
}

/// Rounds of a pair of targets for one metric.
struct MetricRounds {
    /// All rounds of both targets' newest epochs, in chronological order.
    all: Vec<PairedReading>,
    /// Number of rounds at the start of `all` that belong to the warm-up.
    warm_up: usize,
    /// Failure cap in seconds.
    cap: f64,
}

impl MetricRounds {
    /// Returns the number of rounds on a day and later ones.
    fn since(&self, day: i64) -> usize {
        self.all.iter().rev().take_while(|round| round.day >= day).count()
    }

    /// Returns the rounds after the warm-up; empty if none of them has a log ratio.
    fn counted(&self) -> &[PairedReading] {
        let counted = &self.all[self.warm_up..];
        if self.has_ratio(counted) { counted } else { &[] }
    }

    fn all(&self) -> &[PairedReading] {
        &self.all
    }

    /// Returns all rounds with the warm-up; empty if no round after the warm-up has a log ratio.
    fn all_if_counted(&self) -> &[PairedReading] {
        if self.counted().is_empty() { &[] } else { &self.all }
    }

    /// Iterates over the days with a log ratio, in descending order.
    fn days(&self) -> impl Iterator<Item = i64> + '_ {
        let days = self.all.chunk_by(|one, next| one.day == next.day).rev();
        days.filter(move |rounds| self.has_ratio(rounds)).map(|rounds| rounds[0].day)
    }

    fn has_ratio(&self, rounds: &[PairedReading]) -> bool {
        rounds.iter().any(|round| log_ratio(round, self.cap).is_some())
    }
}

/// Range of days that a comparison uses, in days since 1970-01-01.
pub(super) type DayRange = RangeInclusive<i64>;

impl<'s, 'h> PairData<'s, 'h> {
    /// Collects the rounds of a pair from a window. `caps` holds the failure cap of each metric in seconds.
    pub(super) fn new(
        scope: &'s AnalysisWindow<'h>,
        pair: TargetPair,
        caps: &BTreeMap<MetricIndex, f64>,
    ) -> Self {
        let first_day = scope.first_counted_day(pair).unwrap_or(i64::MAX);
        let rounds = caps.iter().filter_map(|(position, cap)| {
            let all = scope.paired_readings(position.workload, position.index, pair);
            let warm_up = all.partition_point(|round| round.day < first_day);
            let rounds = MetricRounds { all, warm_up, cap: *cap };
            rounds.has_ratio(&rounds.all).then_some((*position, rounds))
        });
        let rounds: BTreeMap<MetricIndex, MetricRounds> = rounds.collect();
        Self {
            window: scope,
            pair,
            recent_from: recent_from(&rounds.values().flat_map(MetricRounds::days).collect()),
            counted_days: first_day..=i64::MAX,
            planned_rounds: scope.planned_rounds_by_day(pair),
            waits: if scope.describes_waits { daily_waits(&rounds) } else { vec![] },
            rounds,
        }
    }

    /// Returns the comparison on one metric; `None` if no round has a log ratio.
    pub(super) fn compare_metric(&self, position: MetricIndex) -> Option<MetricComparison> {
        let rounds = self.rounds.get(&position)?;
        let so_far = rounds.all.iter().filter_map(|round| round_ratio(round, rounds.cap));
        let compared = self.compare_since_change(so_far.collect(), |days| {
            let within: Vec<PairedReading> =
                rounds.counted().iter().copied().filter(|paired| days.contains(&paired.day)).collect();
            PairedDays::for_metric(&within, rounds.cap, &self.planned_rounds_within(days))
        });
        Some(MetricComparison { so_far_seconds: median_seconds(&rounds.all), ..compared })
    }

    /// Returns true if a metric had a value in the newest days. One that is no longer measured must not keep newer rounds out.
    fn is_current(&self, metric: &MetricRounds) -> bool {
        metric.days().next().is_some_and(|last| last >= self.recent_from)
    }

    /// Like [`Self::counted_rounds`]; `None` also for a metric that is no longer measured.
    pub(super) fn current_rounds(&self, position: MetricIndex) -> Option<&[PairedReading]> {
        let is_current = self.rounds.get(&position).is_some_and(|metric| self.is_current(metric));
        self.counted_rounds(position).filter(|_| is_current)
    }

    /// Returns the rounds of a metric after the warm-up; `None` if none of them has a log ratio.
    pub(super) fn counted_rounds(&self, position: MetricIndex) -> Option<&[PairedReading]> {
        self.rounds.get(&position).map(MetricRounds::counted).filter(|rounds| !rounds.is_empty())
    }

    /// Returns the log ratio of each valid day, without splitting the series at a change of the ratio.
    /// `None` if no round has a log ratio for the metric.
    pub(super) fn daily_ratios(&self, position: MetricIndex) -> Option<Vec<(i64, f64)>> {
        let rounds = self.counted_rounds(position)?;
        let cap = self.rounds.get(&position)?.cap;
        Some(PairedDays::for_metric(rounds, cap, &self.planned_rounds).log_ratio_by_day)
    }

    /// Returns the comparison over all weighted metrics: the weighted geometric mean of their ratios in each round
    /// in which all of them have one (docs/methodology.md#overall-comparison).
    pub(super) fn compare_overall(&self) -> Option<MetricComparison> {
        self.compare_weighted(|_| true)
    }

    /// Like [`Self::compare_overall`], but only over the weighted metrics that `wanted` selects.
    pub(super) fn compare_weighted(&self, wanted: impl Fn(&WaitMetric) -> bool) -> Option<MetricComparison> {
        let current = || self.rounds.iter().filter(|(_, of)| self.is_current(of));
        let most = |of: fn(&WaitMetric) -> bool| {
            let own = current().filter(|(position, _)| of(position.metric()));
            own.map(|(_, rounds)| rounds.since(self.recent_from)).max().unwrap_or(0)
        };
        // A round of other tasks by hand does not hide weeks of a recording that is measured alone.
        let is_alone = most(WaitMetric::is_replay_waiting) > 2 * most(|metric| metric.weight > 0.0);
        let weight = |metric: &WaitMetric| match is_alone {
            true => f64::from(u8::from(metric.is_replay_waiting())),
            false => metric.weight,
        };
        let weighted = |select: fn(&MetricRounds) -> &[PairedReading]| {
            let is_wanted = |metric: &WaitMetric| weight(metric) > 0.0 && wanted(metric);
            let wanted = current().filter(|(position, _)| is_wanted(position.metric()));
            let wanted = wanted.map(|(position, of)| WeightedRounds {
                weight: weight(position.metric()),
                cap: of.cap,
                rounds: select(of),
            });
            weighted_ratios(&wanted.filter(|metric| !metric.rounds.is_empty()).collect::<Vec<_>>())
        };
        let counted = weighted(MetricRounds::counted);
        let so_far =
            weighted(if counted.is_empty() { MetricRounds::all } else { MetricRounds::all_if_counted });
        (!so_far.is_empty()).then(|| {
            self.compare_since_change(so_far, |days| PairedDays {
                wait_by_day: self.waits.iter().copied().filter(|(day, _)| days.contains(day)).collect(),
                ..PairedDays::from_log_ratios(
                    counted.iter().filter(|round| days.contains(&round.day)).copied(),
                    &self.planned_rounds_within(days),
                )
            })
        })
    }

    /// Compares all days after the warm-up, or, if the ratio changed, only one part of them
    /// (docs/methodology.md#changes-of-the-ratio).
    fn compare_since_change(
        &self,
        so_far: Vec<RoundRatio>,
        pairing: impl Fn(&DayRange) -> PairedDays,
    ) -> MetricComparison {
        let pairing = |days: &DayRange| {
            let mut paired = pairing(days);
            paired.wait_by_day.retain(|_| self.window.describes_waits);
            paired
        };
        let all_days = pairing(&self.counted_days);
        let adjusted = RoundTrips::of_days(&all_days, self.window.stated_round_trip);
        // What the round trip time explains is no change.
        let levels = adjusted.levels(&all_days.log_ratio_by_day);
        let Some(change) = find_change(&levels, self.window, self.pair) else {
            return MetricComparison {
                change: None,
                days: self.counted_days.clone(),
                so_far,
                ..MetricComparison::of_days(all_days, adjusted)
            };
        };
        let newest = match change.described {
            ChangePart::After => change.first_day..=i64::MAX,
            // Without the day of an event, which belongs to neither: an event has 14 days after it, so that these are described.
            ChangePart::Before => *self.counted_days.start()..=change.first_day - 1,
        };
        let part = pairing(&newest);
        let adjusted = RoundTrips::of_days(&part, self.window.stated_round_trip);
        MetricComparison {
            change: Some(change),
            days: newest,
            so_far,
            ..MetricComparison::of_days(part, adjusted)
        }
    }

    fn planned_rounds_within(&self, days: &DayRange) -> BTreeMap<i64, usize> {
        self.planned_rounds
            .iter()
            .filter(|(day, _)| days.contains(day))
            .map(|(day, count)| (*day, *count))
            .collect()
    }
}

/// Returns the seconds waited on each target, over all workloads, by day after the warm-up. A failed run counts once, with
/// the largest cap of its workload (docs/methodology.md#time-waited). Pauses of a recording are no waits.
fn daily_waits(rounds: &BTreeMap<MetricIndex, MetricRounds>) -> Vec<(i64, (f64, f64))> {
    let mut by_run: BTreeMap<(i64, i64, usize), [WaitSum; 2]> = BTreeMap::new();
    for (position, rounds) in rounds.iter().filter(|(position, _)| !position.metric().includes_pauses()) {
        for paired in rounds.counted() {
            let [a, b] = by_run.entry((paired.day, paired.round, position.workload)).or_default();
            a.add(paired.a, rounds.cap);
            b.add(paired.b, rounds.cap);
        }
    }
    sum_by_day(
        by_run.into_iter().filter_map(|((day, ..), [a, b])| Some((day, a.seconds().zip(b.seconds())?))),
    )
}

/// Rounds of a metric with its weight in the comparison over several metrics.
struct WeightedRounds<'r> {
    weight: f64,
    /// Failure cap in seconds.
    cap: f64,
    rounds: &'r [PairedReading],
}

/// Returns the weighted mean of the metrics' log ratios in each round in which all of them have one. A round without
/// one of the metrics would shift the mean, because the other weights would count for more.
fn weighted_ratios(metrics: &[WeightedRounds<'_>]) -> Vec<RoundRatio> {
    let total: f64 = metrics.iter().map(|metric| metric.weight).sum();
    let parts = metrics.iter().flat_map(|metric| {
        metric.rounds.iter().filter_map(move |round| {
            let ratio = round_ratio(round, metric.cap)?;
            Some((round.round, RoundRatio { log_ratio: ratio.log_ratio * metric.weight / total, ..ratio }))
        })
    });
    let mut parts: Vec<(i64, RoundRatio)> = parts.collect();
    // Stable, so that the metrics of a round are always added up in the same order.
    parts.sort_by_key(|(round, _)| *round);
    let rounds = parts.chunk_by(|(a, _), (b, _)| a == b).filter(|parts| parts.len() == metrics.len());
    rounds.map(sum_of_parts).collect()
}

/// Returns the sum of the weighted log ratios of one round, with the mean logarithm of their round trip times.
fn sum_of_parts(parts: &[(i64, RoundRatio)]) -> RoundRatio {
    RoundRatio {
        day: parts[0].1.day,
        log_ratio: parts.iter().map(|(_, part)| part.log_ratio).sum(),
        ln_round_trip: mean(parts.iter().filter_map(|(_, part)| part.ln_round_trip)),
        failed: FailedSides {
            a: parts.iter().any(|(_, part)| part.failed.a),
            b: parts.iter().any(|(_, part)| part.failed.b),
        },
    }
}

/// Seconds waited for one run, summed over its metrics.
#[derive(Debug, Clone, Copy, Default)]
struct WaitSum {
    times: f64,
    cap: f64,
    last_reading: Option<Reading>,
}

impl WaitSum {
    fn add(&mut self, reading: Reading, cap: f64) {
        match reading {
            Reading::Time(seconds) => self.times += seconds,
            Reading::Failed => self.cap = self.cap.max(cap),
            Reading::Absent => return,
        }
        self.last_reading = Some(reading);
    }

    fn seconds(self) -> Option<f64> {
        self.last_reading.map(|state| if state == Reading::Failed { self.cap } else { self.times })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 20 days with wandering round trip times, of which the last four are of another kind.
    fn days_of_two_kinds() -> PairedDays {
        let log_ratio = |day: i64| if day < 16 { 0.01 * (day % 5) as f64 - 0.22 } else { 5f64.ln() };
        let round_trip = |day: i64| (0.002 + 0.0005 * ((7 * day) % 20) as f64).ln();
        PairedDays {
            log_ratio_by_day: (0..20).map(|day| (day, log_ratio(day))).collect(),
            ln_round_trip_by_day: (0..20).map(|day| (day, round_trip(day))).collect(),
            ..PairedDays::default()
        }
    }

    #[test]
    fn days_of_two_kinds_have_no_series_at_a_round_trip_time() {
        let days = days_of_two_kinds();
        let adjusted = RoundTrips::of_days(&days, None);
        assert!(adjusted.series().is_some(), "the round trip times alone allow it");
        let comparison = MetricComparison::of_days(days, adjusted);
        assert_eq!((comparison.series, comparison.unadjusted), (None, None));
        assert_eq!(comparison.round_trips.series(), None, "no break-even either");
    }
}
