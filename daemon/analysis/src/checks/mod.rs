//! Statistics of the checks of a target.

mod integrity;

pub use integrity::{IntegrityLine, VerifiedAge, excluded_bytes, integrity_ledger, poisson_upper_bound};
