//! Tests in the lab: two virtual machines with real file servers and real client mounts (see README.md in this folder).
//!
//! All are ignored by default. They fail if the lab cannot run here; `tests/lab/lab.sh check` says why.

#![allow(clippy::unwrap_used)]

mod counters;
mod faults;
mod fidelity;
mod freshness;
mod integrity;
mod machines;
mod protocols;
mod record;
mod sampling;
mod stalls;
mod truth;
mod usage;
mod what_if;
mod why;
