//! Runs one round: prepares every target, then runs all workloads in the drawn order,
//! storing each run before it is reported.

use std::time::Duration;

use longhaul_measure::platform::{self, KeepAwake};
use longhaul_measure::worker::Assignment;
use longhaul_measure::workloads::Settings;
use longhaul_model::draw::draw;
use longhaul_model::{MachineSnapshot, Mismatch, NasProblem, NasUse, Outcome, Run};
use longhaul_model::{SLEPT_NS, Scale, Target, Timestamp};
use longhaul_store::{NewRound, PlannedRun, Reader, RoundEnd, RoundStatus, StoredRound, StoredRun, Writer};

use crate::checks::elsewhere::ReadElsewhere;
use crate::clock::Clock;
use crate::design::run_order;
use crate::host::{memory_available, processors};
use crate::nas::{NasMonitor, store_use};
pub use crate::round_error::RoundError;
use crate::round_stop::{RoundStop, RoundStopRequest};
use crate::schedule::slice_rotation;
pub use crate::store_retry::RetryLimit;
use crate::store_retry::{MAX_DELAY, StoreRetry};
use crate::worker::{RequestOptions, RunResult, Worker, WorkerObserver};

/// The workloads of a round and their settings.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTasks {
    /// Names of the workloads to run.
    pub workloads: Vec<String>,
    /// Size of the test data.
    pub scale: Scale,
    /// Settings shared by all workloads.
    pub settings: Settings,
    /// Longest duration of a run, after which it is stored as hung.
    pub cap: Duration,
}

/// Parameters of a round: its place in the experimental design, its planned time, the machine before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoundSpec {
    /// Seed of this machine, from which all random draws follow.
    pub machine_seed: u64,
    /// Number of rounds started before this one. The random order of the runs depends on it.
    pub round_index: u64,
    /// Number of rounds from one measurement of the baselines to the next. 0 or 1: every round.
    pub baseline_interval: u64,
    /// Planned time of the round's slot. `None`: a user started the round.
    pub scheduled: Option<Timestamp>,
    /// State of the machine just before the round.
    pub before: Option<MachineSnapshot>,
}

/// Receives the progress of a round.
pub trait RoundObserver: WorkerObserver {
    /// Called when a run starts.
    fn run_started(&mut self, target: &Target, workload: &str);
    /// Called when a run has ended and is stored.
    fn run_ended(&mut self, stored: &StoredRun);
    /// Called when a corpus was created or completed, with the number of bytes written.
    fn corpus_prepared(&mut self, _target: &Target, _bytes: u64) {}
    /// Called when a run could not be stored and will be tried again.
    fn run_not_stored(&mut self, _error: &longhaul_store::Error) {}
    /// Called when a round in the foreground starts, with its number in the database, its index from 0, and the total
    /// number of rounds.
    fn round_started(&mut self, _number: i64, _index: u32, _rounds: u32) {}
    /// Returns whether another round in the foreground may start. Called before each with its index from 0.
    fn may_continue(&mut self, _index: u32) -> bool {
        true
    }
}

/// Stores the end of rounds that were left open: a crash or a database error ended them, at the end of their last run as far as is
/// known. Returns those that were open.
///
/// # Errors
///
/// If the database cannot be read, or refuses the end of a round.
pub fn close_open_rounds(
    reader: &Reader,
    writer: &Writer,
    reason: &str,
) -> longhaul_store::Result<Vec<StoredRound>> {
    let open = reader.open_rounds()?;
    for round in &open {
        let (status, reason) = (RoundStatus::CutShort, Some(reason.to_owned()));
        let ended = reader.last_run_end(round.number)?.unwrap_or(round.round.started);
        writer.end_round(round.number, RoundEnd { status, reason, ended })?;
    }
    Ok(open)
}

/// Runs rounds with a fixed set of workloads, a database and a clock.
pub struct RoundRunner<'a> {
    /// The workloads to run.
    pub tasks: &'a RoundTasks,
    /// The database writer.
    pub writer: &'a Writer,
    /// Source of the current time.
    pub clock: &'a dyn Clock,
    /// Request to stop the round early.
    pub stop: &'a RoundStopRequest,
    /// Time that a worker may take to stop before it is abandoned.
    pub stop_timeout: Duration,
    /// End of the attempts to store a run in a locked or full database.
    pub retry_limit: RetryLimit<'a>,
    /// The NAS to read before and after each run. `None`: none is named.
    pub nas: Option<&'a NasMonitor>,
}

