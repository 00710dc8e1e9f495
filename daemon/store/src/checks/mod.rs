//! Stores and reads the results of checks that are not runs.

mod fidelity;
mod freshness;
mod integrity;
pub(crate) mod verified;

pub(crate) use freshness::freshness_by_day;
