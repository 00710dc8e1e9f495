//! Shared state between the service's loop and all other threads: commands go in, status comes out. No call blocks,
//! except that a round's start waits for an export request in flight.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use longhaul_measure::platform;
use longhaul_measure::recorder::Recorder;
use longhaul_model::status::ExportStatus;
use longhaul_model::{Progress, Stall, TargetName, Timestamp};
use longhaul_telemetry::export_pause::ExportPause;
use parking_lot::Mutex;

use crate::command::Command;
use crate::event::{EventChannel, ServiceEvent};
use crate::status::{
    FleetExportStatus, LiveOperation, LiveRunStatus, LiveStatus, NotifyStatus, Problem, State, Status,
    TargetState,
};

/// Number of calls from which the 99th percentile is shown.
const MIN_CALLS_FOR_P99: u64 = 100;
/// Age of the last heartbeat, in seconds, from which the service's thread counts as stuck. It sends one at least once a minute.
const MAX_SILENCE_SECONDS: i64 = 150;
/// Time in seconds after which an operation in flight is shown as hung. Its run may still end well.
const HUNG_AFTER_SECONDS: f64 = 10.0;

/// State of the round in progress. Cheap to copy: values that need computing are read from the recorder later.
#[derive(Clone)]
struct LiveRound {
    round: i64,
    runs: (u32, u32),
    run: Option<LiveRun>,
}

#[derive(Clone)]
struct LiveRun {
    target: TargetName,
    workload: Option<String>,
    phase: Option<String>,
    progress: Option<Progress>,
    started: Instant,
    phase_started: Instant,
    recorder: Option<Arc<Recorder>>,
}

/// Shared state of the service: the channel of its events, the published status, problems and the round in progress.
#[derive(Default)]
pub struct ServiceHandle {
    /// Pauses exports to a collector during a round.
    pub export_pause: Arc<ExportPause>,
    events: EventChannel,
    is_stopping: AtomicBool,
    status: Mutex<Option<Status>>,
    problems: Mutex<BTreeMap<String, Problem>>,
    log_level: Mutex<String>,
    telemetry: Mutex<ExportStatus>,
    notify: Mutex<NotifyStatus>,
    fleet_export: Mutex<Option<FleetExportStatus>>,
    live_round: Mutex<Option<LiveRound>>,
    stalls: Mutex<Vec<Stall>>,
    heartbeat_ns: AtomicI64,
}

impl ServiceHandle {
    /// Gives a command to the service.
    pub fn send(&self, command: Command) {
        if matches!(command, Command::Stop) {
            self.is_stopping.store(true, Ordering::Relaxed);
        }
        self.events.send(ServiceEvent::Command(command));
    }

    /// Tells the service that the mount table has changed.
    pub fn report_mount_change(&self) {
        self.events.send(ServiceEvent::MountsChanged);
    }

    /// Tells the service that the system unmounts a share by force, because its server does not respond.
    pub fn report_dead_share(&self) {
        self.events.send(ServiceEvent::ShareDied);
    }

    /// Returns the next command that no service has received, for callers that answer in a service's place.
    pub fn next_command(&self) -> Option<Command> {
        std::iter::from_fn(|| self.events.try_receive()).find_map(|event| match event {
            ServiceEvent::Command(command) => Some(command),
            ServiceEvent::MountsChanged
            | ServiceEvent::ShareDied
            | ServiceEvent::Round(_)
            | ServiceEvent::RoundEnded(_)
            | ServiceEvent::Examined(_)
            | ServiceEvent::TaskPanicked(_) => None,
        })
    }

    /// Returns the channel of the service's events.
    pub(crate) fn events(&self) -> &EventChannel {
        &self.events
    }

    /// Returns whether the service was told to stop.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Returns the last published status with the current problems, stalls and round.
    /// `None`: no status was published yet.
    pub fn status(&self) -> Option<Status> {
        let mut status = self.status.lock().clone()?;
        status.problems = self.problems.lock().values().cloned().collect();
        status.log_level = self.log_level.lock().clone();
        status.telemetry = self.telemetry.lock().clone();
        status.notify = self.notify.lock().clone();
        status.fleet_export = self.fleet_export.lock().clone();
        status.stalls = self.stalls.lock().clone();
        self.add_live_round(&mut status);
        status.now_us = platform::wall_clock();
        Some(status)
    }

