//! The supervisor's side of a worker process.
//!
//! A worker is never waited for without a limit. When a run's cap is over, the worker is told to stop; if it does not
//! answer because a call does not return, the flight recorder says which one and everything before it, the run is
//! booked, and the worker is killed and left behind. While it is still there, no second one is started on its target.

mod link;
mod recording;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longhaul_measure::arena::{CleanReport, Mode};
use longhaul_measure::model::{
    Conditions, Failure, Negotiated, Operation, Outcome, Phase, Progress, Protocol, Target, TargetName,
};
use longhaul_measure::worker::{Assignment, Command, Ending, Message, Report, Setup};

use link::{Answer, Link};
use recording::hung;

/// How long a worker may take to answer after it was told to stop, before its operation counts as hung.
const GRACE: Duration = Duration::from_secs(2);
/// The same when the person wants to stop: an operation that works but is slow gets its time.
const PATIENCE: Duration = Duration::from_secs(15);
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
}

/// Hears what workers do.
pub trait Observer {
    /// A preparation has come this far.
    fn progress(&mut self, target: &TargetName, progress: &Progress);
    /// A phase of a run begins.
    fn phase_began(&mut self, target: &TargetName, name: &str);
}

/// What a caller wants of an assignment beside its result.
pub struct Watch<'a> {
    /// How long a run may take in all, and an operation of a preparation.
    pub cap: Duration,
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
    /// Waiting for a command.
    Idle(Link),
    /// Left behind with a call that does not return.
    Stuck { link: Link, operation: Option<Operation> },
}

/// One target and the process that may touch it.
pub struct Worker {
    target: Target,
    launcher: Launcher,
    state: State,
    /// How the target is reached, as the last process said.
    pub protocol: Option<Protocol>,
    /// What was negotiated, as the last process said.
    pub negotiated: Negotiated,
}

