//! What the store promises, each promise a test.

mod contention;
mod damage;
mod epochs;
mod history;
mod kill;
mod opening;
mod operations;
mod outbox;
mod rereads;
mod round_trip;
mod samples;
mod sampling;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use longhaul_measure::model::{Mount, Negotiated, Protocol, Role, Run, Scale, Target};
use tempfile::TempDir;

use crate::{NewRound, Planned, Reader, RunFilter, Store, StoredRun, Writer};

/// Tells a copy of this test program which database it is to work on.
const CHILD: &str = "LONGHAUL_STORE_CHILD";

/// A folder that goes away, and the path of a database in it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("longhaul.sqlite")
    }

    fn store(&self) -> Store {
        Store::open_with_patience(&self.database(), &[], Duration::from_millis(50)).unwrap()
    }

    fn writer(&self) -> Writer {
        Writer::spawn(self.store())
    }

    fn reader(&self) -> Reader {
        Reader::open(&self.database()).unwrap()
    }

    fn runs(&self) -> Vec<StoredRun> {
        self.reader().runs(&RunFilter::default()).unwrap()
    }

    /// A database with so many runs, closed in order.
    fn filled(runs: u32) -> Self {
        let place = Self::new();
        let writer = place.writer();
        let round = writer.begin_round(new_round()).unwrap();
        for slot in 0..runs {
            writer.add_run(&target(), &samples::run(round, slot)).unwrap();
        }
        place
    }
}

fn target() -> Target {
    Target { name: "smb".parse().unwrap(), path: "/Volumes/nas/photos".into(), role: Role::Share }
}

fn new_round() -> NewRound {
    let planned = vec![Planned { target: target().name, workload: "photo-batch".into() }];
    NewRound {
        started_us: 1_000,
        utc_offset_seconds: 3600,
        seed: u64::MAX,
        scale: Scale::Quick,
        planned,
        scheduled_us: None,
        before: None,
    }
}

fn mount(point: &Path, protocol: Protocol) -> Mount {
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

/// The runs alone.
fn bare(stored: Vec<StoredRun>) -> Vec<Run> {
    stored.into_iter().map(|stored| stored.run).collect()
}

/// This test program once more, as a process of its own that does only the named test.
fn child(test: &str, database: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(CHILD, database);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}