    /// Adds the round in progress to a status that was published before it. Reads only the operation in flight
    /// from the recorder: its other data is spread over hundreds of pages, and every page
    /// touched for the first time costs time and memory.
    fn add_live_round(&self, status: &mut Status) {
        let Some(live) = self.live_round() else { return };
        let is_free = !matches!(status.state, State::Stopping);
        status.state = if is_free { State::Measuring } else { status.state };
        for target in &mut status.targets {
            if let TargetState::Waiting { reason, until_us } = &mut target.state {
                (*reason, *until_us) = ("the round in progress".to_owned(), None);
            }
        }
        let Some(run) = live.run else { return };
        for target in status.targets.iter_mut().filter(|target| target.name == run.target) {
            let workload = run.workload.clone().unwrap_or_else(|| "preparation".to_owned());
            target.state = match run.in_flight() {
                Some((operation, seconds)) if seconds > HUNG_AFTER_SECONDS => TargetState::Hung {
                    operation: Some(operation),
                    since_us: platform::wall_clock() - Duration::from_micros((seconds * 1e6) as u64),
                },
                _ => TargetState::Measuring { workload },
            };
        }
    }

    /// Publishes a new status.
    pub fn publish(&self, status: Status) {
        *self.status.lock() = Some(status);
    }

    /// Sets the log level that the status shows.
    pub fn set_log_level(&self, level: &str) {
        level.clone_into(&mut self.log_level.lock());
    }

    /// Sets the state of the telemetry export that the status shows.
    pub fn set_telemetry(&self, status: ExportStatus) {
        *self.telemetry.lock() = status;
    }

    /// Sets the state of the notifications that the status shows.
    pub fn set_notify(&self, status: NotifyStatus) {
        *self.notify.lock() = status;
    }

    /// Sets the state of the exports into a collection that the status shows.
    pub fn set_fleet_export(&self, status: Option<FleetExportStatus>) {
        *self.fleet_export.lock() = status;
    }

    /// Changes the published status. Does nothing before the first one.
    pub fn update_status(&self, change: impl FnOnce(&mut Status)) {
        if let Some(status) = self.status.lock().as_mut() {
            change(status);
        }
    }

    /// Adds or updates a problem. An existing problem keeps its start time.
    pub fn raise_problem(&self, code: &str, text: impl Into<String>, now: Timestamp) {
        let text = text.into();
        let is_new = self.add_problem(Problem { code: code.to_owned(), text: text.clone(), since_us: now });
        // Logged after the lock is released: a log on a slow disk would block readers of the status.
        if is_new {
            tracing::warn!(problem = code, text, "problem");
        }
    }

