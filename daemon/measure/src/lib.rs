//! What longhaul measures and how.
//!
//! Nouns ([`model`]), numbers ([`stats`]) and the door to the operating system ([`platform`]).

pub mod model;
pub mod platform;
pub mod stats;
