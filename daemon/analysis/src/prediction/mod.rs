//! Predicts how long a task would take over another network or with another disk in the NAS
//! (docs/methodology.md#prediction).
//!
//! A task's time is modelled as client + round trips x round-trip time + bytes / bandwidth + disk requests x disk time,
//! and fitted to the runs of a target, each with the conditions that were measured in its round.

mod least_squares;
mod model;

pub use model::{Dimension, Environment, Model, NoPrediction, Prediction, TimedRun};
