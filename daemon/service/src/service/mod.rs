//! The background service: one thread that waits for the next slot, decides, and makes rounds.
//!
//! It takes its clock, its host and the program of its workers as arguments, so that weeks can be simulated in seconds
//! with everything else real. It touches no target.

mod booking;
mod examining;
mod making;
mod observing;
mod publishing;
mod sampling;
mod upgrade;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::corpus::draw::draw;
use longhaul_measure::model::{Family, Link, Mount, Target, TargetName};
use longhaul_store::{Event, NewRound, RoundCounts, RoundEnd, RoundStatus, SharedWriter};
use serde_json::{Value, json};

use self::publishing::Latest;
use self::sampling::{Diary, plan};
pub use self::upgrade::End;
use crate::clock::{Clock, Moment};
use crate::config::Config;
use crate::database::Database;
use crate::desk::{Desk, Pause};
use crate::host::Host;
use crate::mounts::MountBook;
use crate::program::ProgramFile;
use crate::round::Stop;
use crate::sampling::{Sampler, Sensors};
use crate::schedule::budget::Usage;
use crate::schedule::{History, Next, Rhythm, next};
use crate::status::LastRound;
use crate::target_path::SpecialFolders;
use crate::worker::{Launcher, Worker};

/// The longest wait: whoever waits longer learns too late that the machine slept.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long before a round the traffic of the person is looked at.
const LOOK_AHEAD_NS: i64 = 60_000_000_000;

/// What the service is made of.
pub struct Parts {
    /// The time.
    pub clock: Box<dyn Clock>,
    /// The machine.
    pub host: Box<dyn Host>,
    /// Where samples of counters come from.
    pub sensors: Box<dyn Sensors>,
    /// The program of the workers, with its arguments.
    pub program: (PathBuf, Vec<String>),
    /// The service's own program file, which an upgrade replaces; `None`: nobody looks.
    pub program_file: Option<ProgramFile>,
    /// Where orders come from and status goes to.
    pub desk: Arc<Desk>,
    /// The configuration.
    pub config: Config,
    /// Its file, if there is one.
    pub config_path: Option<PathBuf>,
    /// The database's file.
    pub database: PathBuf,
    /// The file of its log; `None`: it has none.
    pub log: Option<PathBuf>,
    /// Whether it crashed again and again: then no rounds are made until the person says so.
    pub safe_mode: bool,
}

/// The service. See the module.
pub struct Service {
    clock: Box<dyn Clock>,
    host: RefCell<Box<dyn Host>>,
    sampler: RefCell<Sampler>,
    diary: RefCell<Diary>,
    desk: Arc<Desk>,
    program: (PathBuf, Vec<String>),
    program_file: Option<ProgramFile>,
    /// When the program file was last looked at, on the continuous clock.
    program_seen_ns: Option<i64>,
    /// The version of a worker in the latest round that is not ours.
    worker_version: RefCell<Option<String>>,
    /// How it ends.
    end: End,
    config: Config,
    config_path: Option<PathBuf>,
    database: Database,
    folders: SpecialFolders,
    started: Moment,
    /// One per target, in the order of the configuration.
    workers: Vec<Worker>,
    /// Workers of targets that are no longer configured and are stuck: nobody may take their place.
    leftovers: Vec<Worker>,
    /// The targets that hang, as of the last look.
    hanging: Vec<TargetName>,
    book: RefCell<MountBook>,
    seed: u64,
    rhythm: Rhythm,
    history: History,
    /// Rounds that were begun so far.
    turn: u64,
    /// When the first round of the schedule was meant to be.
    first_us: Option<i64>,
    /// The clocks as of the last look.
    seen: Moment,
    pause: Pause,
    log: Option<PathBuf>,
    safe_mode: bool,
    /// The slot whose minute before has been looked at.
    looked_for: Option<u64>,
    /// The interface that the latest rounds went over, and how many were skipped because it is another now.
    usual: Option<Link>,
    link_skips: u32,
    usage: Usage,
    counts: RoundCounts,
    last: Option<LastRound>,
    latest: BTreeMap<TargetName, Latest>,
    /// What kind of file system each target was on when it was last measured.
    families: BTreeMap<TargetName, Family>,
    /// Skipped rounds that the database has not taken yet.
    unbooked: Vec<(NewRound, String)>,
    /// Why the round in progress says nothing any more.
    void: RefCell<Option<Stop>>,
}

