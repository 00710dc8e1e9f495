//! Kills a writing process with SIGKILL a hundred times and checks that no acknowledged run is lost.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use super::{CHILD, child, new_round, samples, target};
use crate::{Reader, RunFilter, Store, Writer};

const WORD: &str = "acknowledged ";
/// Environment variable that replaces the store's `PRAGMA synchronous`, to show that a test of durability can fail.
const SYNCHRONOUS: &str = "LONGHAUL_STORE_SYNCHRONOUS";
/// Environment variable with the milliseconds that the child waits after each run. Without it, it does not wait.
const PAUSE: &str = "LONGHAUL_STORE_PAUSE_MS";
/// Maximum number of runs that the child stores, so that it ends even if it is not killed.
const MAX_RUNS: u32 = 2_000;
/// Number of writers at the same time: few, so that those that are killed while they start have begun a database.
const THREADS: u64 = 3;

/// The child process that is killed. It stores runs and prints the number and trace id of each acknowledged
/// run.
#[test]
#[ignore = "not a test: the child process of another test"]
fn child_that_writes() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = Store::open(Path::new(&path), &[]).unwrap();
    if let Ok(level) = std::env::var(SYNCHRONOUS) {
        store.connection.pragma_update(None, "synchronous", level).unwrap();
    }
    let pause = std::env::var(PAUSE).map_or(0, |text| text.parse().unwrap());
    let writer = Writer::spawn(store);
    let round = writer.begin_round(new_round()).unwrap();
    for slot in 0..MAX_RUNS {
        let stored = writer.add_run(&target(), &samples::run(round, slot), &[]).unwrap();
        writeln!(std::io::stdout(), "{WORD}{} {}", stored.number, stored.trace_id).unwrap();
        std::thread::sleep(Duration::from_millis(pause));
    }
}

/// Starts the child, kills it after a random delay, and returns its output.
fn killed_writer(database: &Path, kill: u64) -> String {
    let mut writer = child("tests::kill::child_that_writes", database).spawn().unwrap();
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let mut output_text = String::new();
    // Every third child is killed while it starts, creates the database or recovers it; the others while they
    // write.
    while !kill.is_multiple_of(3) && !output_text.contains(WORD) {
        assert_ne!(
            output.read_line(&mut output_text).unwrap(),
            0,
            "the child ended before it was killed: {output_text}"
        );
    }
    std::thread::sleep(Duration::from_millis(5 + RandomState::new().hash_one(kill) % 56));
    writer.kill().unwrap();
    writer.wait().unwrap();
    output.read_to_string(&mut output_text).unwrap();
    output_text
}

/// Returns the run number and trace id of each complete output line.
pub(super) fn acknowledged(output_text: &str) -> impl Iterator<Item = (i64, String)> {
    output_text.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(|line| {
        let (number, trace_id) = line.trim_end().split_once(WORD)?.1.split_once(' ')?;
        Some((number.parse().ok()?, trace_id.to_owned()))
    })
}

/// Opens the database and returns the trace ids of its runs by number, after checking that each run is stored
/// completely.
pub(super) fn stored_runs(database: &Path) -> BTreeMap<i64, String> {
    let store = Store::open(database, &[]).unwrap();
    let verdict: String = store.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let runs = Reader::open(database).unwrap().runs(&RunFilter::default()).unwrap();
    for stored in &runs {
        assert_eq!(stored.run, samples::run(stored.run.round, stored.run.slot), "a run is stored partially");
    }
    runs.into_iter().map(|stored| (stored.number, stored.trace_id)).collect()
}

fn assert_complete(database: &Path, acknowledged: &BTreeMap<i64, String>) {
    let found = stored_runs(database);
    for (number, trace_id) in acknowledged {
        assert_eq!(found.get(number), Some(trace_id), "run {number} was acknowledged but is lost");
    }
}

/// Kills ten writers of the database with this number, one after the other, and returns the number of acknowledged runs.
fn ten_kills(folder: &Path, database: u64) -> usize {
    let path = folder.join(format!("{database}.sqlite"));
    let mut all_acknowledged = BTreeMap::new();
    for kill in 0..10 {
        all_acknowledged.extend(acknowledged(&killed_writer(&path, database * 10 + kill)));
        assert_complete(&path, &all_acknowledged);
    }
    all_acknowledged.len()
}

#[test]
fn a_hundred_kills_lose_no_acknowledged_run() {
    // In the folder of temporary files and not in memory: on a disk a writer spends most of its time in syncs.
    let folder = tempfile::tempdir().unwrap();
    let kills_in = |first: u64| -> usize {
        (first..10).step_by(THREADS as usize).map(|database| ten_kills(folder.path(), database)).sum()
    };
    let total: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|first| scope.spawn(move || kills_in(first))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(total >= 60, "only {total} runs were acknowledged");
}
