//! The request to read a range of a file in another target's sandbox.

use longhaul_measure::checks::integrity::OtherSandboxRange;
use longhaul_measure::worker::{FailureReport, WorkerCommand, WorkerMessage};

use super::failures::unexpected_message_failure;
use super::{LimitScope, RequestOptions, Worker};

impl Worker {
    /// Reads a range of a file in another target's sandbox. Returns the fingerprint of its bytes; `None` if the file is
    /// missing.
    ///
    /// # Errors
    ///
    /// If the range cannot be read in the time of `options.cap`.
    pub fn read_elsewhere(
        &mut self,
        range: OtherSandboxRange,
        options: &mut RequestOptions<'_>,
    ) -> Result<Option<u64>, FailureReport> {
        match self.request(&WorkerCommand::ReadElsewhere(range), options, LimitScope::Total)?.message {
            WorkerMessage::RangeRead { fingerprint } => Ok(fingerprint),
            other => Err(unexpected_message_failure(&other)),
        }
    }
}
