//! The state of a worker, and how it reports to the supervisor.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::message::{WorkerCommand, WorkerMessage, WorkerSetup};
use super::output::Output;
use super::target_mount::TargetMount;
use crate::checks::{fidelity, freshness};
use crate::error::StopReason;
use crate::platform::{self, PhaseCounters, ProcessorTimes};
use crate::recorder::Recorder;
use crate::samplers::{self, ProbeSwitch, SampleReporter};
use crate::sandbox::{Sandbox, SandboxLocation};
use crate::selfcheck;
use crate::timed_fs::{OpenFile, PhaseSpec, Reporter, StopSwitch, TimedFs};
use crate::workloads::Catalog;
use longhaul_model::{Phase, Progress};

/// Task of the thread that leads runs.
pub enum LeaderTask {
    /// Execute a command of the supervisor.
    Command(WorkerCommand),
    /// Create a sandbox for the latency probe.
    CreateSandbox,
    /// Exit, because the supervisor is gone.
    End,
}

/// The state of a worker process. The other files of this module implement its commands.
pub struct Worker {
    /// Setup that the supervisor sent first.
    pub setup: WorkerSetup,
    /// All workloads that this program can run.
    pub catalog: Catalog,
    /// Flight recorder that the supervisor reads.
    pub recorder: Arc<Recorder>,
    /// Switch that stops the operation in flight.
    pub stop: Arc<StopSwitch>,
    /// Mode of the latency probe.
    pub probe_switch: Arc<ProbeSwitch>,
    /// Sender of samples.
    pub reporter: Arc<SampleReporter>,
    /// Sender of messages to the supervisor.
    pub output: Arc<Output>,
    /// Mount of the target; `None` if it was not found.
    pub mount: RefCell<Option<TargetMount>>,
    /// Threads of the kernel that handle answers of the server, found before each run.
    pub answer_threads: RefCell<Vec<u32>>,
    /// Facts that preparations found, by workload. They are reported with the run that follows.
    pub preparation_facts: RefCell<BTreeMap<String, BTreeMap<String, String>>>,
    /// Sandbox that a check of fidelity holds open between its steps; `None` outside of such a check.
    pub checked_sandbox: RefCell<Option<Sandbox>>,
    /// Locked file of a check of fidelity, until its next step.
    pub held_lock: RefCell<Option<OpenFile>>,
    /// True if a check of this process created the sandbox.
    pub made_sandbox: Cell<bool>,
}

impl Reporter for Worker {
    fn progress(&self, progress: &Progress) {
        self.send_or_stop(&WorkerMessage::Progress(progress.clone()));
    }

    fn phase_began(&self, spec: &PhaseSpec<'_>) {
        let PhaseSpec { name, cache, cold_by } = *spec;
        self.send_or_stop(&WorkerMessage::PhaseBegan { name: name.to_owned(), cache, cold_by });
    }

    fn phase_ended(&self, phase: Phase) {
        self.reporter.report_slow_calls(self.probe_switch.current_workload().as_deref());
        self.send_or_stop(&WorkerMessage::PhaseEnded(Box::new(phase)));
    }

    fn counters(&self) -> PhaseCounters {
        let mount = self.mount.borrow();
        mount.as_ref().map(|found| platform::phase_counters(&found.mount)).unwrap_or_default()
    }

    fn processor_times(&self) -> ProcessorTimes {
        platform::processor_times(&self.answer_threads.borrow())
    }
}

impl Worker {
    /// Sends a message to the supervisor.
    pub fn send(&self, message: &WorkerMessage) -> io::Result<()> {
        self.output.send(message)
    }

    /// Sends a message. If the supervisor is gone, requests a stop after the operation in flight.
    pub fn send_or_stop(&self, message: &WorkerMessage) {
        if self.send(message).is_err() {
            self.stop.stop(StopReason::Orphaned);
        }
    }

    /// Returns the file operations of commands.
    pub fn timed_fs(&self) -> TimedFs<'_> {
        TimedFs::new(&self.recorder, 0, &self.stop)
    }

    /// Returns file operations without statistics, for calls outside of commands.
    pub fn untracked_fs(&self) -> TimedFs<'_> {
        TimedFs::untracked(&self.recorder, 0, &self.stop)
    }

    /// Returns where the sandbox of this target is.
    pub fn sandbox_location(&self) -> SandboxLocation<'_> {
        let target = &self.setup.target;
        SandboxLocation { target_path: &target.path, target: &target.name, machine: &self.setup.machine }
    }

    /// Returns whether longhaul created a file in a sandbox. `path` is relative to `folder`, which is a folder in
    /// the sandbox.
    pub fn owns(&self, folder: &str, path: &Path) -> bool {
        self.catalog.owns(folder, path)
            || samplers::owns(folder, path)
            || selfcheck::owns(folder, path)
            || fidelity::owns(folder, path)
            || freshness::owns(folder, path)
    }
}
