//! The work that has the workers: a round or an examination. It blocks on its own thread and reports events.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender};
use std::time::{Duration, Instant};

use longhaul_measure::worker::{FailureReport, TargetExamination};
use longhaul_model::{FreshnessSample, Hint, MachineSnapshot, Mount, Outcome, TargetName, Timestamp};
use longhaul_nas::NasSettings;
use longhaul_store::{Reader, RoundStatus, Writer};
use longhaul_telemetry::export_pause::ExportPause;

use super::fidelity::FidelityChecks;
use super::round_reporter::RoundReporter;
use crate::checks::freshness::{FreshnessCheck, FreshnessPlan, writer_of_round};
use crate::clock::{Clock, ClockReading};
use crate::event::{ExaminationEnd, RoundEnd, RoundEvent, ServiceEvent};
use crate::mounts::MountChange;
use crate::nas::{NasMonitor, check_nas};
use crate::notifications::{NotifyConfig, check_channels};
use crate::round::{RetryLimit, RoundError, RoundResult, RoundRunner, RoundSpec, RoundTasks};
use crate::round_stop::{RoundStop, RoundStopRequest};
use crate::similar_mounts::have_same_server;
use crate::status::Check;
use crate::worker::{Interruption, RequestOptions, SilentObserver, Worker, WorkerObserver};

/// Time that a worker may take to stop. Short, because the service must exit within five seconds.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time that a round waits for an export request in flight.
const EXPORT_PAUSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of the check of one target.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a worker may take to stop after the timeout of a check.
const CHECK_STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest time between the report that a share is dead and its unmount by the system, in nanoseconds of the continuous clock. The
/// report names no share, so that a later unmount is probably another one.
const FORCED_UNMOUNT_TIMEOUT_NS: i64 = 120_000_000_000;

/// A task in progress, as the service's loop sees it.
pub(super) enum RunningTask {
    /// A round.
    Round(RoundTask),
    /// The checks of `longhaul doctor`.
    Examination(ExaminationTask),
}

/// A round in progress.
pub(super) struct RoundTask {
    /// Request to stop the round.
    pub(super) stop: RoundStopRequest,
    /// Request to give up a run that cannot be stored, made when the service stops.
    service_stop: Interruption,
    /// Planned time of the round's slot. `None`: a user started the round.
    pub(super) scheduled: Option<Timestamp>,
    /// Targets that the round measures.
    pub(super) targets: Vec<TargetName>,
    /// Time of the last sampling step. `None`: there was none yet.
    pub(super) last_sample: Option<Instant>,
    /// Time at which the system last began to unmount a share by force, because its server does not respond. `None`: it did not.
    pub(super) share_died: Option<ClockReading>,
    /// Targets of the runs that failed, and of the run in flight, once for each run.
    failed_or_running: Vec<TargetName>,
    /// Mounts of the targets before the round.
    mounts: BTreeMap<TargetName, Mount>,
    /// Span of the round's slot.
    pub(super) span: tracing::Span,
}

/// An examination in progress.
pub(super) struct ExaminationTask {
    interruption: Interruption,
    /// Channels of the callers that wait for the checks.
    pub(super) replies: Vec<SyncSender<Vec<Check>>>,
    /// State of the machine when the examination started.
    pub(super) snapshot: MachineSnapshot,
}

impl RoundTask {
    /// Returns the request to stop the round because of a mount change. An outage in which a Mac unmounts the share is a failure of the
    /// share, as over NFS, where the mount stays: the run that failed counts. A user who unmounts a share causes no failure. A run that
    /// failed on another share of the same server counts too: a dead NAS takes all its shares with it.
    pub(super) fn stop_for(&self, change: &MountChange, now: &ClockReading) -> RoundStop {
        let (target, kind) = (&change.target, change.kind);
        let is_recent =
            |died: ClockReading| now.continuous_ns - died.continuous_ns <= FORCED_UNMOUNT_TIMEOUT_NS;
        let is_dead = self.failed_or_running.iter().any(|other| self.have_same_server(target, other));
        let is_forced = self.share_died.is_some_and(is_recent) && is_dead;
        if is_forced && kind == "unmount" {
            let reason = format!("mount: `{target}` did not respond, so that macOS unmounted it");
            return RoundStop::CutShort(reason);
        }
        RoundStop::Void(format!("mount: the mount of `{target}` changed during the round ({kind})"))
    }

