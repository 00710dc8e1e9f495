//! Deterministic data: everything that a workload reads follows from a seed, and can be verified weeks later.

pub mod draw;
pub mod slices;
pub mod tree;
