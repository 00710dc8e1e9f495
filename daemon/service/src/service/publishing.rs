//! The status, as of now.

use longhaul_measure::model::{Family, Outcome, TargetName};
use longhaul_measure::worker::Ending;
use longhaul_store::{RunFilter, StoredRun};
use longhaul_telemetry::status::ExportStatus;

use super::Service;
use crate::clock::Moment;
use crate::desk::Pause;
use crate::schedule::{Next, next, weeks};
use crate::status::{DatabaseStatus, State, Status, TargetState, TargetStatus};
use crate::worker::{Stance, Worker};

/// How many of the latest runs are looked at for the state of a target.
const LATEST: u32 = 16;

impl Service {
    /// Publishes the status.
    pub(super) fn publish(&mut self) {
        let now = self.clock.now();
        self.tell_of_safe_mode(&now);
        let next_us = self.next_us(&now);
        let targets = self.target_states(&now, next_us);
        self.desk.publish(Status {
            schema: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_us: self.started.wall_us,
            now_us: now.wall_us,
            state: self.state(),
            problems: vec![],
            targets,
            stalls: vec![],
            rounds: self.counts,
            last: self.last.clone(),
            next_us,
            slices: self.slices(),
            design: self.design_text(&now),
            database: DatabaseStatus { path: self.database.path().to_owned(), bytes: self.database.bytes() },
            config: self.config_path.clone(),
            log_level: String::new(),
            telemetry: ExportStatus::default(),
        });
    }

    fn tell_of_safe_mode(&self, now: &Moment) {
        if self.safe_mode {
            let text = "longhaul ended without warning five times in ten minutes, and makes no rounds now: look at its log, \
                then say `longhaul resume`";
            self.desk.complain("safe-mode", text, now.wall_us);
        }
    }

    fn state(&self) -> State {
        match self.pause {
            _ if self.desk.is_stopping() => State::Stopping,
            _ if self.safe_mode => State::SafeMode,
            Pause::On => State::Paused { until_us: None },
            Pause::Until(until_us) => State::Paused { until_us: Some(until_us) },
            Pause::Off if self.config.targets.is_empty() => State::Idle,
            Pause::Off => State::Waiting,
        }
    }

    fn next_us(&self, now: &Moment) -> Option<i64> {
        if self.config.targets.is_empty() || self.safe_mode || self.pause == Pause::On {
            return None;
        }
        match next(now, &self.history, &self.rhythm) {
            Next::Wait { until_ns, .. } => Some(now.wall_us_at(until_ns)),
            Next::Due(_) | Next::Missed { .. } => Some(now.wall_us),
        }
    }

    fn design_text(&self, now: &Moment) -> Option<String> {
        let expected = self.expected(now)?;
        let served = self.book.borrow().mount(&expected.name).map(|mount| mount.protocol.to_string());
        Some(format!(
            "weeks: this week `{}` is expected at {}; {} serves that folder now. {}",
            expected.name,
            expected.path.display(),
            served.as_deref().unwrap_or("nothing"),
            weeks::CAVEAT
        ))
    }

    fn target_states(&mut self, now: &Moment, next_us: Option<i64>) -> Vec<TargetStatus> {
        let stances: Vec<Stance> = self.workers.iter_mut().map(Worker::stance).collect();
        let states = self.config.targets.iter().zip(stances).map(|(target, stance)| {
            let latest = self.latest.get(&target.name);
            let book = self.book.borrow();
            let mount = book.mount(&target.name);
            TargetStatus {
                name: target.name.clone(),
                path: target.path.display().to_string(),
                role: target.role,
                protocol: mount.map(|mount| mount.protocol.to_string()),
                state: state(stance, latest, now, next_us),
                last_runs: latest.map(|latest| (latest.runs, latest.ok)),
                bytes_per_day: self.usage.bytes.get(&target.name).copied().unwrap_or(0),
                bytes_allowed: self.config.limits.bytes_per_day,
                probe: self.probe_state(target, now),
            }
        });
        states.collect()
    }

