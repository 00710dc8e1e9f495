//! What waits in an outbox, read back.

use longhaul_store::{FinishedRound, Reader, SampledStep, Signal};

use crate::instruments::{of_round, of_step};
use crate::metrics::Temporality;
use crate::time::nanoseconds;
use crate::values::{Point, Totals};

/// What is exported as one.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A round.
    Round(Box<FinishedRound>),
    /// Five minutes of samples.
    Step(Box<SampledStep>),
}

impl Item {
    /// The one that a signal knows by this number; `None` if it is not there any more.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub fn read(reader: &Reader, signal: Signal, number: i64) -> longhaul_store::Result<Option<Self>> {
        Ok(match signal {
            Signal::Traces | Signal::Metrics => reader.finished_round(number)?.map(Box::new).map(Self::Round),
            Signal::Samples => reader.sampled_step(number)?.map(Box::new).map(Self::Step),
        })
    }

    /// When it began, in microseconds since 1970 UTC.
    pub fn began_us(&self) -> i64 {
        match self {
            Self::Round(round) => round.stored.round.started_us,
            Self::Step(step) => step.at_us,
        }
    }

    /// Its points, in the order of time. `totals` has to hold the items of its day that were before it.
    pub fn points(&self, temporality: Temporality, totals: &mut Totals) -> Vec<(usize, Point)> {
        totals.reach(nanoseconds(self.began_us()));
        let points = match self {
            Self::Round(round) => of_round(round),
            Self::Step(step) => of_step(step),
        };
        let total = |(place, point): (usize, Point)| match temporality {
            Temporality::Delta => (place, point),
            Temporality::Cumulative => (place, totals.add(place, point)),
        };
        points.into_iter().map(total).collect()
    }
}
