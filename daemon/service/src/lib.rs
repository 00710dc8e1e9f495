//! Time and processes: what to measure ([`config`]), in which order ([`design`]), by which processes ([`worker`]), and
//! the rounds that join them ([`runner`]). For a first configuration: which mounts belong together ([`pairs`]), whether two
//! folders are one ([`same`]), what a plan costs ([`cost`]), and the file itself ([`draft`]).
//!
//! Nothing here touches a target's path: only a worker process does.

pub mod config;
pub mod cost;
pub mod design;
pub mod draft;
pub mod exclusive;
mod host;
pub mod pairs;
pub mod runner;
pub mod same;
pub mod worker;

/// The file in the platform's folder for logs ([`longhaul_measure::platform::log_directory`]) that the background service
/// writes and `longhaul logs` reads: JSON lines; when it is full it is moved aside and begun anew.
pub const LOG_FILE: &str = "longhaul.log";
