//! Causes of stalls and slow calls: each cause leaves a pattern in what is stored about a target, and is named only if
//! chance rarely makes this pattern (docs/stalls.md). Pure.

mod activity;
mod cause;
mod coincidence;
mod durations;
mod hourly;
mod idle;
mod named;
mod observations;
mod periodic;
mod rhythm;

pub use cause::{StallCause, StallEvidence};
pub use named::{ExplainedStall, NamedStall, StallCauses, explain_stalls, name_stalls};
pub use observations::TargetObservations;
