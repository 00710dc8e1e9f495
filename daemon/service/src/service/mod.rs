//! The background service: one loop that waits for the next slot or event, decides, and lets tasks run rounds.
//!
//! The state is split into parts that own their data: `scheduler` (when), `admission` (whether), `workers` (on
//! what), `sampling` (what else is measured), `status_publisher` (what others see). The loop in `event_loop`
//! connects them. Clock, host and worker program are passed in, so that tests simulate weeks in
//! seconds with everything else real. Only workers access a target. The service itself reads no more than the symbolic
//! links of a target's path that are on local disks, above any share, in a thread of its own (`target_links`).

mod admission;
mod clock_changes;
mod database_repair;
mod event_log;
mod event_loop;
mod examination;
mod fidelity;
mod freshness_checks;
mod round_log;
mod round_reporter;
mod rounds;
mod sampling;
mod scheduler;
mod server_addresses;
mod status_publisher;
mod target_history;
mod target_links;
mod task;
mod upgrade;
mod workers;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use longhaul_model::{Event, Hint, Mount, Timestamp};
use longhaul_store::{Reader, SharedWriter};
use serde_json::json;
use sha2::{Digest, Sha256};

use self::admission::{Admission, RoundFacts, USUAL_LINK};
use self::clock_changes::ClockChanges;
use self::event_log::EventLog;
use self::round_log::RoundLog;
use self::sampling::{Sampling, SamplingView, probe_plan};
use self::scheduler::Scheduler;
use self::status_publisher::{StatusPublisher, StatusView};
use self::target_history::TargetHistory;
use self::target_links::TargetLinks;
use self::task::RunningTask;
use self::upgrade::Upgrade;
use self::workers::{TargetAccess, Workers};
use crate::clock::{Clock, ClockReading};
use crate::command::Pause;
use crate::config::Config;
use crate::crash_loop::CrashLoopGuard;
use crate::damage::{DAMAGE_PROBLEM, damage_problem};
use crate::database::Database;
use crate::event::ServiceEvent;
use crate::handle::ServiceHandle;
use crate::host::Host;
use crate::mounts::{MountChange, MountTracker};
use crate::program_file::ProgramFile;
use crate::round::close_open_rounds;
use crate::sampling::Sensors;
use crate::schedule::skip::OTHER_LINK;
use crate::status::Check;
use crate::target_path::SpecialFolders;
use crate::worker::Launcher;

/// Everything that the service needs from its environment.
pub struct ServiceDeps {
    /// Source of the current time.
    pub clock: Box<dyn Clock>,
    /// Source of facts about the machine.
    pub host: Box<dyn Host>,
    /// Source of counter readings and load samples.
    pub sensors: Box<dyn Sensors>,
    /// Program of the workers and its arguments.
    pub worker_command: (PathBuf, Vec<String>),
    /// The service's own program file, checked for upgrades. `None`: not checked.
    pub program_file: Option<ProgramFile>,
    /// Shared state for commands and status.
    pub handle: Arc<ServiceHandle>,
    /// Initial configuration.
    pub config: Config,
    /// Path of the configuration file. `None`: there is none.
    pub config_path: Option<PathBuf>,
    /// Path of the database file.
    pub database_path: PathBuf,
    /// Path of the log file. `None`: no log is written.
    pub log_path: Option<PathBuf>,
    /// True after a crash loop: no rounds run until the user resumes the service.
    pub safe_mode: bool,
}

/// The reason why the service exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// A user or the system stopped the service.
    Stopped,
    /// Another version replaced the program file, and a service manager will start it.
    Replaced,
}

/// The background service.
pub struct Service {
    clock: Arc<dyn Clock>,
    host: Box<dyn Host>,
    handle: Arc<ServiceHandle>,
    events: Receiver<ServiceEvent>,
    config: Config,
    log_path: Option<PathBuf>,
    database: Database,
    special_folders: SpecialFolders,
    seed: u64,
    clock_changes: ClockChanges,
    mounts: MountTracker,
    links: TargetLinks,
    history: TargetHistory,
    scheduler: Scheduler,
    admission: Admission,
    rounds: RoundLog,
    workers: Workers,
    sampling: Sampling,
    upgrade: Upgrade,
    publisher: StatusPublisher,
    commands: PendingCommands,
    event_log: EventLog,
    crash_loop: CrashLoopGuard,
    /// The round or examination in progress, which has the workers.
    task: Option<RunningTask>,
}

