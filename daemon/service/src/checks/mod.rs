//! Checks of targets apart from their speed.

pub mod elsewhere;
pub mod fidelity;
pub mod freshness;
