//! Rounds in the foreground: prepare on every target, run in the drawn order, keep each run before it is shown.

use std::time::Duration;

use longhaul_measure::corpus::draw::draw;
use longhaul_measure::model::{Outcome, Run, Scale, Target};
use longhaul_measure::platform;
use longhaul_measure::worker::{Assignment, Ending, SLEPT_NS};
use longhaul_measure::workloads::Settings;
use longhaul_store::{NewRound, Planned, RoundEnd, RoundStatus, StoredRun, Writer};

use crate::design::order;
use crate::host::Host;
use crate::worker::{Finished, Launcher, Observer, Watch, Worker};

/// How often a run is offered to a database that is locked or full before the runner gives up.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// On which targets.
    pub targets: Vec<Target>,
    /// Which workloads, by name.
    pub workloads: Vec<String>,
    /// How many rounds.
    pub rounds: u32,
    /// How large.
    pub scale: Scale,
    /// What is set for all workloads.
    pub settings: Settings,
    /// How long a run may take.
    pub cap: Duration,
}

/// Hears of rounds while they are made.
pub trait Audience: Observer {
    /// A round begins: its number in the database, its place, and how many there will be.
    fn round_began(&mut self, number: i64, place: u32, rounds: u32);
    /// A run begins.
    fn run_began(&mut self, target: &Target, workload: &str);
    /// A run is over and on disk.
    fn run_ended(&mut self, stored: &StoredRun);
    /// Whether another round may begin; asked before each.
    fn may_go_on(&mut self, place: u32) -> bool;
}

/// What was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Runs that were kept.
    pub runs: u32,
    /// Runs among them that did not end well, but for those that the person stopped.
    pub failed: u32,
    /// Whether the person stopped it.
    pub interrupted: bool,
}

/// Why the runner gave up.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The database does not take a round.
    #[error(transparent)]
    Store(Box<longhaul_store::Error>),
    /// The database does not take a run. It is not lost: here it is.
    #[error("{source}. The run that could not be kept, as JSON: {run}")]
    Unkept {
        /// Why.
        source: Box<longhaul_store::Error>,
        /// The run.
        run: String,
    },
}

impl From<longhaul_store::Error> for RunnerError {
    fn from(error: longhaul_store::Error) -> Self {
        Self::Store(Box::new(error))
    }
}

/// Runs rounds.
pub struct Runner<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// The workers, one per target, in the order of the plan.
    pub workers: Vec<Worker>,
    /// Where runs are kept.
    pub writer: &'a Writer,
    /// Whether the person wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// One round on its way.
struct Round {
    number: i64,
    seed: u64,
    /// By workload and target: why it could not be prepared.
    unprepared: Vec<((usize, usize), Ending)>,
    slot: u32,
}

/// What is known of a run before it is made.
struct Begun {
    slot: u32,
    started_us: i64,
    host: Host,
}

impl<'a> Runner<'a> {
    /// A runner with a worker for each target.
    pub fn new(
        plan: &'a Plan,
        launcher: &Launcher,
        writer: &'a Writer,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Self {
        let worker = |target: &Target| Worker::new(target.clone(), launcher.clone());
        Self { plan, workers: plan.targets.iter().map(worker).collect(), writer, interrupted }
    }

    /// Runs all rounds of the plan, or as many as the person and the audience let it.
    pub fn run(&mut self, machine_seed: u64, audience: &mut dyn Audience) -> Result<Tally, RunnerError> {
        let mut tally = Tally::default();
        for place in 0..self.plan.rounds {
            tally.interrupted = (self.interrupted)();
            if tally.interrupted || !audience.may_go_on(place) {
                break;
            }
            self.round(machine_seed, place, audience, &mut tally)?;
        }
        Ok(tally)
    }

    fn round(
        &mut self,
        machine_seed: u64,
        place: u32,
        audience: &mut dyn Audience,
        tally: &mut Tally,
    ) -> Result<(), RunnerError> {
        let number = self.writer.begin_round(self.announce(machine_seed))?;
        audience.round_began(number, place, self.plan.rounds);
        let asleep_ns = platform::asleep_ns();
        let seed = draw(machine_seed, 0x726f_756e, number.unsigned_abs());
        let mut round = Round { number, seed, unprepared: vec![], slot: 0 };
        self.prepare(&mut round, audience);
        let order = order(machine_seed, number.unsigned_abs(), self.plan.workloads.len(), self.workers.len());
        for cell in
            order.into_iter().flat_map(|(workload, targets)| targets.into_iter().map(move |t| (workload, t)))
        {
            if (self.interrupted)() {
                break;
            }
            let run = self.cell(cell, &mut round, audience);
            let stored = self.keep(&run, cell.1)?;
            tally.runs += 1;
            let stopped = run.outcome == Outcome::Void && (self.interrupted)();
            tally.failed += u32::from(run.outcome != Outcome::Ok && !stopped);
            audience.run_ended(&stored);
        }
        tally.interrupted = (self.interrupted)();
        let slept = platform::asleep_ns().saturating_sub(asleep_ns) > SLEPT_NS;
        let (status, reason) = match (slept, tally.interrupted) {
            (true, _) => (RoundStatus::Void, Some("the machine slept during it".to_owned())),
            (false, true) => (RoundStatus::CutShort, Some("stopped by the person".to_owned())),
            (false, false) => (RoundStatus::Ok, None),
        };
        self.writer.end_round(number, RoundEnd { status, reason, ended_us: platform::wall_clock_us() })?;
        Ok(())
    }

