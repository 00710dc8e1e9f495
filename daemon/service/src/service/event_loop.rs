//! The loop of the service: waits for the next event or the next known time, and handles it.

use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use longhaul_model::{Event, Hint};
use longhaul_store::PREPARATION_EVENT;
use serde_json::json;

use super::examination::Examination;
use super::sampling::SamplingView;
use super::scheduler::MAX_WAIT;
use super::task::{ExaminationJob, RunningTask};
use super::workers::TargetAccess;
use super::{ExitReason, Service};
use crate::clock::ClockReading;
use crate::command::{Command, Pause};
use crate::event::{ExaminationEnd, RoundEvent, ServiceEvent};
use crate::round_stop::RoundStop;
use crate::status::{CheckStatus, State};
use crate::worker::end_workers;

/// Interval at which samples are collected during a round.
const COLLECT_INTERVAL: Duration = Duration::from_secs(1);
/// Time that workers may take to send their last samples when the service stops.
const FINAL_SAMPLES_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of callers of `longhaul doctor` that wait for the end of a task. As many may wait for an examination in
/// progress; together they are half of the threads that the web server has for them and for its pages.
const MAX_DOCTOR_CALLERS: usize = 4;

impl Service {
    /// Runs until a stop command arrives or another version takes over. Returns the reason of the exit.
    ///
    /// Needs a thread of its own: each step may wait for the database.
    pub fn run(mut self) -> ExitReason {
        loop {
            self.handle.heartbeat();
            self.handle_waiting_events();
            let wait = if self.task.is_some() {
                self.follow_task()
            } else if self.handle.is_stopping() {
                break;
            } else {
                self.advance()
            };
            if let Some(event) = self.next_event(wait) {
                self.on_event(event);
            }
        }
        self.finish();
        if self.upgrade.is_replaced() { ExitReason::Replaced } else { ExitReason::Stopped }
    }

    /// Waits for the next event, but at most for this time.
    fn next_event(&self, wait: Duration) -> Option<ServiceEvent> {
        if let Ok(event) = self.events.try_recv() {
            return Some(event);
        }
        // During a task real time even in a simulation: workers and their flight recorders are real, too.
        let wait = if self.task.is_some() { wait } else { self.clock.real_wait(wait) };
        self.events.recv_timeout(wait).ok()
    }

    fn handle_waiting_events(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: ServiceEvent) {
        match event {
            ServiceEvent::Command(command) => self.on_command(command),
            ServiceEvent::MountsChanged => self.stop_round_on_mount_change(),
            ServiceEvent::ShareDied => self.expect_forced_unmount(),
            ServiceEvent::Round(event) => self.on_round_event(event),
            ServiceEvent::RoundEnded(end) => self.finish_round(end),
            ServiceEvent::Examined(end) => self.finish_examination(end),
            ServiceEvent::TaskPanicked(panic) => resume_unwind(panic),
        }
    }

    /// Takes a command. Most are carried out between two tasks, by [`Self::handle_commands`].
    fn on_command(&mut self, command: Command) {
        match command {
            Command::Stop => self.task.iter().for_each(RunningTask::stop),
            Command::SetPause(pause) => {
                if let (Pause::On | Pause::Until(_), Some(RunningTask::Round(round))) = (pause, &self.task) {
                    round.stop.request(RoundStop::CutShort("paused: paused by the user".to_owned()));
                }
                // At once: the caller is told that it is done, and the service may end before the round has.
                self.set_pause(pause);
            }
            Command::RunRound => self.scheduler.request_round(),
            Command::Configure(config) => self.commands.config = Some(config),
            Command::Examine(reply) => {
                let replies = &mut self.commands.doctor_replies;
                if replies.len() == MAX_DOCTOR_CALLERS {
                    // The caller that has waited longest has probably given up.
                    replies.remove(0);
                }
                replies.push(reply);
            }
        }
    }

