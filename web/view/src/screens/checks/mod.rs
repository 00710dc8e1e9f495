//! Screens and statements about the checks that are not runs.

pub mod statements;
