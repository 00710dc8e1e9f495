//! A world of its own for the real service: its clocks, its host and what its workers say are scripted; schedule, rounds,
//! processes, pipes and database are real.

// Every test file compiles this module and uses its own part of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_measure::model::{
    CacheState, ColdBy, Conditions, Figure, MachineStep, Mount, Negotiated, Operation, OperationStats, Phase,
    Power, Protocol, Reading, Role, Surroundings, Target, TargetName, Unit,
};
use longhaul_measure::stats::Histogram;
use longhaul_measure::worker::{Message, Report, VERSION};
use longhaul_service::clock::{Bell, Clock, Moment};
use longhaul_service::config::{Config, Sampling};
use longhaul_service::desk::Desk;
use longhaul_service::host::Host;
use longhaul_service::program::ProgramFile;
use longhaul_service::sampling::Sensors;
use longhaul_service::service::{Parts, Service};
use longhaul_store::{Reader, StoredRound};

pub const SECOND: i64 = 1_000_000_000;
pub const HOUR: i64 = 3600 * SECOND;
pub const DAY: i64 = 24 * HOUR;
pub const WEEK: i64 = 7 * DAY;

/// Something that happens by itself.
#[derive(Debug, Clone)]
pub enum Happening {
    /// The machine sleeps for so many nanoseconds.
    Sleep(i64),
    /// The wall clock steps by so many microseconds.
    Step(i64),
    /// Local time is so many seconds from UTC from now on.
    Zone(i32),
    /// The machine around is so from now on.
    Around(Box<Surroundings>),
    /// The mount table is so from now on.
    Mounts(Vec<Mount>),
    /// Somebody orders something, or looks.
    Do(fn(&Desk, &Path)),
}

/// What is true now, and what is to come, by the continuous clock.
pub struct World {
    now: Moment,
    around: Surroundings,
    mounts: Vec<Mount>,
    to_come: Vec<(i64, Happening)>,
    end_ns: i64,
    desk: Arc<Desk>,
    database: PathBuf,
}

impl World {
    fn advance(&mut self, nanoseconds: i64) {
        let mut left = nanoseconds.max(1);
        loop {
            let next =
                self.to_come.first().map_or(i64::MAX, |(at_ns, _)| at_ns - self.now.continuous_ns).max(0);
            if next > left {
                break self.pass(left, left);
            }
            self.pass(next, next);
            left -= next;
            let (_, happening) = self.to_come.remove(0);
            self.happen(happening);
        }
    }

    fn pass(&mut self, continuous_ns: i64, awake_ns: i64) {
        self.now.continuous_ns += continuous_ns;
        self.now.awake_ns += awake_ns;
        self.now.wall_us += continuous_ns / 1000;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Sleep(for_ns) => self.pass(for_ns, 0),
            Happening::Step(by_us) => self.now.wall_us += by_us,
            Happening::Zone(seconds) => self.now.utc_offset_seconds = seconds,
            Happening::Around(around) => self.around = *around,
            Happening::Mounts(mounts) => self.mounts = mounts,
            Happening::Do(what) => what(&self.desk, &self.database),
        }
    }
}

#[derive(Clone)]
struct WorldClock(Arc<Mutex<World>>);

impl Clock for WorldClock {
    /// Looking at the clock takes a second: so that a round, which looks often, takes its time.
    fn now(&self) -> Moment {
        let mut world = self.0.lock().unwrap();
        world.advance(SECOND);
        world.now
    }

    fn glance(&self) -> Moment {
        self.0.lock().unwrap().now
    }

    fn wait(&self, _bell: &Bell, limit: Duration) {
        let mut world = self.0.lock().unwrap();
        world.advance(i64::try_from(limit.as_nanos()).unwrap());
        // Between rounds: the end of a life cuts none short, wherever its rounds happen to lie.
        if world.now.continuous_ns >= world.end_ns {
            world.desk.order(|orders| orders.stop = true);
        }
    }
}

struct WorldHost(Arc<Mutex<World>>);

impl Host for WorldHost {
    fn look(&mut self, _: &BTreeSet<IpAddr>) -> Surroundings {
        self.0.lock().unwrap().around.clone()
    }

    fn mounts(&mut self) -> io::Result<Vec<Mount>> {
        Ok(self.0.lock().unwrap().mounts.clone())
    }
}

/// Counters of which nothing is known, on a machine that never changes.
struct NoSensors;

impl Sensors for NoSensors {
    fn readings(&mut self, _: &[(TargetName, Mount)]) -> Option<Vec<Reading>> {
        None
    }

    fn machine(&mut self) -> MachineStep {
        MachineStep::default()
    }

    fn facts(&mut self) -> Option<BTreeMap<String, String>> {
        Some(BTreeMap::new())
    }
}

/// A folder, on a file system in memory where there is one: syncs are not what these tests are about.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let builder = || tempfile::Builder::new().prefix("longhaul-weeks-").to_owned();
    if memory.is_dir() { builder().tempdir_in(memory).unwrap() } else { builder().tempdir().unwrap() }
}

/// What is simulated.
pub struct Life {
    pub config: Config,
    pub database: PathBuf,
    pub for_ns: i64,
    pub to_come: Vec<(i64, Happening)>,
    pub start: Moment,
    pub sensors: Box<dyn Sensors>,
    pub worker_version: &'static str,
    pub program_file: Option<ProgramFile>,
}

