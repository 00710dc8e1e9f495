//! Checks of a target beside its speed.

pub mod integrity;
