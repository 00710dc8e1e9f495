//! Starts or skips rounds that are due, and stores their results.

use std::sync::Arc;
use std::time::Duration;

use longhaul_model::{Hint, MachineSnapshot, Timestamp};
use longhaul_store::{NewRound, PlannedRun};

use super::Service;
use super::admission::RoundFacts;
use super::scheduler::{MAX_WAIT, MissedSlots, NextAction};
use super::task::{RoundJob, RunningTask};
use crate::clock::ClockReading;
use crate::command::Command;
use crate::event::RoundEnd;
use crate::round::{RoundError, RoundTasks, close_open_rounds};
use crate::schedule::skip::{OTHER_LINK, SkipReason};
use crate::schedule::{Slot, baseline_interval};
use crate::worker::Interruption;

impl Service {
    /// Does what the schedule asks for now. Returns the time until it asks again.
    pub(super) fn follow_schedule(&mut self) -> Duration {
        self.store_skipped_rounds();
        // All decisions below use the reading made here, so that sleep since the last
        // reading is always known first.
        self.record_clock_changes();
        let now = self.clock_changes.last();
        if self.config.targets.is_empty() {
            self.scheduler.restart(&now);
            return MAX_WAIT;
        }
        match self.scheduler.next(&now) {
            NextAction::RunRequested => self.start_requested_round(),
            NextAction::Run(slot) => self.start_scheduled_round(slot),
            NextAction::RecordMissed(missed) => self.record_missed(&missed),
            NextAction::Prepare => {
                // The next snapshot tells the rate of the traffic since this one.
                self.snapshot();
                self.links.expire();
                // A minute before the round, a service manager can still start the new version in time.
                self.upgrade_skip_reason();
            }
            NextAction::Wait(time) => return time,
        }
        Duration::ZERO
    }

    fn start_scheduled_round(&mut self, slot: Slot) {
        let span = tracing::info_span!("slot", slot = slot.number);
        let _slot = span.clone().entered();
        let now = self.clock.now();
        let scheduled = Some(now.wall_at(slot.at_ns));
        let snapshot = self.snapshot();
        self.admission.refresh_usage(&self.database, &now);
        let chosen = match self.upgrade_skip_reason() {
            Some(reason) => Err(reason),
            None => self.admit_scheduled(&now, &snapshot),
        };
        match chosen {
            Ok(chosen) => self.start_round(chosen, scheduled, snapshot, span),
            Err(reason) => self.record_skipped(&now, scheduled, &reason),
        }
    }

    fn start_requested_round(&mut self) {
        let now = self.clock.now();
        self.admission.refresh_usage(&self.database, &now);
        let snapshot = self.snapshot();
        let chosen = match self.upgrade_skip_reason() {
            Some(reason) => Err(reason),
            None => self.admission.admit_requested(&self.round_facts(), &now),
        };
        match chosen {
            Ok(chosen) => self.start_round(chosen, None, snapshot, tracing::Span::none()),
            Err(reason) => self.record_skipped(&now, None, &reason),
        }
    }

    fn admit_scheduled(
        &mut self,
        now: &ClockReading,
        snapshot: &MachineSnapshot,
    ) -> Result<Vec<usize>, SkipReason> {
        let facts = RoundFacts {
            config: &self.config,
            mounts: &self.mounts,
            history: &self.history,
            round_index: self.scheduler.round_index(),
            first_scheduled: self.scheduler.first_scheduled(),
        };
        let chosen = self.admission.admit_scheduled(&facts, now, snapshot);
        if chosen.as_ref().is_err_and(|reason| reason.code == OTHER_LINK) {
            let event = self.admission.adopt_link(self.config.schedule.rounds_per_day, snapshot, now);
            self.record(event);
        }
        chosen
    }

    /// Starts a round on the chosen targets. It ends with [`Self::finish_round`].
    fn start_round(
        &mut self,
        chosen: Vec<usize>,
        scheduled: Option<Timestamp>,
        before: MachineSnapshot,
        span: tracing::Span,
    ) {
        self.upgrade.forget_mismatch();
        let mounts = self.sampling.mounted_targets(self.sampling_view(self.clock_changes.last()));
        let mut workers = self.workers.take();
        workers.iter_mut().for_each(|worker| self.target_access().apply_to(worker));
        let is_refused = |index: &usize| self.history.refusal(&workers[*index].target().name).is_some();
        let refused = chosen.iter().copied().filter(is_refused).collect();
        let baseline_interval = baseline_interval(&self.config.targets);
        let job = RoundJob {
            workers,
            chosen,
            refused,
            mounts,
            tasks: self.round_tasks(),
            spec: self.scheduler.round_spec(scheduled, baseline_interval, before),
            writer: self.database.writer_for_round(),
            database: self.database.path().to_owned(),
            clock: Arc::clone(&self.clock),
            export_pause: Arc::clone(&self.handle.export_pause),
            events: self.handle.events().sender(),
            nas: self.config.nas.clone(),
            service_stop: Interruption::default(),
            measures_freshness: self.config.schedule.freshness,
            span,
        };
        self.task = Some(RunningTask::Round(job.start()));
    }

