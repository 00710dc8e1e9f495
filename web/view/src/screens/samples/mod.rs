//! Screens about samples: latency, stalls, and the event log.

pub mod events;
pub mod latency;
pub mod latency_charts;
pub mod stall_causes;
pub mod stalls;