impl Service {
    /// Opens the database and takes up where the last service ended. The caller holds the lock of the database.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub fn open(mut parts: Parts) -> longhaul_store::Result<Self> {
        let now = parts.clock.now();
        let mounts = parts.host.mounts().unwrap_or_default();
        let (database, aside) = Database::open(&parts.database, &mounts, now.wall_us)?;
        database.writer().settle_threshold(parts.config.premises.threshold)?;
        let seed = seed_of(database.machine());
        let rhythm = Rhythm::every(parts.config.schedule.interval_seconds(), seed);
        let mut service = Self {
            history: History::fresh(&now, &rhythm),
            clock: parts.clock,
            host: RefCell::new(parts.host),
            sampler: RefCell::new(Sampler::new(parts.sensors)),
            diary: RefCell::default(),
            desk: parts.desk,
            program: parts.program,
            program_file: parts.program_file,
            program_seen_ns: None,
            worker_version: RefCell::default(),
            end: End::Stopped,
            config: Config { targets: vec![], ..parts.config.clone() },
            config_path: parts.config_path,
            folders: SpecialFolders::of(Some(database.path()), &mounts),
            database,
            started: now,
            workers: vec![],
            leftovers: vec![],
            hanging: vec![],
            book: RefCell::default(),
            seed,
            rhythm,
            turn: 0,
            first_us: None,
            seen: now,
            pause: Pause::Off,
            log: parts.log,
            safe_mode: parts.safe_mode,
            looked_for: None,
            usual: None,
            link_skips: 0,
            usage: Usage::default(),
            counts: RoundCounts::default(),
            last: None,
            latest: BTreeMap::new(),
            families: BTreeMap::new(),
            unbooked: vec![],
            void: RefCell::default(),
        };
        service.take_up(&now)?;
        service.database.writer().close_stalls(now.wall_us)?;
        service.configure(parts.config);
        service.note_changes(&mounts);
        service.say_where_the_damaged_went(aside.as_deref());
        service.publish();
        Ok(service)
    }

    /// Reads what the last service left: slots dealt with, rounds counted, a pause.
    fn take_up(&mut self, now: &Moment) -> longhaul_store::Result<()> {
        let reader = self.database.reader()?;
        for round in reader.open_rounds()? {
            let reason = Some("crash: longhaul ended in the middle of it".to_owned());
            let end = RoundEnd { status: RoundStatus::CutShort, reason, ended_us: now.wall_us, after: None };
            self.database.writer().end_round(round.number, end)?;
        }
        self.turn = reader.rounds_begun()?;
        self.counts = reader.round_counts()?;
        self.first_us = reader.first_scheduled_us()?;
        if let Some(last) = reader.last_scheduled()? {
            let scheduled_us = last.round.scheduled_us.unwrap_or(last.round.started_us);
            self.history = History::resumed(now, self.counts.planned(), scheduled_us, &self.rhythm);
            self.usual = last.round.before.and_then(|before| before.link);
        }
        self.last = reader.last_round()?.and_then(|round| {
            let RoundEnd { status, reason, ended_us, .. } = round.end?;
            Some(LastRound { number: round.number, status, reason, ended_us })
        });
        if let Some(event) = reader.last_event(("pause", "resume"))? {
            self.pause = match (event.event.kind.as_str(), event.event.detail["until_us"].as_i64()) {
                ("pause", Some(until_us)) => Pause::Until(until_us),
                ("pause", None) => Pause::On,
                _ => Pause::Off,
            };
        }
        self.count_usage(now);
        Ok(())
    }

    /// The one who writes to its database, for who writes beside it.
    pub fn shared_writer(&self) -> SharedWriter {
        self.database.shared_writer()
    }

    /// Runs until it is told to stop, or another version takes over.
    pub fn run(mut self) -> End {
        while !self.desk.is_stopping() {
            self.desk.beat();
            self.observe();
            self.obey();
            self.sample();
            self.look_at_program();
            let wait = self.step();
            self.publish();
            if !self.desk.is_stopping() {
                self.clock.wait(&self.desk.bell, wait.min(self.longest_wait()));
            }
        }
        self.book_unbooked();
        self.keep_last_samples();
        tracing::info!("the service ends");
        self.end
    }

    fn longest_wait(&self) -> Duration {
        let looks = if self.config.targets.is_empty() { None } else { self.config.sampling.counters_every };
        looks.map_or(LONGEST_WAIT, |every| every.min(LONGEST_WAIT))
    }

    /// Deals with what is due. Returns for how long nothing is.
    fn step(&mut self) -> Duration {
        self.book_unbooked();
        // One look decides: a machine that slept since the last one has to be known to have.
        self.note_clocks();
        let now = self.seen;
        if self.config.targets.is_empty() {
            self.history = self.history.rescheduled(&now);
            return LONGEST_WAIT;
        }
        if self.desk.orders(|orders| std::mem::take(&mut orders.round)) {
            self.round_now();
            return Duration::ZERO;
        }
        match next(&now, &self.history, &self.rhythm) {
            Next::Missed { first, last } => {
                self.miss(first, last);
                Duration::ZERO
            }
            Next::Due(slot) => self.deal(slot),
            Next::Wait { slot, until_ns } => self.look_ahead(slot.number, until_ns - now.continuous_ns),
        }
    }

    /// Looks at the traffic a minute before a round, so that its rate is known when the round is due.
    fn look_ahead(&mut self, slot: u64, left_ns: i64) -> Duration {
        if left_ns > LOOK_AHEAD_NS {
            return Duration::from_nanos((left_ns - LOOK_AHEAD_NS).cast_unsigned());
        }
        if self.looked_for != Some(slot) {
            self.looked_for = Some(slot);
            self.host.borrow_mut().look(&self.servers());
            // Early enough for another version to be there when the round is due.
            self.give_way();
        }
        Duration::from_nanos(left_ns.max(0).cast_unsigned())
    }

    /// Takes orders that are not about rounds.
    fn obey(&mut self) {
        let (pause, config, doctor) =
            self.desk.orders(|orders| (orders.pause.take(), orders.config.take(), orders.doctor.take()));
        if let Some(pause) = pause {
            self.set_pause(pause);
        }
        if let Some(config) = config {
            self.configure(config);
        }
        if let Some(asker) = doctor {
            let _ = asker.try_send(self.examine());
        }
        let is_over = matches!(self.pause, Pause::Until(until_us) if until_us <= self.clock.now().wall_us);
        if is_over {
            self.set_pause(Pause::Off);
        }
    }

    fn set_pause(&mut self, pause: Pause) {
        if pause == Pause::Off && std::mem::take(&mut self.safe_mode) {
            self.desk.relieve("safe-mode");
        }
        if pause == self.pause {
            return;
        }
        self.pause = pause;
        match pause {
            Pause::Off => self.event(None, "resume", json!({})),
            Pause::On => self.event(None, "pause", json!({})),
            Pause::Until(until_us) => self.event(None, "pause", json!({ "until_us": until_us })),
        }
    }

    /// Puts a configuration in force. Workers of targets that stay are kept: a stuck one must never be doubled.
    fn configure(&mut self, config: Config) {
        let launcher = Launcher {
            program: self.program.0.clone(),
            arguments: self.program.1.clone(),
            machine: self.database.machine().to_owned(),
            local: self.database.path().parent().unwrap_or(Path::new("/")).join("local"),
            probe: None,
            samples: Some(self.sampler.borrow().ear()),
        };
        let seed = self.seed;
        let mut before: Vec<Worker> = self.workers.drain(..).chain(self.leftovers.drain(..)).collect();
        let mut worker_of = |target: &Target| match before.iter().position(|worker| worker.target() == target)
        {
            Some(place) => before.swap_remove(place),
            None => Worker::new(target.clone(), Launcher { probe: plan(&config, seed), ..launcher.clone() }),
        };
        self.workers = config.targets.iter().map(&mut worker_of).collect();
        before.iter_mut().for_each(Worker::dismiss);
        self.leftovers =
            before.into_iter().filter_map(|mut worker| worker.is_stuck().then_some(worker)).collect();
        if config.schedule.rounds_per_day != self.config.schedule.rounds_per_day {
            self.rhythm = Rhythm::every(config.schedule.interval_seconds(), self.seed);
            self.history = self.history.rescheduled(&self.clock.now());
        }
        self.config = config;
        self.read_latest();
        let mounts = self.host.borrow_mut().mounts().unwrap_or_default();
        self.note_changes(&mounts);
    }

    fn event(&self, target: Option<&TargetName>, kind: &str, detail: Value) {
        tracing::info!(kind, target_name = target.map(TargetName::as_str), "event");
        let at_us = self.clock.now().wall_us;
        let event = Event { target: target.cloned(), kind: kind.to_owned(), detail, at_us };
        if let Err(error) = self.database.writer().add_event(event) {
            tracing::warn!(%error, kind, "an event could not be kept");
        }
    }

    fn mounts(&self) -> Vec<Mount> {
        self.host.borrow_mut().mounts().unwrap_or_default()
    }
}

/// The seed of a machine: everything that is drawn follows from it.
pub fn seed_of(machine: &str) -> u64 {
    machine.bytes().fold(0, |seed, byte| draw(seed, 1, byte.into()))
}
