//! Checks that several workers make together.

pub mod freshness;