    fn on_round_event(&mut self, event: RoundEvent) {
        match event {
            RoundEvent::Started { round, runs } => {
                self.handle.begin_round(round, runs);
                let next = self.scheduler.next_round(&self.clock.peek());
                self.handle.update_status(|status| {
                    status.state = State::Measuring;
                    // Until now, it was the round that begins.
                    status.next_round_us = status.next_round_us.map(|_| next);
                });
            }
            RoundEvent::Progress(target, progress) => self.handle.set_progress(&target, &progress),
            RoundEvent::PhaseStarted { target, phase } => self.handle.set_phase(&target, &phase),
            RoundEvent::WorkerStarted(target, recorder) => {
                self.handle.set_recorder(&target, &recorder);
                self.sampling.set_recorder(&target, recorder);
            }
            RoundEvent::VersionMismatch => self.upgrade.record_mismatch(),
            RoundEvent::RunStarted { target, workload } => {
                self.handle.set_run(&target, &workload);
                self.task.iter_mut().for_each(|task| task.run_started(&target));
            }
            RoundEvent::RunEnded(outcome) => {
                self.task.iter_mut().for_each(|task| task.run_ended(outcome));
                self.handle.clear_problem("not-stored");
                if self.handle.end_run() > 0 {
                    self.stop_round_on_backup();
                }
            }
            RoundEvent::CorpusPrepared { target, bytes, at } => {
                let (kind, detail) = (PREPARATION_EVENT.to_owned(), json!({ "bytes": bytes }));
                self.record(Some(Event { target: Some(target), kind, detail, at_us: at }));
            }
            RoundEvent::NotStored { error, at } => self.handle.raise_problem("not-stored", error, at),
        }
    }

    /// Makes one step between two tasks: detects changes, carries out commands, samples, and starts a round that is
    /// due. Returns the time until the next step.
    fn advance(&mut self) -> Duration {
        self.event_log.store(&self.database);
        self.record_clock_changes();
        let mounts = self.mount_table();
        self.record_mount_changes(&mounts);
        self.record_hung_targets();
        self.check_database_file(&mounts);
        self.handle_commands();
        if self.task.is_none() {
            self.update_sampling();
            self.check_program();
            let wait = self.follow_schedule().min(self.sampling_interval());
            if self.task.is_none() {
                self.publish_status();
                return wait;
            }
        }
        self.follow_task()
    }

    /// Carries out the commands that waited for the end of a task.
    fn handle_commands(&mut self) {
        if let Some(config) = self.commands.config.take() {
            self.apply_config(*config);
        }
        let resumed = self.admission.end_expired_pause(&self.clock.now());
        self.record(resumed);
        let replies = std::mem::take(&mut self.commands.doctor_replies);
        if !replies.is_empty() {
            let snapshot = self.snapshot();
            let mut workers = self.workers.take();
            workers.iter_mut().for_each(|worker| self.target_access().apply_to(worker));
            let (notify, nas) = (self.config.notify.clone(), self.config.nas.clone());
            let job = ExaminationJob { workers, notify, nas, events: self.handle.events().sender() };
            self.task = Some(RunningTask::Examination(job.start(replies, snapshot)));
        }
    }

    fn finish_examination(&mut self, end: ExaminationEnd) {
        self.workers.put_back(end.workers);
        let Some(RunningTask::Examination(task)) = self.task.take() else { return };
        let examination = Examination {
            now: self.clock.now(),
            snapshot: &task.snapshot,
            mount_table: &self.host.mounts().unwrap_or_default(),
            config: &self.config,
            admission: &self.admission,
            database: &self.database,
            mounts: &self.mounts,
            special_folders: &self.special_folders,
            log_path: self.log_path.as_deref(),
        };
        let mut checks = examination.checks(&end.found);
        checks.extend(end.channels);
        for target in &self.config.targets {
            // A successful check shows that the privacy settings no longer refuse access.
            let name = format!("target {}", target.name);
            if checks.iter().any(|check| check.name == name && check.status == CheckStatus::Ok) {
                self.history.clear_refusal(&target.name);
            }
        }
        for reply in task.replies {
            let _ = reply.try_send(checks.clone());
        }
    }