impl Life {
    /// Two shares and a local disk, measured every hour.
    pub fn new(folder: &Path) -> Self {
        let target = |name: &str, role| Target {
            name: name.parse().unwrap(),
            path: format!("/m/{name}").into(),
            role,
        };
        let targets =
            vec![target("smb", Role::Share), target("nfs", Role::Share), target("local", Role::Baseline)];
        // 1 January 2026, 00:00 UTC; the machine was started an hour ago.
        let start = Moment {
            wall_us: 1_767_225_600_000_000,
            awake_ns: HOUR,
            continuous_ns: HOUR,
            utc_offset_seconds: 3600,
        };
        // The looks at the counters are those of every five minutes: weeks are to pass in seconds.
        let sampling = Sampling { counters_every: Some(Duration::from_secs(300)), ..Sampling::default() };
        let config = Config { targets, sampling, ..Config::default() };
        let database = folder.join("longhaul.sqlite");
        let (to_come, sensors) = (vec![], Box::new(NoSensors));
        Self {
            config,
            database,
            for_ns: DAY,
            to_come,
            start,
            sensors,
            worker_version: VERSION,
            program_file: None,
        }
    }

    /// Something happens so many nanoseconds after the start.
    pub fn then(mut self, at_ns: i64, happening: Happening) -> Self {
        self.to_come.push((self.start.continuous_ns + at_ns, happening));
        self.to_come.sort_by_key(|(at_ns, _)| *at_ns);
        self
    }

    pub fn lasting(self, for_ns: i64) -> Self {
        Self { for_ns, ..self }
    }

    /// Lives it to its end, and returns the moment of that.
    pub fn live(self) -> Moment {
        let desk = Arc::new(Desk::default());
        let world = Arc::new(Mutex::new(World {
            now: self.start,
            around: calm(),
            mounts: shares(),
            to_come: self.to_come,
            end_ns: self.start.continuous_ns + self.for_ns,
            desk: Arc::clone(&desk),
            database: self.database.clone(),
        }));
        let parts = Parts {
            clock: Box::new(WorldClock(Arc::clone(&world))),
            host: Box::new(WorldHost(Arc::clone(&world))),
            sensors: self.sensors,
            program: ("/bin/sh".into(), script(self.worker_version)),
            program_file: self.program_file,
            desk,
            config: self.config,
            config_path: None,
            database: self.database,
            log: None,
            safe_mode: false,
        };
        Service::open(parts).unwrap().run();
        let world = world.lock().unwrap();
        world.now
    }
}

/// A machine on which nothing forbids a round.
pub fn calm() -> Surroundings {
    Surroundings { power: Some(Power::Mains), load_average: Some(0.5), ..Surroundings::default() }
}

/// Both shares are mounted.
pub fn shares() -> Vec<Mount> {
    let local = Protocol::Local("ext4".into());
    vec![mount("/", local), mount("/m/smb", Protocol::Smb(None)), mount("/m/nfs", Protocol::Nfs(None))]
}

/// A line of the mount table.
pub fn mount(point: &str, protocol: Protocol) -> Mount {
    Mount {
        point: point.into(),
        source: "nas:/share".into(),
        protocol,
        negotiated: Negotiated::new(),
        read_only: false,
        free_bytes: None,
        total_bytes: None,
        server: None,
        device: None,
    }
}

pub fn rounds(database: &Path) -> Vec<StoredRound> {
    Reader::open(database).unwrap().rounds().unwrap()
}

/// A shell that answers as a worker of a version does.
fn script(version: &str) -> Vec<String> {
    let shell = "read -r setup; printf '%s\\n' \"$1\"; while read -r line; do case $line in \
        *'\"prepare\"'*) printf '%s\\n' \"$2\";; *'\"run\"'*) printf '%s\\n' \"$3\" \"$4\" \"$5\" \"$6\";; esac; done";
    let line = |message: &Message| serde_json::to_string(message).unwrap();
    let ready = Message::Ready {
        protocol: Some(Protocol::Smb(Some("3.1.1".into()))),
        negotiated: Negotiated::new(),
        server: None,
        version: version.to_owned(),
    };
    let report = Report {
        failed: None,
        facts: Default::default(),
        conditions: Conditions {
            free_bytes: Some(1 << 40),
            total_bytes: Some(1 << 41),
            ..Conditions::default()
        },
    };
    let mut words = vec!["-c".to_owned(), shell.to_owned(), "worker".to_owned()];
    words.extend([line(&ready), line(&Message::Prepared { failed: None })]);
    words.extend((0..3).map(|number| line(&Message::PhaseEnded(phase(number)))));
    words.push(line(&Message::Ended(report)));
    words
}

/// A phase as large as those of the real workloads are on average.
fn phase(number: u64) -> Phase {
    let stats = |operation| {
        let mut latency = Histogram::new();
        (0..300u64).for_each(|call| latency.record(400_000 + (call * call * (number + 7)) % 900_000));
        OperationStats { operation, latency, errors: 0 }
    };
    let operations = [Operation::Open, Operation::Read, Operation::Getattr, Operation::Readdir];
    Phase {
        name: format!("phase-{number}"),
        cache: CacheState::Cold,
        cold_by: Some(ColdBy::RotatedSlice),
        began_us: Some(1_000_000),
        seconds: 1.5,
        bytes_read: 1_000_000,
        bytes_written: 0,
        complete: true,
        figures: vec![Figure::new("walk", Unit::Seconds, 1.5), Figure::new("rate", Unit::PerSecond, 1234.5)],
        operations: operations.map(stats).into(),
        calls: vec![],
        wire: None,
    }
}
