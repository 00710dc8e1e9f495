//! A simulated environment for the real service: clocks, machine and worker output are scripted; schedule,
//! rounds, processes, pipes and database are real.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::worker::{FailureReport, RunReport, VERSION, WorkerMessage};
use longhaul_model::{
    CacheState, ColdMethod, Conditions, CounterReading, Failure, Figure, Finding, Histogram, KeepResult,
    MachineSnapshot, MachineStep, Mount, NegotiatedOptions, NetworkLink, Operation, OperationStats, Outcome,
    Phase, Power, Property, Protocol, ReadBack, Role, Target, TargetName, Timestamp, Unit,
};
use longhaul_service::clock::{Clock, ClockReading};
use longhaul_service::command::Command;
use longhaul_service::config::{Config, SamplingSettings, Schedule};
use longhaul_service::handle::ServiceHandle;
use longhaul_service::host::{Host, ServerAddress, links_to};
use longhaul_service::program_file::ProgramFile;
use longhaul_service::sampling::Sensors;
use longhaul_service::service::{Service, ServiceDeps};
use longhaul_store::{Reader, StoredRound};
use parking_lot::Mutex;

pub const SECOND: i64 = 1_000_000_000;
pub const HOUR: i64 = 3600 * SECOND;
pub const DAY: i64 = 24 * HOUR;
pub const WEEK: i64 = 7 * DAY;

/// An event of the simulation.
#[derive(Debug, Clone)]
pub enum SimulatedEvent {
    /// The machine sleeps for this number of nanoseconds.
    Sleep(i64),
    /// The wall clock steps by this number of microseconds.
    ClockStep(i64),
    /// The offset of local time from UTC changes to this number of seconds.
    UtcOffset(i32),
    /// The facts about the machine change to these.
    Machine(Box<MachineSnapshot>),
    /// The mount table changes to this.
    Mounts(Vec<Mount>),
    /// A function is called with the service's handle and the path of the database.
    Call(fn(&ServiceHandle, &Path)),
}

/// Routes of the simulated machine, whose mount table contains no addresses, as that of a Mac.
#[derive(Clone, Copy)]
pub struct Routes {
    /// Address of all servers. Workers report it.
    pub server: IpAddr,
    /// Function that returns the network link to an address, or that of the default route.
    pub link_to: fn(Option<IpAddr>) -> Option<NetworkLink>,
}

/// The simulated state of clocks and machine, and the events to come.
pub struct SimulatedWorld {
    now: ClockReading,
    machine: MachineSnapshot,
    routes: Option<Routes>,
    mounts: Vec<Mount>,
    to_come: Vec<(i64, SimulatedEvent)>,
    end_ns: i64,
    handle: Arc<ServiceHandle>,
    database: PathBuf,
}

impl SimulatedWorld {
    fn advance(&mut self, nanoseconds: i64) {
        let mut remaining = nanoseconds.max(1);
        loop {
            let next =
                self.to_come.first().map_or(i64::MAX, |(at_ns, _)| at_ns - self.now.continuous_ns).max(0);
            if next > remaining {
                break self.pass(remaining, remaining);
            }
            self.pass(next, next);
            remaining -= next;
            let (_, event) = self.to_come.remove(0);
            self.happen(event);
        }
    }

    fn pass(&mut self, continuous_ns: i64, awake_ns: i64) {
        self.now.continuous_ns += continuous_ns;
        self.now.awake_ns += awake_ns;
        self.now.wall = self.now.wall + Duration::from_nanos(continuous_ns.cast_unsigned());
    }

    fn happen(&mut self, event: SimulatedEvent) {
        match event {
            SimulatedEvent::Sleep(for_ns) => self.pass(for_ns, 0),
            SimulatedEvent::ClockStep(by_us) => {
                self.now.wall = Timestamp::from_us(self.now.wall.as_us() + by_us);
            }
            SimulatedEvent::UtcOffset(seconds) => self.now.utc_offset_seconds = seconds,
            SimulatedEvent::Machine(machine) => self.machine = *machine,
            SimulatedEvent::Mounts(mounts) => self.mounts = mounts,
            SimulatedEvent::Call(call) => call(&self.handle, &self.database),
        }
    }
}

#[derive(Clone)]
struct WorldClock(Arc<Mutex<SimulatedWorld>>);

impl Clock for WorldClock {
    /// Advances time by one second and returns it, so that a round, which reads the clock often, takes time.
    fn now(&self) -> ClockReading {
        let mut world = self.0.lock();
        world.advance(SECOND);
        world.now
    }

    fn peek(&self) -> ClockReading {
        self.0.lock().now
    }

