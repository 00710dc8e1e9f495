//! The work that has the workers: a round or an examination. It blocks on its own thread and reports events.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use longhaul_measure::worker::{FailureReport, TargetExamination};
use longhaul_model::{MachineSnapshot, Progress, TargetName, Timestamp};
use longhaul_store::{Reader, Writer};
use longhaul_telemetry::export_pause::ExportPause;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use super::fidelity::FidelityChecks;
use super::round_reporter::RoundReporter;
use crate::clock::Clock;
use crate::event::{ExaminationEnd, RoundEnd, RoundEvent, ServiceEvent};
use crate::notifications::{NotifyConfig, check_channels};
use crate::round::{RoundError, RoundResult, RoundRunner, RoundSpec, RoundTasks, StartedRound};
use crate::round_stop::{RoundStop, RoundStopRequest};
use crate::status::Check;
use crate::worker::{Interruption, RequestOptions, Worker, WorkerObserver};

/// Time that a worker may take to stop. Short, because the service must exit within five seconds.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time that a round waits for an export request in flight.
const EXPORT_PAUSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of the check of one target.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a worker may take to stop after the timeout of a check.
const CHECK_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A task in progress, as the service's loop sees it.
pub(super) enum Task {
    /// A round.
    Round(RoundTask),
    /// The checks of `longhaul doctor`.
    Examination(ExaminationTask),
}

/// A round in progress.
pub(super) struct RoundTask {
    thread: JoinHandle<RoundEnd>,
    /// Request to stop the round.
    pub(super) stop: RoundStopRequest,
    /// Planned time of the round's slot. `None`: a user started the round.
    pub(super) scheduled: Option<Timestamp>,
    /// Targets that the round measures.
    pub(super) targets: Vec<TargetName>,
    /// Time of the last sampling step. `None`: there was none yet.
    pub(super) last_sample: Option<Instant>,
    /// Span of the round's slot.
    pub(super) span: tracing::Span,
}

/// An examination in progress.
pub(super) struct ExaminationTask {
    thread: JoinHandle<ExaminationEnd>,
    interruption: Interruption,
    /// Channel for the checks.
    pub(super) reply: SyncSender<Vec<Check>>,
    /// State of the machine when the examination started.
    pub(super) snapshot: MachineSnapshot,
}

impl Task {
    /// Stops the task because the service stops.
    pub(super) fn stop(&self) {
        match self {
            Self::Round(round) => {
                let reason = "stopped: the service was stopped during the round";
                round.stop.request(RoundStop::Void(reason.to_owned()));
            }
            Self::Examination(examination) => examination.interruption.request(),
        }
    }

    /// Waits for the end of the task. If the task panicked, this panics as well.
    pub(super) async fn ended(&mut self) -> ServiceEvent {
        match self {
            Self::Round(round) => ServiceEvent::RoundEnded(joined((&mut round.thread).await)),
            Self::Examination(task) => ServiceEvent::Examined(joined((&mut task.thread).await)),
        }
    }
}

fn joined<T>(result: Result<T, JoinError>) -> T {
    result.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

/// Everything that a round needs.
pub(super) struct RoundJob {
    /// All workers of the service, in the order of the configuration.
    pub(super) workers: Vec<Worker>,
    /// Indices of the workers that the round uses.
    pub(super) chosen: Vec<usize>,
    /// Indices of the workers whose targets the privacy settings refused in the last round.
    pub(super) refused: Vec<usize>,
    pub(super) tasks: RoundTasks,
    pub(super) spec: RoundSpec,
    pub(super) writer: Arc<Writer>,
    /// Path of the database.
    pub(super) database: PathBuf,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) export_pause: Arc<ExportPause>,
    pub(super) events: UnboundedSender<ServiceEvent>,
    /// Span of the round's slot.
    pub(super) span: tracing::Span,
}

impl RoundJob {
    /// Starts the round on its own thread.
    pub(super) fn start(self) -> RoundTask {
        let reason = RoundStop::Void("stopped: the service was stopped during the round".to_owned());
        let stop = RoundStopRequest::on(Interruption::default(), reason);
        let name = |index: &usize| self.workers[*index].target().name.clone();
        let (targets, scheduled) = (self.chosen.iter().map(name).collect(), self.spec.scheduled);
        let (own_stop, span) = (stop.clone(), self.span.clone());
        let thread = spawn_blocking(move || self.run(&own_stop));
        RoundTask { thread, stop, scheduled, targets, last_sample: None, span }
    }