    fn round_tasks(&self) -> RoundTasks {
        let mut settings = self.config.workload_settings(self.database.path());
        settings.slices = self.admission.slice_count(&self.config);
        RoundTasks {
            workloads: self.config.workloads.clone(),
            scale: self.config.scale,
            settings,
            cap: self.config.limits.cap,
        }
    }

    /// Updates the service's state after a round.
    pub(super) fn finish_round(&mut self, end: RoundEnd) {
        self.handle.end_round();
        self.workers.put_back(end.workers);
        let Some(RunningTask::Round(task)) = self.task.take() else { return };
        let _slot = task.span.enter();
        self.record_hung_targets();
        let now = self.clock.now();
        self.record_clock_changes();
        match end.result {
            Ok(result) => {
                tracing::info!(
                    round = result.number,
                    status = result.status.name(),
                    runs = result.runs,
                    "a round ended"
                );
                self.handle.clear_problem("not-stored");
                self.scheduler.round_stored(task.scheduled);
                if task.scheduled.is_some() {
                    self.rounds.count(result.status);
                }
                self.rounds.set_last(&result, now.wall);
                self.admission.refresh_usage(&self.database, &now);
                self.refresh_history(now.wall);
            }
            Err(error) => self.finish_unstored_round(&error, &now),
        }
    }

    fn finish_unstored_round(&mut self, error: &RoundError, now: &ClockReading) {
        // The status is shown on pages and exported, so the run is only in the log.
        let text = match error {
            RoundError::NotStored { source, run } => {
                tracing::error!(run, "a run could not be stored");
                source.one_line()
            }
            RoundError::Store(_) => error.to_string(),
        };
        self.handle.raise_problem("not-stored", text, now.wall);
        // The database file may be the cause, so it is checked before open rounds are closed.
        let mounts = self.mount_table();
        self.check_database_file(&mounts);
        self.close_open_rounds();
        if !self.handle.is_stopping() {
            self.scheduler.retry_slot(now);
        }
    }

    /// Stores the end of rounds that an error left open. If the database still refuses, the next start does it.
    fn close_open_rounds(&mut self) {
        let reason = "database: a run could not be stored";
        let closed = self
            .database
            .reader()
            .and_then(|reader| close_open_rounds(&reader, self.database.writer(), reason))
            .unwrap_or_default();
        closed.iter().for_each(|_| self.scheduler.round_stored(None));
        // Not only counted: after a repair, the counts may have these rounds as open.
        if !closed.is_empty() {
            self.refresh_rounds();
        }
    }

    /// Reads the counts and the last of the stored rounds again, after the database was repaired or a round was closed.
    pub(super) fn refresh_rounds(&mut self) {
        let result = self.database.reader().and_then(|reader| self.rounds.refresh(&reader));
        if let Err(error) = result {
            tracing::warn!(error = error.one_line(), "the rounds cannot be read");
        }
    }

    fn record_skipped(&mut self, now: &ClockReading, scheduled: Option<Timestamp>, reason: &SkipReason) {
        tracing::info!(reason = reason.code, "a round is skipped");
        self.rounds.add_skipped(self.skipped_round(now.wall, scheduled), reason.to_string());
        self.store_skipped_rounds();
    }

    /// Stores the slots that passed without a round: one row each, with the reason.
    fn record_missed(&mut self, missed: &MissedSlots) {
        let now = self.clock.now();
        self.record(Some(missed.event(now.wall)));
        for at_ns in &missed.times_ns {
            let at = now.wall_at(*at_ns);
            self.rounds.add_skipped(self.skipped_round(at, Some(at)), missed.reason.to_string());
        }
        self.store_skipped_rounds();
    }

    fn skipped_round(&self, at: Timestamp, scheduled: Option<Timestamp>) -> NewRound {
        let targets = self.config.targets.iter().map(|target| &target.name);
        NewRound {
            started: at,
            utc_offset_seconds: self.clock_changes.last().utc_offset_seconds,
            seed: self.seed,
            scale: self.config.scale,
            planned: PlannedRun::each(&self.config.workloads, targets),
            scheduled,
            before: None,
        }
    }

    /// Stores the skipped rounds that the database has not accepted yet.
    pub(super) fn store_skipped_rounds(&mut self) {
        if !self.rounds.has_unstored() {
            return;
        }
        match self.rounds.store(&self.database) {
            Ok(()) => self.handle.clear_problem("not-stored"),
            Err(error) => {
                self.handle.raise_problem("not-stored", error.one_line(), self.clock.now().wall);
            }
        }
    }

    /// Returns the current state of the machine.
    pub(super) fn snapshot(&mut self) -> MachineSnapshot {
        let servers = self.sampling.servers(self.sampling_view(self.clock_changes.last()));
        self.host.snapshot(&servers)
    }

    /// Checks the program file. Returns the reason not to start a round if the service exits for another version.
    pub(super) fn upgrade_skip_reason(&mut self) -> Option<SkipReason> {
        let reason = self.upgrade.check(&self.clock.peek(), &self.handle)?;
        self.handle.send(Command::Stop);
        Some(reason)
    }
}
