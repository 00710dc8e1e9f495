//! One round: prepare on every target, run in the drawn order, keep each run before it is shown.

use std::time::Duration;

use longhaul_measure::corpus::draw::draw;
use longhaul_measure::model::{Outcome, Run, Scale, Surroundings, Target};
use longhaul_measure::worker::{Assignment, SLEPT_NS};
use longhaul_measure::workloads::Settings;
use longhaul_store::{NewRound, Planned, RoundEnd, RoundStatus, StoredRun, Writer};

use crate::clock::Clock;
use crate::design::order;
use crate::host::Memory;
use crate::schedule::rotation;
use crate::worker::{Finished, Observer, Watch, Worker};

const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// What a round runs, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Tasks {
    /// Which workloads, by name.
    pub workloads: Vec<String>,
    /// How large.
    pub scale: Scale,
    /// What is set for all workloads.
    pub settings: Settings,
    /// How long a run may take.
    pub cap: Duration,
}

/// What is drawn and known before a round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// The seed of this machine.
    pub machine_seed: u64,
    /// How many rounds were begun before: the place in the design.
    pub turn: u64,
    /// Every how many rounds baselines are measured; 0 or 1: in each.
    pub baseline_every: u64,
    /// The instant that the schedule meant; `None`: a person began it.
    pub scheduled_us: Option<i64>,
    /// The machine just before.
    pub before: Option<Surroundings>,
}

/// Why a round is to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// What was measured stays, the rest is not made.
    CutShort(String),
    /// Nothing of it says anything.
    Void(String),
}

impl Stop {
    fn into_end(self) -> (RoundStatus, Option<String>) {
        match self {
            Self::CutShort(reason) => (RoundStatus::CutShort, Some(reason)),
            Self::Void(reason) => (RoundStatus::Void, Some(reason)),
        }
    }
}

/// Hears of a round while it is made.
pub trait Audience: Observer {
    /// A run begins.
    fn run_began(&mut self, target: &Target, workload: &str);
    /// A run is over and on disk.
    fn run_ended(&mut self, stored: &StoredRun);
    /// A corpus was made, or completed, with so many bytes.
    fn prepared(&mut self, _target: &Target, _bytes: u64) {}
    /// A run cannot be kept yet.
    fn not_kept(&mut self, _error: &longhaul_store::Error) {}
}

/// Why a round cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
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

impl From<longhaul_store::Error> for RoundError {
    fn from(error: longhaul_store::Error) -> Self {
        Self::Store(Box::new(error))
    }
}

/// Everything that a round needs.
pub struct Maker<'a> {
    /// What to run.
    pub tasks: &'a Tasks,
    /// Where runs are kept.
    pub writer: &'a Writer,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Whether the round is to stop, and why.
    pub stop: &'a dyn Fn() -> Option<Stop>,
    /// How long a worker may take to stop before it is left behind.
    pub patience: Duration,
    /// How often a run is offered to a database that is locked or full.
    pub attempts: u32,
}

/// A round that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// Its number in the database.
    pub number: i64,
    /// How it ended.
    pub status: RoundStatus,
    /// Why, unless it is ok.
    pub reason: Option<String>,
    /// Runs that were kept.
    pub runs: u32,
    /// Runs among them that did not end well, but for those that were stopped.
    pub failed: u32,
}

/// One round on its way.
struct Progress {
    number: i64,
    seed: u64,
    turn: u64,
    baseline_every: u64,
    /// By workload and target: what is booked where it could not be prepared.
    unprepared: Vec<((usize, usize), Finished)>,
    slot: u32,
    made: Made,
}

/// What is known of a run before it is made.
struct Begun {
    slot: u32,
    started_us: i64,
    utc_offset_seconds: i32,
    memory: Memory,
}

