//! What a verdict is about: the time that a task makes somebody wait.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CacheState, Run, Unit};

/// The most endpoints that a workload may have: a run's times are a small array.
pub const MOST_ENDPOINTS: usize = 4;

/// A time that a task makes somebody wait for, and that is compared between targets. Less is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Endpoint {
    /// Its name, unique in its workload; stored with each run, so it never changes.
    pub name: &'static str,
    /// What it is to a person, to be read after "for": "opening a folder".
    pub activity: &'static str,
    /// Whether it met caches. Cold and warm are endpoints of their own.
    pub cache: CacheState,
    /// The figures whose sum it is, each given by phase and name. All are in seconds.
    pub figures: &'static [(&'static str, &'static str)],
    /// Whether a person sits before the screen and waits.
    pub presence: Presence,
    /// Its share of the overall comparison; over all endpoints of all workloads the shares add up to 1.
    pub weight: f64,
}

/// Who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// A person, for whom less than a tenth of a second is no wait.
    Interactive,
    /// A program in the background.
    Background,
}

impl Endpoint {
    /// The time in a run, in seconds; `None` unless every figure is there.
    fn of(&self, run: &Run) -> Option<f64> {
        let figure = |(phase, name): &(&str, &str)| {
            let phase = run.phases.iter().find(|known| known.name == *phase && self.meets(known.cache))?;
            let figure = phase.figures.iter().find(|known| known.name == *name)?;
            (figure.unit == Unit::Seconds).then_some(figure.value)
        };
        self.figures.iter().map(figure).sum()
    }

    /// An endpoint that mixes phases ("scan, copy, delete") has no cache state of its own and takes each as it is.
    fn meets(&self, cache: CacheState) -> bool {
        self.cache == CacheState::None || self.cache == cache
    }
}

/// The times of a run's endpoints, in the order in which its workload lists them, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Times([f64; MOST_ENDPOINTS]);

/// What is not known equals what is not known.
impl PartialEq for Times {
    fn eq(&self, other: &Self) -> bool {
        self.0.map(f64::to_bits) == other.0.map(f64::to_bits)
    }
}

impl Times {
    /// No time is known.
    pub const NONE: Times = Times([f64::NAN; MOST_ENDPOINTS]);

    /// The times of a run of a workload with these endpoints.
    pub fn of(run: &Run, endpoints: &[Endpoint]) -> Self {
        endpoints.iter().enumerate().fold(Self::NONE, |times, (place, endpoint)| match endpoint.of(run) {
            Some(seconds) => times.with(place, seconds),
            None => times,
        })
    }

    /// The same with one more time. What is no duration is not taken.
    pub fn with(mut self, place: usize, seconds: f64) -> Self {
        if let Some(known) = self.0.get_mut(place).filter(|_| seconds.is_finite() && seconds > 0.0) {
            *known = seconds;
        }
        self
    }

    /// The time of the endpoint at this place; `None` if the run did not give it.
    pub fn get(&self, place: usize) -> Option<f64> {
        self.0.get(place).copied().filter(|seconds| seconds.is_finite())
    }
}