    fn have_same_server(&self, one: &TargetName, other: &TargetName) -> bool {
        let mounts = self.mounts.get(one).zip(self.mounts.get(other));
        one == other || mounts.is_some_and(|(one, other)| have_same_server(one, other))
    }
}

impl RunningTask {
    /// Records that a run of a round starts.
    pub(super) fn run_started(&mut self, target: &TargetName) {
        if let Self::Round(round) = self {
            round.failed_or_running.push(target.clone());
        }
    }

    /// Records that the run of the round that started last has ended.
    pub(super) fn run_ended(&mut self, outcome: Outcome) {
        if let Self::Round(round) = self
            && !outcome.is_failure()
        {
            round.failed_or_running.pop();
        }
    }

    /// Stops the task because the service stops.
    pub(super) fn stop(&self) {
        match self {
            Self::Round(round) => {
                // First, because the request to stop the round wakes a retry that looks at this one.
                round.service_stop.request();
                let reason = "stopped: the service was stopped during the round";
                round.stop.request(RoundStop::Void(reason.to_owned()));
            }
            Self::Examination(examination) => examination.interruption.request(),
        }
    }
}

/// Runs `work` on a thread of its own, and sends the event that it returns.
fn spawn(events: Sender<ServiceEvent>, work: impl FnOnce() -> ServiceEvent + Send + 'static) {
    std::thread::spawn(move || {
        let end = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(ServiceEvent::TaskPanicked);
        let _ = events.send(end);
    });
}

/// Everything that a round needs.
pub(super) struct RoundJob {
    /// All workers of the service, in the order of the configuration.
    pub(super) workers: Vec<Worker>,
    /// Indices of the workers that the round uses.
    pub(super) chosen: Vec<usize>,
    /// Indices of the workers whose targets the privacy settings refused in the last round.
    pub(super) refused: Vec<usize>,
    /// Mounts of the targets, with the addresses of their servers as far as they are known.
    pub(super) mounts: Vec<(TargetName, Mount)>,
    pub(super) tasks: RoundTasks,
    pub(super) spec: RoundSpec,
    pub(super) writer: Arc<Writer>,
    /// Path of the database.
    pub(super) database: PathBuf,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) export_pause: Arc<ExportPause>,
    pub(super) events: Sender<ServiceEvent>,
    /// The NAS to read before and after each run. `None`: none.
    pub(super) nas: Option<NasSettings>,
    /// Request that is made when the service stops.
    pub(super) service_stop: Interruption,
    /// True if freshness is measured before the runs.
    pub(super) measures_freshness: bool,
    /// Span of the round's slot.
    pub(super) span: tracing::Span,
}

