//! The supervisor's side of a worker process.
//!
//! A worker is never waited for without a limit. When a run's cap is over, the worker is told to stop; if it does not
//! answer because a call does not return, the flight recorder says which one and everything before it, the run is
//! booked, and the worker is killed and left behind. While it is still there, no second one is started on its target.

mod endings;
mod link;
mod ready;
mod recording;
mod sampling;
mod waiting;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use longhaul_measure::arena::{CleanReport, Mode};
use longhaul_measure::lock::Held;
use longhaul_measure::model::{
    Negotiated, Operation, Phase, ProbePlan, Progress, Protocol, Sampled, Target, TargetName,
};
use longhaul_measure::recorder::Recorder;
use longhaul_measure::selfcheck::Check;
use longhaul_measure::worker::{self, Assignment, Command, Ending, Examined, Message, Report, Setup};

use endings::{confused, failed, hung, still_stuck, void};
use link::{Answer, Link};
use waiting::{Falls, Limit, Told, Wait};

/// How long a worker may take to answer after it was told to stop, before its operation counts as hung.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether a process has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// How often the supervisor looks up while it waits.
const TICK: Duration = Duration::from_millis(100);

/// How a worker is started.
#[derive(Debug, Clone)]
pub struct Launcher {
    /// The program: this same binary.
    pub program: PathBuf,
    /// Its hidden subcommand.
    pub arguments: Vec<String>,
    /// The random id of this installation.
    pub machine: String,
    /// Folder on the local disk below which each target has its own.
    pub local: PathBuf,
    /// How the light probe goes; `None`: there is none, as in the foreground.
    pub probe: Option<ProbePlan>,
    /// Where samples go; `None`: nobody wants them.
    pub samples: Option<Samples>,
}

/// Where the samples of workers go, each with its target.
pub type Samples = Sender<(TargetName, Sampled)>;

/// Hears what workers do.
pub trait Observer {
    /// A preparation has come this far.
    fn progress(&mut self, target: &TargetName, progress: &Progress);
    /// A phase of a run begins.
    fn phase_began(&mut self, target: &TargetName, name: &str);
    /// A worker begins to do something; its flight recorder tells how it goes.
    fn touches(&mut self, _target: &TargetName, _recorder: &Arc<Recorder>) {}
    /// A worker that was started is another version of longhaul, and does nothing.
    fn other_version(&mut self, _target: &TargetName, _version: &str) {}
}

/// What a caller wants of an assignment beside its result.
pub struct Watch<'a> {
    /// How long a run may take in all, and an operation of a preparation.
    pub cap: Duration,
    /// How long a slow operation may take after a wish to stop, before the worker is left behind.
    pub patience: Duration,
    /// Whether the person wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Who hears of it.
    pub observer: &'a mut dyn Observer,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Its phases, the last one possibly cut short.
    pub phases: Vec<Phase>,
    /// What the worker said, or what the supervisor had to conclude.
    pub report: Report,
}

impl Finished {
    /// A run of which there is nothing but how it ended.
    pub fn failed(ending: Ending) -> Self {
        Self { phases: vec![], report: failed(ending) }
    }
}

/// Where the process is.
enum State {
    /// Not started yet, or ended.
    Absent,
    /// Started for its samples; what it said of itself has not been heard yet.
    Starting(Link),
    /// Waiting for a command.
    Idle(Link),
    /// Dismissed, and about to end.
    Leaving(Link),
    /// A process that another supervisor left behind is there, noticed then.
    Inherited { since: Instant },
    /// Left behind with a call that does not return.
    Stuck { link: Link, operation: Option<Operation>, since: Instant },
}

/// What a worker is doing, for those who look on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stance {
    /// There is no process, or one that waits.
    Ready,
    /// A call does not return.
    Stuck {
        /// Which one, if that is known.
        operation: Option<Operation>,
        /// For how long it has been waited for, in all.
        for_seconds: u64,
    },
}

/// One target and the process that may touch it.
pub struct Worker {
    target: Target,
    launcher: Launcher,
    /// Held by whichever process is on the target.
    lock: PathBuf,
    state: State,
    falls: Falls,
    /// Why the target must not be touched; `None`: it may be.
    closed: Option<Ending>,
    /// How the target is reached, as the last process said.
    pub protocol: Option<Protocol>,
    /// What was negotiated, as the last process said.
    pub negotiated: Negotiated,
    /// The address of its server, where a process found one.
    pub server: Option<IpAddr>,
}

