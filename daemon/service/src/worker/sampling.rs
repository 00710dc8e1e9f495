//! Sampling by a worker: keeps its process running for the latency probe and switches
//! the probe on and off. Never blocks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_measure::lock::FileLock;
use longhaul_measure::recorder::Recorder;
use longhaul_measure::worker::{FailureReport, WorkerCommand};
use longhaul_model::{ProbeMode, ProbePlan};

use super::failures::{still_hung_failure, void_failure};
use super::process::WorkerProcess;
use super::{State, Worker, WorkerStatus};

/// Time that idle processes may take to exit.
pub const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Asks idle processes to exit, and waits up to `limit` until all have. A process deletes the lock of its target
/// only then. One that hangs is left.
pub fn end_workers<'a>(workers: impl IntoIterator<Item = &'a mut Worker>, limit: Duration) {
    let mut workers: Vec<&mut Worker> = workers.into_iter().collect();
    workers.iter_mut().for_each(|worker| worker.shut_down());
    let started = Instant::now();
    for worker in workers {
        worker.wait_until_exited(limit.saturating_sub(started.elapsed()));
    }
}

impl Worker {
    /// Starts the process if there is none, so that its probe can run. Never blocks: the first message of the
    /// process is read by the next request.
    ///
    /// # Errors
    ///
    /// If the target must not be accessed, an earlier process has not ended, or the process keeps crashing.
    pub fn ensure_started(&mut self) -> Result<(), FailureReport> {
        if let Some(failure) = &self.unavailable {
            return Err(failure.clone());
        }
        if let WorkerStatus::Stuck { operation, .. } = self.status() {
            return Err(still_hung_failure(&self.target.path, operation));
        }
        if self.active_process().is_some_and(WorkerProcess::has_ended) {
            self.backoff.record_crash();
            self.state = State::NotRunning;
        }
        match self.state {
            // A process of an earlier supervisor is still on the target; a second one must not start.
            State::NotRunning if FileLock::is_held(&self.lock_path) => {
                self.state = State::Orphaned { since: Instant::now() };
                return Err(void_failure(format!(
                    "an earlier worker of `{}` has not ended",
                    self.target.name
                )));
            }
            State::NotRunning => self.state = State::Starting(self.spawn()?),
            State::Exiting(_) | State::Orphaned { .. } => {
                return Err(void_failure(format!("the last worker of `{}` has not ended", self.target.name)));
            }
            State::Starting(_) | State::Idle(_) | State::Stuck { .. } => {}
        }
        Ok(())
    }

    /// Sets whether the probe sends requests, in the current process and in all later ones.
    pub fn set_probing(&mut self, probing: ProbeMode) {
        let Some(plan) = &mut self.launcher.probe_plan else { return };
        plan.initial_mode = probing;
        if let Some(link) = self.active_process() {
            // A process that has ended is detected by the next request.
            let _ = link.send(&WorkerCommand::Probe { probing });
        }
    }

    /// Sets the settings of the probe, but not its mode. A process that has other settings is asked to exit; the next
    /// one gets these.
    pub fn set_probe_plan(&mut self, plan: Option<&ProbePlan>) {
        let old = &self.launcher.probe_plan;
        let initial_mode = old.as_ref().map_or(ProbeMode::DuringRuns, |old| old.initial_mode);
        let plan = plan.map(|plan| ProbePlan { initial_mode, ..plan.clone() });
        if *old != plan {
            self.launcher.probe_plan = plan;
            self.shut_down();
        }
    }

    /// Waits up to `limit` until a process that was asked to exit has ended and its output has been read.
    fn wait_until_exited(&mut self, limit: Duration) {
        if let State::Exiting(link) = &mut self.state {
            link.exits_within(limit);
        }
    }

    /// Returns the flight recorder of the current process. `None`: there is no process.
    pub fn recorder(&self) -> Option<Arc<Recorder>> {
        match &self.state {
            State::NotRunning | State::Orphaned { .. } => None,
            State::Starting(link) | State::Idle(link) | State::Exiting(link) | State::Stuck { link, .. } => {
                Some(Arc::clone(link.recorder()))
            }
        }
    }

    /// Returns the current process if it is idle or just started.
    fn active_process(&mut self) -> Option<&mut WorkerProcess> {
        match &mut self.state {
            State::Starting(link) | State::Idle(link) => Some(link),
            State::NotRunning | State::Orphaned { .. } | State::Exiting(_) | State::Stuck { .. } => None,
        }
    }
}

#[cfg(test)]
impl Worker {
    /// Makes the worker stuck since `since`, for as long as the lock of its target is held.
    pub(crate) fn set_orphaned(&mut self, since: Instant) {
        self.state = State::Orphaned { since };
    }
}
