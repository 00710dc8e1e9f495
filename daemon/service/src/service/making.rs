//! Slots and what becomes of them: made, skipped or missed, each booked.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::corpus::slices::{SLICES, slices_that_rest};
use longhaul_measure::model::{
    Failure, Family, Outcome, Progress, Role, Scale, Surroundings, Target, TargetName,
};
use longhaul_measure::recorder::Recorder;
use longhaul_measure::worker::Ending;
use longhaul_store::{Event, PREPARED, RoundEnd, RoundStatus, StoredRun, Writer};
use serde_json::json;

use super::Service;
use super::publishing::Latest;
use crate::clock::Moment;
use crate::config::Design;
use crate::desk::{Desk, Pause};
use crate::round::{Audience, Block, Made, Maker, RoundError, Stop, Tasks};
use crate::sampling::Sampler;
use crate::schedule::budget::{self, Budget, DAY_US, Usage};
use crate::schedule::skip::{self, Reason};
use crate::schedule::{BASELINE_EVERY, Slot, takes_part, weeks};
use crate::status::LastRound;
use crate::worker::{Observer, Worker};

/// How long a worker may take to stop: the service has to end within five seconds.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a round waits for a message to a collector that is in flight.
const FLIGHT: Duration = Duration::from_secs(2);
/// So many rounds in a row are skipped for another interface before it is taken for the usual one.
const LINK_SKIPS: u32 = 24;
/// What a round is begun again after when the database does not take it.
const RETRY: Duration = Duration::from_secs(5);
/// Corpora that let their slices rest may take this share of the free space.
const AMPLE: u64 = 20;

impl Service {
    /// Deals with a slot that is due. Returns for how long nothing is.
    pub(super) fn deal(&mut self, slot: Slot) -> Duration {
        let _span = tracing::info_span!("slot", slot = slot.number).entered();
        let now = self.clock.now();
        let before = self.history.last;
        self.history.last = slot;
        let scheduled_us = Some(now.wall_us_at(slot.at_ns));
        let around = self.host.borrow_mut().look(&self.servers());
        self.count_usage(&now);
        let decided = self.give_way().map_or_else(|| self.decide(&now, &around), Err);
        let made = match decided {
            Err(reason) => {
                self.skip(&now, scheduled_us, &reason);
                return Duration::ZERO;
            }
            Ok(chosen) => self.round(&chosen, self.block(scheduled_us, Some(around))),
        };
        if made.is_none() && !self.desk.is_stopping() {
            self.history.last = before;
            return RETRY;
        }
        Duration::ZERO
    }

    /// A round that the person asked for: only the budget can forbid it. Not how full a target was when it was last asked: whoever made
    /// room there wants it asked again, and a worker writes nothing before it has.
    pub(super) fn round_now(&mut self) {
        let now = self.clock.now();
        self.count_usage(&now);
        let around = self.host.borrow_mut().look(&self.servers());
        let chosen = self.give_way().map_or_else(|| self.chosen(&now), Err);
        let chosen = chosen.and_then(|chosen| match self.over_budget(&chosen, 0.0) {
            Some(reason) => Err(reason),
            None => Ok(chosen),
        });
        match chosen {
            Ok(chosen) => drop(self.round(&chosen, self.block(None, Some(around)))),
            Err(reason) => self.skip(&now, None, &reason),
        }
    }

    fn block(&self, scheduled_us: Option<i64>, before: Option<Surroundings>) -> Block {
        let baseline_every = if self.has_shares() { BASELINE_EVERY } else { 1 };
        Block { machine_seed: self.seed, turn: self.turn, baseline_every, scheduled_us, before }
    }

    fn has_shares(&self) -> bool {
        self.config.targets.iter().any(|target| target.role == Role::Share)
    }

    /// Which targets a round measures, or why there is none. Facts from before the round only.
    fn decide(&mut self, now: &Moment, around: &Surroundings) -> Result<Vec<usize>, Reason> {
        if self.safe_mode {
            return Err(Reason::new(
                "safe-mode",
                "longhaul crashed again and again; `longhaul resume` lets it go on",
            ));
        }
        if self.pause != Pause::Off {
            return Err(Reason::new("paused", "paused by the person"));
        }
        let rules = &self.config.schedule.rules;
        if let Some(reason) = skip::reason(rules, around, self.usual.as_ref(), now.minute_of_day()) {
            self.count_link_skip(&reason, around);
            return Err(reason);
        }
        self.link_skips = 0;
        self.usual = around.link.clone().or(self.usual.take());
        let chosen = self.chosen(now)?;
        self.over_budget(&chosen, self.config.settings.free_floor).map_or(Ok(chosen), Err)
    }

