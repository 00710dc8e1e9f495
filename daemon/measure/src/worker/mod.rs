//! The process that touches one target, and no other process does.
//!
//! It reads commands from its standard input and answers on its standard output. A thread listens for commands all the
//! time, so that "stop" is heard while a run is made; when the input ends, the supervisor is gone, and so will the
//! worker be after the operation in flight. It never decides what to measure or when.

mod endings;
mod examine;
mod message;
mod mount;
mod output;
mod probing;
mod self_check;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

pub use examine::Examined;
pub use message::{Assignment, Command, Ending, Message, Report, Setup};

use crate::arena::{Arena, Claim, CleanReport, Mode};
use crate::context::{Context, PhaseSpec, Reporter, Session, StopSwitch, instrument_ns};
use crate::corpus::draw::draw;
use crate::error::{RunError, StopReason};
use crate::inventory::Reason;
use crate::local;
use crate::lock::{Held, LockError};
use crate::model::{Conditions, Counters, Phase, Probing, Progress};
use crate::platform::{self, IoPolicy, Space};
use crate::recorder::Recorder;
use crate::samplers::{Gate, Hears, Telling};
use crate::workloads::{Job, Workload, workload};

use endings::{ending, panicked, slept_through};
use mount::Reached;
use output::Output;

/// The version of longhaul that this process is. A supervisor works only with workers of its own.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Stands among what tells epochs apart: runs that were held to so many operations a second are never pooled with others.
const PACED: &str = "longhaul-operations-per-second";
/// Files of others on the local disk that a report of cleaning names.
const FOREIGN_NAMED: usize = 20;
/// Sleep beyond which a run, and its whole round, says nothing, in nanoseconds.
pub const SLEPT_NS: u64 = 1_000_000_000;

/// The lock that a worker holds for as long as its process is there, so that whoever supervises next knows of one that is stuck.
/// It belongs to a place, not only to a name, under which another place may be measured tomorrow. `local` is the folder on the
/// local disk that is for the target alone.
pub fn lock_beside(local: &Path, target: &Path) -> PathBuf {
    let bytes = target.as_os_str().as_encoded_bytes().iter();
    let place = bytes.fold(0, |place, byte| draw(place, 0x6c6f_636b, u64::from(*byte)));
    let mut name = local.as_os_str().to_owned();
    name.push(format!("-{place:016x}.lock"));
    name.into()
}

/// The lock, while it is held.
struct Presence {
    held: Option<Held>,
    /// What lies there is made by workers alone.
    folder: PathBuf,
}

impl Drop for Presence {
    /// The folder goes with the last lock, if nothing else is in it.
    fn drop(&mut self) {
        drop(self.held.take());
        let _ = std::fs::remove_dir(&self.folder);
    }
}

impl Presence {
    /// Takes the lock. A disk on which nothing can be held is no reason not to measure.
    fn announce(setup: &Setup) -> io::Result<Self> {
        let path = lock_beside(&setup.local, &setup.target.path);
        let folder = path.parent().unwrap_or(&path).to_owned();
        match Held::take(&path) {
            Ok(held) => Ok(Self { held: Some(held), folder }),
            Err(LockError::Io { .. }) => Ok(Self { held: None, folder }),
            Err(taken @ LockError::Taken { .. }) => Err(io::Error::other(taken)),
        }
    }
}

