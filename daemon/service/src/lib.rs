//! Time and processes: what to measure ([`config`]), when ([`schedule`]), in which order ([`design`]), by which processes
//! ([`worker`]), the rounds that join them ([`round`]), one after the other in the foreground ([`runner`]) or for weeks in
//! the background ([`service`]). For a first configuration: which mounts belong together ([`pairs`]), whether two folders
//! are one ([`same`]), what a plan costs ([`cost`]), and the file itself ([`draft`]).
//!
//! Nothing here touches a target's path: only a worker process does.

pub mod clock;
pub mod config;
pub mod contact;
pub mod cost;
pub mod crashes;
pub mod database;
pub mod design;
pub mod desk;
pub mod draft;
pub mod exclusive;
pub mod file_version;
pub mod host;
pub mod mounts;
pub mod pairs;
pub mod places;
pub mod program;
pub mod round;
pub mod runner;
pub mod same;
pub mod sampling;
pub mod schedule;
pub mod selfcheck;
pub mod service;
pub mod status;
pub mod target_path;
pub mod words;
pub mod worker;

pub use host::memory_total;

/// The file in the platform's folder for logs ([`longhaul_measure::platform::log_directory`]) that the background service
/// writes and `longhaul logs` reads: JSON lines; when it is full it is moved aside and begun anew.
pub const LOG_FILE: &str = "longhaul.log";
/// So many older parts of it are kept beside it, as `longhaul.log.1` and so on.
pub const OLDER_LOG_FILES: u64 = 3;
