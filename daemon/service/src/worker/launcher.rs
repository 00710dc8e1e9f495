//! Settings for starting worker processes.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use longhaul_model::{ProbePlan, TargetName, WorkerSample};

/// Settings for starting a worker process.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// Path of the worker program, which is this same binary.
    pub program: PathBuf,
    /// Arguments of the worker program: its hidden subcommand.
    pub arguments: Vec<String>,
    /// Random id of this installation.
    pub machine_id: String,
    /// Folder on the local disk in which each target has a subfolder.
    pub local_folder: PathBuf,
    /// Settings of the latency probe. `None`: no probe, as in the foreground.
    pub probe_plan: Option<ProbePlan>,
    /// Channel for samples of the probe. `None`: samples are discarded.
    pub sample_sender: Option<SampleSender>,
}

impl Launcher {
    /// Returns the settings for workers without a probe: `program` with the subcommand `worker`, and local folders next to the
    /// database.
    pub fn for_database(program: PathBuf, database: &Path, machine_id: &str) -> Self {
        Self {
            program,
            arguments: vec!["worker".to_owned()],
            machine_id: machine_id.to_owned(),
            local_folder: database.parent().unwrap_or(Path::new("/")).join("local"),
            probe_plan: None,
            sample_sender: None,
        }
    }
}

/// Channel for samples of all workers, each with its target's name.
pub type SampleSender = Sender<(TargetName, WorkerSample)>;