    fn run(mut self, stop: &RoundStopRequest) -> RoundEnd {
        let span = self.span.clone();
        let _slot = span.enter();
        let mut workers = std::mem::take(&mut self.workers);
        for index in &self.refused {
            recheck_privacy_refusal(&mut workers[*index], stop.interruption());
        }
        let is_chosen = |(index, worker)| self.chosen.contains(&index).then_some(worker);
        let mut chosen: Vec<&mut Worker> = workers.iter_mut().enumerate().filter_map(is_chosen).collect();
        let result = self.run_with(stop, &mut chosen);
        RoundEnd { workers, result }
    }

    fn run_with(
        &self,
        stop: &RoundStopRequest,
        workers: &mut [&mut Worker],
    ) -> Result<RoundResult, RoundError> {
        let _pause = self.export_pause.pause(EXPORT_PAUSE_TIMEOUT);
        let runner = RoundRunner {
            tasks: &self.tasks,
            writer: &self.writer,
            clock: self.clock.as_ref(),
            stop,
            stop_timeout: STOP_TIMEOUT,
            store_attempts: u32::MAX,
        };
        let number = runner.begin(&self.spec, workers)?;
        let _span = tracing::info_span!("round", round = number).entered();
        tracing::info!(round = number, targets = workers.len(), "a round starts");
        let mut reporter = RoundReporter { events: &self.events, clock: self.clock.as_ref(), stop };
        let runs = u32::try_from(workers.len() * self.tasks.workloads.len()).unwrap_or(u32::MAX);
        reporter.send(RoundEvent::Started { round: number, runs });
        let started = StartedRound { number, spec: &self.spec };
        let result = runner.run(started, workers, &mut reporter, &mut || self.snapshot())?;
        let checks = FidelityChecks {
            writer: &self.writer,
            reader: Reader::open(&self.database).ok(),
            clock: self.clock.as_ref(),
            interruption: stop.interruption(),
            operations_per_second: self.tasks.settings.operations_per_second,
        };
        checks.after_round(&result, workers, &mut reporter);
        Ok(result)
    }

    /// Returns the state of the machine after the runs, which the service's loop knows.
    fn snapshot(&self) -> Option<MachineSnapshot> {
        let (reply, snapshot) = sync_channel(1);
        self.events.send(ServiceEvent::Round(RoundEvent::RunsEnded(reply))).ok()?;
        snapshot.recv().ok()
    }
}

/// Tests a target that the system's privacy settings refused last time, with a single open instead of one
/// per workload. If they still refuse, the target is unavailable in this round.
fn recheck_privacy_refusal(worker: &mut Worker, interruption: &Interruption) {
    if let Err(report) = worker.create_sandbox(&mut check_options(interruption, &mut NoObserver))
        && report.failure.is_blocked(report.outcome)
    {
        worker.set_unavailable(Some(report));
    }
}

/// Examines the targets of `workers` one after the other on another thread, each for up to ten seconds, and then the
/// channels of `notify`.
pub(super) fn start_examination(
    mut workers: Vec<Worker>,
    notify: NotifyConfig,
    reply: SyncSender<Vec<Check>>,
    snapshot: MachineSnapshot,
) -> ExaminationTask {
    let interruption = Interruption::default();
    let own_interruption = interruption.clone();
    let thread = spawn_blocking(move || {
        let found = workers.iter_mut().map(|worker| examine(worker, &own_interruption)).collect();
        ExaminationEnd { workers, found, channels: check_channels(&notify) }
    });
    ExaminationTask { thread, interruption, reply, snapshot }
}

fn examine(worker: &mut Worker, interruption: &Interruption) -> Result<TargetExamination, FailureReport> {
    let found = worker.examine(&mut check_options(interruption, &mut NoObserver));
    worker.shut_down();
    found
}

fn check_options<'a>(
    interruption: &'a Interruption,
    observer: &'a mut dyn WorkerObserver,
) -> RequestOptions<'a> {
    RequestOptions { cap: CHECK_TIMEOUT, stop_timeout: CHECK_STOP_TIMEOUT, interruption, observer }
}

/// An observer that ignores all progress.
struct NoObserver;

impl WorkerObserver for NoObserver {
    fn progress(&mut self, _: &TargetName, _: &Progress) {}
    fn phase_started(&mut self, _: &TargetName, _: &str) {}
}