/// Serves a supervisor until its end of the input closes.
///
/// # Errors
///
/// If the first line is no [`Setup`], another worker is on the target, the recorder cannot be mapped, or the output is closed.
pub fn serve(
    mut input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let setup: Setup = serde_json::from_str(&line)?;
    let _presence = Presence::announce(&setup)?;
    platform::prepare_worker();
    let recorder = Arc::new(Recorder::open(&setup.recorder)?);
    // Mapped on both sides now: where it has a name (macOS), nothing is left behind however this ends.
    let _ = std::fs::remove_file(&setup.recorder);
    let output = Arc::new(Output::new(output));
    let worker = Worker {
        stop: Arc::default(),
        gate: Arc::new(Gate::new(setup.probe.as_ref().map_or(Probing::DuringRuns, |plan| plan.begins))),
        telling: Arc::new(Telling::new(Arc::clone(&output) as Arc<dyn Hears>, Arc::clone(&recorder))),
        setup,
        recorder,
        output,
        mount: RefCell::default(),
        prepared: RefCell::default(),
        made_sandbox: Cell::default(),
    };
    let (sender, tasks) = mpsc::channel();
    worker.listen(input, sender.clone());
    worker.find_mount();
    worker.say(&worker.ready())?;
    let device = worker.start_probe(sender)?;
    let served = worker.work(&tasks, device);
    worker.telling.rest();
    served
}

/// What the thread that leads runs has to do.
enum Task {
    /// What the supervisor asks for.
    Obey(Command),
    /// Make an arena for the probe.
    Claim,
    /// End: the supervisor is gone.
    End,
}

struct Worker {
    setup: Setup,
    recorder: Arc<Recorder>,
    stop: Arc<StopSwitch>,
    gate: Arc<Gate>,
    telling: Arc<Telling>,
    output: Arc<Output>,
    mount: RefCell<Option<Reached>>,
    /// What preparations found out, by workload, for the run that follows.
    prepared: RefCell<BTreeMap<String, BTreeMap<String, String>>>,
    /// Whether a self-check of this process made the sandbox.
    made_sandbox: Cell<bool>,
}

impl Reporter for Worker {
    fn progress(&self, progress: &Progress) {
        self.say_or_stop(&Message::Progress(progress.clone()));
    }

    fn phase_began(&self, spec: &PhaseSpec<'_>) {
        let PhaseSpec { name, cache, cold_by } = *spec;
        self.say_or_stop(&Message::PhaseBegan { name: name.to_owned(), cache, cold_by });
    }

    fn phase_ended(&self, phase: Phase) {
        self.telling.waits(self.gate.beside().as_deref());
        self.say_or_stop(&Message::PhaseEnded(phase));
    }

    /// The counter that is closest to the target.
    fn counters(&self) -> Option<Counters> {
        let mount = self.mount.borrow();
        platform::counters(&self.setup.target.name, &mount.as_ref()?.mount)
    }
}

impl Worker {
    /// Reads commands as they come. What cannot wait takes effect here; everything else waits its turn.
    fn listen(&self, input: impl BufRead + Send + 'static, tasks: mpsc::Sender<Task>) {
        let (stop, gate) = (Arc::clone(&self.stop), Arc::clone(&self.gate));
        std::thread::spawn(move || {
            for line in input.lines() {
                let command = line.ok().and_then(|line| serde_json::from_str(&line).ok());
                match command {
                    None => break,
                    Some(Command::Stop { capped: true }) => stop.stop(StopReason::Cap),
                    Some(Command::Stop { capped: false }) => stop.stop(StopReason::Person),
                    Some(Command::Probe { probing }) => gate.set_probing(probing),
                    Some(other) => {
                        stop.reset();
                        if tasks.send(Task::Obey(other)).is_err() {
                            break;
                        }
                    }
                }
            }
            stop.stop(StopReason::Orphaned);
            let _ = tasks.send(Task::End);
        });
    }

    /// Does one task after the other until the supervisor is gone.
    fn work(&self, tasks: &mpsc::Receiver<Task>, device: Option<u64>) -> io::Result<()> {
        for task in tasks {
            match task {
                Task::Obey(command) => self.obey(command)?,
                Task::Claim => self.claim_for_probe(device),
                Task::End => break,
            }
        }
        Ok(())
    }

    fn say(&self, message: &Message) -> io::Result<()> {
        self.output.say(message)
    }

    /// Nobody listens any more: end after the operation in flight.
    fn say_or_stop(&self, message: &Message) {
        if self.say(message).is_err() {
            self.stop.stop(StopReason::Orphaned);
        }
    }

