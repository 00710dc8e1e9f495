//! Checks of targets apart from their speed.

pub mod fidelity;
pub mod freshness;
