//! Tests of the store.

mod checks;
mod contention;
mod damage;
mod epochs;
mod freshness;
mod history;
mod host;
mod integrity;
mod kill;
mod nas;
mod notifications;
mod opening;
mod operations;
mod outbox;
mod outbox_model;
mod power_loss;
mod request_times;
mod rereads;
mod round_trip;
mod samples;
mod sampling;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use longhaul_measure::platform;
use longhaul_model::{Mount, Protocol, Role, Run, Scale, Target, Timestamp};
use tempfile::TempDir;

use crate::{NewRound, PlannedRun, Reader, RunFilter, Store, StoredRun, Writer};

/// Environment variable with the path of the database that a child process works on.
const CHILD: &str = "LONGHAUL_STORE_CHILD";
/// A file system in memory, on Linux.
const MEMORY: &str = "/dev/shm";
/// Free space in it, in bytes, that leaves room for the databases of tests that run at the same time.
const ENOUGH_MEMORY: u64 = 256 << 20;

/// A database in a temporary folder.
struct TestDb {
    folder: TempDir,
}

impl TestDb {
    /// Creates a folder, in memory if there is room: only the tests of kills and power cuts need syncs that reach a disk.
    fn new() -> Self {
        let space = File::open(MEMORY).and_then(|memory| platform::space(memory.as_fd()));
        let has_room = space.is_ok_and(|space| space.free_bytes >= ENOUGH_MEMORY);
        let folder = if has_room { tempfile::tempdir_in(MEMORY) } else { tempfile::tempdir() };
        Self { folder: folder.unwrap() }
    }

    /// Returns a database without runs, its writer, and the number of a round that the writer has begun.
    fn with_round() -> (Self, Writer, i64) {
        let db = Self::new();
        let writer = db.writer();
        let round = writer.begin_round(new_round()).unwrap();
        (db, writer, round)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("longhaul.sqlite")
    }

    fn store(&self) -> Store {
        Store::open_with_busy_timeout(&self.path(), &[], Duration::from_millis(50)).unwrap()
    }

    fn writer(&self) -> Writer {
        Writer::spawn(self.store())
    }

    fn reader(&self) -> Reader {
        Reader::open(&self.path()).unwrap()
    }

    fn runs(&self) -> Vec<StoredRun> {
        self.reader().runs(&RunFilter::default()).unwrap()
    }

    /// Returns a database with `runs` runs, whose writer has closed it properly.
    fn filled(runs: u32) -> Self {
        let (db, writer, round) = Self::with_round();
        for slot in 0..runs {
            writer.add_run(&target(), &samples::run(round, slot), &[]).unwrap();
        }
        db
    }
}

fn target() -> Target {
    Target { name: "smb".parse().unwrap(), path: "/Volumes/nas/photos".into(), role: Role::Share }
}

/// Returns the time this many microseconds after 1970.
fn at(microseconds: i64) -> Timestamp {
    Timestamp::from_us(microseconds)
}

fn new_round() -> NewRound {
    let planned = vec![PlannedRun { target: target().name, workload: "photo-batch".into() }];
    NewRound { utc_offset_seconds: 3600, planned, ..NewRound::new(at(1_000), u64::MAX, Scale::Quick) }
}

fn mount(point: &Path, protocol: Protocol) -> Mount {
    Mount::new(point, "nas:/share", protocol)
}

/// Returns the runs without the numbers that the store assigned.
fn runs_only(stored: Vec<StoredRun>) -> Vec<Run> {
    stored.into_iter().map(|stored| stored.run).collect()
}

/// Returns a command that starts this test program again as a child process and runs only the named test.
fn child(test: &str, database: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]).env(CHILD, database);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}