impl RoundJob {
    /// Starts the round on its own thread.
    pub(super) fn start(mut self) -> RoundTask {
        let reason = RoundStop::Void("stopped: the service was stopped during the round".to_owned());
        let stop = RoundStopRequest::on(Interruption::default(), reason);
        let name = |index: &usize| self.workers[*index].target().name.clone();
        let (targets, scheduled) = (self.chosen.iter().map(name).collect(), self.spec.scheduled);
        let mounts = std::mem::take(&mut self.mounts).into_iter().collect();
        let (own_stop, service_stop, span) = (stop.clone(), self.service_stop.clone(), self.span.clone());
        spawn(self.events.clone(), move || ServiceEvent::RoundEnded(self.run(&own_stop)));
        RoundTask {
            stop,
            service_stop,
            scheduled,
            targets,
            last_sample: None,
            share_died: None,
            failed_or_running: vec![],
            mounts,
            span,
        }
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
        let nas = self.nas.as_ref().map(NasMonitor::new);
        let runner = RoundRunner {
            tasks: &self.tasks,
            writer: &self.writer,
            clock: self.clock.as_ref(),
            stop,
            stop_timeout: STOP_TIMEOUT,
            retry_limit: RetryLimit::ServiceStop(&self.service_stop),
            nas: nas.as_ref(),
        };
        let started = runner.begin(&self.spec, workers)?;
        let number = started.number;
        let _span = tracing::info_span!("round", round = number).entered();
        tracing::info!(round = number, targets = workers.len(), "a round starts");
        let mut reporter = RoundReporter { events: &self.events, clock: self.clock.as_ref(), stop };
        let runs = u32::try_from(workers.len() * self.tasks.workloads.len()).unwrap_or(u32::MAX);
        reporter.send(RoundEvent::Started { round: number, runs });
        // Its time is a part of the round's, because the round has begun.
        if self.measures_freshness {
            self.measure_freshness(number, workers, stop);
        }
        let result = runner.run(started, workers, &mut reporter)?;
        if result.status == RoundStatus::Ok {
            let check_time = self.timed(|| self.check_fidelity(workers, &mut reporter));
            if let Err(error) = self.writer.add_check_time(number, check_time) {
                tracing::warn!(
                    round = number,
                    error = error.one_line(),
                    "the time of the checks was not stored"
                );
            }
        }
        Ok(result)
    }

    /// Does something and returns the time that it took, without sleep.
    fn timed(&self, action: impl FnOnce()) -> Duration {
        let began = self.clock.now();
        action();
        let took_ns = self.clock.now().awake_ns - began.awake_ns;
        Duration::from_nanos(took_ns.max(0).cast_unsigned())
    }

    /// Checks what the targets keep, after the runs of a full round.
    fn check_fidelity(&self, workers: &mut [&mut Worker], reporter: &mut RoundReporter<'_>) {
        let checks = FidelityChecks {
            writer: &self.writer,
            reader: Reader::open(&self.database).ok(),
            clock: self.clock.as_ref(),
            interruption: reporter.stop.interruption(),
            operations_per_second: self.tasks.settings.operations_per_second,
        };
        checks.after_round(workers, reporter);
    }

    /// Measures freshness before the runs of a round: a client keeps the listings of few folders (Linux 6.1: 16 of an SMB
    /// share), and after a walk over a large tree these are others, so that the share would show everything at once. Its
    /// failure is no failure of the round.
    fn measure_freshness(&self, round: i64, workers: &mut [&mut Worker], stop: &RoundStopRequest) {
        let Some(writer) = writer_of_round(workers, self.spec.round_index) else { return };
        let check = FreshnessCheck {
            plan: FreshnessPlan::ROUND,
            clock: self.clock.as_ref(),
            interruption: stop.interruption(),
            stop_timeout: STOP_TIMEOUT,
        };
        let in_round = |sample| FreshnessSample { round: Some(round), ..sample };
        let stored = match check.run(workers, writer) {
            Ok(samples) if samples.is_empty() => return,
            Ok(samples) => self.writer.add_freshness(samples.into_iter().map(in_round).collect()),
            Err(report) => {
                let message = report.failure.message;
                return tracing::info!(round, error = message, "freshness was not measured");
            }
        };
        if let Err(error) = stored {
            tracing::warn!(round, error = error.one_line(), "freshness samples were not stored");
        }
    }
}

/// Tests a target that the system's privacy settings refused last time, with a single open instead of one
/// per workload. If they still refuse, the target is unavailable in this round.
fn recheck_privacy_refusal(worker: &mut Worker, interruption: &Interruption) {
    if let Err(report) = worker.create_sandbox(&mut check_options(interruption, &mut SilentObserver))
        && report.failure.is_blocked(report.outcome)
    {
        worker.set_unavailable(Some(report));
    }
}

/// Everything that an examination needs.
pub(super) struct ExaminationJob {
    /// All workers of the service, in the order of the configuration.
    pub(super) workers: Vec<Worker>,
    /// Channels of notifications, which are checked as well.
    pub(super) notify: NotifyConfig,
    /// NAS, which is checked as well.
    pub(super) nas: Option<NasSettings>,
    pub(super) events: Sender<ServiceEvent>,
}

