//! Checks of a target beside its speed.

mod integrity;

pub use integrity::{
    DamagePattern, DataAge, Mismatch, MismatchReread, StoredMismatch, VerifiedData, VerifiedTotal,
};
