//! Statistics of checks that are not runs.

mod freshness;
mod integrity;

pub use freshness::{FreshnessCell, FreshnessKey, freshness};
pub use integrity::{IntegrityLine, VerifiedAge, integrity_lines};
