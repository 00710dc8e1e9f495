//! Tests of the service managers: what their tools print, and what longhaul runs.

#![allow(clippy::unwrap_used)]

mod launchctl;
mod procedures;