    /// The service waits on this clock only between rounds, so that the end of the simulation cuts no round short.
    fn real_wait(&self, time: Duration) -> Duration {
        let mut world = self.0.lock();
        world.advance(i64::try_from(time.as_nanos()).unwrap());
        if world.now.continuous_ns >= world.end_ns {
            world.handle.send(Command::Stop);
        }
        Duration::ZERO
    }
}

struct WorldHost(Arc<Mutex<SimulatedWorld>>);

impl Host for WorldHost {
    fn snapshot(&mut self, servers: &BTreeSet<ServerAddress>) -> MachineSnapshot {
        let world = self.0.lock();
        let mut machine = world.machine.clone();
        if let Some(routes) = world.routes {
            machine.link = NetworkLink::merged(links_to(servers, routes.link_to));
        }
        machine
    }

    fn backup_running(&mut self) -> Option<bool> {
        self.0.lock().machine.backup_running
    }

    fn mounts(&mut self) -> io::Result<Vec<Mount>> {
        Ok(self.0.lock().mounts.clone())
    }
}

/// Sensors without any counters, on a machine that never changes.
struct NoSensors;

impl Sensors for NoSensors {
    fn counter_readings(&mut self, _: &[(TargetName, Mount)]) -> Option<Vec<CounterReading>> {
        None
    }

    fn machine_sample(&mut self) -> MachineStep {
        MachineStep::default()
    }

    fn machine_facts(&mut self) -> Option<BTreeMap<String, String>> {
        Some(BTreeMap::new())
    }
}

/// Creates a temporary folder, in memory if possible: these tests do not depend on syncs reaching a disk.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let builder = || tempfile::Builder::new().prefix("longhaul-weeks-").to_owned();
    if memory.is_dir() { builder().tempdir_in(memory).unwrap() } else { builder().tempdir().unwrap() }
}

/// Settings of a simulation of the service.
pub struct Simulation {
    pub config: Config,
    pub database: PathBuf,
    pub for_ns: i64,
    pub to_come: Vec<(i64, SimulatedEvent)>,
    pub start: ClockReading,
    pub sensors: Box<dyn Sensors>,
    pub worker_version: &'static str,
    /// Answer of the workers to each step of a check of fidelity.
    pub fidelity: WorkerMessage,
    /// Failure of each run. `None`: all succeed.
    pub run_failure: Option<FailureReport>,
    pub program_file: Option<ProgramFile>,
    /// Routes of the machine. `None`: its network link is that of the machine's facts.
    pub routes: Option<Routes>,
}

impl Simulation {
    /// Creates a simulation of two shares and a local disk, measured every hour for a day.
    pub fn new(folder: &Path) -> Self {
        let target = |name: &str, role| Target {
            name: name.parse().unwrap(),
            path: format!("/m/{name}").into(),
            role,
        };
        let targets =
            vec![target("smb", Role::Share), target("nfs", Role::Share), target("local", Role::Baseline)];
        // 1 January 2026, 00:00 UTC; the machine was started an hour ago.
        let start = ClockReading {
            wall: Timestamp::from_us(1_767_225_600_000_000),
            awake_ns: HOUR,
            continuous_ns: HOUR,
            utc_offset_seconds: 3600,
        };
        // Counters are read every five minutes only, so that weeks pass in seconds.
        let sampling = SamplingSettings {
            counter_interval: Some(Duration::from_secs(300)),
            ..SamplingSettings::default()
        };
        // The scripted workers touch no files.
        let schedule = Schedule { freshness: false, ..Schedule::default() };
        let config = Config { targets, sampling, schedule, ..Config::default() };
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
            fidelity: kept_permissions(),
            run_failure: None,
            program_file: None,
            routes: None,
        }
    }

    /// Adds an event at `at_ns` nanoseconds after the start.
    pub fn then(mut self, at_ns: i64, event: SimulatedEvent) -> Self {
        self.to_come.push((self.start.continuous_ns + at_ns, event));
        self.to_come.sort_by_key(|(at_ns, _)| *at_ns);
        self
    }

    /// Sets the duration of the simulation in nanoseconds.
    pub fn lasting(self, for_ns: i64) -> Self {
        Self { for_ns, ..self }
    }

    /// Runs the simulation to its end and returns the clock reading at the end.
    pub fn run(self) -> ClockReading {
        let handle = Arc::new(ServiceHandle::default());
        let server = self.routes.map(|routes| routes.server);
        let report = run_report(self.run_failure);
        let arguments = script(self.worker_version, &self.fidelity, server, report);
        let world = Arc::new(Mutex::new(SimulatedWorld {
            now: self.start,
            machine: normal_machine(),
            routes: self.routes,
            mounts: both_shares(),
            to_come: self.to_come,
            end_ns: self.start.continuous_ns + self.for_ns,
            handle: Arc::clone(&handle),
            database: self.database.clone(),
        }));
        let deps = ServiceDeps {
            clock: Box::new(WorldClock(Arc::clone(&world))),
            host: Box::new(WorldHost(Arc::clone(&world))),
            sensors: self.sensors,
            worker_command: ("/bin/sh".into(), arguments),
            program_file: self.program_file,
            handle,
            config: self.config,
            config_path: None,
            database_path: self.database,
            log_path: None,
            safe_mode: false,
        };
        Service::open(deps).unwrap().run();
        let world = world.lock();
        world.now
    }
}

