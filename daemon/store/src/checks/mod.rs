//! Stores and reads the results of checks that are not runs.

mod freshness;
