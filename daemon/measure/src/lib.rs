//! Measurement library: platform calls, timed file operations, the sandbox and workloads.
//!
//! Modules: the access to the operating system ([`platform`]), the parsers of its answers ([`parse`]), the timed
//! file operations of all workloads ([`timed_fs`]), the sandbox on a target ([`sandbox`]), the workloads
//! ([`workloads`]), comparison with other benchmark tools ([`mod@bench`]), the worker process ([`worker`]), checks of
//! a target apart from its speed ([`checks`]), sampling in the background ([`samplers`]), and longhaul's files on the
//! local disk, their privacy ([`private_files`]) and their removal ([`local_folder`], [`inventory`]).
//!
//! This crate has no async runtime, no SQL and no HTTP.

pub mod bench;
pub mod checks;
pub mod command_thread;
pub mod error;
pub mod inventory;
pub mod local_folder;
pub mod local_network;
pub mod lock;
pub mod parse;
pub mod platform;
pub mod private_files;
pub mod recorder;
pub mod samplers;
pub mod sandbox;
pub mod selfcheck;
#[cfg(test)]
mod testing;
pub mod timed_fs;
pub mod worker;
pub mod workloads;
