//! Runs a worker process with the latency probe, as the background service does, and records its samples.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use longhaul_measure::recorder::Recorder;
use longhaul_measure::sandbox::{CleanMode, CleanReport};
use longhaul_measure::worker::Assignment;
use longhaul_measure::workloads::Settings;
use longhaul_model::{
    FreeSpaceReserve, ProbeKind, ProbeMode, ProbePlan, ProbeSample, Role, Scale, SlowCall, Target,
    TargetName, Timestamp, WorkerSample,
};
use longhaul_service::worker::{
    Interruption, Launcher, RequestOptions, RunResult, SampleSender, SilentObserver, Worker,
};

use super::machine;

/// Returns a plan that sends every kind of request at this interval from the start, with a small file to read.
pub fn plan_every(interval_ms: u64) -> ProbePlan {
    ProbePlan {
        interval_ms,
        kinds: ProbeKind::ALL.to_vec(),
        seed: 7,
        initial_mode: ProbeMode::On,
        read_file_bytes: ProbePlan::read_file_bytes_at(Scale::Quick),
        reserve: FreeSpaceReserve::NONE,
    }
}

/// Supervised worker whose samples are recorded.
pub struct Sampling {
    /// Supervisor of the worker process.
    pub worker: Worker,
    local: PathBuf,
    samples: Receiver<(TargetName, WorkerSample)>,
    recorded: RecordedSamples,
}

/// Samples received from a worker.
#[derive(Default)]
pub struct RecordedSamples(Vec<WorkerSample>);

fn patient<'a>(interruption: &'a Interruption, observer: &'a mut SilentObserver) -> RequestOptions<'a> {
    let patience = Duration::from_secs(120);
    RequestOptions { cap: patience, stop_timeout: patience, interruption, observer }
}

impl Sampling {
    /// Creates a worker for a target folder, with a local folder. Does not start its process.
    pub fn on(path: &Path, local: &Path, plan: ProbePlan) -> Self {
        let (sender, samples) = channel();
        let target = Target { name: "probed".parse().unwrap(), path: path.to_owned(), role: Role::Share };
        let worker = Worker::new(target, launcher(local, plan, sender));
        Self { worker, local: local.to_owned(), samples, recorded: RecordedSamples::default() }
    }

    /// Starts the process and returns its flight recorder. Retries, because a worker that crashed is restarted with a
    /// delay.
    pub fn start(&mut self) -> Arc<Recorder> {
        machine::wait_until("a process to be started", || {
            self.worker.ensure_started().is_ok() && !machine::workers_from(&self.local).is_empty()
        });
        self.worker.recorder().unwrap()
    }

    /// Returns everything recorded so far.
    pub fn recorded(&mut self) -> &RecordedSamples {
        self.recorded.0.extend(self.samples.try_iter().map(|(_, sampled)| sampled));
        &self.recorded
    }

    /// Shuts the process down and returns everything recorded.
    pub fn end(mut self) -> RecordedSamples {
        self.worker.shut_down();
        drop(self.worker);
        self.recorded.0.extend(self.samples.iter().map(|(_, sampled)| sampled));
        self.recorded
    }

    /// Prepares and runs a workload.
    pub fn run(&mut self, workload: &str) -> RunResult {
        self.carry_out(&Assignment {
            workload: workload.to_owned(),
            scale: Scale::Quick,
            settings: Settings { tree_files: Some(4000), ..Settings::default() },
            rotation: 0,
            seed: 1,
        })
    }

    /// Prepares and runs an assignment.
    pub fn carry_out(&mut self, assignment: &Assignment) -> RunResult {
        let (interruption, mut observer) = (Interruption::default(), SilentObserver);
        let mut watch = patient(&interruption, &mut observer);
        self.worker.prepare(assignment, &mut watch).map_err(|finished| finished.report.failure).unwrap();
        self.worker.run(assignment, &mut watch)
    }

    /// Removes the sandbox.
    pub fn clean(&mut self) -> CleanReport {
        let (interruption, mut observer) = (Interruption::default(), SilentObserver);
        let cleaned =
            self.worker.clean_sandbox(CleanMode::Remove, &mut patient(&interruption, &mut observer));
        cleaned.map_err(|ending| ending.failure.message).unwrap().expect("a sandbox")
    }
}

impl RecordedSamples {
    /// Returns every sample of the probe.
    pub fn slots(&self) -> Vec<ProbeSample> {
        let of = |sampled: &WorkerSample| match sampled {
            WorkerSample::Probes { slots, .. } => slots.clone(),
            _ => vec![],
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Returns every operation that took more than a second.
    pub fn slow_calls(&self) -> Vec<SlowCall> {
        let of = |sampled: &WorkerSample| match sampled {
            WorkerSample::SlowCall(waited) => Some(waited.clone()),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }

    /// Returns the reasons for which the probe was disabled, in order.
    pub fn disabled_reasons(&self) -> Vec<String> {
        let of = |sampled: &WorkerSample| match sampled {
            WorkerSample::ProbeDisabled { reason } => Some(reason.clone()),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }

    /// Returns when changes by users were seen.
    pub fn changes(&self) -> Vec<Timestamp> {
        let of = |sampled: &WorkerSample| match sampled {
            WorkerSample::FolderChanged { at_us } => Some(*at_us),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }
}

/// Creates a link to longhauld that only this worker uses, so that its process can be found by its path.
fn own_program(local: &Path) -> PathBuf {
    let program = local.join("longhauld");
    if !program.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_longhauld"), &program).unwrap();
    }
    program
}

fn launcher(local: &Path, plan: ProbePlan, samples: SampleSender) -> Launcher {
    Launcher {
        program: own_program(local),
        arguments: vec!["worker".to_owned()],
        machine_id: "machine".to_owned(),
        local_folder: local.to_owned(),
        probe_plan: Some(plan),
        sample_sender: Some(samples),
    }
}