impl Worker {
    /// A worker for a target; its process starts with its first task.
    pub fn new(target: Target, launcher: Launcher) -> Self {
        Self {
            lock: worker::lock_beside(&launcher.local.join(target.name.as_str()), &target.path),
            target,
            launcher,
            state: State::Absent,
            falls: Falls::default(),
            closed: None,
            protocol: None,
            negotiated: Negotiated::new(),
            server: None,
        }
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What it is doing. A process that was stuck and has ended is reaped here.
    pub fn stance(&mut self) -> Stance {
        let (stance, has_ended) = match &mut self.state {
            State::Stuck { link, operation, since } => (stuck(*operation, *since), link.has_ended()),
            // One that is about to end is not stuck.
            State::Inherited { since } if since.elapsed() < GRACE => {
                (Stance::Ready, !Held::is_taken(&self.lock))
            }
            State::Inherited { since } => (stuck(None, *since), !Held::is_taken(&self.lock)),
            State::Leaving(link) => (Stance::Ready, link.has_ended()),
            State::Absent | State::Starting(_) | State::Idle(_) => (Stance::Ready, false),
        };
        if has_ended {
            self.state = State::Absent;
            return Stance::Ready;
        }
        stance
    }

    /// Whether a call of its process does not return.
    pub fn is_stuck(&mut self) -> bool {
        matches!(self.stance(), Stance::Stuck { .. })
    }

    /// Forbids to touch the target: everything that is asked of it from now on ends like this. `None` allows it again.
    pub fn close(&mut self, why: Option<Ending>) {
        self.closed = why;
    }

    /// Lets the process end, so that it takes no memory until there is something to do. Not waited for.
    pub fn dismiss(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Absent) {
            State::Starting(mut link) | State::Idle(mut link) => {
                link.dismiss();
                State::Leaving(link)
            }
            other => other,
        };
    }

    /// Has a run prepared, and says how many bytes that wrote; else what there is to book in its place.
    pub fn prepare(&mut self, assignment: &Assignment, watch: &mut Watch<'_>) -> Result<u64, Box<Finished>> {
        Err(Box::new(match self.ask(&Command::Prepare(assignment.clone()), watch, Limit::PerOperation) {
            Ok(Asked { answer: Message::Prepared { failed: None }, bytes_written, .. }) => {
                return Ok(bytes_written);
            }
            Ok(Asked { answer: Message::Prepared { failed: Some(report) }, .. }) => {
                Finished { phases: vec![], report }
            }
            Ok(Asked { answer, .. }) => Finished::failed(confused(&answer)),
            Err(Unanswered { ending, .. }) => Finished::failed(ending),
        }))
    }

    /// Has a run made. Always returns something to book.
    pub fn run(&mut self, assignment: &Assignment, watch: &mut Watch<'_>) -> Finished {
        match self.ask(&Command::Run(assignment.clone()), watch, Limit::InAll) {
            Ok(Asked { answer: Message::Ended(report), phases, .. }) => Finished { phases, report },
            Ok(Asked { answer, phases, .. }) => Finished { phases, report: failed(confused(&answer)) },
            Err(Unanswered { phases, ending }) => Finished { phases, report: failed(ending) },
        }
    }

    /// Has the arena made, without anything in it.
    pub fn claim(&mut self, watch: &mut Watch<'_>) -> Result<(), Ending> {
        match self.ask(&Command::Claim, watch, Limit::PerOperation)?.answer {
            Message::Claimed { failed } => failed.map_or(Ok(()), Err),
            other => Err(confused(&other)),
        }
    }

    /// Has the arena cleaned. `None`: there is no arena.
    pub fn clean(&mut self, mode: Mode, watch: &mut Watch<'_>) -> Result<Option<CleanReport>, Ending> {
        match self.ask(&Command::Clean { mode }, watch, Limit::PerOperation)?.answer {
            Message::Cleaned { report, failed: None } => Ok(report),
            Message::Cleaned { failed: Some(ending), .. } => Err(ending),
            other => Err(confused(&other)),
        }
    }

    /// Has everything that a run needs done once, with one small file.
    pub fn examine(&mut self, watch: &mut Watch<'_>) -> Result<Examined, Ending> {
        match self.ask(&Command::Examine, watch, Limit::InAll)?.answer {
            Message::Examined { found: Some(found), .. } => Ok(found),
            Message::Examined { failed: Some(ending), .. } => Err(ending),
            other => Err(confused(&other)),
        }
    }

    /// Has a call of a self-check made; `None` if the worker does not know it.
    pub fn self_check(&mut self, call: &str, watch: &mut Watch<'_>) -> Result<Option<Check>, Ending> {
        match self.ask(&Command::SelfCheck { call: call.to_owned() }, watch, Limit::InAll)?.answer {
            Message::SelfChecked { check } => Ok(check),
            other => Err(confused(&other)),
        }
    }

    /// Gives a command and waits for its answer, for as long as the limit allows.
    fn ask(&mut self, command: &Command, watch: &mut Watch<'_>, limit: Limit) -> Result<Asked, Unanswered> {
        if let Some(ending) = &self.closed {
            return Err(ending.clone().into());
        }
        let mut link = self.link(watch)?;
        if link.send(command).is_err() {
            return Err(self.ended(link, vec![]));
        }
        watch.observer.touches(&self.target.name, link.recorder());
        let written = link.recorder().bytes_written();
        let mut wait = Wait::new(limit);
        loop {
            match link.receive(TICK) {
                Answer::Message(message) if self.is_ready(&message) => {}
                Answer::Message(message) => {
                    if let Some(answer) = wait.hear(*message, &self.target.name, watch) {
                        self.falls = Falls::default();
                        let bytes_written = link.recorder().bytes_written().saturating_sub(written);
                        self.state = State::Idle(link);
                        return Ok(Asked { answer, phases: wait.phases, bytes_written });
                    }
                }
                Answer::Ended => return Err(self.ended(link, wait.phases)),
                Answer::Silence => {}
            }
            if wait.is_hopeless(&mut link, watch) {
                return Err(self.abandon(link, wait, watch.cap));
            }
        }
    }

