//! Builds and publishes the status of the service.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longhaul_analysis::summary::CONFOUNDING_NOTE;
use longhaul_model::status::ExportStatus;
use longhaul_model::{Role, Target, Timestamp};

use super::admission::{Admission, RoundFacts};
use super::round_log::RoundLog;
use super::sampling::{Sampling, SamplingView};
use super::scheduler::Scheduler;
use super::workers::TargetAccess;
use crate::clock::ClockReading;
use crate::database::Database;
use crate::handle::ServiceHandle;
use crate::status::{DatabaseStatus, NotifyStatus, State, Status, TargetState, TargetStatus};
use crate::worker::WorkerStatus;

/// Publishes the status to the readers of a handle.
pub(super) struct StatusPublisher {
    handle: Arc<ServiceHandle>,
    started: Timestamp,
    config_path: Option<PathBuf>,
}

/// The parts of the service that the status shows.
pub(super) struct StatusView<'a> {
    pub(super) sampling_view: SamplingView<'a>,
    pub(super) facts: RoundFacts<'a>,
    pub(super) access: TargetAccess<'a>,
    pub(super) scheduler: &'a Scheduler,
    pub(super) admission: &'a Admission,
    pub(super) rounds: &'a RoundLog,
    pub(super) sampling: &'a Sampling,
    pub(super) database: &'a Database,
    /// State of each worker, in the order of the configuration.
    pub(super) workers: Vec<WorkerStatus>,
}

impl StatusPublisher {
    /// Creates the publisher of a service that started at this time.
    pub(super) fn new(handle: Arc<ServiceHandle>, started: Timestamp, config_path: Option<PathBuf>) -> Self {
        Self { handle, started, config_path }
    }

    /// Publishes the current status.
    pub(super) fn publish(&self, view: &StatusView<'_>) {
        let now = &view.sampling_view.now;
        let config = view.facts.config;
        if view.admission.is_safe_mode() {
            let text = "longhaul ended unexpectedly five times in ten minutes, so it runs no rounds now: check its \
                log, then run `longhaul resume`";
            self.handle.raise_problem("safe-mode", text, now.wall);
        }
        let is_scheduled = !config.targets.is_empty() && view.admission.continues_by_itself();
        let next = is_scheduled.then(|| view.scheduler.next_round(now));
        let is_stopping = self.handle.is_stopping();
        let state = view.admission.state(&config.targets);
        self.handle.publish(Status {
            schema: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_us: self.started,
            now_us: now.wall,
            state: if is_stopping { State::Stopping } else { state },
            is_paused: matches!(state, State::Paused { .. }),
            problems: vec![],
            targets: view.targets(&waiting(&state, next)),
            stalls: vec![],
            rounds: view.rounds.counts(),
            last_round: view.rounds.last().cloned(),
            next_round_us: next,
            slices: view.admission.slice_count(config),
            design: view.design_text(),
            database: DatabaseStatus { path: view.database.path().to_owned(), bytes: view.database.bytes() },
            config: self.config_path.clone(),
            log_level: String::new(),
            telemetry: ExportStatus::default(),
            notify: NotifyStatus::default(),
            fleet_export: None,
        });
    }
}