impl Maker<'_> {
    /// Books the begin of a round and gives its number.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub fn begin(&self, block: &Block, workers: &[&mut Worker]) -> Result<i64, RoundError> {
        Ok(self.writer.begin_round(self.announce(block, workers))?)
    }

    /// Makes the runs of a round that has begun, and books its end.
    ///
    /// # Errors
    ///
    /// If the database does not take a run, or the end.
    pub fn make(
        &self,
        (number, block): (i64, &Block),
        workers: &mut [&mut Worker],
        audience: &mut dyn Audience,
        after: &mut dyn FnMut() -> Option<Surroundings>,
    ) -> Result<Made, RoundError> {
        let asleep_ns = self.clock.now().asleep_ns();
        let mut progress = Progress::new(number, block);
        self.prepare(&mut progress, workers, audience);
        self.run_all(&mut progress, block, workers, audience)?;
        let slept_ns = self.clock.now().asleep_ns() - asleep_ns;
        let (status, reason) = match (self.stop)() {
            _ if slept_ns > SLEPT_NS.cast_signed() => {
                let seconds = slept_ns / 1_000_000_000;
                (RoundStatus::Void, Some(format!("slept: the machine slept for {seconds} s during it")))
            }
            Some(stop) => stop.into_end(),
            None => (RoundStatus::Ok, None),
        };
        let end = RoundEnd { status, reason, ended_us: self.clock.now().wall_us, after: after() };
        self.offer(audience, || self.writer.end_round(number, end.clone()))?;
        Ok(Made { status, reason: end.reason, ..progress.made })
    }

    fn announce(&self, block: &Block, workers: &[&mut Worker]) -> NewRound {
        let now = self.clock.now();
        let planned = self.tasks.workloads.iter().flat_map(|workload| {
            let planned = |worker: &&mut Worker| Planned {
                target: worker.target().name.clone(),
                workload: workload.clone(),
            };
            workers.iter().map(planned)
        });
        NewRound {
            started_us: now.wall_us,
            utc_offset_seconds: now.utc_offset_seconds,
            seed: block.machine_seed,
            scale: self.tasks.scale,
            planned: planned.collect(),
            scheduled_us: block.scheduled_us,
            before: block.before.clone(),
        }
    }

    fn watch<'w>(&self, interrupted: &'w dyn Fn() -> bool, observer: &'w mut dyn Audience) -> Watch<'w> {
        Watch { cap: self.tasks.cap, patience: self.patience, interrupted, observer }
    }

    /// Prepares everything before anything is timed, so that the runs of a round follow each other within minutes.
    fn prepare(&self, progress: &mut Progress, workers: &mut [&mut Worker], audience: &mut dyn Audience) {
        for (target, worker) in workers.iter_mut().enumerate() {
            for workload in 0..self.tasks.workloads.len() {
                if (self.stop)().is_some() {
                    return;
                }
                let assignment = self.assignment(workload, worker, progress);
                let (target_name, workload_name) = (&worker.target().name, &assignment.workload);
                let _span = tracing::info_span!("prepare", %target_name, workload = workload_name).entered();
                let prepared =
                    worker.prepare(&assignment, &mut self.watch(&|| (self.stop)().is_some(), audience));
                match prepared {
                    Ok(0) => {}
                    Ok(bytes) => audience.prepared(worker.target(), bytes),
                    Err(finished) => progress.unprepared.push(((workload, target), *finished)),
                }
            }
        }
    }

    /// Runs every cell in the drawn order, until the round is to stop.
    fn run_all(
        &self,
        progress: &mut Progress,
        block: &Block,
        workers: &mut [&mut Worker],
        audience: &mut dyn Audience,
    ) -> Result<(), RoundError> {
        let order = order(block.machine_seed, block.turn, self.tasks.workloads.len(), workers.len());
        let cells =
            order.into_iter().flat_map(|(workload, targets)| targets.into_iter().map(move |t| (workload, t)));
        for cell in cells {
            if (self.stop)().is_some() {
                break;
            }
            let worker = &mut workers[cell.1];
            let run = self.cell(cell, worker, progress, audience);
            let stored = self.keep(&run, worker.target(), audience)?;
            let stopped = run.outcome == Outcome::Void && (self.stop)().is_some();
            progress.made.runs += 1;
            progress.made.failed += u32::from(run.outcome != Outcome::Ok && !stopped);
            audience.run_ended(&stored);
        }
        Ok(())
    }

    fn assignment(&self, workload: usize, worker: &Worker, progress: &Progress) -> Assignment {
        Assignment {
            workload: self.tasks.workloads[workload].clone(),
            scale: self.tasks.scale,
            settings: self.tasks.settings.clone(),
            rotation: rotation(worker.target().role, progress.turn, progress.baseline_every),
            seed: progress.seed,
        }
    }

    /// One workload on one target.
    fn cell(
        &self,
        cell: (usize, usize),
        worker: &mut Worker,
        progress: &mut Progress,
        audience: &mut dyn Audience,
    ) -> Run {
        let assignment = self.assignment(cell.0, worker, progress);
        let now = self.clock.now();
        let begun = Begun {
            slot: progress.slot,
            started_us: now.wall_us,
            utc_offset_seconds: now.utc_offset_seconds,
            memory: Memory::now(),
        };
        progress.slot += 1;
        let target_name = &worker.target().name;
        let _span = tracing::info_span!("run", %target_name, workload = assignment.workload).entered();
        audience.run_began(worker.target(), &assignment.workload);
        let unprepared = progress.unprepared.iter().position(|(unprepared, _)| *unprepared == cell);
        let finished = match unprepared {
            Some(place) => progress.unprepared.swap_remove(place).1,
            None => worker.run(&assignment, &mut self.watch(&|| (self.stop)().is_some(), audience)),
        };
        self.book(finished, (progress.number, assignment.workload), worker, begun)
    }

    /// Makes a run of what came of it.
    fn book(
        &self,
        finished: Finished,
        (round, workload): (i64, String),
        worker: &Worker,
        begun: Begun,
    ) -> Run {
        let Finished { phases, report } = finished;
        let (outcome, failure) = match report.failed {
            Some(ending) => (ending.outcome, Some(ending.failure)),
            None => (Outcome::Ok, None),
        };
        let mut conditions = report.conditions;
        begun.memory.add_to(&mut conditions);
        if conditions.negotiated.is_empty() {
            conditions.negotiated = worker.negotiated.clone();
        }
        Run {
            round,
            slot: begun.slot,
            target: worker.target().name.clone(),
            protocol: worker.protocol.clone(),
            workload,
            scale: self.tasks.scale,
            outcome,
            started_us: begun.started_us,
            utc_offset_seconds: begun.utc_offset_seconds,
            seconds: match outcome {
                Outcome::Hung => self.tasks.cap.as_secs_f64(),
                // Not `sum`: of nothing, that is -0.0.
                _ => phases.iter().fold(0.0, |seconds, phase| seconds + phase.seconds),
            },
            phases,
            failure,
            facts: report.facts,
            conditions,
        }
    }

    /// Puts a run on disk. If the database does not take it, it is handed to the person.
    fn keep(&self, run: &Run, target: &Target, audience: &mut dyn Audience) -> Result<StoredRun, RoundError> {
        self.offer(audience, || self.writer.add_run(target, run)).map_err(|source| {
            let run = serde_json::to_string(run).unwrap_or_else(|error| error.to_string());
            RoundError::Unkept { source: Box::new(source), run }
        })
    }

    /// Offers something to the database, again and again while it is locked or full.
    fn offer<T>(
        &self,
        audience: &mut dyn Audience,
        mut store: impl FnMut() -> longhaul_store::Result<T>,
    ) -> longhaul_store::Result<T> {
        let mut attempts = 1;
        loop {
            match store() {
                Err(error) if error.is_retryable() && attempts < self.attempts && !self.is_leaving() => {
                    tracing::warn!(%error, "a run could not be kept yet");
                    audience.not_kept(&error);
                    std::thread::sleep(BETWEEN_ATTEMPTS);
                    attempts += 1;
                }
                result => return result,
            }
        }
    }

    /// Whether there is no time to wait for a database: after a stop, the few attempts of the foreground do not count.
    fn is_leaving(&self) -> bool {
        self.attempts == u32::MAX && (self.stop)().is_some()
    }
}

impl Progress {
    fn new(number: i64, block: &Block) -> Self {
        let made = Made { number, status: RoundStatus::Ok, reason: None, runs: 0, failed: 0 };
        let seed = draw(block.machine_seed, 0x726f_756e, block.turn);
        Self {
            number,
            seed,
            turn: block.turn,
            baseline_every: block.baseline_every,
            unprepared: vec![],
            slot: 0,
            made,
        }
    }
}
