//! Screens about samples: latency, stalls, and the event log.

pub mod events;
pub mod latency;
pub mod latency_charts;
pub mod stalls;
