//! The steps of a session, as limited requests to a worker.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use longhaul_measure::checks::freshness::FreshnessSession;
use longhaul_measure::worker::{FailureReport, FreshnessAnswer, FreshnessCommand};
use longhaul_model::ChangeKind;

use crate::worker::{Interruption, RequestOptions, SilentObserver, Worker};

/// Limit of a step that takes a moment on a healthy share.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// Limit of the last steps after a request to stop: the service exits within five seconds.
const STOPPED_STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// Limits of a step.
#[derive(Clone, Copy)]
pub struct StepLimits<'a> {
    /// Request to stop early.
    pub interruption: &'a Interruption,
    /// Time after which the worker counts as hung.
    pub limit: Duration,
    /// Time that the worker may take to stop before it is abandoned.
    pub stop_timeout: Duration,
}

impl StepLimits<'_> {
    /// Lets a worker do a step.
    pub fn send(
        &self,
        worker: &mut Worker,
        command: FreshnessCommand,
    ) -> Result<FreshnessAnswer, FailureReport> {
        let mut options = RequestOptions {
            cap: self.limit,
            stop_timeout: self.stop_timeout,
            interruption: self.interruption,
            observer: &mut SilentObserver,
        };
        worker.freshness(command, &mut options)
    }

    /// Lets the writer do a last step even after a request to stop.
    pub fn send_last(
        &self,
        writer: &mut Worker,
        command: FreshnessCommand,
    ) -> Result<FreshnessAnswer, FailureReport> {
        let limit = if self.interruption.is_requested() { STOPPED_STEP_TIMEOUT } else { self.limit };
        let never = Interruption::default();
        StepLimits { interruption: &never, limit, stop_timeout: self.stop_timeout }.send(writer, command)
    }

    /// Removes all files of a session, even after a request to stop. If that fails, the next session does it.
    pub fn remove(&self, session: &FreshnessSession, writer: &mut Worker) {
        if let Err(report) = self.send_last(writer, FreshnessCommand::Remove(session.clone())) {
            let message = report.failure.message;
            tracing::warn!(target_name = %writer.target().name, error = message, "files of a freshness session are left");
        }
    }
}

/// Returns a session with a random id in the sandbox of the writer.
pub fn new_session(writer: &Worker, kinds: Vec<ChangeKind>) -> FreshnessSession {
    FreshnessSession { id: random_number(), sandbox: writer.sandbox_name(), kinds }
}

/// Returns a random number.
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
