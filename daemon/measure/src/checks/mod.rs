//! Checks that are not workloads: what a target shows, not how fast.

pub mod freshness;
