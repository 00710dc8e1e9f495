//! Reads the supervisor's commands and executes them one after the other.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use super::examination::{self, TargetExamination};
use super::failure_report::from_error;
use super::message::{WorkerCommand, WorkerMessage, WorkerSetup};
use super::output::Output;
use super::state::{LeaderTask, Worker};
use super::worker_lock::WorkerLock;
use crate::error::{RunError, StopReason};
use crate::inventory::NotRemovedReason;
use crate::recorder::Recorder;
use crate::samplers::{ProbeSwitch, SampleReporter};
use crate::sandbox::{CleanMode, CleanReport, MAX_FOREIGN_LISTED, Sandbox};
use crate::timed_fs::StopSwitch;
use crate::workloads::Catalog;
use crate::{local_folder, platform};
use longhaul_model::ProbeMode;

/// Runs a worker until the supervisor closes the input. `catalog` has all workloads that it can run.
///
/// # Errors
///
/// If the first line is not a [`WorkerSetup`], another worker uses the target, the recorder cannot be mapped, or
/// the output is closed.
pub fn serve(
    mut input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    catalog: Catalog,
) -> io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let setup: WorkerSetup = serde_json::from_str(&line)?;
    let _lock = WorkerLock::acquire(&setup)?;
    let recorder = Arc::new(Recorder::open(&setup.recorder)?);
    // Both processes have mapped the recorder now. On macOS it has a path, which is removed here so that no file
    // is left behind if the worker is killed.
    let _ = std::fs::remove_file(&setup.recorder);
    let output = Arc::new(Output::new(output));
    let samples = Arc::clone(&output);
    // An error is ignored: the thread that reads commands notices when the supervisor is gone.
    let send_sample = move |sample| drop(samples.send(&WorkerMessage::Sample(sample)));
    let worker = Worker {
        stop: Arc::default(),
        probe_switch: Arc::new(ProbeSwitch::new(
            setup.probe.as_ref().map_or(ProbeMode::DuringRuns, |plan| plan.initial_mode),
        )),
        reporter: Arc::new(SampleReporter::new(send_sample, Arc::clone(&recorder))),
        setup,
        catalog,
        recorder,
        output,
        mount: RefCell::default(),
        answer_threads: RefCell::default(),
        preparation_facts: RefCell::default(),
        checked_sandbox: RefCell::default(),
        held_lock: RefCell::default(),
        made_sandbox: Cell::default(),
    };
    let (sender, tasks) = mpsc::channel();
    let reader = CommandReader {
        stop: Arc::clone(&worker.stop),
        probe_switch: Arc::clone(&worker.probe_switch),
        tasks: sender.clone(),
        forbid_hang: platform::forbid_remote_hang,
    };
    std::thread::spawn(move || reader.read(input));
    worker.find_mount();
    worker.send(&worker.ready_message())?;
    let device = worker.start_probe(sender)?;
    let served = worker.run_tasks(&tasks, device);
    worker.reporter.flush();
    served
}

/// Reader of the supervisor's commands, in a thread of its own.
struct CommandReader {
    stop: Arc<StopSwitch>,
    probe_switch: Arc<ProbeSwitch>,
    tasks: mpsc::Sender<LeaderTask>,
    /// Makes calls that wait for a dead server fail, if the system can.
    forbid_hang: fn() -> io::Result<()>,
}

impl CommandReader {
    /// Reads commands until the supervisor is gone. Stop and probe commands take effect immediately; all other commands are queued.
    fn read(self, input: impl BufRead) {
        for line in input.lines() {
            let command = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            match command {
                None => break,
                Some(WorkerCommand::Stop { capped: true }) => self.stop.stop(StopReason::Cap),
                Some(WorkerCommand::Stop { capped: false }) => self.stop.stop(StopReason::Supervisor),
                Some(WorkerCommand::Probe { probing }) => self.probe_switch.set_probing(probing),
                Some(other) => {
                    self.stop.reset();
                    if self.tasks.send(LeaderTask::Command(other)).is_err() {
                        break;
                    }
                }
            }
        }
        self.stop.stop(StopReason::Orphaned);
        // Only now: before, also after a stop, the error would be stored as one of the share, while the same silence over SMB is only
        // slow or a hang. Without the setting, the process ends when its call returns or when it is killed.
        let _ = (self.forbid_hang)();
        let _ = self.tasks.send(LeaderTask::End);
    }
}

impl Worker {
    /// Executes queued tasks one after the other until the supervisor is gone.
    fn run_tasks(&self, tasks: &mpsc::Receiver<LeaderTask>, device: Option<u64>) -> io::Result<()> {
        for task in tasks {
            match task {
                LeaderTask::Command(command) => self.handle_command(command)?,
                LeaderTask::CreateSandbox => self.create_sandbox_for_probe(device),
                LeaderTask::End => break,
            }
        }
        Ok(())
    }