/// Commands that wait for the end of a task. A later configuration replaces an earlier one.
#[derive(Default)]
struct PendingCommands {
    config: Option<Box<Config>>,
    /// Callers that wait for the checks of `longhaul doctor`. One examination answers all of them.
    doctor_replies: Vec<SyncSender<Vec<Check>>>,
}

impl Service {
    /// Opens the database and continues where the last service stopped. The caller must
    /// hold the lock of the database.
    ///
    /// # Errors
    ///
    /// If the database cannot be opened, read or written.
    pub fn open(mut deps: ServiceDeps) -> longhaul_store::Result<Self> {
        let now = deps.clock.now();
        let mount_table = deps.host.mounts().unwrap_or_default();
        let (database, aside) = Database::open(&deps.database_path, &mount_table, now.wall)?;
        database.writer().set_threshold_once(deps.config.analysis.threshold)?;
        let seed = machine_seed(&database.reader()?, database.machine_id())?;
        let sampling = Sampling::new(deps.sensors);
        let (program, arguments) = deps.worker_command;
        let launcher = Launcher {
            arguments,
            sample_sender: Some(sampling.new_sender()),
            ..Launcher::for_database(program, database.path(), database.machine_id())
        };
        let mut service = Self {
            clock: deps.clock.into(),
            host: deps.host,
            events: deps.handle.events().take_receiver(),
            publisher: StatusPublisher::new(Arc::clone(&deps.handle), now.wall, deps.config_path),
            handle: deps.handle,
            // Without targets until `apply_config` below creates their workers.
            config: Config { targets: vec![], ..deps.config.clone() },
            log_path: deps.log_path,
            special_folders: SpecialFolders::of(Some(database.path()), &mount_table),
            database,
            seed,
            clock_changes: ClockChanges::since(now),
            mounts: MountTracker::default(),
            links: TargetLinks::start(),
            history: TargetHistory::default(),
            scheduler: Scheduler::new(&now, deps.config.schedule.interval_seconds(), seed),
            admission: if deps.safe_mode { Admission::in_safe_mode() } else { Admission::default() },
            rounds: RoundLog::default(),
            workers: Workers::new(launcher),
            sampling,
            upgrade: Upgrade::of(deps.program_file),
            commands: PendingCommands::default(),
            event_log: EventLog::default(),
            crash_loop: CrashLoopGuard::for_database(&deps.database_path),
            task: None,
        };
        service.restore_state(&now)?;
        service.database.writer().close_stalls(now.wall)?;
        service.apply_config(deps.config);
        service.record_mount_changes(&mount_table);
        if let Some(aside) = aside {
            service
                .report_repair(database_repair::quarantine_text(service.database.path(), &aside), now.wall);
        }
        service.publish_status();
        Ok(service)
    }

    /// Restores which network interface is the usual one, and how many rounds were skipped because of another one.
    fn restore_link(&mut self, reader: &Reader) -> longhaul_store::Result<()> {
        let known = reader.last_with_link()?.map(|last| last.round);
        let measured = known.as_ref().map_or(Timestamp::UNIX_EPOCH, |round| round.started);
        let adopted = reader.last_event([USUAL_LINK, USUAL_LINK])?.map(|stored| stored.event);
        let adopted = adopted.filter(|event| event.at_us > measured);
        let since = adopted.as_ref().map_or(measured, |event| event.at_us);
        let link = match adopted {
            Some(event) => serde_json::from_value(event.detail["after"].clone()).ok(),
            None => known.and_then(|round| round.before?.link),
        };
        self.admission.restore_link(link, reader.count_skipped(since, OTHER_LINK)?);
        Ok(())
    }

    /// Restores the state of the last service: the last slot, round counts, the pause. Ends rounds that a crash left open.
    fn restore_state(&mut self, now: &ClockReading) -> longhaul_store::Result<()> {
        let reader = self.database.reader()?;
        let reason = "crash: longhaul or this machine stopped during the round";
        close_open_rounds(&reader, self.database.writer(), reason)?;
        self.rounds.refresh(&reader)?;
        self.scheduler.set_earlier_rounds(reader.count_started_rounds()?, reader.first_scheduled()?);
        if let Some(last) = reader.last_scheduled()? {
            let scheduled = last.round.scheduled.unwrap_or(last.round.started);
            self.scheduler.continue_after(now, self.rounds.counts().planned(), scheduled);
        }
        self.restore_link(&reader)?;
        if let Some(event) = reader.last_event(["pause", "resume"])? {
            self.admission.restore_pause(
                match (event.event.kind.as_str(), event.event.detail["until_us"].as_i64()) {
                    ("pause", Some(until_us)) => Pause::Until(Timestamp::from_us(until_us)),
                    ("pause", None) => Pause::On,
                    _ => Pause::Off,
                },
            );
        }
        self.admission.refresh_usage(&self.database, now);
        Ok(())
    }

