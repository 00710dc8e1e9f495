//! Results of checks that are not runs: measured beside the tasks, with tables of their own.

mod freshness;

pub use freshness::{ChangeKind, FreshnessOutcome, FreshnessSample};
