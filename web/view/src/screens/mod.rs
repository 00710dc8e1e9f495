//! The screens: one function each, from data to a [`Document`](crate::Document). All English that a user reads stands here.

pub mod before_after;
pub mod brief;
pub mod checks;
pub mod commons;
pub mod menu_bar;
pub mod method;
pub mod nas;
pub mod notifications;
pub mod overview;
pub mod pair;
mod percent;
pub mod problems;
pub mod recommendation;
pub mod record;
pub mod result;
pub mod round_strips;
pub mod round_trips;
pub mod run;
pub mod runs;
mod samples;
pub mod sentences;
mod service;
pub mod slowest;
pub mod so_far;
pub mod summary;
pub mod task;
pub mod task_rows;
pub mod trial;
pub mod usage;
pub mod week;
pub mod week_charts;
pub mod what_if;
pub mod why;
pub mod words;
pub mod your_day;

pub use samples::{events, latency, latency_charts, stall_causes, stalls};
pub use service::{doctor, live, mounts, status, targets};

use longhaul_model::{Outcome, Protocol};

use crate::text::{Text, Tone};
use crate::units::{self, NO_VALUE, or_no_value};

fn bytes(value: Option<u64>) -> String {
    or_no_value(value.map(|bytes| units::bytes(bytes as f64)))
}

fn protocol(protocol: Option<&Protocol>) -> String {
    protocol.map_or("not known".to_owned(), ToString::to_string)
}

/// Returns an outcome of a run with its colour.
fn outcome(outcome: Outcome) -> Text {
    let tone = match outcome {
        Outcome::Ok => Tone::Good,
        Outcome::Error | Outcome::Hung => Tone::Bad,
        Outcome::Unavailable | Outcome::Void => Tone::Warning,
    };
    Text::new().toned(outcome.name(), tone)
}
