//! A request to a worker: its limits, its observer and its response.

use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::recorder::Recorder;
use longhaul_measure::worker::{FailureReport, WorkerMessage};
use longhaul_model::{Phase, Progress, TargetName};

use super::interruption::Interruption;

/// Receives the progress of workers.
pub trait WorkerObserver {
    /// Called when a preparation reports progress.
    fn progress(&mut self, target: &TargetName, progress: &Progress);
    /// Called when a phase of a run starts.
    fn phase_started(&mut self, target: &TargetName, name: &str);
    /// Called when a worker starts a request. Its flight recorder shows the progress.
    fn worker_started(&mut self, _target: &TargetName, _recorder: &Arc<Recorder>) {}
    /// Called when a started worker has another version of longhaul. Such a worker is not used.
    fn version_mismatch(&mut self, _target: &TargetName, _version: &str) {}
}

/// An observer that ignores all progress.
pub struct SilentObserver;

impl WorkerObserver for SilentObserver {
    fn progress(&mut self, _: &TargetName, _: &Progress) {}
    fn phase_started(&mut self, _: &TargetName, _: &str) {}
}

/// Limits and observer of a request to a worker.
pub struct RequestOptions<'a> {
    /// Time limit of a run as a whole, and of each operation of a preparation.
    pub cap: Duration,
    /// Time that an operation in flight may take after the user wants to stop, before the worker is abandoned.
    pub stop_timeout: Duration,
    /// Request of the user or the service to stop early.
    pub interruption: &'a Interruption,
    /// Receives the progress of the request.
    pub observer: &'a mut dyn WorkerObserver,
}

/// The response of a worker, with the phases that ended before it.
pub(super) struct Response {
    pub(super) message: WorkerMessage,
    pub(super) phases: Vec<Phase>,
    pub(super) bytes_written: u64,
}

/// A request without a response: the completed phases and the failure to store.
pub(super) struct RequestFailed {
    pub(super) phases: Vec<Phase>,
    pub(super) failure: FailureReport,
}

impl From<FailureReport> for RequestFailed {
    fn from(failure: FailureReport) -> Self {
        Self { phases: vec![], failure }
    }
}

impl From<RequestFailed> for FailureReport {
    fn from(failed: RequestFailed) -> Self {
        failed.failure
    }
}
