//! Network and disk of runs, and how much they varied.

use std::time::Duration;

use longhaul_model::quantile_of_sorted;
use serde::Serialize;
use utoipa::ToSchema;

use crate::attribution::TripsInOrder;

/// Minimum ratio of the 90th to the 10th percentile of a condition that is fitted. With less, its effect cannot be told
/// from that of chance.
const MIN_VARIATION: f64 = 1.5;

/// Columns: constant, round trips, disk requests. The time of the bytes is not fitted, because the bytes are counted: a rate
/// falls with everything else that slows a round down, so that a fit would blame the network for all of it. A column for the
/// round trips in which a connection speeds up after it was idle was tried and left out: it predicted restores over long
/// paths 30 to 60 % too long.
pub(super) const COLUMNS: usize = 3;
/// Place of the round trips among the columns.
pub(super) const TRIPS: usize = 1;

/// Network and disk with which a run is made, or for which a time is predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkAndDisk {
    /// Round-trip time between this machine and the server.
    pub round_trip: Duration,
    /// Bytes per second that the path carries at most.
    pub bytes_per_second: f64,
    /// Mean time of a request to the disk of the NAS; `None` if it is not known.
    pub disk: Option<Duration>,
}

/// Time of one metric in one run, and the conditions at that time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedRun {
    /// Network and disk as they were measured.
    pub environment: NetworkAndDisk,
    /// Time of the metric, in seconds.
    pub seconds: f64,
    /// Bytes on the wire in that time.
    pub bytes: f64,
    /// Round trips in that time; `None` if no source counts them.
    pub trips: Option<TripsInOrder>,
}

/// A condition that a prediction can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Round-trip time of the network.
    RoundTrip,
    /// Time of a request to the disk of the NAS.
    Disk,
}

/// Reason why no time can be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoPrediction {
    /// Too few runs have known conditions.
    TooFewRuns,
    /// The condition was nearly the same in all runs, so its effect is not known.
    NeverVaried(Dimension),
}

/// Conditions of the fitted runs, and the number of round trips if that is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// In seconds.
    pub round_trip: Range,
    /// In bytes per second.
    pub bandwidth: Range,
    /// In seconds; `None` unless it is known in every fitted run.
    pub disk: Option<Range>,
    /// Number of round trips, if it is counted, not fitted.
    pub counted_trips: Option<f64>,
}

/// Range of a condition or of bytes, from its 10th to its 90th percentile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

impl TimedRun {
    /// Returns true if a model can be fitted to the run.
    pub fn is_valid(&self) -> bool {
        let NetworkAndDisk { round_trip, bytes_per_second, .. } = self.environment;
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        !round_trip.is_zero()
            && is_positive(bytes_per_second)
            && is_positive(self.seconds)
            && self.bytes.is_finite()
            && self.bytes >= 0.0
    }
}

impl Measured {
    /// Returns what runs show; `None` if there are none.
    pub fn of(runs: &[TimedRun]) -> Option<Self> {
        let values = |of: fn(&NetworkAndDisk) -> f64| runs.iter().map(|run| of(&run.environment)).collect();
        let disk: Option<Vec<f64>> =
            runs.iter().map(|run| run.environment.disk.map(|disk| disk.as_secs_f64())).collect();
        Some(Self {
            round_trip: Range::of(values(|environment| environment.round_trip.as_secs_f64()))?,
            bandwidth: Range::of(values(|environment| environment.bytes_per_second))?,
            disk: disk.and_then(Range::of),
            counted_trips: None,
        })
    }

    /// Returns the part of a time that is counted, not fitted, in seconds.
    pub fn counted_seconds(&self, environment: NetworkAndDisk, bytes: f64) -> f64 {
        let trips = self.counted_trips.unwrap_or(0.0) * environment.round_trip.as_secs_f64();
        trips + bytes / environment.bytes_per_second
    }

    /// Returns the columns of the model. A condition that did not vary is zero: its effect is part of the constant.
    pub fn row(&self, environment: NetworkAndDisk) -> [f64; COLUMNS] {
        let round_trip = environment.round_trip.as_secs_f64();
        let disk = environment.disk.zip(self.disk).filter(|(_, range)| range.varies());
        let is_fitted = self.round_trip.varies() && self.counted_trips.is_none();
        let trips = if is_fitted { round_trip } else { 0.0 };
        [1.0, trips, disk.map_or(0.0, |(disk, _)| disk.as_secs_f64())]
    }

    /// Returns the factor by which an environment lies outside of what was measured, 1 within it.
    ///
    /// # Errors
    ///
    /// If a condition differs from the measured ones, but was nearly the same in all runs, and its effect is not counted.
    pub fn reach(&self, environment: NetworkAndDisk) -> Result<f64, NoPrediction> {
        let never_varied = |dimension| NoPrediction::NeverVaried(dimension);
        let round_trip = environment.round_trip.as_secs_f64();
        let counted = self.counted_trips.map(|_| self.round_trip.factor(round_trip));
        let round_trip = counted.or_else(|| self.round_trip.reach(round_trip));
        let bandwidth = self.bandwidth.factor(environment.bytes_per_second);
        let disk = match (environment.disk, self.disk) {
            (None, _) => Some(1.0),
            (Some(disk), Some(range)) => range.reach(disk.as_secs_f64()),
            (Some(_), None) => None,
        };
        let reaches = [
            round_trip.ok_or(never_varied(Dimension::RoundTrip))?,
            bandwidth,
            disk.ok_or(never_varied(Dimension::Disk))?,
        ];
        Ok(reaches.into_iter().fold(1.0, f64::max))
    }
}

impl Range {
    /// Returns the range of values in any order; `None` if there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let at = |q| quantile_of_sorted(&values, q);
        Some(Self { low: at(0.1)?, middle: at(0.5)?, high: at(0.9)? })
    }

    /// Returns true if the range is wide enough to tell the effect of the condition from that of chance.
    pub fn varies(&self) -> bool {
        self.high >= MIN_VARIATION * self.low && self.high > 0.0
    }

    /// Returns the factor by which a value lies outside of the range, 1 within it.
    fn factor(&self, value: f64) -> f64 {
        (value / self.high).max(self.low / value).max(1.0)
    }

    /// Returns the factor by which a value lies outside of the range, 1 within it; `None` for another value than the
    /// measured ones of a condition that never varied.
    fn reach(&self, value: f64) -> Option<f64> {
        let factor = self.factor(value);
        (self.varies() || factor < MIN_VARIATION).then_some(factor)
    }
}