/// Returns facts about a machine on which no rule skips a round.
pub fn normal_machine() -> MachineSnapshot {
    MachineSnapshot { power: Some(Power::Mains), load_average: Some(0.5), ..MachineSnapshot::default() }
}

/// Returns a mount table in which both shares are mounted.
pub fn both_shares() -> Vec<Mount> {
    let local = Protocol::Local("ext4".into());
    vec![mount("/", local), mount("/m/smb", Protocol::Smb(None)), mount("/m/nfs", Protocol::Nfs(None))]
}

/// Returns an entry of the mount table.
pub fn mount(point: &str, protocol: Protocol) -> Mount {
    Mount::new(point, "nas:/share", protocol)
}

pub fn rounds(database: &Path) -> Vec<StoredRound> {
    Reader::open(database).unwrap().rounds().unwrap()
}

/// Returns the arguments of a shell that sends the messages of a worker of `version`.
fn script(version: &str, fidelity: &WorkerMessage, server: Option<IpAddr>, report: RunReport) -> Vec<String> {
    let shell = "read -r setup; printf '%s\\n' \"$1\"; while read -r line; do case $line in \
        *'\"prepare\"'*) printf '%s\\n' \"$2\";; *'\"run\"'*) printf '%s\\n' \"$3\" \"$4\" \"$5\" \"$6\";; \
        *'\"check-fidelity\"'*) printf '%s\\n' \"$7\";; esac; done";
    let line = |message: &WorkerMessage| serde_json::to_string(message).unwrap();
    let ready = WorkerMessage::Ready {
        protocol: Some(Protocol::Smb(Some("3.1.1".into()))),
        negotiated: NegotiatedOptions::new(),
        server,
        version: version.to_owned(),
    };
    let mut arguments = vec!["-c".to_owned(), shell.to_owned(), "worker".to_owned()];
    arguments.extend([line(&ready), line(&WorkerMessage::Prepared { failed: None })]);
    arguments.extend((0..3).map(|number| line(&WorkerMessage::PhaseEnded(Box::new(phase(number))))));
    arguments.push(line(&WorkerMessage::Ended(report)));
    arguments.push(line(fidelity));
    arguments
}

fn run_report(failure: Option<FailureReport>) -> RunReport {
    let conditions =
        Conditions { free_bytes: Some(1 << 40), total_bytes: Some(1 << 41), ..Conditions::default() };
    RunReport { failure, facts: Default::default(), conditions, mismatches: vec![] }
}

fn kept_permissions() -> WorkerMessage {
    let (property, read_back) = (Property::Permissions, ReadBack::Server);
    let finding = Finding { property, result: KeepResult::Kept, detail: String::new(), read_back };
    WorkerMessage::FidelityChecked { finding: Some(finding) }
}

/// Returns the answer of a worker whose share refuses everything.
pub fn refused_fidelity() -> WorkerMessage {
    let (path, error) = (Some("/m/smb".to_owned()), Some("EACCES".to_owned()));
    let message = "open /m/smb: EACCES".to_owned();
    let failure = Failure { operation: Some(Operation::Open), path, error, message };
    WorkerMessage::Failed(FailureReport { outcome: Outcome::Error, failure })
}

/// Returns a phase of the average size of a real workload's phase.
fn phase(number: u64) -> Phase {
    let stats = |operation| {
        let mut latency = Histogram::new();
        (0..300u64).for_each(|call| latency.record(400_000 + (call * call * (number + 7)) % 900_000));
        OperationStats { operation, latency, errors: 0 }
    };
    let operations = [Operation::Open, Operation::Read, Operation::Getattr, Operation::Readdir];
    Phase {
        cold_by: Some(ColdMethod::RotatedSlice),
        began_us: Some(Timestamp::from_us(1_000_000)),
        seconds: 1.5,
        bytes_read: 1_000_000,
        figures: vec![Figure::new("walk", Unit::Seconds, 1.5), Figure::new("rate", Unit::PerSecond, 1234.5)],
        operations: operations.map(stats).into(),
        ..Phase::new(format!("phase-{number}"), CacheState::Cold)
    }
}
