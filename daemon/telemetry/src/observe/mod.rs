//! What stored rounds, samples and this moment say of each instrument.

mod now;
mod runs;
mod samples;

pub use now::{of_targets, outboxes, schedule};
pub use runs::{available, bytes, duration, durations, errors, figures, free, round_ended, rounds, runs};
pub use samples::{
    available_memory, crossed, lost, packet_round_trip, peak, probe_cost, probe_errors, probed, processor,
    reconnects, requests, retransmissions, rpcs, stall_time, stalls,
};

use crate::attributes::Labels;
use crate::values::Value;

/// Values, each with what tells its series from others.
pub type Observed = Vec<(Labels, Value)>;

fn with(labels: &Labels, key: &'static str, value: &str) -> Labels {
    let mut labels = labels.clone();
    labels.insert(key.into(), value.to_owned());
    labels
}
