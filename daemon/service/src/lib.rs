//! Time and processes: what to measure ([`config`]), in which order ([`design`]), by which processes ([`worker`]), and
//! the rounds that join them ([`runner`]).
//!
//! Nothing here touches a target's path: only a worker process does.

pub mod config;
pub mod design;
pub mod exclusive;
mod host;
pub mod runner;
pub mod worker;

pub use host::memory_total;
