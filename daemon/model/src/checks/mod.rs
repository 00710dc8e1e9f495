//! Checks of a target apart from its speed.

mod fidelity;

pub use fidelity::{Finding, KeepResult, Property, ReadBack, TargetFidelity};
