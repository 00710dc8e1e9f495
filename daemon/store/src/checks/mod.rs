//! Stores and reads the results of checks of a target.

pub(crate) mod integrity;