    fn announce(&self, seed: u64) -> NewRound {
        let planned = self.plan.workloads.iter().flat_map(|workload| {
            let planned =
                |target: &Target| Planned { target: target.name.clone(), workload: workload.clone() };
            self.plan.targets.iter().map(planned)
        });
        NewRound {
            started_us: platform::wall_clock_us(),
            utc_offset_seconds: platform::utc_offset_seconds(),
            seed,
            scale: self.plan.scale,
            planned: planned.collect(),
        }
    }

    /// Prepares everything before anything is timed, so that the runs of a round follow each other within minutes.
    fn prepare(&mut self, round: &mut Round, audience: &mut dyn Audience) {
        for target in 0..self.workers.len() {
            for workload in 0..self.plan.workloads.len() {
                if (self.interrupted)() {
                    return;
                }
                let assignment = self.assignment(workload, round);
                let mut watch =
                    Watch { cap: self.plan.cap, interrupted: self.interrupted, observer: audience };
                if let Err(ending) = self.workers[target].prepare(&assignment, &mut watch) {
                    round.unprepared.push(((workload, target), ending));
                }
            }
        }
    }

    fn assignment(&self, workload: usize, round: &Round) -> Assignment {
        Assignment {
            workload: self.plan.workloads[workload].clone(),
            scale: self.plan.scale,
            settings: self.plan.settings.clone(),
            round: round.number,
            seed: round.seed,
        }
    }

    /// One workload on one target.
    fn cell(
        &mut self,
        (workload, target): (usize, usize),
        round: &mut Round,
        audience: &mut dyn Audience,
    ) -> Run {
        let assignment = self.assignment(workload, round);
        let begun = Begun { slot: round.slot, started_us: platform::wall_clock_us(), host: Host::now() };
        round.slot += 1;
        audience.run_began(self.workers[target].target(), &assignment.workload);
        let unprepared = round.unprepared.iter().find(|(cell, _)| *cell == (workload, target));
        let finished = match unprepared {
            Some((_, ending)) => Finished::failed(ending.clone()),
            None => {
                let mut watch =
                    Watch { cap: self.plan.cap, interrupted: self.interrupted, observer: audience };
                self.workers[target].run(&assignment, &mut watch)
            }
        };
        self.book(finished, assignment, target, begun)
    }

    /// Makes a run of what came of it.
    fn book(&self, finished: Finished, assignment: Assignment, target: usize, begun: Begun) -> Run {
        let Finished { phases, report } = finished;
        let worker = &self.workers[target];
        let (outcome, failure) = match report.failed {
            Some(ending) => (ending.outcome, Some(ending.failure)),
            None => (Outcome::Ok, None),
        };
        let mut conditions = report.conditions;
        begun.host.add_to(&mut conditions);
        if conditions.negotiated.is_empty() {
            conditions.negotiated = worker.negotiated.clone();
        }
        Run {
            round: assignment.round,
            slot: begun.slot,
            target: worker.target().name.clone(),
            protocol: worker.protocol.clone(),
            workload: assignment.workload,
            scale: assignment.scale,
            outcome,
            started_us: begun.started_us,
            utc_offset_seconds: platform::utc_offset_seconds(),
            seconds: match outcome {
                Outcome::Hung => self.plan.cap.as_secs_f64(),
                // Not `sum`: of nothing, that is -0.0.
                _ => phases.iter().fold(0.0, |seconds, phase| seconds + phase.seconds),
            },
            phases,
            failure,
            facts: report.facts,
            conditions,
        }
    }

    /// Puts a run on disk. A database that is locked or full is asked again; then the run is handed to the person.
    fn keep(&self, run: &Run, target: usize) -> Result<StoredRun, RunnerError> {
        let target = self.workers[target].target();
        for _ in 1..ATTEMPTS {
            match self.writer.add_run(target, run) {
                Err(error) if error.is_retryable() => {
                    tracing::warn!(%error, "the run could not be kept yet");
                    std::thread::sleep(BETWEEN_ATTEMPTS);
                }
                other => return other.map_err(|source| unkept(source, run)),
            }
        }
        self.writer.add_run(target, run).map_err(|source| unkept(source, run))
    }
}

fn unkept(source: longhaul_store::Error, run: &Run) -> RunnerError {
    let run = serde_json::to_string(run).unwrap_or_else(|error| error.to_string());
    RunnerError::Unkept { source: Box::new(source), run }
}