    fn context(&self) -> Context<'_> {
        Context::new(&self.recorder, 0, &self.stop)
    }

    /// For what is done before the first command comes.
    fn bare_context(&self) -> Context<'_> {
        Context::bare(&self.recorder, 0, &self.stop)
    }

    fn claim(&self) -> Claim<'_> {
        let target = &self.setup.target;
        Claim { target_path: &target.path, target: &target.name, machine: &self.setup.machine }
    }

    fn obey(&self, command: Command) -> io::Result<()> {
        match command {
            Command::Prepare(assignment) => {
                self.ask_again()?;
                self.gate.preparing(&assignment.workload);
                let failed = self.prepare(&assignment);
                self.done_with(&assignment);
                self.say(&Message::Prepared { failed })
            }
            Command::Run(assignment) => {
                self.gate.running(&assignment.workload);
                let report = self.run(&assignment);
                self.done_with(&assignment);
                self.say(&Message::Ended(report))
            }
            Command::Claim => {
                let claimed = Arena::open(&self.claim(), &self.context());
                self.say(&Message::Claimed { failed: claimed.err().map(|error| ending(&error)) })
            }
            Command::Clean { mode } => self.say(&self.clean(mode)),
            Command::Examine => self.say(&self.examine()),
            Command::SelfCheck { call } => {
                let check = self.self_check(&call);
                self.say(&Message::SelfChecked { check })
            }
            Command::Probe { .. } | Command::Stop { .. } => Ok(()),
        }
    }

    /// Does something with a workload and its job; a panic in it is an outcome, not an end.
    fn with_job(
        &self,
        assignment: &Assignment,
        session: &Session<'_>,
        work: impl FnOnce(&dyn Workload, &Job<'_>) -> Result<(), RunError>,
    ) -> Result<(), Ending> {
        let attempt = || {
            let own = assignment.settings.own.as_ref().and_then(|own| own.classic(&assignment.workload));
            let own = own.as_ref().map(|own| own as &dyn Workload);
            let Some(workload) = own.or_else(|| workload(&assignment.workload)) else {
                let reason = format!("there is no workload `{}`", assignment.workload);
                return Err(RunError::refused(
                    &self.setup.target.path,
                    reason,
                    "`longhaul run --help` lists them",
                ));
            };
            let arena = Arena::open(&self.claim(), &self.context())?;
            let job = self.job(assignment, session, &arena);
            local::make(job.local).map_err(RunError::local("mkdir", job.local))?;
            work(workload, &job)
        };
        match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(result) => result.map_err(|error| ending(&error)),
            Err(panic) => Err(panicked(panic.as_ref())),
        }
    }

    fn job<'a>(&'a self, assignment: &'a Assignment, session: &'a Session<'a>, arena: &'a Arena) -> Job<'a> {
        Job {
            session,
            arena,
            local: &self.setup.local,
            scale: assignment.scale,
            settings: &assignment.settings,
            rotation: assignment.rotation,
            seed: assignment.seed,
            now_us: platform::wall_clock_us(),
        }
    }

    /// What there is to say of a preparation that failed; `None`: it did not.
    fn prepare(&self, assignment: &Assignment) -> Option<Report> {
        self.stop.limit(assignment.settings.operations_per_second);
        let session = Session::new(&self.recorder, &self.stop, self);
        let mut space = None;
        let prepared = self.with_job(assignment, &session, |workload, job| {
            space = job.arena.space(&job.preparation()).ok();
            workload.prepare(job)
        });
        let Err(failed) = prepared else {
            self.prepared.borrow_mut().insert(assignment.workload.clone(), session.into_facts());
            return None;
        };
        let failed = Some(failed);
        let mut conditions = self.conditions();
        note_space(&mut conditions, space);
        Some(Report { failed, facts: session.into_facts(), conditions })
    }

    fn run(&self, assignment: &Assignment) -> Report {
        self.stop.limit(assignment.settings.operations_per_second);
        let session = Session::new(&self.recorder, &self.stop, self);
        let mut conditions = self.conditions();
        if let Some(most) = assignment.settings.operations_per_second {
            conditions.negotiated.insert(PACED.to_owned(), most.to_string());
        }
        let asleep = platform::asleep_ns();
        let mut result = self.with_job(assignment, &session, |workload, job| {
            let policy = set_policy(workload.io_policy(), job);
            conditions.io_policy = policy.map(|policy| policy.name().to_owned());
            note_space(&mut conditions, job.arena.space(&job.preparation()).ok());
            let result = workload.run(job);
            let _ = platform::set_io_policy(IoPolicy::Default);
            result
        });
        let slept = platform::asleep_ns().saturating_sub(asleep);
        conditions.slept_seconds = Some(slept as f64 / 1e9);
        conditions.worker_peak_bytes = platform::peak_memory_bytes();
        if slept > SLEPT_NS {
            result = Err(slept_through(slept));
        }
        let mut facts = self.prepared.borrow_mut().remove(&assignment.workload).unwrap_or_default();
        facts.extend(session.into_facts());
        Report { failed: result.err(), facts, conditions }
    }

    fn conditions(&self) -> Conditions {
        Conditions {
            system: Some(platform::system_version()),
            load_average: platform::load_average(),
            power: platform::power(),
            instrument_ns: instrument_ns().ok(),
            negotiated: self.circumstances(),
            ..Conditions::default()
        }
    }

    fn done_with(&self, assignment: &Assignment) {
        self.telling.waits(Some(&assignment.workload));
        self.gate.done();
    }

    fn clean(&self, mode: Mode) -> Message {
        if mode == Mode::Remove {
            self.gate.close();
        }
        match self.try_clean(mode) {
            Ok(report) => Message::Cleaned { report, failed: None },
            Err(error) => Message::Cleaned { report: None, failed: Some(ending(&error)) },
        }
    }

    fn examine(&self) -> Message {
        let attempt = || {
            let context = self.context();
            examine::examine(&Arena::open(&self.claim(), &context)?, &context)
        };
        match attempt() {
            Ok(found) => Message::Examined { found: Some(found), failed: None },
            Err(error) => Message::Examined { found: None, failed: Some(ending(&error)) },
        }
    }

    fn try_clean(&self, mode: Mode) -> Result<Option<CleanReport>, RunError> {
        let context = self.context();
        let Some(arena) = Arena::open_existing(&self.claim(), &context)? else { return Ok(None) };
        let mut report = arena.clean(mode, &context, &self_check::is_own)?;
        if mode == Mode::Remove {
            report.foreign.extend(remove_local(&self.setup.local)?);
        }
        Ok(Some(report))
    }
}

/// Removes what is longhaul's in this target's own folder on the local disk. Gives back the first paths of what is not.
fn remove_local(path: &Path) -> Result<Vec<PathBuf>, RunError> {
    let mut foreign = vec![];
    for left in local::remove(path) {
        match left.reason {
            Reason::Refused(error) => return Err(RunError::local("remove", &left.path)(error)),
            Reason::Link | Reason::Unrecognized => foreign.push(left.path),
        }
    }
    foreign.truncate(FOREIGN_NAMED);
    Ok(foreign)
}

/// Sets the policy that a workload asks for, and reads back which is in force; `None` where the system does not say.
fn set_policy(wanted: IoPolicy, job: &Job<'_>) -> Option<IoPolicy> {
    if let Err(error) = platform::set_io_policy(wanted) {
        job.session.fact("io-policy", format!("could not be set: {error}"));
    }
    platform::io_policy().ok()
}

/// Notes what fits on the target; what is not known stays so.
fn note_space(conditions: &mut Conditions, space: Option<Space>) {
    conditions.free_bytes = space.map(|space| space.free_bytes);
    conditions.total_bytes = space.map(|space| space.total_bytes);
}
