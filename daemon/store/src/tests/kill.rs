//! kill -9, a hundred times.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use super::{CHILD, Place, child, new_round, samples, target};
use crate::{Reader, RunFilter, Store, Writer};

const WORD: &str = "acknowledged ";
/// Should nobody kill it, the child ends by itself.
const ENOUGH: u32 = 2_000;

/// The process that is killed: stores runs and says which were acknowledged.
#[test]
fn child_that_writes() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let writer = Writer::spawn(Store::open(Path::new(&path), &[]).unwrap());
    let round = writer.begin_round(new_round()).unwrap();
    for slot in 0..ENOUGH {
        let stored = writer.add_run(&target(), &samples::run(round, slot)).unwrap();
        writeln!(std::io::stdout(), "{WORD}{} {}", stored.number, stored.trace_id).unwrap();
    }
}

/// Lets the child write, kills it, and gives what it had said by then.
fn killed_writer(database: &Path, kill: u64) -> String {
    let mut writer = child("tests::kill::child_that_writes", database).spawn().unwrap();
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let mut said = String::new();
    // Every third is hit while it starts, makes the database or recovers it; the others while they write.
    while !kill.is_multiple_of(3) && !said.contains(WORD) {
        assert_ne!(output.read_line(&mut said).unwrap(), 0, "the writer ended by itself: {said}");
    }
    std::thread::sleep(Duration::from_millis(5 + RandomState::new().hash_one(kill) % 56));
    writer.kill().unwrap();
    writer.wait().unwrap();
    output.read_to_string(&mut said).unwrap();
    said
}

/// Number and trace id from each whole line.
fn acknowledged(said: &str) -> impl Iterator<Item = (i64, String)> {
    said.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(|line| {
        let (number, trace_id) = line.trim_end().split_once(WORD)?.1.split_once(' ')?;
        Some((number.parse().ok()?, trace_id.to_owned()))
    })
}

fn assert_whole(database: &Path, acknowledged: &BTreeMap<i64, String>) {
    let store = Store::open(database, &[]).unwrap();
    let verdict: String = store.connection.query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let runs = Reader::open(database).unwrap().runs(&RunFilter::default()).unwrap();
    for stored in &runs {
        assert_eq!(stored.run, samples::run(stored.run.round, stored.run.slot), "a run is there in part");
    }
    let found: BTreeMap<i64, String> =
        runs.into_iter().map(|stored| (stored.number, stored.trace_id)).collect();
    for (number, trace_id) in acknowledged {
        assert_eq!(found.get(number), Some(trace_id), "run {number} was acknowledged and is lost");
    }
}

#[test]
fn a_hundred_kills_lose_no_acknowledged_run() {
    let place = Place::new();
    let mut total = 0;
    for database in 0..10u64 {
        let path = place.folder.path().join(format!("{database}.sqlite"));
        let mut kept = BTreeMap::new();
        for kill in 0..10 {
            kept.extend(acknowledged(&killed_writer(&path, database * 10 + kill)));
            assert_whole(&path, &kept);
        }
        total += kept.len();
    }
    assert!(total >= 60, "only {total} runs were acknowledged");
}
