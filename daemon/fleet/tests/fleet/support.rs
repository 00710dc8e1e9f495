//! A database with made-up rounds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_fleet::{ExportSettings, WeeksToWrite};
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    CacheState, ChangeKind, Event, Figure, FreshnessOutcome, FreshnessSample, Histogram, LoadContext,
    Operation, OperationStats, Phase, ProbeKind, ProbeStep, Protocol, Role, RoundStatus, Run, Scale, Target,
    Timestamp, Unit, YOUR_DAY,
};
use longhaul_store::{NewRound, Reader, RoundEnd, Samples, Store, Writer};

/// Monday, 2024-09-30, in UTC.
pub const MONDAY: Timestamp = Timestamp::from_us(1_727_654_400_000_000);

/// A folder with a database in it.
pub struct Machine {
    pub folder: tempfile::TempDir,
    /// Id of the computer that uses it.
    pub host: &'static str,
}

impl Machine {
    /// Creates the database of a machine with rounds on these days after [`MONDAY`].
    pub fn with_rounds_on(days: &[u32]) -> Self {
        let machine = Self::new();
        days.iter().for_each(|day| machine.add_round(MONDAY + *day * DAY + 9 * HOUR));
        machine
    }

    /// Creates an empty folder for a database.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), host: "a" }
    }

    /// Lets another computer use the database.
    pub fn moved_to(self, host: &'static str) -> Self {
        let moved = Self { host, ..self };
        drop(moved.store());
        moved
    }

    fn store(&self) -> Store {
        Store::open_on(Some(self.host), &self.database(), &[], Duration::from_secs(5)).unwrap()
    }

    pub fn database(&self) -> PathBuf {
        self.folder.path().join("longhaul.sqlite")
    }

    pub fn reader(&self) -> Reader {
        Reader::open(&self.database()).unwrap()
    }

    pub fn add_round(&self, started: Timestamp) {
        self.add_runs(started, &["smb", "nfs"].map(|name| run(name, started)));
    }

    /// Adds a round with one run, which replays a recording.
    pub fn add_replay(&self, started: Timestamp, recording: &str) {
        let facts = [(Run::RECORDING_FACT.to_owned(), recording.to_owned())].into();
        let replay = Run { workload: YOUR_DAY.name().to_owned(), facts, ..run("smb", started) };
        self.add_runs(started, &[replay]);
    }

    /// Adds a request of the latency probe; samples that are too old at this time are deleted.
    pub fn add_probe(&self, at: Timestamp) {
        let mut probe = ProbeStep::new("smb".parse().unwrap(), at, ProbeKind::Read, LoadContext::Idle);
        probe.latency.record(1_000_000);
        let new =
            Samples { targets: vec![target("smb")], probes: vec![probe], now: at, ..Samples::default() };
        Writer::spawn(self.store()).add_samples(new).unwrap();
    }

    /// Adds an event of the whole machine.
    pub fn add_event(&self, at_us: Timestamp) {
        let event = Event { target: None, kind: "mtu".to_owned(), detail: serde_json::Value::Null, at_us };
        self.store().bulk_insert(|bulk| bulk.add_event(&event).map(drop)).unwrap();
    }

    /// Adds a change that was made elsewhere during a round.
    pub fn add_freshness(&self, round: i64, at: Timestamp) {
        let sample = FreshnessSample {
            target: target("smb").name,
            protocol: None,
            epoch: None,
            changed_through: None,
            shares_client: false,
            round: Some(round),
            kind: ChangeKind::ChangedContent,
            at,
            outcome: FreshnessOutcome::NotSeen { limit: HOUR },
        };
        Writer::spawn(self.store()).add_freshness(vec![sample]).unwrap();
    }

    fn add_runs(&self, started: Timestamp, runs: &[Run]) {
        self.store()
            .bulk_insert(|bulk| {
                let round = bulk.begin_round(&NewRound::new(started, 1, Scale::Quick))?;
                for run in runs {
                    bulk.add_run(&target(run.target.as_str()), &Run { round, ..run.clone() })?;
                }
                let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended: started + HOUR };
                bulk.end_round(round, &end)
            })
            .unwrap();
    }
}

fn target(name: &str) -> Target {
    Target { name: name.parse().unwrap(), path: format!("/private/secret-{name}").into(), role: Role::Share }
}

fn run(name: &str, started: Timestamp) -> Run {
    let mut latency = Histogram::new();
    (1..100).for_each(|call| latency.record(call * 10_000));
    let phase = Phase {
        seconds: 2.0,
        figures: vec![Figure::new("folder-shown", Unit::Seconds, 1.5)],
        operations: vec![OperationStats { operation: Operation::Open, latency, errors: 0 }],
        ..Phase::new("open-folder", CacheState::Cold)
    };
    Run {
        protocol: Some(if name == "smb" {
            Protocol::Smb(Some("3.1.1".to_owned()))
        } else {
            Protocol::Nfs(None)
        }),
        seconds: 2.0,
        phases: vec![phase],
        ..Run::new(0, name.parse().unwrap(), "folder-index", started)
    }
}

/// Returns the settings of an export this many days after [`MONDAY`].
pub fn settings(days: u32) -> ExportSettings {
    ExportSettings {
        site: "berlin".to_owned(),
        label: Some("mac-017".to_owned()),
        now: MONDAY + days * DAY,
        weeks: WeeksToWrite::Changed,
    }
}

/// Returns the files of a folder with their content, sorted.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = vec![];
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                found.push((entry.path(), std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}
