//! What only the self-check asks of Linux.

use super::{System, Tool, linux_counters};

/// Linux.
pub const SYSTEM: System = System::Linux;

/// No child process is started on Linux: what the tools of a Mac tell is in files there.
pub const TOOLS: &[Tool] = &[];

/// Asks no tool: see [`TOOLS`].
pub fn ask_tool(_tool: &Tool) -> Option<Vec<u8>> {
    None
}

/// How many TCP connections to a file server there are, or why the kernel does not list them.
pub fn connection_count() -> Result<usize, String> {
    linux_counters::file_server_connections().map(|found| found.len())
}