    /// Returns a handle to the database writer, for other threads that store data.
    pub fn shared_writer(&self) -> SharedWriter {
        self.database.shared_writer()
    }

    /// Applies a configuration.
    fn apply_config(&mut self, config: Config) {
        let now = self.clock_changes.last();
        let view = SamplingView { now, config: &self.config, mounts: &self.mounts, is_paused: true };
        // Samples of a target that is removed can only be stored with the old configuration.
        self.sampling.store(view, &self.database);
        self.workers.configure(&config.targets, probe_plan(&config, self.seed).as_ref());
        if config.schedule.rounds_per_day != self.config.schedule.rounds_per_day {
            self.scheduler.set_interval(&self.clock.now(), config.schedule.interval_seconds());
        }
        if config.targets != self.config.targets {
            let kept = config.targets.iter().filter(|target| self.config.targets.contains(target));
            self.sampling.keep_only(&kept.cloned().collect::<Vec<_>>());
        }
        let mounts = self.mount_table();
        self.report_other_database(&config, &mounts);
        self.config = config;
        self.refresh_history(self.clock_changes.last().wall);
        self.record_mount_changes(&mounts);
    }

    /// Shows in the status that a new configuration names another database: the definition of the service names the one in use.
    fn report_other_database(&self, config: &Config, mounts: &[Mount]) {
        let own = self.database.path();
        match config.database.as_deref().filter(|named| database_repair::is_other_file(named, own, mounts)) {
            None => self.handle.clear_problem("other-database"),
            Some(named) => {
                let text = format!(
                    "the configuration names the database {}, but {} is in use: run `longhaul service install`",
                    named.display(),
                    own.display()
                );
                self.handle.raise_problem("other-database", text, self.clock_changes.last().wall);
            }
        }
    }

    fn set_pause(&mut self, pause: Pause) {
        let was_safe_mode = self.admission.is_safe_mode();
        let event = self.admission.set_pause(pause, &self.clock.now());
        if was_safe_mode && !self.admission.is_safe_mode() {
            self.handle.clear_problem("safe-mode");
            // Otherwise a single crash after this would end in safe mode again.
            self.crash_loop.reset();
        }
        // During a round, no other status is published.
        let is_paused = pause != Pause::Off;
        self.handle.update_status(|status| status.is_paused = is_paused);
        self.record(event);
        self.event_log.store(&self.database);
    }

    /// Records changes of the targets' mounts, and stops the round in progress if it has one of them. A target without an
    /// earlier reading has no change. Workers of changed targets exit, because they only know the old mount.
    fn record_mount_changes(&mut self, table: &[Mount]) {
        let changes = self.update_mounts(table);
        if !changes.is_empty() {
            self.sampling.expire_facts();
        }
        let now = self.clock.peek();
        for change in changes {
            if let Some(RunningTask::Round(round)) = &self.task
                && round.targets.contains(&change.target)
            {
                round.stop.request(round.stop_for(&change, &now));
            }
            self.workers.restart(&change.target);
            self.record(Some(change.into_event(self.clock.now().wall)));
        }
    }

    /// Updates the mounts of the targets, also of those behind a symbolic link, and returns their changes. Idle workers of those whose
    /// earlier mount has expired, which is no change, exit.
    fn update_mounts(&mut self, table: &[Mount]) -> Vec<MountChange> {
        let targets = self.links.resolve(&self.config.targets, table);
        let changes = self.mounts.update(&targets, table);
        self.workers.shut_down(&self.mounts.take_expired());
        changes
    }

    /// Records sleep, steps of the wall clock and changes of the local time zone.
    fn record_clock_changes(&mut self) {
        let events = self.clock_changes.update(self.clock.now());
        if events.iter().any(|event| event.kind == clock_changes::WAKE_EVENT) {
            self.scheduler.wake(&self.clock_changes.last());
        }
        self.record(events);
    }

