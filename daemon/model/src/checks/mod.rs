//! Checks of a target apart from its speed.

mod fidelity;
mod freshness;
mod integrity;

pub use fidelity::{Finding, KeepResult, Property, ReadBack, TargetFidelity};
pub use freshness::{ChangeKind, FreshnessOutcome, FreshnessSample};
pub use integrity::{
    DamagePattern, DataAge, Mismatch, MismatchReread, OtherReread, StoredMismatch, VerifiedData,
    VerifiedTotal,
};
