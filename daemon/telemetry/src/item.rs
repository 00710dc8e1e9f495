//! Reads the items of an outbox and converts them to data points.

use longhaul_store::{FinishedRound, Reader, SampledStep, Signal};

use crate::instruments::{round_points, step_points};
use crate::metrics::Temporality;
use crate::time::nanoseconds;
use crate::totals::Totals;
use crate::values::Point;
use longhaul_model::Timestamp;

/// One item of an outbox: the unit of export.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A round.
    Round(Box<FinishedRound>),
    /// Five minutes of samples.
    Step(Box<SampledStep>),
}

impl Item {
    /// Reads an item of a signal: a round by its number, or a step by its start in microseconds since 1970 UTC.
    /// `None`: the item does not exist.
    pub fn read(reader: &Reader, signal: Signal, number: i64) -> longhaul_store::Result<Option<Self>> {
        Ok(match signal {
            Signal::Traces | Signal::Metrics => reader.finished_round(number)?.map(Box::new).map(Self::Round),
            Signal::Samples => reader.sampled_step(Timestamp::from_us(number))?.map(Box::new).map(Self::Step),
        })
    }

    /// Returns the start of the item.
    pub fn began(&self) -> Timestamp {
        match self {
            Self::Round(round) => round.stored.round.started,
            Self::Step(step) => step.at,
        }
    }

    /// Returns the data points of the item, each with the index of its instrument, in chronological order. With
    /// cumulative temporality, `totals` must contain all earlier items of the same UTC day.
    pub fn points(&self, temporality: Temporality, totals: &mut Totals) -> Vec<(usize, Point)> {
        totals.begin_period(nanoseconds(self.began()));
        let points = match self {
            Self::Round(round) => round_points(round),
            Self::Step(step) => step_points(step),
        };
        let total = |(index, point): (usize, Point)| match temporality {
            Temporality::Delta => (index, point),
            Temporality::Cumulative => (index, totals.add(index, point)),
        };
        points.into_iter().map(total).collect()
    }
}