impl Worker {
    /// A worker for a target; its process starts with its first task.
    pub fn new(target: Target, launcher: Launcher) -> Self {
        Self { target, launcher, state: State::Absent, protocol: None, negotiated: Negotiated::new() }
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Has a run prepared.
    pub fn prepare(&mut self, assignment: &Assignment, watch: &mut Watch<'_>) -> Result<(), Ending> {
        match self.ask(&Command::Prepare(assignment.clone()), watch, Limit::PerOperation)?.answer {
            Message::Prepared { failed } => failed.map_or(Ok(()), Err),
            other => Err(confused(&other)),
        }
    }

    /// Has a run made. Always returns something to book.
    pub fn run(&mut self, assignment: &Assignment, watch: &mut Watch<'_>) -> Finished {
        match self.ask(&Command::Run(assignment.clone()), watch, Limit::InAll) {
            Ok(Asked { answer: Message::Ended(report), phases }) => Finished { phases, report },
            Ok(Asked { answer, phases }) => Finished { phases, report: failed(confused(&answer)) },
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

    /// Gives a command and waits for its answer, for as long as the limit allows.
    fn ask(&mut self, command: &Command, watch: &mut Watch<'_>, limit: Limit) -> Result<Asked, Unanswered> {
        let mut link = self.link(watch)?;
        if link.send(command).is_err() {
            return Err(self.ended(link, vec![]));
        }
        let mut wait = Wait { limit, began: Instant::now(), told: None, phases: vec![], current: None };
        loop {
            match link.receive(TICK) {
                Answer::Message(message) => {
                    if let Some(answer) = wait.hear(*message, &self.target.name, watch) {
                        self.state = State::Idle(link);
                        return Ok(Asked { answer, phases: wait.phases });
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
            // One that died while it had nothing to do hurt nothing: another takes its place.
            State::Idle(mut link) => {
                if link.has_ended() {
                    self.start(watch)
                } else {
                    Ok(link)
                }
            }
            State::Stuck { mut link, operation } => {
                if link.has_ended() {
                    return self.start(watch);
                }
                self.state = State::Stuck { link, operation };
                Err(still_stuck(&self.target.path, operation).into())
            }
        }
    }

    /// Starts a process and waits until it has said how its target is reached.
    fn start(&mut self, watch: &mut Watch<'_>) -> Result<Link, Unanswered> {
        let local = self.launcher.local.join(self.target.name.as_str());
        let setup = |recorder: &Path| Setup {
            target: self.target.clone(),
            machine: self.launcher.machine.clone(),
            local,
            recorder: recorder.to_owned(),
        };
        let started = Link::start(&self.launcher.program, &self.launcher.arguments, setup);
        let mut link = started.map_err(|error| {
            void(format!("no worker process could be started for `{}`: {error}", self.target.name))
        })?;
        let mut wait = Wait {
            limit: Limit::PerOperation,
            began: Instant::now(),
            told: None,
            phases: vec![],
            current: None,
        };
        loop {
            match link.receive(TICK) {
                Answer::Message(message) => match *message {
                    Message::Ready { protocol, negotiated } => {
                        (self.protocol, self.negotiated) = (protocol, negotiated);
                        return Ok(link);
                    }
                    other => return Err(confused(&other).into()),
                },
                Answer::Ended => return Err(self.ended(link, vec![])),
                Answer::Silence => {}
            }
            if wait.is_hopeless(&mut link, watch) {
                return Err(self.abandon(link, wait, watch.cap));
            }
        }
    }

    /// Books a worker that ended by itself.
    fn ended(&mut self, mut link: Link, phases: Vec<Phase>) -> Unanswered {
        let how = link.exit_text();
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
        self.state = State::Stuck { link, operation: flight.map(|flight| flight.operation) };
        Unanswered { phases: wait.phases, ending }
    }
}

/// What the limit of a task is measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// The task as a whole.
    InAll,
    /// Each operation: a preparation may take as long as it makes headway.
    PerOperation,
}

/// That a worker was told to stop.
#[derive(Debug, Clone, Copy)]
struct Told {
    at: Instant,
    capped: bool,
}

/// The waiting for one answer.
struct Wait {
    limit: Limit,
    began: Instant,
    told: Option<Told>,
    phases: Vec<Phase>,
    current: Option<recording::Begun>,
}

impl Wait {
    /// Takes in a message; gives it back if it is the answer.
    fn hear(&mut self, message: Message, target: &TargetName, watch: &mut Watch<'_>) -> Option<Message> {
        match message {
            Message::Progress(progress) => watch.observer.progress(target, &progress),
            Message::PhaseBegan { name, cache, cold_by } => {
                watch.observer.phase_began(target, &name);
                self.current = Some(recording::Begun { name, cache, cold_by, at: Instant::now() });
            }
            Message::PhaseEnded(phase) => {
                self.current = None;
                self.phases.push(phase);
            }
            answer => return Some(answer),
        }
        None
    }

    /// Tells the worker to stop when it is time, and says when waiting on has no sense.
    fn is_hopeless(&mut self, link: &mut Link, watch: &Watch<'_>) -> bool {
        if self.told.is_none() {
            let capped = self.is_over(link, watch.cap);
            if capped || (watch.interrupted)() {
                let _ = link.send(&Command::Stop { capped });
                self.told = Some(Told { at: Instant::now(), capped });
            }
        }
        match self.told {
            Some(Told { at, capped: true }) => at.elapsed() > GRACE,
            Some(Told { at, capped: false }) => at.elapsed() > PATIENCE,
            None => false,
        }
    }

    fn is_over(&self, link: &Link, cap: Duration) -> bool {
        match self.limit {
            Limit::InAll => self.began.elapsed() > cap,
            Limit::PerOperation => {
                link.recorder().in_flight().is_some_and(|flight| recording::age(flight) > cap)
            }
        }
    }
}

/// An answer, with the phases that ended before it.
struct Asked {
    answer: Message,
    phases: Vec<Phase>,
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

fn failed(ending: Ending) -> Report {
    Report { failed: Some(ending), facts: Default::default(), conditions: Conditions::default() }
}

fn void(message: String) -> Ending {
    Ending { outcome: Outcome::Void, failure: Failure { operation: None, path: None, error: None, message } }
}

fn confused(message: &Message) -> Ending {
    void(format!("the worker gave an answer that does not belong here ({message:?}). Please report this"))
}

fn still_stuck(path: &Path, operation: Option<Operation>) -> Ending {
    let operation_text = operation.map_or("an operation".to_owned(), |operation| format!("`{operation}`"));
    Ending {
        outcome: Outcome::Hung,
        failure: Failure {
            operation,
            path: Some(path.display().to_string()),
            error: None,
            message: format!(
                "{operation_text} of an earlier run on {} has still not returned. Check the NAS and the network; \
                 longhaul goes on with this target when it has",
                path.display()
            ),
        },
    }
}
