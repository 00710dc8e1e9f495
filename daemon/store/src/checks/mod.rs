//! Stores and reads the results of checks that are not runs.

mod fidelity;
mod freshness;
pub(crate) mod integrity;

pub(crate) use freshness::freshness_by_day;
