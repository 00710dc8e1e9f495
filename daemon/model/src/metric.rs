//! Metrics: times that a task makes a user wait for. Verdicts are about metrics.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CacheState, Phase, Run, Unit};

/// Maximum number of metrics of a workload. The times of a run are stored in an array of this size.
pub const MAX_METRICS: usize = 4;

/// Time that a task makes a user wait for and that is compared between targets. Less is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaitMetric {
    /// Name of the metric, unique in its workload. The name is stored with each run, so it never changes.
    pub name: &'static str,
    /// Activity in words that fit after "for", such as "opening a folder".
    pub activity: &'static str,
    /// Cache state that the metric measures. Cold and warm times of one activity are separate metrics.
    pub cache: CacheState,
    /// Figures whose sum is the metric, each given by phase and figure name. All figures are in seconds.
    pub figures: &'static [(&'static str, &'static str)],
    /// Kind of wait: interactive or in the background.
    pub wait_kind: WaitKind,
    /// Weight of the metric in the overall comparison. The weights of all metrics of all workloads add up to
    /// 1.
    pub weight: f64,
}

/// Kind of wait that a metric measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitKind {
    /// A user waits. Less than a tenth of a second does not count as waiting.
    Interactive,
    /// A background program waits.
    Background,
}

impl WaitMetric {
    /// Returns true for the time waiting of a replay: the metric that decides if nothing but a recording is measured.
    pub fn is_replay_waiting(&self) -> bool {
        self.figures == [("replay", "waiting")]
    }

    /// Returns true if the pauses of the task are part of the metric: in the total of a replay. What the rest of such a time was
    /// spent on cannot be told from its length.
    pub fn includes_pauses(&self) -> bool {
        self.figures == [("replay", "total")]
    }

    /// Returns true if the metric is the time of one of many steps of its phase, such as the median of many switches.
    pub fn is_one_of_many(&self) -> bool {
        self.figures.iter().any(|(_, figure)| figure.ends_with("-median"))
    }

    /// Returns the time of the metric in a run, in seconds; `None` if any of its figures is missing.
    fn seconds_in(&self, run: &Run) -> Option<f64> {
        let figure = |(phase, name): &(&str, &str)| {
            let is_meant = |known: &&Phase| known.name == *phase && self.covers(&known.name, known.cache);
            let phase = run.phases.iter().find(is_meant)?;
            let figure = phase.figures.iter().find(|known| known.name == *name)?;
            (figure.unit == Unit::Seconds).then_some(figure.value)
        };
        self.figures.iter().map(figure).sum()
    }

    /// Returns true if a phase with this name and cache state belongs to the metric. A metric that mixes phases ("scan, copy,
    /// delete") has no cache state of its own and accepts any.
    pub fn covers(&self, phase: &str, cache: CacheState) -> bool {
        let has_cache = self.cache == CacheState::None || self.cache == cache;
        has_cache && self.figures.iter().any(|(name, _)| *name == phase)
    }
}

/// Metric times of one run, in seconds, in the order in which its workload lists the metrics.
#[derive(Debug, Clone, Copy)]
pub struct MetricTimes([f64; MAX_METRICS]);

/// Compares the bit patterns, so that two unknown times (NaN) are equal.
impl PartialEq for MetricTimes {
    fn eq(&self, other: &Self) -> bool {
        self.0.map(f64::to_bits) == other.0.map(f64::to_bits)
    }
}

impl MetricTimes {
    /// Times of a run that reported none.
    pub const NONE: MetricTimes = MetricTimes([f64::NAN; MAX_METRICS]);

    /// Returns the times of a run, given the metrics of its workload.
    pub fn from_run(run: &Run, metrics: &[WaitMetric]) -> Self {
        metrics.iter().enumerate().fold(Self::NONE, |times, (index, metric)| match metric.seconds_in(run) {
            Some(seconds) => times.with(index, seconds),
            None => times,
        })
    }

    /// Returns a copy with the time of one more metric. A value that is not a positive, finite duration is
    /// ignored.
    pub fn with(mut self, index: usize, seconds: f64) -> Self {
        if let Some(known) = self.0.get_mut(index).filter(|_| seconds.is_finite() && seconds > 0.0) {
            *known = seconds;
        }
        self
    }

    /// Returns the time of the metric at this index, in seconds; `None` if the run did not report it.
    pub fn get(&self, index: usize) -> Option<f64> {
        self.0.get(index).copied().filter(|seconds| seconds.is_finite())
    }
}
