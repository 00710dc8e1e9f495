//! Supervises a worker process: starts it, limits every wait for it, and turns its failures into results.
//!
//! When a run reaches its cap, the worker is asked to stop. If it does not respond because a call does not
//! return, the flight recorder gives that call and all measurements before it, the run is stored, and the
//! worker is killed and abandoned. While the abandoned process exists, no second
//! worker is started on its target.

mod checks;
mod failures;
mod handshake;
mod interruption;
mod launcher;
mod phase_record;
mod process;
mod request;
mod sampling;
mod wait;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longhaul_measure::lock::FileLock;
use longhaul_measure::sandbox::{CleanMode, CleanReport};
use longhaul_measure::selfcheck::Check;
use longhaul_measure::worker::{
    self, Assignment, FailureReport, RunReport, TargetExamination, WorkerCommand, WorkerMessage, WorkerSetup,
};
use longhaul_model::{NegotiatedOptions, Operation, Phase, Protocol, Target};

pub use checks::{FidelityAnswer, unexpected_answer_failure};
use failures::{
    backoff_failure, crash_failure, failed_report, hung_failure, start_failure, still_hung_failure,
    unexpected_message_failure,
};
pub use failures::{is_worker_failure, void_failure};
pub use interruption::Interruption;
pub use launcher::{Launcher, SampleSender};
use process::{ProcessEvent, WorkerProcess};
use request::{RequestFailed, Response};
pub use request::{RequestOptions, SilentObserver, WorkerObserver};
pub use sampling::{EXIT_TIMEOUT, end_workers};
use wait::{CrashBackoff, KILL_GRACE, LimitScope, PendingRequest, StopRequest};

/// Interval at which the lock of a process that another supervisor abandoned is checked: its release sends no event.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// The result of a run, before it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// Completed phases of the run; the last one may be truncated.
    pub phases: Vec<Phase>,
    /// Report of the worker, or of the supervisor if the worker did not finish.
    pub report: RunReport,
}

impl RunResult {
    /// Creates the result of a run that has no data except its failure.
    pub fn failed(failure: FailureReport) -> Self {
        Self { phases: vec![], report: failed_report(failure) }
    }
}

/// The state of the worker process.
enum State {
    /// There is no process.
    NotRunning,
    /// Started for the probe; its first message has not been read yet.
    Starting(WorkerProcess),
    /// Waits for a command.
    Idle(WorkerProcess),
    /// Asked to exit, but still running.
    Exiting(WorkerProcess),
    /// A process abandoned by another supervisor holds the target's lock. `since`: time at which it was noticed.
    Orphaned { since: Instant },
    /// Abandoned with a call that does not return.
    Stuck { link: WorkerProcess, operation: Option<Operation>, since: Instant },
}

/// The availability of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerStatus {
    /// There is no process, or an idle one.
    Available,
    /// A call of the process does not return.
    Stuck {
        /// The operation. `None`: unknown.
        operation: Option<Operation>,
        /// Time since the call started, in seconds.
        for_seconds: u64,
    },
}

/// A target and the process that may access it.
pub struct Worker {
    target: Target,
    launcher: Launcher,
    /// Path of the lock that the target's worker process holds.
    lock_path: PathBuf,
    state: State,
    backoff: CrashBackoff,
    /// Reason why the target must not be accessed. `None`: access is allowed.
    unavailable: Option<FailureReport>,
    /// True if the target belongs on a share.
    is_on_share: bool,
    /// Protocol of the target, as last reported by a process. `None`: unknown.
    pub protocol: Option<Protocol>,
    /// Negotiated options, as last reported by a process.
    pub negotiated: NegotiatedOptions,
    /// Address of the target's server, as last found by a process. `None`: unknown.
    pub server: Option<IpAddr>,
}

impl Worker {
    /// Creates a worker for a target. Its process starts with the first request.
    pub fn new(target: Target, launcher: Launcher) -> Self {
        Self {
            lock_path: worker::lock_path(&launcher.local_folder.join(target.name.as_str()), &target.path),
            target,
            launcher,
            state: State::NotRunning,
            backoff: CrashBackoff::default(),
            unavailable: None,
            is_on_share: false,
            protocol: None,
            negotiated: NegotiatedOptions::new(),
            server: None,
        }
    }

