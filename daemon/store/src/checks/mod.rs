//! Stores and reads the checks of targets.

mod fidelity;
