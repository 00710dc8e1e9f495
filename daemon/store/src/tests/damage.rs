//! Files that are broken.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Place, samples, target};
use crate::open::log_of;
use crate::{Error, Reader, Result, RunFilter, Store, Writer};

/// Everything that one does with a database; the first error.
fn use_it(place: &Place) -> Result<()> {
    let writer = Writer::spawn(Store::open(&place.database(), &[])?);
    let reader = Reader::open(&place.database())?;
    reader.runs(&RunFilter::default())?;
    reader.rounds()?;
    reader.targets()?;
    reader.events(None)?;
    writer.add_run(&target(), &samples::run(1, 0))?;
    Ok(())
}

fn assert_damaged(result: Result<()>, place: &Place) {
    let error = result.expect_err("the damage went unnoticed");
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(place.database().to_str().unwrap()) && text.contains(".recover"), "{text}");
}

#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    for content in [b"hello".to_vec(), b"hello".repeat(10_000)] {
        let place = Place::new();
        fs::write(place.database(), &content).unwrap();
        assert_damaged(use_it(&place), &place);
        assert_damaged(Reader::open(&place.database()).map(drop), &place);
        assert_eq!(fs::read(place.database()).unwrap(), content);
    }
}

#[test]
fn a_truncated_file_is_damaged_not_empty() {
    let place = Place::filled(40);
    let length = fs::metadata(place.database()).unwrap().len();
    OpenOptions::new().write(true).open(place.database()).unwrap().set_len(length / 2).unwrap();
    assert_damaged(use_it(&place), &place);
}

#[test]
fn broken_pages_in_the_middle_are_found_when_they_are_read() {
    let place = Place::filled(40);
    break_the_middle(&place);
    assert_damaged(use_it(&place), &place);
}

#[test]
fn after_a_crash_broken_pages_are_found_at_once() {
    let place = Place::filled(40);
    break_the_middle(&place);
    fs::write(log_of(&place.database()), b"").unwrap();
    assert_damaged(Store::open(&place.database(), &[]).map(drop), &place);
}

fn break_the_middle(place: &Place) {
    let file = OpenOptions::new().write(true).open(place.database()).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&vec![0xAA; length as usize / 3], length / 3).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_file_is_opened_or_refused_without_panic(bytes in vec(any::<u8>(), 1..6000), header: bool) {
        let place = Place::new();
        let header = if header { &b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20"[..] } else { &[] };
        fs::write(place.database(), [header, &bytes].concat()).unwrap();
        prop_assert!(use_it(&place).is_err());
    }

    #[test]
    fn broken_bytes_anywhere_never_cause_a_panic(at in 0.0..1.0f64, bytes in vec(any::<u8>(), 1..200)) {
        let place = Place::filled(3);
        let file = OpenOptions::new().write(true).open(place.database()).unwrap();
        let length = file.metadata().unwrap().len();
        file.write_all_at(&bytes, (at * length as f64) as u64).unwrap();
        drop(use_it(&place));
    }
}
