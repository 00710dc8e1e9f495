//! What longhaul measures and how.
//!
//! Nouns ([`model`]), numbers ([`stats`]), the files that workloads need ([`corpus`]) and the door to the operating
//! system ([`platform`]).

pub mod corpus;
pub mod model;
pub mod platform;
pub mod stats;