impl ExaminationJob {
    /// Starts the examination on its own thread: of the targets one after the other, each for up to ten seconds, and
    /// then of the channels.
    pub(super) fn start(
        self,
        replies: Vec<SyncSender<Vec<Check>>>,
        snapshot: MachineSnapshot,
    ) -> ExaminationTask {
        let interruption = Interruption::default();
        let own_interruption = interruption.clone();
        let Self { mut workers, notify, nas, events } = self;
        spawn(events, move || {
            let found = workers.iter_mut().map(|worker| examine(worker, &own_interruption)).collect();
            let mut channels = vec![];
            // Both wait for other machines, and cannot be interrupted.
            if !own_interruption.is_requested() {
                channels = check_channels(&notify);
                channels.extend(check_nas(nas.as_ref()));
            }
            ServiceEvent::Examined(ExaminationEnd { workers, found, channels })
        });
        ExaminationTask { interruption, replies, snapshot }
    }
}

fn examine(worker: &mut Worker, interruption: &Interruption) -> Result<TargetExamination, FailureReport> {
    let found = worker.examine(&mut check_options(interruption, &mut SilentObserver));
    worker.shut_down();
    found
}

fn check_options<'a>(
    interruption: &'a Interruption,
    observer: &'a mut dyn WorkerObserver,
) -> RequestOptions<'a> {
    RequestOptions { cap: CHECK_TIMEOUT, stop_timeout: CHECK_STOP_TIMEOUT, interruption, observer }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_model::Protocol;
    use serde_json::json;

    use super::*;

    fn name(text: &str) -> TargetName {
        text.parse().unwrap()
    }

    /// Returns the reading of the clocks this many seconds after the start.
    fn after(seconds: i64) -> ClockReading {
        ClockReading { continuous_ns: seconds * 1_000_000_000, ..ClockReading::default() }
    }

    /// Returns whether the unmount of a share by the system cuts a round short at this second. A share died at second 100, a run of
    /// `smb` failed, one of `nfs` succeeded, and one of `afp` is in flight.
    fn is_cut_short(target: &str, second: i64) -> bool {
        let stopped = || RoundStop::Void("stopped".to_owned());
        let mount = |(target, source): (&str, &str)| {
            (name(target), Mount::new(Path::new("/m").join(target), source, Protocol::Smb(None)))
        };
        let sources = [("smb", "//nas/a"), ("photos", "//nas/b"), ("nfs", "//third/a"), ("afp", "//other/a")];
        let mut task = RunningTask::Round(RoundTask {
            stop: RoundStopRequest::on(Interruption::default(), stopped()),
            service_stop: Interruption::default(),
            scheduled: None,
            targets: vec![name("smb"), name("nfs"), name("afp")],
            last_sample: None,
            share_died: Some(after(100)),
            failed_or_running: vec![],
            mounts: sources.map(mount).into(),
            span: tracing::Span::none(),
        });
        for (target, outcome) in [("smb", Outcome::Error), ("nfs", Outcome::Ok)] {
            task.run_started(&name(target));
            task.run_ended(outcome);
        }
        task.run_started(&name("afp"));
        let RunningTask::Round(round) = task else { return false };
        let change = MountChange { target: name(target), kind: "unmount", detail: json!({}) };
        matches!(round.stop_for(&change, &after(second)), RoundStop::CutShort(_))
    }

    #[test]
    fn dead_share_explains_an_unmount_for_two_minutes_only() {
        assert!(is_cut_short("smb", 101) && is_cut_short("smb", 220));
        assert!(!is_cut_short("smb", 221), "it was another share");
    }

    #[test]
    fn dead_share_explains_no_unmount_of_a_healthy_one() {
        assert!(!is_cut_short("nfs", 101), "its run succeeded");
        assert!(is_cut_short("afp", 101), "its run is in flight");
    }

    #[test]
    fn failure_explains_the_unmount_of_another_share_of_its_server() {
        assert!(is_cut_short("photos", 101));
        assert!(!is_cut_short("photos", 221) && !is_cut_short("webdav", 101), "its server is not known");
    }
}