    /// A process to talk to: the one that is there, or a new one.
    fn link(&mut self, watch: &mut Watch<'_>) -> Result<Link, Unanswered> {
        match std::mem::replace(&mut self.state, State::Absent) {
            State::Absent => self.start(watch),
            State::Starting(mut link) => {
                if link.has_ended() {
                    self.falls.add();
                    return self.start(watch);
                }
                self.await_ready(link, watch)
            }
            // One that died while it had nothing to do hurt nothing: another takes its place.
            State::Idle(mut link) => {
                if link.has_ended() {
                    self.start(watch)
                } else {
                    Ok(link)
                }
            }
            State::Leaving(mut link) => {
                if link.ends_within(GRACE) {
                    return self.start(watch);
                }
                let operation = link.recorder().in_flight().map(|flight| flight.operation);
                link.kill();
                self.state = State::Stuck { link, operation, since: Instant::now() };
                Err(still_stuck(&self.target.path, operation).into())
            }
            State::Inherited { since } => {
                self.state = State::Inherited { since };
                while Held::is_taken(&self.lock) {
                    if since.elapsed() >= GRACE {
                        return Err(still_stuck(&self.target.path, None).into());
                    }
                    std::thread::sleep(BETWEEN_LOOKS);
                }
                self.start(watch)
            }
            State::Stuck { mut link, operation, since } => {
                if link.has_ended() {
                    return self.start(watch);
                }
                self.state = State::Stuck { link, operation, since };
                Err(still_stuck(&self.target.path, operation).into())
            }
        }
    }

    /// Starts a process and waits until it has said how its target is reached.
    fn start(&mut self, watch: &mut Watch<'_>) -> Result<Link, Unanswered> {
        if Held::is_taken(&self.lock) {
            self.state = State::Inherited { since: Instant::now() };
            return self.link(watch);
        }
        let link = self.launch()?;
        self.await_ready(link, watch)
    }

    /// Starts a process, unless the last ones ended by themselves a moment ago.
    fn launch(&self) -> Result<Link, Ending> {
        if let Some(seconds) = self.falls.seconds_to_wait() {
            let (name, falls) = (&self.target.name, self.falls.count);
            let message = format!(
                "the worker of `{name}` ended by itself {falls} times in a row; it is started again in {seconds} s"
            );
            return Err(void(message));
        }
        let local = self.launcher.local.join(self.target.name.as_str());
        let setup = |recorder: &Path| Setup {
            target: self.target.clone(),
            machine: self.launcher.machine.clone(),
            local,
            recorder: recorder.to_owned(),
            probe: self.launcher.probe.clone(),
        };
        Link::start(&self.launcher, setup).map_err(|error| {
            void(format!("no worker process could be started for `{}`: {error}", self.target.name))
        })
    }

    /// Books a worker that ended by itself.
    fn ended(&mut self, mut link: Link, phases: Vec<Phase>) -> Unanswered {
        let how = link.exit_text();
        self.falls.add();
        tracing::warn!(target_name = %self.target.name, how, "a worker ended by itself");
        let ending =
            void(format!("the worker of `{}` ended in the middle of its task ({how})", self.target.name));
        Unanswered { phases, ending }
    }

    /// Leaves a worker behind whose call does not return, with all that it had measured.
    fn abandon(&mut self, mut link: Link, mut wait: Wait, cap: Duration) -> Unanswered {
        let recorder = link.recorder();
        let flight = recorder.in_flight();
        let ending = match wait.told {
            Some(Told { capped: false, .. }) => void(
                "stopped by the person while an operation did not return; what was measured before it is kept".to_owned(),
            ),
            _ => hung(&self.target.path, flight, cap),
        };
        wait.phases.extend(wait.current.take().map(|phase| recording::cut_short(phase, recorder)));
        tracing::warn!(target_name = %self.target.name, message = ending.failure.message, "a worker is left behind");
        link.kill();
        let since = Instant::now() - flight.map_or(Duration::ZERO, recording::age);
        self.state = State::Stuck { link, operation: flight.map(|flight| flight.operation), since };
        Unanswered { phases: wait.phases, ending }
    }
}

/// An answer, with the phases that ended before it.
struct Asked {
    answer: Message,
    phases: Vec<Phase>,
    bytes_written: u64,
}

/// No answer, with what there is to book instead.
struct Unanswered {
    phases: Vec<Phase>,
    ending: Ending,
}

impl From<Ending> for Unanswered {
    fn from(ending: Ending) -> Self {
        Self { phases: vec![], ending }
    }
}

impl From<Unanswered> for Ending {
    fn from(unanswered: Unanswered) -> Self {
        unanswered.ending
    }
}

fn stuck(operation: Option<Operation>, since: Instant) -> Stance {
    Stance::Stuck { operation, for_seconds: since.elapsed().as_secs() }
}