    fn handle_command(&self, command: WorkerCommand) -> io::Result<()> {
        match command {
            WorkerCommand::Prepare(assignment) => {
                self.retry_protocol_query()?;
                self.probe_switch.set_preparing(&assignment.workload);
                let failed = self.prepare(&assignment);
                self.finish_workload(&assignment);
                self.send(&WorkerMessage::Prepared { failed })
            }
            WorkerCommand::Run(assignment) => {
                self.probe_switch.set_running(&assignment.workload);
                let report = self.run(&assignment);
                self.finish_workload(&assignment);
                self.send(&WorkerMessage::Ended(report))
            }
            WorkerCommand::CreateSandbox => {
                self.reply(self.mounted_sandbox().map(|_| WorkerMessage::SandboxCreated))
            }
            WorkerCommand::Clean { mode } => {
                self.reply(self.clean(mode).map(|report| WorkerMessage::Cleaned { report }))
            }
            WorkerCommand::ListOtherSandboxes => {
                let found = Sandbox::others(&self.sandbox_location(), &self.timed_fs());
                self.reply(found.map(|names| WorkerMessage::OtherSandboxes { names }))
            }
            WorkerCommand::Examine => self.reply(self.examine().map(WorkerMessage::Examined)),
            WorkerCommand::SelfCheck { call } => {
                let check = self.self_check(&call);
                self.send(&WorkerMessage::SelfChecked { check })
            }
            WorkerCommand::CheckFidelity { step, operations_per_second } => {
                self.stop.set_rate_limit(operations_per_second);
                let found = self.check_fidelity(step);
                self.reply(found.map(|finding| WorkerMessage::FidelityChecked { finding }))
            }
            WorkerCommand::ReadElsewhere(range) => {
                let read = self.read_elsewhere(&range);
                self.reply(read.map(|fingerprint| WorkerMessage::RangeRead { fingerprint }))
            }
            WorkerCommand::Freshness(command) => {
                self.reply(self.freshness(&command).map(WorkerMessage::Freshness))
            }
            // The thread that reads commands handles these immediately and never queues them.
            WorkerCommand::Probe { .. } | WorkerCommand::Stop { .. } => Ok(()),
        }
    }

    /// Sends the answer to a command, or the reason why it failed.
    fn reply(&self, answer: Result<WorkerMessage, RunError>) -> io::Result<()> {
        self.send(&answer.unwrap_or_else(|error| WorkerMessage::Failed(from_error(&error))))
    }

    fn examine(&self) -> Result<TargetExamination, RunError> {
        let context = self.timed_fs();
        examination::examine(&self.mounted_sandbox()?, &context)
    }

    fn clean(&self, mode: CleanMode) -> Result<Option<CleanReport>, RunError> {
        let mut foreign = vec![];
        if mode == CleanMode::Remove {
            self.probe_switch.disable();
            // Before the sandbox, which still shows after a failure that there is something to remove.
            foreign = remove_local(&self.setup.local)?;
            foreign.truncate(MAX_FOREIGN_LISTED);
        }
        let context = self.timed_fs();
        let Some(sandbox) = Sandbox::open_existing(&self.sandbox_location(), &context)? else {
            return Ok(None);
        };
        let mut report = sandbox.clean(mode, &context, &|folder, path| self.owns(folder, path))?;
        report.foreign.extend(foreign);
        Ok(Some(report))
    }
}

/// Removes longhaul's files in the target's folder on the local disk. Returns the paths of foreign files, which are
/// not removed.
fn remove_local(path: &Path) -> Result<Vec<PathBuf>, RunError> {
    let mut foreign = vec![];
    for remaining in local_folder::remove(path) {
        match remaining.reason {
            NotRemovedReason::Refused(error) => {
                return Err(RunError::local("remove", &remaining.path)(error));
            }
            NotRemovedReason::SymbolicLink | NotRemovedReason::Unrecognized => foreign.push(remaining.path),
        }
    }
    Ok(foreign)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;

    use super::*;

    static IS_FORBIDDEN: AtomicBool = AtomicBool::new(false);

    fn forbid_hang() -> io::Result<()> {
        IS_FORBIDDEN.store(true, SeqCst);
        Ok(())
    }

    #[test]
    fn calls_may_hang_until_the_supervisor_is_gone() {
        let (mut supervisor, input) = UnixStream::pair().unwrap();
        let (sender, tasks) = mpsc::channel();
        let probe_switch = Arc::new(ProbeSwitch::new(ProbeMode::DuringRuns));
        let reader = CommandReader { stop: Arc::default(), probe_switch, tasks: sender, forbid_hang };
        let thread = std::thread::spawn(move || reader.read(BufReader::new(input)));
        for command in [WorkerCommand::Stop { capped: true }, WorkerCommand::CreateSandbox] {
            writeln!(supervisor, "{}", serde_json::to_string(&command).unwrap()).unwrap();
        }
        assert!(matches!(tasks.recv().unwrap(), LeaderTask::Command(WorkerCommand::CreateSandbox)));
        assert!(!IS_FORBIDDEN.load(SeqCst), "a stopped worker may be used again");
        drop(supervisor);
        thread.join().unwrap();
        assert!(matches!(tasks.recv().unwrap(), LeaderTask::End) && IS_FORBIDDEN.load(SeqCst));
    }
}