    /// Reads how the latest round of each target went, and how it was reached. Once a round: to read it takes time.
    pub(super) fn read_latest(&mut self) {
        let Ok(reader) = self.database.reader() else { return };
        let latest = |name: &TargetName| {
            let filter =
                RunFilter { target: Some(name.clone()), limit: Some(LATEST), ..RunFilter::default() };
            Latest::of(&reader.runs(&filter).ok()?)
        };
        for epoch in reader.epochs().unwrap_or_default() {
            // Oldest first: the latest one stays.
            match epoch.protocol.map(|protocol| protocol.family()) {
                Some(family) => self.families.insert(epoch.target, family),
                None => self.families.remove(&epoch.target),
            };
        }
        let targets = self.config.targets.iter();
        self.latest =
            targets.filter_map(|target| Some((target.name.clone(), latest(&target.name)?))).collect();
    }
}

/// How the latest round of a target went.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Latest {
    runs: u32,
    ok: u32,
    /// What is the matter with the target; `None` if a run was ok, or failed for reasons of its own.
    trouble: Option<TargetState>,
    /// The refusal of the target by the system's privacy settings.
    refusal: Option<Ending>,
}

impl Latest {
    fn of(runs: &[StoredRun]) -> Option<Self> {
        let round = runs.last()?.run.round;
        let runs: Vec<&StoredRun> = runs.iter().filter(|stored| stored.run.round == round).collect();
        let ok = runs.iter().filter(|stored| stored.run.outcome == Outcome::Ok).count();
        let last = runs.last().filter(|_| ok == 0);
        Some(Self {
            runs: runs.len() as u32,
            ok: ok as u32,
            trouble: last.and_then(|stored| trouble(stored)),
            refusal: last.and_then(|stored| refusal(stored)),
        })
    }

    /// The refusal of the target by the privacy settings, if there was one.
    pub(super) fn refusal(&self) -> Option<&Ending> {
        self.refusal.as_ref()
    }

    /// The privacy settings were seen not to refuse any more.
    pub(super) fn forget_refusal(&mut self) {
        if self.refusal.take().is_some() {
            self.trouble = None;
        }
    }
}

fn refusal(stored: &StoredRun) -> Option<Ending> {
    let (outcome, failure) = (stored.run.outcome, stored.run.failure.clone()?);
    failure.is_blocked(outcome).then_some(Ending { outcome, failure })
}

fn trouble(stored: &StoredRun) -> Option<TargetState> {
    let failure = stored.run.failure.as_ref()?;
    match failure.error.as_deref() {
        // Its message names the way out.
        _ if failure.is_blocked(stored.run.outcome) => {
            Some(TargetState::Blocked { reason: failure.message.clone() })
        }
        Some("EPERM" | "EACCES") => Some(TargetState::Blocked { reason: blocked(stored, &failure.message) }),
        _ if stored.run.outcome == Outcome::Unavailable => {
            Some(TargetState::Unavailable { reason: failure.message.clone() })
        }
        _ => None,
    }
}

/// What goes on with a target between rounds.
fn state(stance: Stance, latest: Option<&Latest>, now: &Moment, next_us: Option<i64>) -> TargetState {
    if let Stance::Stuck { operation, for_seconds } = stance {
        let since_us = now.wall_us - for_seconds.cast_signed() * 1_000_000;
        return TargetState::Hung { operation: operation.map(|operation| operation.to_string()), since_us };
    }
    let waiting = || TargetState::Waiting { reason: "the next round".to_owned(), until_us: next_us };
    latest.and_then(|latest| latest.trouble.clone()).unwrap_or_else(waiting)
}

/// What a refusal means: on macOS the privacy settings answer EPERM (knowledge: 8.4).
fn blocked(stored: &StoredRun, message: &str) -> String {
    let is_network = stored.run.protocol.as_ref().is_none_or(|protocol| protocol.family() == Family::Network);
    let is_mac = stored.run.conditions.system.as_deref().is_some_and(|system| system.starts_with("macOS"));
    if is_network && is_mac {
        return format!(
            "{message}. System Settings, Privacy & Security, Files & Folders (or Full Disk Access): allow longhauld network \
             volumes"
        );
    }
    message.to_owned()
}
