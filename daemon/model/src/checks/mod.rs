//! Checks of a target apart from its speed.

mod fidelity;
mod freshness;

pub use fidelity::{Finding, KeepResult, Property, ReadBack, TargetFidelity};
pub use freshness::{ChangeKind, FreshnessOutcome, FreshnessSample};
