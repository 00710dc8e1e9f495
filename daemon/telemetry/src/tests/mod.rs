//! What the pure parts promise about whole rounds.

pub mod samples;
mod traces;
