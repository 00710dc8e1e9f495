//! Statistics of checks that are not runs.

mod freshness;

pub use freshness::{FreshnessCell, FreshnessKey, freshness};
