//! Tests of error rates and power on simulated worlds.

mod simulation;
mod stalls;
