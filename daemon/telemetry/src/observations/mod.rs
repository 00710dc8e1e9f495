//! The values of each instrument from stored rounds, samples and the current state.

mod checks;
mod current_state;
mod labelled;
mod runs;
mod samples;

pub use checks::{fidelity_properties, freshness_changes, mismatches, verified_bytes};
pub use current_state::{outbox_items, per_target, scheduled_rounds};
pub use labelled::Observations;
pub use runs::{
    availability, bytes, duration, durations, errors, figures, free_bytes, round_end_time, rounds, runs,
};
pub use samples::{
    available_memory, cpu_utilization, peak_throughput, probe_cpu_time, probe_errors, probe_latency,
    probe_timeouts, reconnects, requests, retransmits, stall_time, stalls, tcp_round_trip, traffic_bytes,
};