    /// Records targets that started to hang, and hung targets that recovered.
    fn record_hung_targets(&mut self) {
        let events = self.workers.update_hung(self.clock_changes.last().wall);
        self.record(events);
    }

    /// Checks that the database file is still the one that was opened, and repairs or replaces it if not.
    fn check_database_file(&mut self, mounts: &[Mount]) {
        let now = self.clock_changes.last().wall;
        match database_repair::check_and_repair(&mut self.database, mounts, now) {
            Ok(None) => {}
            Ok(Some(text)) => {
                self.report_repair(text, now);
                self.refresh_history(now);
                self.refresh_rounds();
                self.handle.clear_problem("database-lost");
            }
            Err(text) => self.handle.raise_problem("database-lost", text, now),
        }
    }

    /// Reads the last rounds and what they found. Shows in the status if a page of the database is damaged: rounds go on, because
    /// what is written can often be recovered, but reports fail.
    pub(super) fn refresh_history(&mut self, now: Timestamp) {
        match self.history.refresh(&self.database, &self.config.targets) {
            Err(error @ longhaul_store::Error::Damaged { .. }) => {
                let text = [Some(error.one_line()), error.hint()]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(": ");
                self.handle.raise_problem("database-damaged", text, now);
            }
            Err(error) => tracing::warn!(error = error.one_line(), "the last rounds cannot be read"),
            Ok(()) => self.handle.clear_problem("database-damaged"),
        }
        self.report_damage(now);
    }

    /// Shows in the status that data differs from what was written, or that none does any more. Keeps the problem if the
    /// database cannot be read.
    pub(super) fn report_damage(&self, now: Timestamp) {
        let found = self.database.reader().and_then(|reader| damage_problem(&reader, now));
        match found {
            Ok(Some(text)) => self.handle.raise_problem(DAMAGE_PROBLEM, text, now),
            Ok(None) => self.handle.clear_problem(DAMAGE_PROBLEM),
            Err(error) => tracing::warn!(error = error.one_line(), "the mismatches cannot be read"),
        }
    }

    fn report_repair(&mut self, text: String, now: Timestamp) {
        let (kind, detail) = ("database".to_owned(), json!({ "what": text }));
        self.handle.raise_problem("database", text, now);
        self.record(Some(Event { target: None, kind, detail, at_us: now }));
    }

    /// Stores events, or keeps them for [`Self::advance`] if others wait.
    fn record(&mut self, events: impl IntoIterator<Item = Event>) {
        self.event_log.record(events, &self.database);
    }

    /// Returns the mount table. Empty: it cannot be read.
    fn mount_table(&mut self) -> Vec<Mount> {
        self.host.mounts().unwrap_or_default()
    }

    fn sampling_view(&self, now: ClockReading) -> SamplingView<'_> {
        let is_paused = self.admission.is_paused();
        SamplingView { now, config: &self.config, mounts: &self.mounts, is_paused }
    }

    fn round_facts(&self) -> RoundFacts<'_> {
        RoundFacts {
            config: &self.config,
            mounts: &self.mounts,
            history: &self.history,
            round_index: self.scheduler.round_index(),
            first_scheduled: self.scheduler.first_scheduled(),
        }
    }

    fn target_access(&self) -> TargetAccess<'_> {
        TargetAccess { special_folders: &self.special_folders, mounts: &self.mounts, history: &self.history }
    }

    fn publish_status(&mut self) {
        let (now, workers) = (self.clock.now(), self.workers.statuses());
        self.publisher.publish(&StatusView {
            sampling_view: self.sampling_view(now),
            facts: self.round_facts(),
            access: self.target_access(),
            scheduler: &self.scheduler,
            admission: &self.admission,
            rounds: &self.rounds,
            sampling: &self.sampling,
            database: &self.database,
            workers,
        });
    }
}

/// Returns the seed of a machine, from which all random draws follow: that of its rounds so far, without those of another computer, or
/// else the first 64 bits of the SHA-256 of a public text and its id. A shared file has the seed, and must not lead to the id.
///
/// # Errors
///
/// If the database cannot be read.
pub fn machine_seed(reader: &Reader, machine: &str) -> longhaul_store::Result<u64> {
    let digest = Sha256::digest(format!("longhaul rounds: machine {machine}"));
    let new = digest.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    Ok(reader.seed_of_last_round()?.unwrap_or(new))
}