    /// Whoever moved to another interface for good is not skipped for ever.
    fn count_link_skip(&mut self, reason: &Reason, around: &Surroundings) {
        self.link_skips = if reason.word == "link" { self.link_skips + 1 } else { 0 };
        if self.link_skips >= LINK_SKIPS {
            self.event(None, "link", json!({ "before": self.usual, "after": around.link }));
            self.usual = around.link.clone();
        }
    }

    fn chosen(&self, now: &Moment) -> Result<Vec<usize>, Reason> {
        let targets = &self.config.targets;
        let shares: Vec<usize> =
            (0..targets.len()).filter(|place| targets[*place].role == Role::Share).collect();
        let part = |place: &usize| takes_part(targets[*place].role, self.turn, !shares.is_empty());
        let all = (0..targets.len()).filter(part);
        match self.config.schedule.design {
            Design::Rounds => Ok(all.collect()),
            Design::Weeks if shares.is_empty() => Ok(all.collect()),
            Design::Weeks => {
                let expected = self.expected_place(now, &shares);
                self.is_there(&targets[expected])?;
                Ok(all.filter(|place| *place == expected || targets[*place].role == Role::Baseline).collect())
            }
        }
    }

    fn expected_place(&self, now: &Moment, shares: &[usize]) -> usize {
        let week = weeks::week(self.first_us.unwrap_or(now.wall_us), now.wall_us, now.utc_offset_seconds);
        shares[weeks::turn(week, shares.len())]
    }

    /// In weeks, which target it is the turn of.
    pub(super) fn expected(&self, now: &Moment) -> Option<&Target> {
        let targets = &self.config.targets;
        let shares: Vec<usize> =
            (0..targets.len()).filter(|place| targets[*place].role == Role::Share).collect();
        let is_weeks = self.config.schedule.design == Design::Weeks && !shares.is_empty();
        is_weeks.then(|| &targets[self.expected_place(now, &shares)])
    }

    /// Whether the mount table shows what is expected of a target.
    fn is_there(&self, target: &Target) -> Result<(), Reason> {
        let served = self.book.borrow().mount(&target.name).map(|mount| mount.protocol.clone());
        let family = served.as_ref().map(longhaul_measure::model::Protocol::family);
        match (self.family_before(&target.name), family) {
            (Some(Family::Network | Family::Fuse), Some(Family::Local) | None) => {
                let text = format!("this week `{}` is expected, and nothing is mounted there", target.name);
                Err(Reason::new("not-mounted", text))
            }
            _ => Ok(()),
        }
    }

    /// What a target was when it was last measured.
    fn family_before(&self, name: &TargetName) -> Option<Family> {
        self.families.get(name).copied()
    }

    fn over_budget(&self, chosen: &[usize], free_floor: f64) -> Option<Reason> {
        let targets: Vec<Target> = chosen.iter().map(|place| self.config.targets[*place].clone()).collect();
        let limits = Budget {
            bytes_per_day: self.config.limits.bytes_per_day,
            duty: self.config.schedule.duty,
            free_floor,
        };
        budget::reason(&limits, &self.usage, &targets)
    }

    /// Reads from the database what the last 24 hours took, so that a restart forgets nothing.
    pub(super) fn count_usage(&mut self, now: &Moment) {
        let since_us = now.wall_us - DAY_US;
        let read = || -> longhaul_store::Result<Usage> {
            let reader = self.database.reader()?;
            Ok(Usage {
                bytes: reader.bytes_since(since_us)?,
                most_in_a_round: reader.most_bytes_in_a_round_since(since_us)?,
                busy_us: reader.busy_us_since(since_us)?,
                rooms: reader.rooms()?,
                counted_us: now.wall_us,
            })
        };
        match read() {
            Ok(usage) => self.usage = usage,
            Err(error) => tracing::warn!(%error, "what was used cannot be read"),
        }
    }

    /// How many slices take turns: as configured, or as many as rest for a day where there is ample space.
    pub(super) fn slices(&self) -> u64 {
        if let Some(slices) = self.config.schedule.slices {
            return slices;
        }
        let rested = slices_that_rest(self.config.schedule.rounds_per_day);
        let slice_bytes: u64 = match self.config.scale {
            Scale::Quick => 100_000_000,
            Scale::Standard => 600_000_000,
            Scale::Large => 3_000_000_000,
        };
        let needed = rested * slice_bytes * AMPLE;
        let room = |target: &Target| self.usage.rooms.get(&target.name);
        let is_ample = |target: &Target| room(target).is_some_and(|room| room.free_bytes >= needed);
        if self.config.targets.iter().all(is_ample) { rested } else { SLICES }
    }

