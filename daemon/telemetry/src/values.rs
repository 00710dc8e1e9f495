//! Metric values and data points.

use longhaul_model::Histogram;

use crate::attributes::Labels;

/// A metric value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Value of a gauge.
    Number(f64),
    /// Value of a counter.
    Count(u64),
    /// Value of a histogram.
    Histogram(Histogram),
}

impl Value {
    /// Adds a value of the same kind: counts are summed, histograms are merged, and a gauge takes the new
    /// value.
    pub fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Count(mine), Self::Count(theirs)) => *mine = mine.saturating_add(*theirs),
            (Self::Histogram(mine), Self::Histogram(theirs)) => mine.merge(theirs),
            (mine, theirs) => *mine = theirs.clone(),
        }
    }
}

/// A data point: the value of one series over a period or at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Labels of the series.
    pub labels: Labels,
    /// The value.
    pub value: Value,
    /// Start of the period that the value covers, in nanoseconds since 1970 UTC.
    pub began_ns: u64,
    /// End of the period that the value covers, in nanoseconds since 1970 UTC.
    pub at_ns: u64,
}