    /// Returns what adds a problem of a part of longhaul that runs beside the service.
    pub fn problem_reporter(self: &Arc<Self>, part: &'static str) -> impl FnOnce(String) + Send + 'static {
        let handle = Arc::clone(self);
        move |text| handle.raise_problem(part, format!("{part}: {text}"), platform::wall_clock())
    }

    /// Adds a problem. Returns true if its code is new or its text has changed.
    fn add_problem(&self, mut problem: Problem) -> bool {
        let mut problems = self.problems.lock();
        let known = problems.get(&problem.code);
        problem.since_us = known.map_or(problem.since_us, |known| known.since_us);
        let is_new = known.is_none_or(|known| known.text != problem.text);
        problems.insert(problem.code.clone(), problem);
        is_new
    }

    /// Removes a problem that no longer exists.
    pub fn clear_problem(&self, code: &str) {
        let removed = self.problems.lock().remove(code);
        if removed.is_some() {
            tracing::info!(problem = code, "problem solved");
        }
    }

    /// Sets the ongoing stalls that the status shows.
    pub fn set_stalls(&self, stalls: Vec<Stall>) {
        *self.stalls.lock() = stalls;
    }

    /// Records that the service's thread is alive.
    pub fn heartbeat(&self) {
        self.heartbeat_ns.store(platform::monotonic_ns().cast_signed(), Ordering::Relaxed);
    }

    /// Returns whether the service's thread has sent a heartbeat in the last 150 seconds. True before the first heartbeat.
    pub fn is_alive(&self) -> bool {
        let beat_ns = self.heartbeat_ns.load(Ordering::Relaxed);
        let silence_ns = platform::monotonic_ns().cast_signed() - beat_ns;
        beat_ns == 0 || silence_ns < MAX_SILENCE_SECONDS * 1_000_000_000
    }

    /// Sets the number of the round in progress and its total number of runs.
    pub fn begin_round(&self, round: i64, runs: u32) {
        *self.live_round.lock() = Some(LiveRound { round, runs: (0, runs), run: None });
    }

    /// Records that no round is in progress.
    pub fn end_round(&self) {
        *self.live_round.lock() = None;
    }

    /// Counts the current run as done. Returns the number of runs that are left in the round.
    pub fn end_run(&self) -> u32 {
        let mut live = self.live_round.lock();
        let Some(live) = live.as_mut() else { return 0 };
        live.runs.0 += 1;
        live.run = None;
        live.runs.1.saturating_sub(live.runs.0)
    }

    /// Sets the current run.
    pub fn set_run(&self, target: &TargetName, workload: &str) {
        self.update_run(target, |run| {
            (run.workload, run.phase, run.progress) = (Some(workload.to_owned()), None, None);
            (run.started, run.phase_started) = (Instant::now(), Instant::now());
        });
    }

    /// Sets the phase of the current run.
    pub fn set_phase(&self, target: &TargetName, name: &str) {
        self.update_run(target, |run| {
            run.phase = Some(name.to_owned());
            run.phase_started = Instant::now();
        });
    }

    /// Sets the progress of the current preparation.
    pub fn set_progress(&self, target: &TargetName, progress: &Progress) {
        self.update_run(target, |run| run.progress = Some(progress.clone()));
    }

    /// Sets the flight recorder of the worker that serves the current run.
    pub fn set_recorder(&self, target: &TargetName, recorder: &Arc<Recorder>) {
        self.update_run(target, |run| run.recorder = Some(Arc::clone(recorder)));
    }

    fn update_run(&self, target: &TargetName, change: impl FnOnce(&mut LiveRun)) {
        if let Some(live) = self.live_round.lock().as_mut() {
            if live.run.as_ref().is_none_or(|run| run.target != *target) {
                live.run = Some(LiveRun {
                    target: target.clone(),
                    workload: None,
                    phase: None,
                    progress: None,
                    started: Instant::now(),
                    phase_started: Instant::now(),
                    recorder: None,
                });
            }
            if let Some(run) = live.run.as_mut() {
                change(run);
            }
        }
    }

    /// Returns the state of the round in progress. `None`: no round is running.
    pub fn live_status(&self) -> Option<LiveStatus> {
        let live = self.live_round()?;
        Some(LiveStatus { round: live.round, runs: live.runs, run: live.run.map(live_run_status) })
    }

    /// Returns a copy of the round in progress, so that readers do not hold the lock while they compute.
    fn live_round(&self) -> Option<LiveRound> {
        self.live_round.lock().clone()
    }
}

impl LiveRun {
    /// Returns the operation that has been in flight for longest, and its age in seconds.
    fn in_flight(&self) -> Option<(String, f64)> {
        let flight = self.recorder.as_ref()?.in_flight()?;
        let age_ns = platform::monotonic_ns().saturating_sub(flight.since_ns);
        Some((flight.operation.to_string(), age_ns as f64 / 1e9))
    }
}

fn live_run_status(run: LiveRun) -> LiveRunStatus {
    let recorded = run.recorder.as_ref().map(|recorder| recorder.snapshot()).unwrap_or_default();
    let seconds = run.phase_started.elapsed().as_secs_f64();
    LiveRunStatus {
        in_flight: run.in_flight(),
        target: run.target,
        workload: run.workload,
        phase: run.phase,
        progress: run.progress,
        seconds: run.started.elapsed().as_secs_f64(),
        bytes_read: recorded.bytes_read,
        bytes_written: recorded.bytes_written,
        operations: recorded
            .operations
            .into_iter()
            .map(|stats| {
                let microseconds = |q: f64| stats.latency.quantile_ns(q).map(|ns| ns / 1e3);
                let count = stats.latency.count();
                LiveOperation {
                    operation: stats.operation.to_string(),
                    count,
                    errors: stats.errors,
                    per_second: (seconds > 0.0).then(|| count as f64 / seconds),
                    p50_us: microseconds(0.5),
                    p99_us: microseconds(0.99).filter(|_| count >= MIN_CALLS_FOR_P99),
                    max_us: stats.latency.max_ns().map(|ns| ns as f64 / 1e3),
                }
            })
            .collect(),
    }
}
