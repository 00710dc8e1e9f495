//! Platform calls on Linux that only the self-check uses.

use super::linux_counters;
use super::types::{System, Tool};

/// Operating system of this build: Linux.
pub const SYSTEM: System = System::Linux;

/// Tools that the self-check runs: none on Linux, where files contain what the tools of a Mac print.
pub const TOOLS: &[Tool] = &[];

/// Runs no tool and returns `None`: see [`TOOLS`].
pub fn run_tool(_tool: &Tool) -> Option<Vec<u8>> {
    None
}

/// Returns the number of TCP connections to file servers, or the reason why the kernel does not list them.
pub fn connection_count() -> Result<usize, String> {
    linux_counters::file_server_connections().map(|found| found.len())
}