impl StatusView<'_> {
    fn design_text(&self) -> Option<String> {
        let RoundFacts { config, mounts, .. } = self.facts;
        let expected = &config.targets[self.facts.week_target(&self.sampling_view.now)?];
        let served = mounts.mount(&expected.name).map(|mount| mount.protocol.to_string());
        Some(format!(
            "weeks: this week's target is `{}` at {}; mounted there now: {}. {}",
            expected.name,
            expected.path.display(),
            served.as_deref().unwrap_or("nothing"),
            CONFOUNDING_NOTE
        ))
    }

    fn targets(&self, waiting: &TargetState) -> Vec<TargetStatus> {
        let targets = self.facts.config.targets.iter();
        targets.zip(&self.workers).map(|(target, status)| self.target(target, *status, waiting)).collect()
    }

    /// Returns the reason why a target cannot be used now; `None` if there is none, or if it is not to be mounted this week.
    fn unavailable_reason(&self, target: &Target) -> Option<String> {
        let this_week = self.facts.week_target(&self.sampling_view.now);
        let is_expected = target.role == Role::Baseline
            || this_week.is_none_or(|at| self.facts.config.targets[at] == *target);
        let report = self.access.unavailable_reason(target).filter(|_| is_expected);
        report.map(|report| report.failure.message)
    }

    fn target(&self, target: &Target, status: WorkerStatus, waiting: &TargetState) -> TargetStatus {
        let recent = self.facts.history.recent_runs(&target.name);
        let reason = self.unavailable_reason(target);
        // The mount at the path of a share that is gone is that of another file system.
        let mount = self.facts.mounts.mount(&target.name).filter(|_| !self.access.is_unmounted(target));
        let unavailable = reason.map(|reason| TargetState::Unavailable { reason, is_now: true });
        let state = || recent.and_then(|recent| recent.problem.clone()).unwrap_or_else(|| waiting.clone());
        TargetStatus {
            name: target.name.clone(),
            path: target.path.display().to_string(),
            role: target.role,
            protocol: mount.map(|mount| mount.protocol.to_string()),
            state: hung(status, &self.sampling_view.now).or(unavailable).unwrap_or_else(state),
            last_runs: recent.map(|recent| (recent.runs, recent.ok_runs)),
            failed_tasks: recent.map_or_else(Vec::new, |recent| recent.failed_tasks.clone()),
            bytes_last_24h: self.admission.usage().bytes.get(&target.name).copied().unwrap_or(0),
            bytes_limit: self.facts.config.limits.bytes_per_day,
            probe: self.sampling.probe_state(target, self.sampling_view),
        }
    }
}

/// Returns what targets that can be used wait for.
fn waiting(state: &State, next: Option<Timestamp>) -> TargetState {
    let (reason, until_us) = match state {
        State::Paused { until_us: None } | State::SafeMode => ("`longhaul resume`", None),
        State::Paused { until_us } if next < *until_us => ("the end of the pause", *until_us),
        _ => ("the next round", next),
    };
    TargetState::Waiting { reason: reason.to_owned(), until_us }
}

/// Returns the state of a target on which a call does not return; `None` if there is none.
fn hung(status: WorkerStatus, now: &ClockReading) -> Option<TargetState> {
    let WorkerStatus::Stuck { operation, for_seconds } = status else { return None };
    let since_us = now.wall - Duration::from_secs(for_seconds);
    Some(TargetState::Hung { operation: operation.map(|operation| operation.to_string()), since_us })
}

#[cfg(test)]
mod tests {
    use longhaul_model::Operation;

    use super::*;

    #[test]
    fn stuck_target_is_hung_since_its_call_started() {
        let now = ClockReading { wall: Timestamp::from_us(9_000_000), ..ClockReading::default() };
        let stuck = WorkerStatus::Stuck { operation: Some(Operation::Read), for_seconds: 4 };
        let expected =
            TargetState::Hung { operation: Some("read".to_owned()), since_us: Timestamp::from_us(5_000_000) };
        assert_eq!(hung(stuck, &now), Some(expected));
        assert_eq!(hung(WorkerStatus::Available, &now), None);
    }

    #[test]
    fn targets_wait_for_the_end_of_a_pause() {
        let [next, later] = [7, 9].map(|at| Some(Timestamp::from_us(at)));
        let of = |state| match waiting(&state, next) {
            TargetState::Waiting { reason, until_us } => (reason, until_us),
            other => panic!("{other:?}"),
        };
        assert_eq!(of(State::Paused { until_us: later }), ("the end of the pause".to_owned(), later));
        assert_eq!(of(State::Paused { until_us: next }), ("the next round".to_owned(), next));
        assert_eq!(of(State::Paused { until_us: None }), ("`longhaul resume`".to_owned(), None));
    }
}
