//! Tests of a database that another computer has written.

use std::time::Duration;

use super::{TestDb, new_round, samples, target};
use crate::{NewRound, Store, Writer};

/// Opens a database on the computer with this id.
fn store_on(db: &TestDb, host: Option<&str>) -> Store {
    Store::open_on(host, &db.path(), &[], Duration::from_millis(50)).unwrap()
}

/// Stores a round with a run on the computer with this id, and returns the machine id and the epoch of the run.
fn measure_on(db: &TestDb, host: &str, seed: u64) -> (String, i64) {
    let store = store_on(db, Some(host));
    let machine = store.machine_id().to_owned();
    let writer = Writer::spawn(store);
    let round = writer.begin_round(NewRound { seed, ..new_round() }).unwrap();
    let stored = writer.add_run(&target(), &samples::run(round, 0), &[]).unwrap();
    (machine, stored.epoch)
}

fn event_kinds(db: &TestDb) -> Vec<String> {
    db.reader().events(None).unwrap().into_iter().map(|stored| stored.event.kind).collect()
}

#[test]
fn another_computer_gets_an_id_and_epochs_of_its_own() {
    let db = TestDb::new();
    let (first, epoch) = measure_on(&db, "a", 7);
    assert_eq!(measure_on(&db, "a", 7), (first.clone(), epoch));
    assert_eq!((event_kinds(&db).len(), db.reader().seed_of_last_round().unwrap()), (0, Some(7)));
    let other = store_on(&db, Some("b")).machine_id().to_owned();
    assert!(other != first && other.len() == 16, "{first} and {other}");
    assert_eq!(db.reader().machine_id().unwrap(), Some(other.clone()));
    assert_eq!(db.reader().seed_of_last_round().unwrap(), None, "the seed of the other computer is not used");
    assert_eq!(event_kinds(&db), ["other-computer"]);
    assert_eq!(measure_on(&db, "b", 8), (other, epoch + 1), "it has its own id already");
    assert_eq!(db.reader().seed_of_last_round().unwrap(), Some(8));
    assert_eq!(event_kinds(&db), ["other-computer"]);
}

#[test]
fn computer_that_returns_finds_its_sandbox_again() {
    let db = TestDb::new();
    let ids = ["a", "b", "a", "c", "b", "a"].map(|host| store_on(&db, Some(host)).machine_id().to_owned());
    let [a, b, _, c, ..] = &ids;
    assert!(a != b && b != c && a != c, "{ids:?}");
    assert_eq!(ids, [a, b, a, c, b, a].map(String::clone), "also the first one, whose id is random");
}

#[test]
fn rounds_of_another_computer_are_told_apart() {
    let db = TestDb::new();
    for (host, seed) in [("a", 7), ("a", 7), ("b", 8)] {
        measure_on(&db, host, seed);
        assert_eq!(db.reader().rounds_elsewhere().unwrap(), if host == "a" { 0 } else { 2 });
    }
    let reader = db.reader();
    assert_eq!(reader.count_started_rounds().unwrap(), 1, "the order of runs is drawn from it");
    drop(store_on(&db, Some("c")));
    assert_eq!(reader.rounds_elsewhere().unwrap(), 3);
    assert_eq!((reader.count_started_rounds().unwrap(), reader.first_run_started().unwrap()), (0, None));
}

#[test]
fn unknown_computer_changes_nothing() {
    let db = TestDb::new();
    let known = store_on(&db, None).machine_id().to_owned();
    for host in [Some("a"), None, Some("a")] {
        assert_eq!(store_on(&db, host).machine_id(), known, "the first that is known is only recorded");
    }
    assert_eq!(event_kinds(&db).len(), 0);
}

#[test]
fn database_does_not_contain_the_id_of_the_computer() {
    let db = TestDb::new();
    let host = "3d1219c7c4c5404aaa1f6d2a48adfda4";
    drop(store_on(&db, Some(host)));
    drop(store_on(&db, Some("b")));
    let bytes = std::fs::read(db.path()).unwrap();
    assert!(!bytes.windows(8).any(|part| part == &host.as_bytes()[..8]));
}

#[test]
fn reader_knows_a_database_of_another_computer() {
    let db = TestDb::new();
    let a = store_on(&db, Some("a")).machine_id().to_owned();
    let store = store_on(&db, Some("b"));
    let b = store.machine_id().to_owned();
    let own = |host| crate::host::own_machine_id(&store.connection, host).unwrap();
    assert_eq!([Some("a"), Some("b"), None].map(own), [Some(a.clone()), Some(b.clone()), Some(b.clone())]);
    assert_eq!(own(Some("c")), None);
    let elsewhere = |host| crate::host::machine_ids_elsewhere(&store.connection, Some(host)).unwrap();
    assert_eq!((elsewhere("a"), elsewhere("b"), elsewhere("c").len()), (vec![b], vec![a], 2));
}
