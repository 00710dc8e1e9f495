//! One export: a process that ends by itself, or is ended.

use std::io::{self, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::{Builder, JoinHandle};

use super::FleetExportDeps;
use super::times::ExportEnd;

/// Largest part of the process's messages that is kept, in bytes.
const MAX_MESSAGE_BYTES: u64 = 4 << 10;

/// An export that is running.
pub struct ExportProcess {
    child: Child,
    /// Thread that reads the messages. `None`: it could not be started, or has been waited for.
    messages: Option<JoinHandle<Vec<u8>>>,
}

impl ExportProcess {
    /// Starts an export into the collection of the configuration.
    pub fn start(deps: &FleetExportDeps) -> std::io::Result<Self> {
        let mut command = Command::new(&deps.program);
        command.args(["export", "fleet", "--database"]).arg(&deps.database);
        if let Some(config) = &deps.config {
            command.arg("--config").arg(config);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let thread = Builder::new().name("fleet-messages".to_owned()).stack_size(256 << 10);
        let stderr = child.stderr.take();
        let messages = stderr.and_then(|stderr| thread.spawn(move || read_messages(stderr)).ok());
        Ok(Self { child, messages })
    }

    /// Returns how the export ended; `None` while it is running. Does not wait.
    pub fn ended(&mut self) -> Option<ExportEnd> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) if status.success() => Some(ExportEnd::Complete),
            Ok(Some(status)) => {
                let message = self.message();
                Some(ExportEnd::Failed(if message.is_empty() { status.to_string() } else { message }))
            }
            Err(error) => Some(ExportEnd::Failed(error.to_string())),
        }
    }

    /// Ends the export. A process that waits for a share which does not answer ends later: [`Self::ended`] tells when.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// Returns what the ended process printed, in one line.
    fn message(&mut self) -> String {
        let bytes = self.messages.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().map(|line| line.trim().trim_start_matches("longhaul: "));
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(": ")
    }
}

/// Reads the messages of a process until it ends, and returns the first ones. All are read, because a process that cannot write its
/// messages never ends.
fn read_messages(mut stderr: ChildStderr) -> Vec<u8> {
    let mut first = vec![];
    if stderr.by_ref().take(MAX_MESSAGE_BYTES).read_to_end(&mut first).is_ok() {
        let _ = io::copy(&mut stderr, &mut io::sink());
    }
    first
}
