//! Prevents idle sleep of the machine while a round runs.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Guard that prevents idle sleep of the machine until it is dropped.
///
/// On a Mac, I/O alone does not prevent idle sleep, and a round during which the machine slept is void.
/// `caffeinate -i` holds the assertion `PreventUserIdleSystemSleep` until it ends; with `-w` it ends with
/// this process too, however that ends (PowerManagement caffeinate/caffeinate.c:53, 142). The display may still
/// turn off, and a closed lid or a sleep command of the user still puts the machine to sleep: the assertion only
/// overrides the idle timer (pmconfigd/PMAssertions.c:5331).
#[derive(Debug)]
pub struct KeepAwake {
    tool: Child,
}

impl KeepAwake {
    /// Starts the `caffeinate` tool at this path; `None` if it cannot be started.
    pub(super) fn start(caffeinate: &Path) -> Option<Self> {
        let process = std::process::id().to_string();
        let mut command = Command::new(caffeinate);
        command.args(["-i", "-w", &process]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok().map(|tool| Self { tool })
    }
}

impl Drop for KeepAwake {
    fn drop(&mut self) {
        // The tool accesses no share, so it ends at once. An error means that it has already ended.
        let _ = self.tool.kill();
        let _ = self.tool.wait();
    }
}
