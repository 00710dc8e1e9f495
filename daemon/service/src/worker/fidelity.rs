//! The request for one step of a check of fidelity.

use longhaul_measure::worker::{FailureReport, FidelityStep, WorkerCommand, WorkerMessage};
use longhaul_model::Finding;

use super::Worker;
use super::failures::unexpected_message_failure;
use super::request::RequestOptions;
use super::wait::LimitScope;

/// Step of a check of fidelity, with the rate that it must keep to.
#[derive(Debug, Clone)]
pub struct FidelityRequest {
    /// Step to make.
    pub step: FidelityStep,
    /// Maximum number of operations per second. `None`: no limit.
    pub operations_per_second: Option<u32>,
}

/// Answer to a step of a check of fidelity.
#[derive(Debug, Default)]
pub struct FidelityAnswer {
    /// Finding of the step. `None`: it checked no property.
    pub finding: Option<Finding>,
    /// Number of bytes written to the target.
    pub bytes_written: u64,
}

impl Worker {
    /// Makes one step of a check of fidelity.
    ///
    /// # Errors
    ///
    /// If the step failed or hung, with the report of a failed run.
    pub fn check_fidelity(
        &mut self,
        request: FidelityRequest,
        options: &mut RequestOptions<'_>,
    ) -> Result<FidelityAnswer, FailureReport> {
        let FidelityRequest { step, operations_per_second } = request;
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
