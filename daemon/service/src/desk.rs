//! The desk between the service's thread and everybody else: orders go in, status comes out. Nobody waits at it,
//! but for a message to a collector that is in flight when a round begins.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use longhaul_measure::model::{Progress, Stall, TargetName};
use longhaul_measure::platform;
use longhaul_measure::recorder::Recorder;
use longhaul_telemetry::gate::Gate;
use longhaul_telemetry::status::ExportStatus;

use crate::clock::Bell;
use crate::config::Config;
use crate::status::{Check, Live, OperationNow, Problem, State, Status, TargetState, Task};

/// Quantiles beyond the median need so many values.
const P99_NEEDS: u64 = 100;
/// A call that has not returned for so long is shown as hung, though its run may still end well.
const HUNG_SECONDS: f64 = 10.0;

/// What the person, or the system, wants.
#[derive(Debug, Default)]
pub struct Orders {
    /// End.
    pub stop: bool,
    /// Pause, until then if that is given; or go on.
    pub pause: Option<Pause>,
    /// Make a round now.
    pub round: bool,
    /// This configuration was read and is good.
    pub config: Option<Config>,
    /// Somebody waits for these checks.
    pub doctor: Option<SyncSender<Vec<Check>>>,
    /// The mount table has changed.
    pub mounts: bool,
}

/// Whether rounds are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// They are.
    Off,
    /// They are not, until the person resumes.
    On,
    /// They are not until then, in microseconds since 1970 UTC.
    Until(i64),
}

/// The round in progress, as far as nobody has to compute anything.
#[derive(Clone)]
struct Scene {
    round: i64,
    runs: (u32, u32),
    task: Option<SceneTask>,
}

#[derive(Clone)]
struct SceneTask {
    target: TargetName,
    workload: Option<String>,
    phase: Option<String>,
    progress: Option<Progress>,
    began: Instant,
    phase_began: Instant,
    recorder: Option<Arc<Recorder>>,
}

/// See the module.
#[derive(Default)]
pub struct Desk {
    /// Rung whenever there is an order.
    pub bell: Bell,
    /// Closed for what is sent to a collector while a round goes on.
    pub gate: Arc<Gate>,
    orders: Mutex<Orders>,
    status: Mutex<Option<Status>>,
    problems: Mutex<BTreeMap<String, Problem>>,
    log_level: Mutex<String>,
    telemetry: Mutex<ExportStatus>,
    scene: Mutex<Option<Scene>>,
    stalls: Mutex<Vec<Stall>>,
    beat_ns: AtomicI64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// Gives an order, and wakes the service.
    pub fn order(&self, change: impl FnOnce(&mut Orders)) {
        change(&mut lock(&self.orders));
        self.bell.ring();
    }

    /// Takes or looks at the orders.
    pub fn orders<T>(&self, look: impl FnOnce(&mut Orders) -> T) -> T {
        look(&mut lock(&self.orders))
    }

    /// Whether the service is to end.
    pub fn is_stopping(&self) -> bool {
        self.orders(|orders| orders.stop)
    }

    /// The status as it was last published, with the problems of this moment; `None` before the first.
    pub fn status(&self) -> Option<Status> {
        let mut status = lock(&self.status).clone()?;
        status.problems = lock(&self.problems).values().cloned().collect();
        status.log_level = lock(&self.log_level).clone();
        status.telemetry = lock(&self.telemetry).clone();
        status.stalls = lock(&self.stalls).clone();
        self.overlay(&mut status);
        status.now_us = platform::wall_clock_us();
        Some(status)
    }

    /// What was published before a round began, with what goes on in it. Of a recorder only what is in flight is looked at:
    /// what else it holds is spread over hundreds of pages, and each that nobody has touched yet takes time and memory.
    fn overlay(&self, status: &mut Status) {
        let Some(scene) = self.scene() else { return };
        let is_free = !matches!(status.state, State::Stopping);
        status.state = if is_free { State::Measuring } else { status.state };
        for target in &mut status.targets {
            if let TargetState::Waiting { reason, until_us } = &mut target.state {
                (*reason, *until_us) = ("the round in progress".to_owned(), None);
            }
        }
        let Some(task) = scene.task else { return };
        for target in status.targets.iter_mut().filter(|target| target.name == task.target) {
            let workload = task.workload.clone().unwrap_or_else(|| "preparation".to_owned());
            target.state = match task.in_flight() {
                Some((operation, seconds)) if seconds > HUNG_SECONDS => TargetState::Hung {
                    operation: Some(operation),
                    since_us: platform::wall_clock_us() - (seconds * 1e6) as i64,
                },
                _ => TargetState::Measuring { workload },
            };
        }
    }

    /// Publishes the status.
    pub fn publish(&self, status: Status) {
        *lock(&self.status) = Some(status);
    }

    /// The log level in force, for the status.
    pub fn set_log_level(&self, level: &str) {
        level.clone_into(&mut lock(&self.log_level));
    }

    /// How it stands with the export, for the status.
    pub fn set_telemetry(&self, status: ExportStatus) {
        *lock(&self.telemetry) = status;
    }

    /// Changes what is published.
    pub fn amend(&self, change: impl FnOnce(&mut Status)) {
        if let Some(status) = lock(&self.status).as_mut() {
            change(status);
        }
    }

