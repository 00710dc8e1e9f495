//! Tests of the parsers of Apple's tools and of the workloads, from outside.

#![allow(clippy::unwrap_used)]

mod macos_outputs;
mod workloads;
mod world;
