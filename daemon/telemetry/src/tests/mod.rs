//! Tests of traces, and example rounds for tests of other modules.

pub mod samples;
mod traces;