    /// Returns the target of this worker.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns whether the worker can be used. Reaps a stuck process that has ended.
    pub fn status(&mut self) -> WorkerStatus {
        let (status, has_ended) = match &mut self.state {
            State::Stuck { link, operation, since } => (stuck_status(*operation, *since), link.has_ended()),
            // A process that is just exiting still holds the lock for a moment and is not stuck.
            State::Orphaned { since } if since.elapsed() < KILL_GRACE => {
                (WorkerStatus::Available, !FileLock::is_held(&self.lock_path))
            }
            State::Orphaned { since } => (stuck_status(None, *since), !FileLock::is_held(&self.lock_path)),
            State::Exiting(link) => (WorkerStatus::Available, link.has_ended()),
            State::NotRunning | State::Starting(_) | State::Idle(_) => (WorkerStatus::Available, false),
        };
        if has_ended {
            self.state = State::NotRunning;
            return WorkerStatus::Available;
        }
        status
    }

    /// Returns whether a call of the process does not return.
    pub fn is_stuck(&mut self) -> bool {
        matches!(self.status(), WorkerStatus::Stuck { .. })
    }

    /// Returns whether a process may start: access is allowed, and no call of an earlier process hangs.
    pub fn may_start(&mut self) -> bool {
        self.unavailable.is_none() && !self.is_stuck()
    }

    /// Forbids access to the target: every request fails with this report. `None` allows access again.
    pub fn set_unavailable(&mut self, reason: Option<FailureReport>) {
        self.unavailable = reason;
    }

    /// Tells new processes whether the target belongs on a share.
    pub fn set_on_share(&mut self, is_on_share: bool) {
        self.is_on_share = is_on_share;
    }