    fn tasks(&self) -> Tasks {
        let mut settings = self.config.settings.clone();
        settings.slices = self.slices();
        Tasks {
            workloads: self.config.workloads.clone(),
            scale: self.config.scale,
            settings,
            cap: self.config.limits.cap,
        }
    }

    /// Makes a round on the chosen targets. `None`: it could not be booked.
    fn round(&mut self, chosen: &[usize], block: Block) -> Option<Made> {
        let mut workers = std::mem::take(&mut self.workers);
        let targets: Vec<Target> = chosen.iter().map(|place| self.config.targets[*place].clone()).collect();
        for worker in &mut workers {
            worker.close(self.why_not(worker.target()));
        }
        chosen.iter().for_each(|place| self.ask_again(&mut workers[*place]));
        self.worker_version.take();
        let result = {
            let tasks = self.tasks();
            let maker = Maker {
                tasks: &tasks,
                writer: self.database.writer(),
                clock: self.clock.as_ref(),
                stop: &|| self.stop(&targets),
                patience: PATIENCE,
                attempts: u32::MAX,
            };
            let mut chosen: Vec<&mut Worker> = workers
                .iter_mut()
                .enumerate()
                .filter(|(place, _)| chosen.contains(place))
                .map(|(_, w)| w)
                .collect();
            self.make(&maker, &block, &mut chosen)
        };
        workers.iter_mut().for_each(Worker::dismiss);
        self.workers = workers;
        self.conclude(result, &block)
    }

    fn make(
        &self,
        maker: &Maker<'_>,
        block: &Block,
        workers: &mut [&mut Worker],
    ) -> Result<Made, RoundError> {
        let _apart = self.desk.gate.close(FLIGHT);
        let number = maker.begin(block, workers)?;
        let _span = tracing::info_span!("round", round = number).entered();
        tracing::info!(round = number, targets = workers.len(), "a round begins");
        let runs = workers.len() * maker.tasks.workloads.len();
        self.desk.set_round(Some((number, u32::try_from(runs).unwrap_or(u32::MAX))));
        self.desk.amend(|status| status.state = crate::status::State::Measuring);
        let mut scene = Scene {
            desk: &self.desk,
            writer: maker.writer,
            clock: self.clock.as_ref(),
            sampler: &self.sampler,
            worker_version: &self.worker_version,
        };
        let mut after = || Some(self.host.borrow_mut().look(&self.servers()));
        let made = maker.make((number, block), workers, &mut scene, &mut after);
        self.desk.set_round(None);
        made
    }

    /// Why the round in progress is to stop. Asked ten times a second.
    fn stop(&self, targets: &[Target]) -> Option<Stop> {
        self.desk.beat();
        let (stop, pause, mounts) =
            self.desk.orders(|orders| (orders.stop, orders.pause, std::mem::take(&mut orders.mounts)));
        if stop {
            return Some(Stop::Void("stopped: the service was stopped in the middle of it".to_owned()));
        }
        if let Some(Pause::On | Pause::Until(_)) = pause {
            return Some(Stop::CutShort("paused: by the person".to_owned()));
        }
        if let Some(stop) = self.version_stop() {
            return Some(stop);
        }
        if mounts && let Some(stop) = self.mount_stop(targets) {
            *self.void.borrow_mut() = Some(stop);
        }
        if let Some(stop) = self.sample_beside() {
            self.void.borrow_mut().get_or_insert(stop);
        }
        self.void.borrow().clone()
    }

    /// The reason not to sample a target: it must not be touched, or the privacy settings refuse it, until a round finds that
    /// they do not.
    pub(super) fn why_not_sampled(&self, target: &Target) -> Option<Ending> {
        let refusal = || self.latest.get(&target.name).and_then(Latest::refusal).cloned();
        self.why_not(target).or_else(refusal)
    }