/// The result of a completed round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundResult {
    /// Number of the round in the database.
    pub number: i64,
    /// Outcome of the round.
    pub status: RoundStatus,
    /// Reason for the outcome. `None` if the outcome is ok.
    pub reason: Option<String>,
    /// Number of stored runs.
    pub runs: u32,
    /// Number of stored runs that failed. Runs stopped with the round do not count.
    pub failed_runs: u32,
}

/// A round that was stored as started.
#[derive(Clone, Copy)]
pub struct StartedRound<'a> {
    /// Number of the round in the database.
    pub number: i64,
    /// Parameters of the round.
    pub spec: &'a RoundSpec,
    /// Reading of [`ClockReading::asleep_ns`] at its start.
    asleep_ns: i64,
}

/// A workload and a target of a round, by their indices.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PlannedCell {
    workload: usize,
    target: usize,
}

/// State of a round in progress.
struct RoundProgress<'s> {
    spec: &'s RoundSpec,
    seed: u64,
    /// Results to store for workloads that could not be prepared.
    failed_preparations: Vec<(PlannedCell, RunResult)>,
    /// Keeps the machine awake until it is dropped.
    awake: Option<KeepAwake>,
    /// True if a run met its target.
    has_measured: bool,
    result: RoundResult,
}

/// A run that is to be stored, with the wrong ranges of files that it found and the use of the NAS meanwhile.
struct FinishedRun {
    run: Run,
    mismatches: Vec<Mismatch>,
    /// `None`: no NAS is named, or the target is not on it.
    nas: Option<Result<NasUse, NasProblem>>,
}

/// Facts about a run that are taken before it starts.
struct RunStart {
    round: i64,
    slot: u32,
    started: Timestamp,
    utc_offset_seconds: i32,
    processors: Option<u32>,
    memory_available: Option<u64>,
    kept_awake: bool,
}

