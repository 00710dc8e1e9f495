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

    /// Returns the number of recorded values: the count of a counter or histogram, 1 for a gauge.
    pub fn count(&self) -> u64 {
        match self {
            Self::Number(_) => 1,
            Self::Count(count) => *count,
            Self::Histogram(histogram) => histogram.count(),
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
