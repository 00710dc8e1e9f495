//! The background service and the rounds that it runs: configuration ([`config`]), schedule ([`schedule`]),
//! order of the runs ([`design`]), worker processes ([`worker`]), single rounds ([`round`]), rounds in the
//! foreground ([`foreground`]) and for weeks in the background ([`service`]), checks of targets apart from their speed
//! ([`checks`]). `longhaul init` uses it to find
//! mounts of the same server ([`similar_mounts`]), to test whether two folders are the same ([`same_folder`]),
//! to estimate the cost of a plan ([`cost`]), and to write the configuration file ([`config_draft`]).
//!
//! This crate never accesses a target on a share itself: only worker processes do.
//!
//! ```
//! use longhaul_service::design::run_order;
//!
//! // A round runs every workload on every target once, in an order that follows from the seed.
//! let order = run_order(42, 7, 4, 2);
//! assert_eq!(order.len(), 4);
//! assert!(order.iter().all(|(_, targets)| *targets == [0, 1] || *targets == [1, 0]));
//! assert_eq!(order, run_order(42, 7, 4, 2));
//! ```

pub mod checks;
pub mod clock;
pub mod command;
pub mod config;
pub mod config_draft;
pub mod config_edit;
pub mod cost;
pub mod crash_loop;
pub mod daemon_address;
mod damage;
pub mod database;
pub mod database_lock;
pub use longhaul_model::design;
mod event;
pub mod file_version;
pub mod foreground;
pub mod handle;
pub mod host;
pub mod mounts;
pub mod nas;
pub mod notifications;
pub mod own_files;
pub mod paths;
pub mod program_file;
pub mod recordings;
pub mod round;
mod round_error;
pub mod round_stop;
pub mod sampling;
pub mod schedule;
pub mod selfcheck;
pub mod service;
mod store_retry;
pub use longhaul_model::status;
mod targets;
pub mod worker;

pub use host::{memory_total, processors};
pub use targets::{same_folder, similar_mounts, target_path};

/// Name of the service's log file in the platform's log folder ([`longhaul_measure::platform::log_directory`]).
/// Its lines are JSON; `longhaul service logs` reads it. A full log file is rotated.
pub const LOG_FILE: &str = "longhaul.log";
/// Number of rotated log files that are kept: `longhaul.log.1` to `longhaul.log.3`.
pub const ROTATED_LOG_FILES: u64 = 3;