    /// Why a target must not be touched: it is the folder of the database, or its mount is gone and what is below would be
    /// measured in its place.
    pub(super) fn why_not(&self, target: &Target) -> Option<Ending> {
        let (was, path) = (self.family_before(&target.name), target.path.display());
        let message = match self.folders.concern(&target.path).filter(|concern| concern.is_refused()) {
            Some(concern) => format!("{path} {concern}; {}", concern.advice()),
            None if self.book.borrow().is_bare(&target.name, was) => format!(
                "nothing is mounted at {path}: the empty folder below is not measured in its place. Mount it; longhaul \
                 goes on with it by itself"
            ),
            None => return None,
        };
        let path = Some(path.to_string());
        let failure = Failure { operation: None, path, error: None, message };
        Some(Ending { outcome: Outcome::Unavailable, failure })
    }

    /// Takes in how a round went.
    fn conclude(&mut self, result: Result<Made, RoundError>, block: &Block) -> Option<Made> {
        self.void.borrow_mut().take();
        self.note_hangs();
        let now = self.clock.now();
        self.note_clocks();
        match result {
            Ok(made) => {
                tracing::info!(
                    round = made.number,
                    status = made.status.name(),
                    runs = made.runs,
                    "a round ended"
                );
                self.desk.relieve("not-kept");
                self.turn += 1;
                if let Some(scheduled_us) = block.scheduled_us {
                    self.first_us = self.first_us.or(Some(scheduled_us));
                    self.counts.add(Some(made.status), 1);
                }
                let (number, status, reason) = (made.number, made.status, made.reason.clone());
                self.last = Some(LastRound { number, status, reason, ended_us: now.wall_us });
                self.count_usage(&now);
                self.read_latest();
                Some(made)
            }
            Err(error) => {
                self.desk.complain("not-kept", error.to_string(), now.wall_us);
                if let RoundError::Unkept { run, .. } = &error {
                    tracing::error!(run, "a run that could not be kept");
                }
                let mounts = self.mounts();
                self.note_database(&mounts);
                self.close_open_rounds(&now);
                None
            }
        }
    }

    /// Ends rounds that an error left open. If the database takes nothing, the next start does it.
    fn close_open_rounds(&mut self, now: &Moment) {
        let Ok(open) = self.database.reader().and_then(|reader| reader.open_rounds()) else { return };
        for round in open {
            let reason = Some("database: it did not take a run".to_owned());
            let end = RoundEnd { status: RoundStatus::CutShort, reason, ended_us: now.wall_us, after: None };
            if self.database.writer().end_round(round.number, end).is_ok() {
                self.turn += 1;
                self.counts.add(Some(RoundStatus::CutShort), u64::from(round.round.scheduled_us.is_some()));
            }
        }
    }
}

/// Tells the desk how a round goes.
struct Scene<'a> {
    desk: &'a Desk,
    writer: &'a Writer,
    clock: &'a dyn crate::clock::Clock,
    sampler: &'a RefCell<Sampler>,
    worker_version: &'a RefCell<Option<String>>,
}

impl Observer for Scene<'_> {
    fn progress(&mut self, target: &TargetName, progress: &Progress) {
        self.desk.set_progress(target, progress);
    }

    fn phase_began(&mut self, target: &TargetName, name: &str) {
        self.desk.set_phase(target, name);
    }

    fn touches(&mut self, target: &TargetName, recorder: &Arc<Recorder>) {
        self.desk.set_recorder(target, recorder);
        self.sampler.borrow_mut().follow(target, Some(Arc::clone(recorder)));
    }

    fn other_version(&mut self, _: &TargetName, version: &str) {
        self.worker_version.replace(Some(version.to_owned()));
    }
}

impl Audience for Scene<'_> {
    fn run_began(&mut self, target: &Target, workload: &str) {
        self.desk.set_run(&target.name, workload);
    }

    fn run_ended(&mut self, stored: &StoredRun) {
        let run = &stored.run;
        tracing::info!(
            run = stored.number,
            target_name = %run.target,
            workload = run.workload,
            outcome = run.outcome.name(),
            "a run ended"
        );
        self.desk.relieve("not-kept");
        self.desk.count_run();
    }

    fn prepared(&mut self, target: &Target, bytes: u64) {
        let event = Event {
            target: Some(target.name.clone()),
            kind: PREPARED.to_owned(),
            detail: json!({ "bytes": bytes }),
            at_us: self.clock.now().wall_us,
        };
        if let Err(error) = self.writer.add_event(event) {
            tracing::warn!(%error, "what a preparation wrote could not be kept");
        }
    }

    fn not_kept(&mut self, error: &longhaul_store::Error) {
        self.desk.complain("not-kept", error.to_string(), self.clock.now().wall_us);
    }
}