impl RoundRunner<'_> {
    /// Stores the start of a round.
    ///
    /// # Errors
    ///
    /// If the database refuses the round.
    pub fn begin<'s>(
        &self,
        spec: &'s RoundSpec,
        workers: &[&mut Worker],
    ) -> Result<StartedRound<'s>, RoundError> {
        let asleep_ns = self.clock.now().asleep_ns();
        let number = self.writer.begin_round(self.new_round(spec, workers))?;
        Ok(StartedRound { number, spec, asleep_ns })
    }

    /// Prepares and runs all workloads of a started round, and stores its end.
    ///
    /// # Errors
    ///
    /// If a run or the end of the round cannot be stored.
    pub fn run(
        &self,
        started: StartedRound<'_>,
        workers: &mut [&mut Worker],
        observer: &mut dyn RoundObserver,
    ) -> Result<RoundResult, RoundError> {
        let StartedRound { number, spec, asleep_ns } = started;
        let mut progress = RoundProgress::new(number, spec);
        progress.awake = platform::keep_awake();
        self.prepare(&mut progress, workers, observer);
        self.run_all(&mut progress, workers, observer)?;
        let slept_ns = self.clock.now().asleep_ns() - asleep_ns;
        let (status, reason) = match self.stop.reason() {
            // Its reason is what came first: while a round waits for the database, the machine may sleep.
            Some(stop @ RoundStop::Void(_)) => stop.into_status(),
            _ if slept_ns > SLEPT_NS.cast_signed() => {
                let seconds = slept_ns / 1_000_000_000;
                (RoundStatus::Void, Some(format!("slept: the machine slept for {seconds} s during it")))
            }
            Some(stop) => stop.into_status(),
            None if progress.has_no_target() => {
                (RoundStatus::Void, Some("no-target: no target could be used".to_owned()))
            }
            None => (RoundStatus::Ok, None),
        };
        let end = RoundEnd { status, reason, ended: self.clock.now().wall };
        self.store_with_retry(&mut progress, observer, || self.writer.end_round(number, end.clone()))?;
        Ok(RoundResult { status, reason: end.reason, ..progress.result })
    }

    fn new_round(&self, spec: &RoundSpec, workers: &[&mut Worker]) -> NewRound {
        let now = self.clock.now();
        let targets = workers.iter().map(|worker| &worker.target().name);
        NewRound {
            started: now.wall,
            utc_offset_seconds: now.utc_offset_seconds,
            seed: spec.machine_seed,
            scale: self.tasks.scale,
            planned: PlannedRun::each(&self.tasks.workloads, targets),
            scheduled: spec.scheduled,
            before: spec.before.clone(),
        }
    }

    fn request_options<'w>(&'w self, observer: &'w mut dyn RoundObserver) -> RequestOptions<'w> {
        RequestOptions {
            cap: self.tasks.cap,
            stop_timeout: self.stop_timeout,
            interruption: self.stop.interruption(),
            observer,
        }
    }

    /// Prepares all workloads before the first run, so that the timed runs follow each other within minutes.
    fn prepare(
        &self,
        progress: &mut RoundProgress<'_>,
        workers: &mut [&mut Worker],
        observer: &mut dyn RoundObserver,
    ) {
        for (target, worker) in workers.iter_mut().enumerate() {
            for workload in 0..self.tasks.workloads.len() {
                if self.stop.reason().is_some() {
                    return;
                }
                let assignment = self.build_assignment(workload, worker, progress);
                let (target_name, workload_name) = (&worker.target().name, &assignment.workload);
                let _span = tracing::info_span!("prepare", %target_name, workload = workload_name).entered();
                match worker.prepare(&assignment, &mut self.request_options(observer)) {
                    Ok(0) => {}
                    Ok(bytes) => observer.corpus_prepared(worker.target(), bytes),
                    Err(finished) => {
                        let cell = PlannedCell { workload, target };
                        progress.failed_preparations.push((cell, *finished));
                    }
                }
            }
        }
    }

    /// Runs every pair of workload and target in the drawn order, until all are done or the round is to stop.
    fn run_all(
        &self,
        progress: &mut RoundProgress<'_>,
        workers: &mut [&mut Worker],
        observer: &mut dyn RoundObserver,
    ) -> Result<(), RoundError> {
        let RoundSpec { machine_seed, round_index, .. } = *progress.spec;
        let order = run_order(machine_seed, round_index, self.tasks.workloads.len(), workers.len());
        let cells = order.into_iter().flat_map(|(workload, targets)| {
            targets.into_iter().map(move |target| PlannedCell { workload, target })
        });
        for cell in cells {
            if self.stop.reason().is_some() {
                break;
            }
            let mut finished = self.run_one(cell, workers[cell.target], progress, observer);
            let elsewhere =
                ReadElsewhere { interruption: self.stop.interruption(), stop_timeout: self.stop_timeout };
            elsewhere.run(workers, cell.target, &mut finished.mismatches);
            let target = workers[cell.target].target();
            let stored = self.store_run(&finished, target, progress, observer)?;
            store_use(self.writer, stored.number, finished.nas);
            let run = &stored.run;
            let stopped = run.outcome == Outcome::Void && self.stop.reason().is_some();
            progress.result.runs += 1;
            progress.has_measured |= run.outcome != Outcome::Unavailable;
            progress.result.failed_runs += u32::from(run.outcome != Outcome::Ok && !stopped);
            observer.run_ended(&stored);
        }
        Ok(())
    }

    fn build_assignment(&self, workload: usize, worker: &Worker, progress: &RoundProgress<'_>) -> Assignment {
        let RoundSpec { round_index, baseline_interval, .. } = *progress.spec;
        Assignment {
            workload: self.tasks.workloads[workload].clone(),
            scale: self.tasks.scale,
            settings: self.tasks.settings.clone(),
            rotation: slice_rotation(worker.target().role, round_index, baseline_interval),
            seed: progress.seed,
        }
    }

    /// Runs one workload on one target.
    fn run_one(
        &self,
        cell: PlannedCell,
        worker: &mut Worker,
        progress: &mut RoundProgress<'_>,
        observer: &mut dyn RoundObserver,
    ) -> FinishedRun {
        let assignment = self.build_assignment(cell.workload, worker, progress);
        let nas_before = self.nas.and_then(|nas| nas.read_before(worker.target()));
        let now = self.clock.now();
        let start = RunStart {
            round: progress.result.number,
            slot: progress.result.runs,
            started: now.wall,
            utc_offset_seconds: now.utc_offset_seconds,
            processors: processors(),
            memory_available: memory_available(),
            kept_awake: progress.awake.is_some(),
        };
        let target_name = &worker.target().name;
        let _span = tracing::info_span!("run", %target_name, workload = assignment.workload).entered();
        observer.run_started(worker.target(), &assignment.workload);
        // If the preparation failed, its failure is stored in place of the run.
        let failed = progress.failed_preparations.iter().position(|(failed, _)| *failed == cell);
        let mut finished = match failed {
            Some(place) => progress.failed_preparations.swap_remove(place).1,
            None => worker.run(&assignment, &mut self.request_options(observer)),
        };
        let nas = self.nas.zip(nas_before).map(|(nas, before)| nas.use_since(before));
        let mismatches = std::mem::take(&mut finished.report.mismatches);
        FinishedRun { run: self.build_run(finished, assignment.workload, worker, start), mismatches, nas }
    }

    /// Builds the stored form of a run from the worker's report and the facts taken before it.
    fn build_run(&self, finished: RunResult, workload: String, worker: &Worker, start: RunStart) -> Run {
        let RunResult { phases, report } = finished;
        let (outcome, failure) = match report.failure {
            Some(report) => (report.outcome, Some(report.failure)),
            None => (Outcome::Ok, None),
        };
        let mut conditions = report.conditions;
        conditions.processors = start.processors;
        conditions.memory_available = start.memory_available;
        conditions.kept_awake = start.kept_awake;
        if conditions.negotiated.is_empty() {
            conditions.negotiated = worker.negotiated.clone();
        }
        conditions.negotiated.extend(self.tasks.settings.options());
        Run {
            round: start.round,
            slot: start.slot,
            target: worker.target().name.clone(),
            protocol: worker.protocol.clone(),
            workload,
            scale: self.tasks.scale,
            outcome,
            started_us: start.started,
            utc_offset_seconds: start.utc_offset_seconds,
            seconds: match outcome {
                Outcome::Hung => self.tasks.cap.as_secs_f64(),
                // Not `sum`, which returns -0.0 for an empty list.
                _ => phases.iter().fold(0.0, |seconds, phase| seconds + phase.seconds),
            },
            phases,
            failure,
            facts: report.facts,
            conditions,
        }
    }

    /// Stores a run. If the database refuses it, the error contains the run as JSON.
    fn store_run(
        &self,
        finished: &FinishedRun,
        target: &Target,
        progress: &mut RoundProgress<'_>,
        observer: &mut dyn RoundObserver,
    ) -> Result<StoredRun, RoundError> {
        let FinishedRun { run, mismatches, .. } = finished;
        let store = || self.writer.add_run(target, run, mismatches);
        self.store_with_retry(progress, observer, store).map_err(|source| {
            let run = serde_json::to_string(run).unwrap_or_else(|error| error.to_string());
            RoundError::NotStored { source: Box::new(source), run }
        })
    }

    /// Stores something. The machine may sleep once it takes so long that the round is void: a disk can stay full for days.
    fn store_with_retry<T>(
        &self,
        progress: &mut RoundProgress<'_>,
        observer: &mut dyn RoundObserver,
        store: impl FnMut() -> longhaul_store::Result<T>,
    ) -> longhaul_store::Result<T> {
        let retry = StoreRetry { limit: self.retry_limit, clock: self.clock, stop: self.stop };
        retry.run(store, |error, waited| {
            if waited > MAX_DELAY {
                progress.awake = None;
            }
            observer.run_not_stored(error);
        })
    }
}

impl<'s> RoundProgress<'s> {
    fn new(number: i64, spec: &'s RoundSpec) -> Self {
        let result = RoundResult { number, status: RoundStatus::Ok, reason: None, runs: 0, failed_runs: 0 };
        // 0x726f_756e is "roun" in ASCII: it separates these draws from others with the same seed.
        let seed = draw(spec.machine_seed, 0x726f_756e, spec.round_index);
        Self { spec, seed, failed_preparations: vec![], awake: None, has_measured: false, result }
    }

    /// Returns whether all targets were unavailable.
    fn has_no_target(&self) -> bool {
        self.result.runs > 0 && !self.has_measured
    }
}
