//! Screens of checks that are not runs, and statements about them.

mod freshness;
pub mod statements;

pub use freshness::{change, freshness, origin, staleness};
