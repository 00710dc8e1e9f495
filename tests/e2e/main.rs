//! End-to-end tests: they run the real programs on real files, and check their output, exit codes and what they store.
//!
//! A test that needs more than a plain Linux machine is ignored by default, with its reason, and `.ci/run` runs it by
//! name. No test passes because something is missing.

#![allow(clippy::unwrap_used)]

mod bad_input;
#[cfg(target_os = "linux")]
mod check_faults;
mod collector;
mod crash_points;
mod daemon_control;
mod daemon_faults;
mod daemon_process;
mod database;
mod demo;
mod epochs;
mod export;
mod fidelity;
mod first_use;
mod fleet;
mod freshness;
#[cfg(target_os = "linux")]
mod fuse;
#[cfg(target_os = "linux")]
mod hang;
#[cfg(target_os = "linux")]
mod hostile_peers;
mod hostile_receivers;
mod init;
mod integrity;
#[cfg(target_os = "linux")]
mod maclike;
#[cfg(target_os = "linux")]
mod managed;
mod menubar;
mod merge;
mod nas;
mod nas_servers;
mod notify;
mod notify_servers;
#[cfg(target_os = "linux")]
mod opponent;
mod preset;
mod privacy;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod probe_truth;
mod profile;
mod prose;
mod purge;
// strace and FUSE without a library are those of Linux.
#[cfg(target_os = "linux")]
mod record;
mod report;
// The paths of data and configuration, and the service manager, are those of Linux.
#[cfg(target_os = "linux")]
mod screens;
mod selfcheck;
mod service;
mod support;
mod survival;
mod target_path;
mod telemetry;
mod telemetry_service;
mod upgrade;
mod week;
mod your_day;
