//! Settings for starting worker processes.

use std::path::PathBuf;
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

/// Channel for samples of all workers, each with its target's name.
pub type SampleSender = Sender<(TargetName, WorkerSample)>;