    /// Asks an idle process to exit, so that it uses no memory. Does not wait for the exit.
    pub fn shut_down(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::NotRunning) {
            State::Starting(mut link) | State::Idle(mut link) => {
                link.close_input();
                State::Exiting(link)
            }
            other => other,
        };
    }

    /// Prepares a run and returns the number of bytes written, or the failed run to store instead.
    pub fn prepare(
        &mut self,
        assignment: &Assignment,
        options: &mut RequestOptions<'_>,
    ) -> Result<u64, Box<RunResult>> {
        Err(Box::new(
            match self.request(&WorkerCommand::Prepare(assignment.clone()), options, LimitScope::PerOperation)
            {
                Ok(Response { message: WorkerMessage::Prepared { failed: None }, bytes_written, .. }) => {
                    return Ok(bytes_written);
                }
                Ok(Response { message: WorkerMessage::Prepared { failed: Some(report) }, .. }) => {
                    RunResult { phases: vec![], report }
                }
                Ok(Response { message: answer, .. }) => {
                    RunResult::failed(unexpected_message_failure(&answer))
                }
                Err(RequestFailed { failure, .. }) => RunResult::failed(failure),
            },
        ))
    }

    /// Runs a workload. Always returns a result that can be stored.
    pub fn run(&mut self, assignment: &Assignment, options: &mut RequestOptions<'_>) -> RunResult {
        match self.request(&WorkerCommand::Run(assignment.clone()), options, LimitScope::Total) {
            Ok(Response { message: WorkerMessage::Ended(report), phases, .. }) => {
                RunResult { phases, report }
            }
            Ok(Response { message: answer, phases, .. }) => {
                RunResult { phases, report: failed_report(unexpected_message_failure(&answer)) }
            }
            Err(RequestFailed { phases, failure }) => RunResult { phases, report: failed_report(failure) },
        }
    }

    /// Creates the sandbox without any test data.
    pub fn create_sandbox(&mut self, options: &mut RequestOptions<'_>) -> Result<(), FailureReport> {
        match self.request(&WorkerCommand::CreateSandbox, options, LimitScope::PerOperation)?.message {
            WorkerMessage::SandboxCreated => Ok(()),
            other => Err(unexpected_message_failure(&other)),
        }
    }

    /// Cleans the sandbox. `None`: there is no sandbox.
    pub fn clean_sandbox(
        &mut self,
        mode: CleanMode,
        options: &mut RequestOptions<'_>,
    ) -> Result<Option<CleanReport>, FailureReport> {
        match self.request(&WorkerCommand::Clean { mode }, options, LimitScope::PerOperation)?.message {
            WorkerMessage::Cleaned { report } => Ok(report),
            other => Err(unexpected_message_failure(&other)),
        }
    }

    /// Returns the names of the sandboxes of other targets and machines in the target's folder.
    pub fn other_sandboxes(
        &mut self,
        options: &mut RequestOptions<'_>,
    ) -> Result<Vec<String>, FailureReport> {
        match self.request(&WorkerCommand::ListOtherSandboxes, options, LimitScope::PerOperation)?.message {
            WorkerMessage::OtherSandboxes { names } => Ok(names),
            other => Err(unexpected_message_failure(&other)),
        }
    }

    /// Tests every operation that a run needs once, with one small file.
    pub fn examine(&mut self, options: &mut RequestOptions<'_>) -> Result<TargetExamination, FailureReport> {
        match self.request(&WorkerCommand::Examine, options, LimitScope::Total)?.message {
            WorkerMessage::Examined(found) => Ok(found),
            other => Err(unexpected_message_failure(&other)),
        }
    }

    /// Runs one check of a self-check. `None`: the worker does not know the check.
    pub fn self_check(
        &mut self,
        call: &str,
        options: &mut RequestOptions<'_>,
    ) -> Result<Option<Check>, FailureReport> {
        match self
            .request(&WorkerCommand::SelfCheck { call: call.to_owned() }, options, LimitScope::Total)?
            .message
        {
            WorkerMessage::SelfChecked { check } => Ok(check),
            other => Err(unexpected_message_failure(&other)),
        }
    }

    /// Sends a command and waits for the response within the limit.
    fn request(
        &mut self,
        command: &WorkerCommand,
        options: &mut RequestOptions<'_>,
        limit: LimitScope,
    ) -> Result<Response, RequestFailed> {
        if let Some(failure) = &self.unavailable {
            return Err(failure.clone().into());
        }
        let mut link = self.ensure_process(options)?;
        if link.send(command).is_err() {
            return Err(self.handle_crash(link, vec![]));
        }
        options.observer.worker_started(&self.target.name, link.recorder());
        // A phase sets the counter to zero. Only requests without phases use it: what earlier ones wrote is subtracted below.
        let written = link.recorder().bytes_written();
        let mut wait = PendingRequest::new(limit);
        let _wake = options.interruption.wakes(link.event_sender());
        loop {
            match link.receive(wait.time_to_limit(&link, options)) {
                ProcessEvent::Message(message) if self.accept_ready(&message) => {}
                ProcessEvent::Message(message) => {
                    if let Some(answer) = wait.handle_message(*message, &self.target.name, options) {
                        self.backoff = CrashBackoff::default();
                        let bytes_written = link.recorder().bytes_written().saturating_sub(written);
                        self.state = State::Idle(link);
                        return match answer {
                            WorkerMessage::Failed(failure) => {
                                Err(RequestFailed { phases: wait.phases, failure })
                            }
                            message => Ok(Response { message, phases: wait.phases, bytes_written }),
                        };
                    }
                }
                ProcessEvent::Closed => return Err(self.handle_crash(link, wait.phases)),
                ProcessEvent::Interrupted | ProcessEvent::TimedOut => {}
            }
            if wait.must_give_up(&mut link, options) {
                return Err(self.give_up(link, wait, options.cap));
            }
        }
    }

    /// Returns a process that is ready for a command: the current one, or a new one.
    fn ensure_process(&mut self, options: &mut RequestOptions<'_>) -> Result<WorkerProcess, RequestFailed> {
        match std::mem::replace(&mut self.state, State::NotRunning) {
            State::NotRunning => self.start(options),
            State::Starting(mut link) => {
                if link.has_ended() {
                    self.backoff.record_crash();
                    return self.start(options);
                }
                self.await_ready(link, options)
            }
            // A process that died while idle has done no harm, so it is replaced and does not count as a crash.
            State::Idle(mut link) => {
                if link.has_ended() {
                    self.start(options)
                } else {
                    Ok(link)
                }
            }
            State::Exiting(mut link) => {
                if link.exits_within(KILL_GRACE) {
                    return self.start(options);
                }
                let operation = link.recorder().in_flight().map(|flight| flight.operation);
                link.kill();
                self.state = State::Stuck { link, operation, since: Instant::now() };
                Err(still_hung_failure(&self.target.path, operation).into())
            }
            State::Orphaned { since } => {
                self.state = State::Orphaned { since };
                while FileLock::is_held(&self.lock_path) {
                    if since.elapsed() >= KILL_GRACE {
                        return Err(still_hung_failure(&self.target.path, None).into());
                    }
                    std::thread::sleep(LOCK_INTERVAL);
                }
                self.start(options)
            }
            State::Stuck { mut link, operation, since } => {
                if link.has_ended() {
                    return self.start(options);
                }
                self.state = State::Stuck { link, operation, since };
                Err(still_hung_failure(&self.target.path, operation).into())
            }
        }
    }

    /// Starts a process and waits for its first message.
    fn start(&mut self, options: &mut RequestOptions<'_>) -> Result<WorkerProcess, RequestFailed> {
        if FileLock::is_held(&self.lock_path) {
            self.state = State::Orphaned { since: Instant::now() };
            return self.ensure_process(options);
        }
        let link = self.spawn()?;
        self.await_ready(link, options)
    }

    /// Starts a process, unless the last ones crashed moments ago.
    fn spawn(&self) -> Result<WorkerProcess, FailureReport> {
        if let Some(seconds) = self.backoff.seconds_to_wait() {
            return Err(backoff_failure(&self.target.name, self.backoff.crash_count, seconds));
        }
        let local = self.launcher.local_folder.join(self.target.name.as_str());
        let setup = |recorder: &Path| WorkerSetup {
            target: self.target.clone(),
            machine: self.launcher.machine_id.clone(),
            local,
            recorder: recorder.to_owned(),
            is_on_share: self.is_on_share,
            probe: self.launcher.probe_plan.clone(),
        };
        WorkerProcess::start(&self.launcher, setup).map_err(|error| start_failure(&self.target.name, &error))
    }

    /// Records a crash of the worker, and returns the phases it completed.
    fn handle_crash(&mut self, mut link: WorkerProcess, phases: Vec<Phase>) -> RequestFailed {
        let how = link.exit_text();
        self.backoff.record_crash();
        tracing::warn!(target_name = %self.target.name, how, "a worker ended unexpectedly");
        RequestFailed { phases, failure: crash_failure(&self.target.name, &how) }
    }

    /// Abandons a worker whose call does not return, and returns everything that it has measured.
    fn give_up(&mut self, mut link: WorkerProcess, mut wait: PendingRequest, cap: Duration) -> RequestFailed {
        let recorder = link.recorder();
        let flight = recorder.in_flight();
        let report = match wait.stop_request {
            Some(StopRequest { is_over_cap: false, .. }) => void_failure(
                "stopped while an operation did not return; the measurements before it are stored".to_owned(),
            ),
            _ => hung_failure(&self.target.path, flight, cap),
        };
        wait.phases
            .extend(wait.current_phase.take().map(|phase| phase_record::truncated_phase(phase, recorder)));
        tracing::warn!(target_name = %self.target.name, error = report.failure.message, "a worker was abandoned");
        link.kill();
        let since = Instant::now() - flight.map_or(Duration::ZERO, phase_record::call_age);
        self.state = State::Stuck { link, operation: flight.map(|flight| flight.operation), since };
        RequestFailed { phases: wait.phases, failure: report }
    }
}

fn stuck_status(operation: Option<Operation>, since: Instant) -> WorkerStatus {
    WorkerStatus::Stuck { operation, for_seconds: since.elapsed().as_secs() }
}
