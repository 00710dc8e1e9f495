//! A worker with a probe, as the background service has it, and what it samples.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use longhaul_measure::arena::{CleanReport, Mode};
use longhaul_measure::model::{
    ProbeKind, ProbePlan, Probed, Probing, Progress, Role, Sampled, Scale, Target, TargetName, Waited,
};
use longhaul_measure::recorder::Recorder;
use longhaul_measure::worker::Assignment;
use longhaul_measure::workloads::Settings;
use longhaul_service::worker::{Finished, Launcher, Observer, Samples, Watch, Worker};

use super::machine;

/// A plan that asks everything at this interval from the start, about a small pool.
pub fn plan_every(interval_ms: u64) -> ProbePlan {
    ProbePlan {
        interval_ms,
        kinds: ProbeKind::ALL.to_vec(),
        seed: 7,
        begins: Probing::On,
        pool_bytes: ProbePlan::pool_bytes_at(Scale::Quick),
        free_floor: 0.0,
    }
}

/// A supervised worker whose samples are kept.
pub struct Sampling {
    /// The supervisor's side.
    pub worker: Worker,
    local: PathBuf,
    samples: Receiver<(TargetName, Sampled)>,
    heard: Heard,
}

/// What a worker has sampled so far.
#[derive(Default)]
pub struct Heard(Vec<Sampled>);

/// Nobody looks on.
struct Nobody;

impl Observer for Nobody {
    fn progress(&mut self, _: &TargetName, _: &Progress) {}
    fn phase_began(&mut self, _: &TargetName, _: &str) {}
}

fn patient(nobody: &mut Nobody) -> Watch<'_> {
    let patience = Duration::from_secs(120);
    Watch { cap: patience, patience, interrupted: &|| false, observer: nobody }
}

impl Sampling {
    /// A worker on this folder, with its local folder here. Its process has not started.
    pub fn on(path: &Path, local: &Path, plan: ProbePlan) -> Self {
        let (sender, samples) = channel();
        let target = Target { name: "probed".parse().unwrap(), path: path.to_owned(), role: Role::Share };
        let worker = Worker::new(target, launcher(local, plan, sender));
        Self { worker, local: local.to_owned(), samples, heard: Heard::default() }
    }

    /// Starts the process. One that keeps ending by itself has to wait for a moment.
    pub fn start(&mut self) -> Arc<Recorder> {
        machine::wait_until("a process to be started", || {
            self.worker.sample().is_ok() && !machine::workers_from(&self.local).is_empty()
        });
        self.worker.recorder().unwrap()
    }

    /// Everything heard so far.
    pub fn heard(&mut self) -> &Heard {
        self.heard.0.extend(self.samples.try_iter().map(|(_, sampled)| sampled));
        &self.heard
    }

    /// Lets the process end, and hears the rest of what it says.
    pub fn end(mut self) -> Heard {
        self.worker.dismiss();
        drop(self.worker);
        self.heard.0.extend(self.samples.iter().map(|(_, sampled)| sampled));
        self.heard
    }

    /// Has a workload made ready and run.
    pub fn run(&mut self, workload: &str) -> Finished {
        self.carry_out(&Assignment {
            workload: workload.to_owned(),
            scale: Scale::Quick,
            settings: Settings { tree_files: Some(4000), ..Settings::default() },
            rotation: 0,
            seed: 1,
        })
    }

    /// Has what an assignment says made ready and run.
    pub fn carry_out(&mut self, assignment: &Assignment) -> Finished {
        let mut nobody = Nobody;
        let mut watch = patient(&mut nobody);
        self.worker.prepare(assignment, &mut watch).map_err(|finished| finished.report.failed).unwrap();
        self.worker.run(assignment, &mut watch)
    }

    /// Has the arena given back.
    pub fn clean(&mut self) -> CleanReport {
        let mut nobody = Nobody;
        let cleaned = self.worker.clean(Mode::Remove, &mut patient(&mut nobody));
        cleaned.map_err(|ending| ending.failure.message).unwrap().expect("an arena")
    }
}

impl Heard {
    /// Every answer of the probe.
    pub fn slots(&self) -> Vec<Probed> {
        let of = |sampled: &Sampled| match sampled {
            Sampled::Probed { slots, .. } => slots.clone(),
            _ => vec![],
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Every long wait.
    pub fn waits(&self) -> Vec<Waited> {
        let of = |sampled: &Sampled| match sampled {
            Sampled::Waited(waited) => Some(waited.clone()),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }

    /// Why the probe could not go on, in order.
    pub fn lame(&self) -> Vec<String> {
        let of = |sampled: &Sampled| match sampled {
            Sampled::Lame { reason } => Some(reason.clone()),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }

    /// When somebody was seen to change something.
    pub fn changes(&self) -> Vec<i64> {
        let of = |sampled: &Sampled| match sampled {
            Sampled::Changed { at_us } => Some(*at_us),
            _ => None,
        };
        self.0.iter().filter_map(of).collect()
    }
}

/// A name of the program that is this worker's alone, so that its process can be told from others.
fn own_program(local: &Path) -> PathBuf {
    let program = local.join("longhauld");
    if !program.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_longhauld"), &program).unwrap();
    }
    program
}

fn launcher(local: &Path, plan: ProbePlan, samples: Samples) -> Launcher {
    Launcher {
        program: own_program(local),
        arguments: vec!["worker".to_owned()],
        machine: "machine".to_owned(),
        local: local.to_owned(),
        probe: Some(plan),
        samples: Some(samples),
    }
}
