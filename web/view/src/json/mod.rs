//! JSON output of the command line (`--json`) and of the HTTP API, schema 1. Keys may be added and are never removed.

mod fidelity;
mod glance;
mod latency_series;
mod nas;
mod recording;
mod run;
mod week;
mod what_if;

pub use fidelity::FidelityJson;
pub use glance::Glance;
pub use latency_series::LatencySeries;
pub use nas::NasJson;
pub use recording::recording_lines;
pub use run::{RunJson, run};
pub use week::{SENTENCES, Sentence, WeekJson, pair, summary, week};
pub use what_if::WhatIfJson;