    /// Runs one sampling step between rounds: starts or stops the process of each probe, and collects samples.
    fn update_sampling(&mut self) {
        let _span = tracing::debug_span!("sample").entered();
        let now = self.clock_changes.last();
        let is_paused = self.admission.is_paused();
        let view = SamplingView { now, config: &self.config, mounts: &self.mounts, is_paused };
        let access = TargetAccess {
            special_folders: &self.special_folders,
            mounts: &self.mounts,
            history: &self.history,
        };
        for worker in self.workers.iter_mut() {
            access.apply_to_sampling(worker);
            self.sampling.update_probe(worker, view);
        }
        self.collect_samples(now, None);
        let view = SamplingView { now, config: &self.config, mounts: &self.mounts, is_paused };
        let events = self.sampling.record_facts(view, &self.database);
        self.record(events);
    }

    fn collect_samples(&mut self, now: ClockReading, during: Option<&str>) {
        let is_paused = self.admission.is_paused();
        let view = SamplingView { now, config: &self.config, mounts: &self.mounts, is_paused };
        let events = self.sampling.collect(view, during);
        self.sampling.changed_stalls().into_iter().for_each(|stalls| self.handle.set_stalls(stalls));
        self.sampling.store_if_due(view, &self.database);
        self.record(events);
    }

    /// Samples once a second during a round, and stops the round if it must yield to a user. Returns the time until
    /// the next step.
    fn follow_task(&mut self) -> Duration {
        let Some(RunningTask::Round(round)) = &mut self.task else { return MAX_WAIT };
        let elapsed = round.last_sample.map_or(COLLECT_INTERVAL, |last| last.elapsed());
        if elapsed < COLLECT_INTERVAL {
            return COLLECT_INTERVAL - elapsed;
        }
        round.last_sample = Some(Instant::now());
        let stop = round.stop.clone();
        let now = self.clock.peek();
        self.collect_samples(now, Some("a round"));
        if let Some(reason) = self.sampling.yield_reason(self.sampling_view(now)) {
            stop.request(reason);
        }
        COLLECT_INTERVAL
    }

    /// Cuts a scheduled round short if a backup has begun, which may go to the same NAS. Asked after each run but the last.
    fn stop_round_on_backup(&mut self) {
        let Some(RunningTask::Round(round)) = &self.task else { return };
        let applies = round.scheduled.is_some() && self.config.schedule.skip_rules.during_backup;
        if applies && self.host.backup_running() == Some(true) {
            let reason = "backup: a Time Machine backup began during the round".to_owned();
            round.stop.request(RoundStop::CutShort(reason));
        }
    }

    /// Notes in the round in progress that a Mac gives a share up, whose mount then vanishes.
    fn expect_forced_unmount(&mut self) {
        let now = self.clock.peek();
        if let Some(RunningTask::Round(round)) = &mut self.task {
            round.share_died = Some(now);
        }
        // The same event may tell that it has vanished.
        self.stop_round_on_mount_change();
    }

    /// Stops the round in progress if the mount of one of its targets has changed. Between rounds, [`Self::advance`]
    /// records changes.
    fn stop_round_on_mount_change(&mut self) {
        if matches!(self.task, Some(RunningTask::Round(_))) {
            let table = self.mount_table();
            self.record_mount_changes(&table);
        }
    }

    fn check_program(&mut self) {
        if self.upgrade.is_due(&self.clock.peek()) {
            self.upgrade_skip_reason();
        }
    }

    fn sampling_interval(&self) -> Duration {
        let interval = self.sampling.counter_interval(self.sampling_view(self.clock_changes.last()), None);
        interval.map_or(MAX_WAIT, |interval| interval.min(MAX_WAIT))
    }

    /// Stores all that is left when the service stops, and closes stalls whose end it will not see.
    fn finish(&mut self) {
        let mounts = self.mount_table();
        self.check_database_file(&mounts);
        self.event_log.store(&self.database);
        self.publish_status();
        self.store_skipped_rounds();
        end_workers(self.workers.iter_mut(), FINAL_SAMPLES_TIMEOUT);
        let now = self.clock.peek();
        self.collect_samples(now, None);
        let view = SamplingView { now, config: &self.config, mounts: &self.mounts, is_paused: true };
        self.sampling.store(view, &self.database);
        if let Err(error) = self.database.writer().close_stalls(now.wall) {
            tracing::warn!(error = error.one_line(), "ongoing stalls could not be closed");
        }
        tracing::info!("the service ends");
    }
}
