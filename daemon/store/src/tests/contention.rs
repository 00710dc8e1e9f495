//! Others who want the database, and disks that want no more.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::time::Duration;

use rusqlite::Connection;

use super::{CHILD, Place, bare, child, new_round, samples, target};
use crate::migrations::pragma;
use crate::{Error, Result, RunFilter, Store, Writer};

/// The other process: takes the lock, says so, and keeps it until its input ends.
#[test]
fn child_that_locks() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    writeln!(std::io::stdout(), "locked").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn locked_by_another(place: &Place) -> Child {
    let mut other = child("tests::contention::child_that_locks", &place.database()).spawn().unwrap();
    let mut lines = BufReader::new(other.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("locked")));
    other
}

fn release(mut other: Child) {
    drop(other.stdin.take());
    other.wait().unwrap();
}

#[test]
fn a_lock_of_another_process_refuses_the_run_and_leaves_it_to_be_tried_again() {
    let place = Place::filled(1);
    let writer = place.writer();
    let other = locked_by_another(&place);
    let run = samples::run(1, 1);
    let error = writer.add_run(&target(), &run).unwrap_err();
    assert!(
        matches!(error, Error::Locked { operation: "store a run", .. }) && error.is_retryable(),
        "{error}"
    );
    assert_eq!(place.runs().len(), 1, "readers are not in its way");
    release(other);
    assert_eq!(writer.add_run(&target(), &run).unwrap().number, 2);
}

#[test]
fn a_database_that_another_process_is_making_is_locked() {
    let place = Place::new();
    let other = locked_by_another(&place);
    let opened = Store::open_with_patience(&place.database(), &[], Duration::from_millis(50));
    assert!(matches!(opened, Err(Error::Locked { .. })), "{opened:?}");
    release(other);
}

/// Lets the database grow by so many pages and no more.
fn leave_room(writer: &Writer, pages: i64) {
    writer
        .call(move |store| {
            let limit = pragma(&store.connection, "page_count").unwrap() + pages;
            store.connection.pragma_update_and_check(None, "max_page_count", limit, |_| Ok(())).unwrap();
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_full_disk_loses_nothing_acknowledged_and_the_run_can_be_stored_when_there_is_room() {
    let place = Place::new();
    let writer = place.writer();
    let round = writer.begin_round(new_round()).unwrap();
    let mut acknowledged = Vec::new();
    for _ in 0..4 {
        leave_room(&writer, 20);
        let refused = loop {
            let run = samples::run(round, acknowledged.len() as u32);
            match writer.add_run(&target(), &run) {
                Ok(stored) => acknowledged.push(stored),
                Err(error) => break (run, error),
            }
        };
        assert!(matches!(refused.1, Error::Full { .. }) && refused.1.is_retryable(), "{}", refused.1);
        assert_eq!(place.runs(), acknowledged);
        leave_room(&writer, 1000);
        acknowledged.push(writer.add_run(&target(), &refused.0).unwrap());
        assert_eq!(place.runs(), acknowledged);
    }
}

#[test]
fn a_reader_beside_the_writer_sees_only_whole_runs() {
    let place = Place::filled(0);
    let writer = place.writer();
    let round = writer.begin_round(new_round()).unwrap();
    let expected: Vec<_> = (0..100).map(|slot| samples::run(round, slot)).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| expected.iter().for_each(|run| drop(writer.add_run(&target(), run).unwrap())));
        let reader = place.reader();
        let mut seen = 0;
        while seen < expected.len() {
            let runs = bare(reader.runs(&RunFilter::default()).unwrap());
            assert!(runs.len() >= seen && runs[..] == expected[..runs.len()]);
            seen = runs.len();
        }
    });
}

#[test]
fn many_threads_share_one_writer() {
    let place = Place::new();
    let writer = place.writer();
    let round = writer.begin_round(new_round()).unwrap();
    let numbers: Vec<i64> = std::thread::scope(|scope| {
        let add = |slot| writer.add_run(&target(), &samples::run(round, slot)).unwrap().number;
        let threads: Vec<_> = (0..8).map(|slot| scope.spawn(move || add(slot))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=8).collect::<Vec<_>>());
}

#[test]
fn after_a_panic_on_its_thread_the_writer_says_that_it_has_stopped() {
    let place = Place::new();
    let writer = place.writer();
    let lost: Result<()> = writer.call(|_| panic!("a defect"));
    assert!(matches!(lost, Err(Error::WriterStopped)));
    assert!(matches!(writer.begin_round(new_round()), Err(Error::WriterStopped)));
}
