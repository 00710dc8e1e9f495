//! Runs longhaul's platform code for macOS on the stand-in.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its case fails")]

mod counters;
mod events;
mod faults;
mod files;
mod listing;
mod mounts;
mod process;

use std::fs::File;
use std::os::fd::AsFd;

use longhaul_darwin::kernel::{self, Node};

/// Opens a node of the stand-in, through a descriptor of a real file.
fn open(node: Node) -> File {
    let file = File::open("/dev/null").unwrap();
    kernel::with(|kernel| kernel.open(file.as_fd(), node));
    file
}
