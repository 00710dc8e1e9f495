//! The requests of the checks: steps of a freshness session and of a check of fidelity, and reads in another target's sandbox.

use longhaul_measure::checks::integrity::OtherSandboxRange;
use longhaul_measure::sandbox::SandboxLocation;
use longhaul_measure::worker::{
    FailureReport, FidelityStep, FreshnessAnswer, FreshnessCommand, WorkerCommand, WorkerMessage,
};
use longhaul_model::Finding;

use super::failures::unexpected_message_failure;
use super::{LimitScope, RequestOptions, Worker};

/// Answer to a step of a check of fidelity.
#[derive(Debug, Default)]
pub struct FidelityAnswer {
    /// Finding of the step. `None`: it checked no property.
    pub finding: Option<Finding>,
    /// Number of bytes written to the target.
    pub bytes_written: u64,
}

impl Worker {
    /// Returns the name of the sandbox of this worker's target.
    pub fn sandbox_name(&self) -> String {
        let (target, machine) = (&self.target, &self.launcher.machine_id);
        SandboxLocation { target_path: &target.path, target: &target.name, machine }.folder_name()
    }

    /// Does one step of a freshness session. `options.cap` limits the whole step.
    pub fn freshness(
        &mut self,
        command: FreshnessCommand,
        options: &mut RequestOptions<'_>,
    ) -> Result<FreshnessAnswer, FailureReport> {
        match self.request(&WorkerCommand::Freshness(command), options, LimitScope::Total)?.message {
            WorkerMessage::Freshness(answer) => Ok(answer),
            other => Err(unexpected_message_failure(&other)),
        }
    }

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

    /// Makes one step of a check of fidelity, with at most `operations_per_second`. `None`: no limit.
    ///
    /// # Errors
    ///
    /// If the step failed or hung, with the report of a failed run.
    pub fn check_fidelity(
        &mut self,
        step: FidelityStep,
        operations_per_second: Option<u32>,
        options: &mut RequestOptions<'_>,
    ) -> Result<FidelityAnswer, FailureReport> {
        let command = WorkerCommand::CheckFidelity { step, operations_per_second };
        // A slow share is not hung: creating many names takes long, but each call returns.
        let response = self.request(&command, options, LimitScope::PerOperation)?;
        let bytes_written = response.bytes_written;
        match response.message {
            WorkerMessage::FidelityChecked { finding } => Ok(FidelityAnswer { finding, bytes_written }),
            other => Err(unexpected_message_failure(&other)),
        }
    }
}

/// Returns the report of a worker that answered a step with something else.
pub fn unexpected_answer_failure(answer: &FreshnessAnswer) -> FailureReport {
    unexpected_message_failure(&WorkerMessage::Freshness(answer.clone()))
}
