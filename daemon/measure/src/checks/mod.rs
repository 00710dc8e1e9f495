//! Checks of a target apart from its speed.

pub mod fidelity;
pub mod freshness;
pub mod integrity;
