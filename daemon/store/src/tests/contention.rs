//! Tests of concurrent access to the database and of full disks.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::time::Duration;

use rusqlite::Connection;

use super::{CHILD, TestDb, child, new_round, runs_only, samples, target};
use crate::migrations::pragma;
use crate::{Error, Result, RunFilter, Store, Writer};

/// The child process that locks the database. It prints `locked` and holds the lock until its standard input is
/// closed.
#[test]
#[ignore = "not a test: the child process of other tests"]
fn child_that_locks() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    writeln!(std::io::stdout(), "locked").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn lock_from_another_process(db: &TestDb) -> Child {
    let mut other = child("tests::contention::child_that_locks", &db.path()).spawn().unwrap();
    let mut lines = BufReader::new(other.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("locked")));
    other
}

fn release(mut other: Child) {
    drop(other.stdin.take());
    other.wait().unwrap();
}

#[test]
fn locked_database_gives_a_retryable_error() {
    let db = TestDb::filled(1);
    let writer = db.writer();
    let other = lock_from_another_process(&db);
    let run = samples::run(1, 1);
    let error = writer.add_run(&target(), &run, &[]).unwrap_err();
    assert!(
        matches!(error, Error::Locked { operation: "store a run", .. }) && error.is_retryable(),
        "{error}"
    );
    assert_eq!(db.runs().len(), 1, "readers are not blocked by the lock");
    release(other);
    assert_eq!(writer.add_run(&target(), &run, &[]).unwrap().number, 2);
}

#[test]
fn opening_a_locked_new_database_fails_as_locked() {
    let db = TestDb::new();
    let other = lock_from_another_process(&db);
    let opened = Store::open_with_busy_timeout(&db.path(), &[], Duration::from_millis(50));
    assert!(matches!(opened, Err(Error::Locked { .. })), "{opened:?}");
    release(other);
}

/// Limits the growth of the database to `pages` more pages, to simulate a full disk.
fn limit_size(writer: &Writer, pages: i64) {
    writer
        .run_on_thread(move |store| {
            let limit = pragma(&store.connection, "page_count").unwrap() + pages;
            store.connection.pragma_update_and_check(None, "max_page_count", limit, |_| Ok(())).unwrap();
            Ok(())
        })
        .unwrap();
}

#[test]
fn full_disk_loses_no_acknowledged_run() {
    let (db, writer, round) = TestDb::with_round();
    let mut acknowledged = Vec::new();
    for _ in 0..4 {
        limit_size(&writer, 20);
        let refused = loop {
            let run = samples::run(round, acknowledged.len() as u32);
            match writer.add_run(&target(), &run, &[]) {
                Ok(stored) => acknowledged.push(stored),
                Err(error) => break (run, error),
            }
        };
        assert!(matches!(refused.1, Error::DiskFull { .. }) && refused.1.is_retryable(), "{}", refused.1);
        assert_eq!(db.runs(), acknowledged);
        limit_size(&writer, 1000);
        acknowledged.push(writer.add_run(&target(), &refused.0, &[]).unwrap());
        assert_eq!(db.runs(), acknowledged);
    }
}

#[test]
fn reader_sees_only_complete_runs_during_writes() {
    let db = TestDb::filled(0);
    let writer = db.writer();
    let round = writer.begin_round(new_round()).unwrap();
    let expected: Vec<_> = (0..100).map(|slot| samples::run(round, slot)).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| expected.iter().for_each(|run| drop(writer.add_run(&target(), run, &[]).unwrap())));
        let reader = db.reader();
        let mut seen = 0;
        while seen < expected.len() {
            let runs = runs_only(reader.runs(&RunFilter::default()).unwrap());
            assert!(runs.len() >= seen && runs[..] == expected[..runs.len()]);
            seen = runs.len();
        }
    });
}

#[test]
fn many_threads_share_one_writer() {
    let (_db, writer, round) = TestDb::with_round();
    let numbers: Vec<i64> = std::thread::scope(|scope| {
        let add = |slot| writer.add_run(&target(), &samples::run(round, slot), &[]).unwrap().number;
        let threads: Vec<_> = (0..8).map(|slot| scope.spawn(move || add(slot))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=8).collect::<Vec<_>>());
}

#[test]
fn writer_reports_stopped_after_a_panic() {
    let db = TestDb::new();
    let writer = db.writer();
    let result: Result<()> = writer.run_on_thread(|_| panic!("a bug"));
    assert!(matches!(result, Err(Error::WriterStopped)));
    assert!(matches!(writer.begin_round(new_round()), Err(Error::WriterStopped)));
}