    /// Notes that there is a problem. One that is there already keeps its time.
    pub fn complain(&self, word: &str, text: impl Into<String>, now_us: i64) {
        let text = text.into();
        let is_news =
            self.keep_problem(Problem { word: word.to_owned(), text: text.clone(), since_us: now_us });
        // Not under the lock: a log on a slow disk would keep the status waiting.
        if is_news {
            tracing::warn!(problem = word, "{text}");
        }
    }

    /// Returns whether it is told for the first time, or with other words.
    fn keep_problem(&self, mut problem: Problem) -> bool {
        let mut problems = lock(&self.problems);
        let known = problems.get(&problem.word);
        problem.since_us = known.map_or(problem.since_us, |known| known.since_us);
        let is_news = known.is_none_or(|known| known.text != problem.text);
        problems.insert(problem.word.clone(), problem);
        is_news
    }

    /// Notes that a problem is over.
    pub fn relieve(&self, word: &str) {
        let removed = lock(&self.problems).remove(word);
        if removed.is_some() {
            tracing::info!(problem = word, "over");
        }
    }

    /// The targets that keep somebody waiting just now.
    pub fn set_stalls(&self, stalls: Vec<Stall>) {
        *lock(&self.stalls) = stalls;
    }

    /// Says that the service's thread is alive.
    pub fn beat(&self) {
        self.beat_ns.store(platform::monotonic_ns().cast_signed(), Ordering::Relaxed);
    }

    /// For how many seconds the service's thread has not said that it is alive.
    pub fn silent_seconds(&self) -> i64 {
        let beat_ns = self.beat_ns.load(Ordering::Relaxed);
        if beat_ns == 0 { 0 } else { (platform::monotonic_ns().cast_signed() - beat_ns) / 1_000_000_000 }
    }

    /// A round begins, or ends.
    pub fn set_round(&self, round: Option<(i64, u32)>) {
        *lock(&self.scene) = round.map(|(round, runs)| Scene { round, runs: (0, runs), task: None });
    }

    /// A run is over.
    pub fn count_run(&self) {
        if let Some(scene) = lock(&self.scene).as_mut() {
            scene.runs.0 += 1;
            scene.task = None;
        }
    }

    /// A run begins.
    pub fn set_run(&self, target: &TargetName, workload: &str) {
        self.with_task(target, |task| {
            (task.workload, task.phase, task.progress) = (Some(workload.to_owned()), None, None);
            (task.began, task.phase_began) = (Instant::now(), Instant::now());
        });
    }

    /// A phase begins.
    pub fn set_phase(&self, target: &TargetName, name: &str) {
        self.with_task(target, |task| {
            task.phase = Some(name.to_owned());
            task.phase_began = Instant::now();
        });
    }

    /// A preparation has come this far.
    pub fn set_progress(&self, target: &TargetName, progress: &Progress) {
        self.with_task(target, |task| task.progress = Some(progress.clone()));
    }

    /// A worker begins to do something.
    pub fn set_recorder(&self, target: &TargetName, recorder: &Arc<Recorder>) {
        self.with_task(target, |task| task.recorder = Some(Arc::clone(recorder)));
    }

    fn with_task(&self, target: &TargetName, change: impl FnOnce(&mut SceneTask)) {
        if let Some(scene) = lock(&self.scene).as_mut() {
            if scene.task.as_ref().is_none_or(|task| task.target != *target) {
                scene.task = Some(SceneTask {
                    target: target.clone(),
                    workload: None,
                    phase: None,
                    progress: None,
                    began: Instant::now(),
                    phase_began: Instant::now(),
                    recorder: None,
                });
            }
            if let Some(task) = scene.task.as_mut() {
                change(task);
            }
        }
    }

    /// The round in progress; `None`: there is none.
    pub fn live(&self) -> Option<Live> {
        let scene = self.scene()?;
        Some(Live { round: scene.round, runs: scene.runs, task: scene.task.map(task) })
    }

    /// A copy, so that nobody computes anything while others wait for the lock.
    fn scene(&self) -> Option<Scene> {
        lock(&self.scene).clone()
    }
}

impl SceneTask {
    /// The call that has been in flight for longest, and for how many seconds.
    fn in_flight(&self) -> Option<(String, f64)> {
        let flight = self.recorder.as_ref()?.in_flight()?;
        let age_ns = platform::monotonic_ns().saturating_sub(flight.since_ns);
        Some((flight.operation.to_string(), age_ns as f64 / 1e9))
    }
}

fn task(scene: SceneTask) -> Task {
    let recorded = scene.recorder.as_ref().map(|recorder| recorder.recorded()).unwrap_or_default();
    let seconds = scene.phase_began.elapsed().as_secs_f64();
    Task {
        in_flight: scene.in_flight(),
        target: scene.target,
        workload: scene.workload,
        phase: scene.phase,
        progress: scene.progress,
        seconds: scene.began.elapsed().as_secs_f64(),
        bytes_read: recorded.bytes_read,
        bytes_written: recorded.bytes_written,
        operations: recorded
            .operations
            .into_iter()
            .map(|stats| {
                let microseconds = |q: f64| stats.latency.quantile_ns(q).map(|ns| ns / 1e3);
                let count = stats.latency.count();
                OperationNow {
                    operation: stats.operation.to_string(),
                    count,
                    errors: stats.errors,
                    per_second: (seconds > 0.0).then(|| count as f64 / seconds),
                    p50_us: microseconds(0.5),
                    p99_us: microseconds(0.99).filter(|_| count >= P99_NEEDS),
                    max_us: stats.latency.max_ns().map(|ns| ns as f64 / 1e3),
                }
            })
            .collect(),
    }
}
