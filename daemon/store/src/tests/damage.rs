//! Tests with damaged database files.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use longhaul_model::Hint;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{TestDb, samples, target};
use crate::error::Fault;
use crate::store::wal_files;
use crate::{Error, Reader, Result, RunFilter, Store, Writer};

/// Opens, reads and writes a database. Returns the first error.
fn use_database(db: &TestDb) -> Result<()> {
    let writer = Writer::spawn(Store::open(&db.path(), &[])?);
    let reader = Reader::open(&db.path())?;
    reader.runs(&RunFilter::default())?;
    reader.rounds()?;
    reader.targets()?;
    reader.events(None)?;
    writer.add_run(&target(), &samples::run(1, 0), &[])?;
    Ok(())
}

fn assert_damaged(result: Result<()>, db: &TestDb) {
    let error = result.expect_err("the damage must be detected");
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    let text = error.one_line();
    assert!(text.contains(db.path().to_str().unwrap()) && text.contains(".recover"), "{text}");
}

#[test]
fn non_database_file_is_named_and_not_changed() {
    for content in [b"hello".to_vec(), b"hello".repeat(10_000)] {
        let db = TestDb::new();
        fs::write(db.path(), &content).unwrap();
        assert_damaged(use_database(&db), &db);
        assert_damaged(Reader::open(&db.path()).map(drop), &db);
        assert_eq!(fs::read(db.path()).unwrap(), content);
    }
}

#[test]
fn truncated_file_is_reported_as_damaged() {
    let db = TestDb::filled(40);
    let length = fs::metadata(db.path()).unwrap().len();
    OpenOptions::new().write(true).open(db.path()).unwrap().set_len(length / 2).unwrap();
    assert_damaged(use_database(&db), &db);
}

#[test]
fn damaged_pages_are_found_when_read() {
    let db = TestDb::filled(40);
    damage_the_middle(&db);
    assert_damaged(use_database(&db), &db);
}

#[test]
fn damaged_pages_are_found_at_open_after_a_crash() {
    let db = TestDb::filled(40);
    damage_the_middle(&db);
    let [log, _] = wal_files(&db.path());
    fs::write(log, b"").unwrap();
    assert_damaged(Store::open(&db.path(), &[]).map(drop), &db);
}

#[test]
fn a_value_that_cannot_be_read_is_no_damaged_page() {
    let db = TestDb::filled(40);
    let writer = db.writer();
    let fail = |writer: &Writer| {
        let work = |_: &rusqlite::Transaction<'_>| -> std::result::Result<(), Fault> {
            Err(rusqlite::Error::IntegralValueOutOfRange(0, -1).into())
        };
        let error = writer.transact("store", work).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    };
    fail(&writer);
    assert!(!writer.has_damaged_pages());
    drop(writer);
    let writer = db.writer();
    damage_the_middle(&db);
    assert!(!writer.has_damaged_pages(), "no write has met it");
    fail(&writer);
    assert!(writer.has_damaged_pages() && writer.has_damaged_pages(), "it stays damaged");
}

fn damage_the_middle(db: &TestDb) {
    let file = OpenOptions::new().write(true).open(db.path()).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&vec![0xAA; length as usize / 3], length / 3).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_file_is_refused_without_panic(bytes in vec(any::<u8>(), 1..6000), header: bool) {
        let db = TestDb::new();
        let header = if header { &b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20"[..] } else { &[] };
        fs::write(db.path(), [header, &bytes].concat()).unwrap();
        prop_assert!(use_database(&db).is_err());
    }

    #[test]
    fn damaged_bytes_never_cause_a_panic(at in 0.0..1.0f64, bytes in vec(any::<u8>(), 1..200)) {
        let db = TestDb::filled(3);
        let file = OpenOptions::new().write(true).open(db.path()).unwrap();
        let length = file.metadata().unwrap().len();
        file.write_all_at(&bytes, (at * length as f64) as u64).unwrap();
        drop(use_database(&db));
    }
}
