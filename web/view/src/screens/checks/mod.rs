//! Screens of checks that are not runs.

mod freshness;

pub use freshness::{change, freshness, origin, staleness};
