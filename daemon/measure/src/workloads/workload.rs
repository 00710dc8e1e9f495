//! The interface of a workload.

use std::path::Path;

use super::job::Job;
use crate::error::RunError;
use crate::platform::IoPolicy;
use longhaul_model::WaitMetric;

/// A task that is replayed on a target.
pub trait Workload: Sync {
    /// Returns the workload's name. It is stored with each run, so it must never change.
    fn name(&self) -> &str;

    /// Returns a one-line description of the task, shown in lists and help texts.
    fn summary(&self) -> &str;

    /// Returns the name of the workload's folder in a sandbox.
    fn folder(&self) -> &str {
        self.name()
    }

    /// Returns the metrics that are compared between targets. Their values are in seconds.
    fn metrics(&self) -> &'static [WaitMetric];

    /// Returns whether the workload runs on a fixed schedule, so that its total duration says nothing about the
    /// target.
    fn is_paced(&self) -> bool {
        false
    }

    /// Returns the I/O policy that the workload runs under.
    fn io_policy(&self) -> IoPolicy {
        IoPolicy::Default
    }

    /// Returns whether the workload creates a file with this path, relative to the workload's folder.
    ///
    /// File names are generated from seeds, so the path alone is enough to decide.
    fn owns(&self, path: &Path) -> bool;

    /// Creates the test data that the run needs, continuing after an interrupted preparation. Not timed.
    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError>;

    /// Runs the task and records its phases.
    fn run(&self, job: &Job<'_>) -> Result<(), RunError>;
}
