//! The interface of a workload.

use std::path::{Path, PathBuf};

use super::job::Job;
use crate::checks::integrity::KnownContent;
use crate::error::RunError;
use crate::platform::IoPolicy;
use longhaul_model::Timestamp;

/// Function that returns the content of a file by its path in a workload's folder; `None` if it is not known.
pub type ContentLookup = Box<dyn Fn(&Path) -> Option<Box<dyn KnownContent>>>;

/// A task that is replayed on a target.
pub trait Workload: Sync {
    /// Returns the workload's name. It is stored with each run, so it must never change.
    fn name(&self) -> &str;

    /// Returns the name of the workload's folder in a sandbox.
    fn folder(&self) -> &str {
        self.name()
    }

    /// Returns whether the workload runs on a fixed schedule, so that its total duration says nothing about the
    /// target.
    fn is_paced(&self) -> bool {
        false
    }

    /// Returns whether the workload only reads what other workloads created, so that it needs an existing sandbox.
    fn only_reads(&self) -> bool {
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

    /// Returns the content of a file that the workload created, by its path in the workload's folder. `None` if it is not
    /// known.
    ///
    /// # Errors
    ///
    /// If the state of the workload's files cannot be read.
    fn known_content(&self, job: &Job<'_>, path: &Path) -> Result<Option<Box<dyn KnownContent>>, RunError> {
        let lookup = self.known_contents(job)?;
        Ok(lookup(path))
    }

    /// Returns a function with the contents of all files that the workload created. Their state is read only once.
    ///
    /// # Errors
    ///
    /// If the state of the workload's files cannot be read.
    fn known_contents(&self, _job: &Job<'_>) -> Result<ContentLookup, RunError> {
        Ok(Box::new(|_: &Path| None))
    }

    /// Returns the files whose content is known and which stay on the target between runs, as paths in the workload's
    /// folder.
    ///
    /// # Errors
    ///
    /// If the state of the workload's files cannot be read.
    fn kept_files(&self, _job: &Job<'_>) -> Result<Vec<PathBuf>, RunError> {
        Ok(vec![])
    }

    /// Records that all kept files are read at this time, so that phases do not claim to be cold soon after because their data rested.
    ///
    /// # Errors
    ///
    /// If the manifest cannot be read or written.
    fn set_all_used(&self, _job: &Job<'_>, _now: Timestamp) -> Result<(), RunError> {
        Ok(())
    }

    /// Creates the test data that the run needs, continuing after an interrupted preparation. Not timed.
    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError>;

    /// Runs the task and records its phases.
    fn run(&self, job: &Job<'_>) -> Result<(), RunError>;
}
