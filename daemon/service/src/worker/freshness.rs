//! The steps of a freshness session, as requests to a worker.

use longhaul_measure::sandbox::SandboxLocation;
use longhaul_measure::worker::{
    FailureReport, FreshnessAnswer, FreshnessCommand, WorkerCommand, WorkerMessage,
};

use super::failures::unexpected_message_failure;
use super::{LimitScope, RequestOptions, Worker};

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
}

/// Returns the report of a worker that answered a step with something else.
pub fn unexpected_answer_failure(answer: &FreshnessAnswer) -> FailureReport {
    unexpected_message_failure(&WorkerMessage::Freshness(answer.clone()))
}
