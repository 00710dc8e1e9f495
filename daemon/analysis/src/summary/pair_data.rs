//! Input data of one comparison: two targets on one metric, or on all weighted metrics together.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::change::{Change, find_change};
use super::pairing::{PairedDays, PairedReading, TargetPair, log_ratio};
use super::verdict::MIN_VERDICT_DAYS;
use super::window::{AnalysisWindow, Reading};
use crate::stats::DaySeries;
use longhaul_model::TASKS;
use longhaul_model::WaitMetric;

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
    /// Log ratios of the valid days as a series; `None` without a valid day.
    pub(super) series: Option<DaySeries>,
    /// Detected change of the ratio; if present, `paired_days` and `series` only cover the days in `days`.
    pub(super) change: Option<Change>,
    /// Days that the comparison uses: all days, or one side of the change.
    pub(super) days: DayRange,
}

/// Rounds of a pair of targets, for all metrics.
pub(super) struct PairData<'s, 'h> {
    pub(super) window: &'s AnalysisWindow<'h>,
    pub(super) pair: TargetPair,
    /// Rounds and failure cap (in seconds) of each metric that has a log ratio in at least one round.
    pub(super) rounds: BTreeMap<MetricIndex, (Vec<PairedReading>, f64)>,
    /// Number of planned rounds by day.
    planned_rounds: BTreeMap<i64, usize>,
}

/// Range of days that a comparison uses, in days since 1970-01-01.
pub(super) type DayRange = RangeInclusive<i64>;

/// Day range without bounds.
pub(super) const ALL_DAYS: DayRange = i64::MIN..=i64::MAX;

impl<'s, 'h> PairData<'s, 'h> {
    /// Collects the rounds of a pair from a window. `caps` holds the failure cap of each metric in seconds.
    pub(super) fn new(
        scope: &'s AnalysisWindow<'h>,
        pair: TargetPair,
        caps: &BTreeMap<MetricIndex, f64>,
    ) -> Self {
        let rounds = caps.iter().filter_map(|(position, cap)| {
            let paired = scope.paired_readings(position.workload, position.index, pair);
            let has_ratio = paired.iter().any(|paired| log_ratio(paired, *cap).is_some());
            has_ratio.then_some((*position, (paired, *cap)))
        });
        Self {
            window: scope,
            pair,
            rounds: rounds.collect(),
            planned_rounds: scope.planned_rounds_by_day(pair),
        }
    }

    /// Returns the comparison on one metric; `None` if no round has a log ratio.
    pub(super) fn compare_metric(&self, position: MetricIndex) -> Option<MetricComparison> {
        let (paired, cap) = self.rounds.get(&position)?;
        Some(self.compare_since_change(|days| {
            let within: Vec<PairedReading> =
                paired.iter().copied().filter(|paired| days.contains(&paired.day)).collect();
            PairedDays::for_metric(&within, *cap, &self.planned_rounds_within(days))
        }))
    }

    /// Returns the log ratio of each valid day, without splitting the series at a change of the ratio.
    /// `None` if no round has a log ratio for the metric.
    pub(super) fn daily_ratios(&self, position: MetricIndex) -> Option<Vec<(i64, f64)>> {
        let (paired, cap) = self.rounds.get(&position)?;
        Some(PairedDays::for_metric(paired, *cap, &self.planned_rounds).log_ratio_by_day)
    }

    /// Returns the comparison over all weighted metrics: the weighted geometric mean of their ratios in each round
    /// in which all of them have one (docs/methodology.md#overall-comparison).
    pub(super) fn compare_overall(&self) -> Option<MetricComparison> {
        self.compare_weighted(|_| true)
    }

    /// Like [`Self::compare_overall`], but only over the weighted metrics that `wanted` selects.
    pub(super) fn compare_weighted(&self, wanted: impl Fn(&WaitMetric) -> bool) -> Option<MetricComparison> {
        let weighted: Vec<_> = self
            .rounds
            .iter()
            .filter(|(position, _)| position.metric().weight > 0.0 && wanted(position.metric()))
            .collect();
        let total: f64 = weighted.iter().map(|(position, _)| position.metric().weight).sum();
        let mut sums: BTreeMap<i64, (i64, f64, usize)> = BTreeMap::new();
        for (position, (paired, cap)) in &weighted {
            for paired in paired {
                if let Some(ratio) = log_ratio(paired, *cap) {
                    let (_, sum, count) = sums.entry(paired.round).or_insert((paired.day, 0.0, 0));
                    *sum += ratio * position.metric().weight / total;
                    *count += 1;
                }
            }
        }
        // A round without one of the metrics would shift the mean, because the other weights would count for more.
        let complete = sums.into_values().filter(|(_, _, count)| *count == weighted.len());
        let rounds: Vec<(i64, f64)> = complete.map(|(day, sum, _)| (day, sum)).collect();
        (!rounds.is_empty()).then(|| {
            self.compare_since_change(|days| PairedDays {
                wait_by_day: self.daily_waits(days),
                ..PairedDays::from_log_ratios(
                    rounds.iter().copied().filter(|(day, _)| days.contains(day)),
                    &self.planned_rounds_within(days),
                )
            })
        })
    }

    /// Compares all days, or, if the ratio changed, only the newest part with at least [`MIN_VERDICT_DAYS`] days.
    /// If neither part is that long, the part after the change is used (docs/methodology.md#changes-of-the-ratio).
    fn compare_since_change(&self, pairing: impl Fn(&DayRange) -> PairedDays) -> MetricComparison {
        let all_days = pairing(&ALL_DAYS);
        let Some(change) = find_change(&all_days.log_ratio_by_day, self.window, self.pair) else {
            return MetricComparison {
                series: DaySeries::from_days(&all_days.log_ratio_by_day),
                paired_days: all_days,
                change: None,
                days: ALL_DAYS,
            };
        };
        let newest = if change.days_after >= MIN_VERDICT_DAYS || change.days_before < MIN_VERDICT_DAYS {
            change.first_day..=i64::MAX
        } else {
            i64::MIN..=change.first_day - 1
        };
        let part = pairing(&newest);
        MetricComparison {
            series: DaySeries::from_days(&part.log_ratio_by_day),
            paired_days: part,
            change: Some(change),
            days: newest,
        }
    }

    fn planned_rounds_within(&self, days: &DayRange) -> BTreeMap<i64, usize> {
        self.planned_rounds
            .iter()
            .filter(|(day, _)| days.contains(day))
            .map(|(day, count)| (*day, *count))
            .collect()
    }

    /// Returns the seconds waited on each target, over all workloads, by day. A failed run counts once, with the
    /// largest cap of its workload (docs/methodology.md#time-waited).
    fn daily_waits(&self, days: &DayRange) -> Vec<(i64, (f64, f64))> {
        let mut by_run: BTreeMap<(i64, i64, usize), [WaitSum; 2]> = BTreeMap::new();
        for (position, (paired, cap)) in &self.rounds {
            for paired in paired.iter().filter(|paired| days.contains(&paired.day)) {
                let [a, b] = by_run.entry((paired.day, paired.round, position.workload)).or_default();
                a.add(paired.a, *cap);
                b.add(paired.b, *cap);
            }
        }
        let mut by_day: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for ((day, ..), [a, b]) in by_run {
            if let Some((a, b)) = a.seconds().zip(b.seconds()) {
                let sums = by_day.entry(day).or_default();
                *sums = (sums.0 + a, sums.1 + b);
            }
        }
        by_day.into_iter().collect()
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
