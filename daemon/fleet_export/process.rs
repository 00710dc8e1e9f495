//! One export: a process that ends by itself, or is ended.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use super::FleetExportDeps;
use super::times::ExportEnd;

/// Largest part of the process's messages that is read, in bytes.
const MAX_MESSAGE_BYTES: u64 = 4 << 10;

/// An export that is running.
pub struct ExportProcess(Child);

impl ExportProcess {
    /// Starts an export into the collection of the configuration.
    pub fn start(deps: &FleetExportDeps) -> std::io::Result<Self> {
        let mut command = Command::new(&deps.program);
        command.args(["export", "fleet", "--database"]).arg(&deps.database);
        if let Some(config) = &deps.config {
            command.arg("--config").arg(config);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        Ok(Self(child))
    }

    /// Returns how the export ended; `None` while it is running. Does not wait.
    pub fn ended(&mut self) -> Option<ExportEnd> {
        match self.0.try_wait() {
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
        let _ = self.0.kill();
    }

    /// Returns what the ended process printed, in one line.
    fn message(&mut self) -> String {
        let mut bytes = vec![];
        if let Some(messages) = self.0.stderr.take() {
            let _ = messages.take(MAX_MESSAGE_BYTES).read_to_end(&mut bytes);
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().map(|line| line.trim().trim_start_matches("longhaul: "));
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(": ")
    }
}
