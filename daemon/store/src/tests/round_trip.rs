//! Tests that stored data is read back unchanged.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_model::{Call, Figure, KeepReason, Operation, Outcome, Role, Run, Target, Timestamp, Unit};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{TestDb, at, new_round, runs_only, samples, target};
use crate::{Error, Event, NewRound, RoundEnd, RoundStatus, RunFilter, StoredCalls, StoredRun};

fn target_of(run: &Run) -> Target {
    Target { name: run.target.clone(), path: "/Volumes/nas".into(), role: Role::Share }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_run_is_read_back_unchanged(runs in vec(samples::any_run(), 1..5)) {
        let (db, writer, _) = TestDb::with_round();
        let mut stored: Vec<StoredRun> = runs.iter().map(|run| writer.add_run(&target_of(run), run, &[]).unwrap()).collect();
        prop_assert_eq!(&runs_only(stored.clone()), &runs);
        stored.sort_by_key(|stored| (stored.run.started_us, stored.number));
        prop_assert_eq!(&db.runs(), &stored);
        for stored in stored {
            prop_assert_eq!(db.reader().run(stored.number).unwrap(), Some(stored));
        }
    }

    #[test]
    fn every_event_is_read_back_unchanged(kind in samples::text(), detail in samples::text(), us: i64) {
        let db = TestDb::new();
        let event = Event { target: None, kind, detail: serde_json::json!({ "x": [detail, null, 1.5] }), at_us: at(us) };
        let number = db.writer().add_event(event.clone()).unwrap();
        let found = db.reader().events(None).unwrap();
        prop_assert_eq!((found[0].number, &found[0].event, found.len()), (number, &event, 1));
    }
}

/// Returns a database with a run on each of the days 0, 3 and 8 after 1970, whose phases have one call each.
fn database_with_calls() -> TestDb {
    let db = TestDb::new();
    let writer = db.writer();
    for day in [0, 3, 8] {
        let begin = Timestamp::UNIX_EPOCH + day * DAY;
        let round = writer.begin_round(NewRound { started: begin, ..new_round() }).unwrap();
        let mut run = samples::run(round, 0);
        for phase in &mut run.phases {
            phase.began_us = Some(begin);
            let operation = phase.operations[0].operation;
            let call = Call {
                operation,
                offset_ns: 1,
                duration_ns: 2,
                is_error: false,
                keep_reason: KeepReason::Slowest,
            };
            phase.calls = vec![call];
        }
        writer.add_run(&target_of(&run), &run, &[]).unwrap();
        let end =
            RoundEnd { status: RoundStatus::Ok, reason: None, ended: begin + Duration::from_micros(10) };
        writer.end_round(round, end).unwrap();
    }
    db
}

#[test]
fn stall_records_have_no_calls_after_their_window() {
    let until = Timestamp::UNIX_EPOCH + 5 * DAY;
    let records = database_with_calls().reader().stall_records(Timestamp::UNIX_EPOCH, until).unwrap();
    let days: Vec<i64> = records.calls.iter().map(|phase| phase.began.local_day(0)).collect();
    assert_eq!(days, [3, 3]);
}

#[test]
fn individual_calls_are_deleted_after_a_week() {
    let db = database_with_calls();
    let call_counts: Vec<usize> = db.runs().iter().map(|stored| stored.run.phases[0].calls.len()).collect();
    assert_eq!(call_counts, [0, 1, 1]);
    let found = |workload, since| db.reader().calls(Some(workload), since).unwrap();
    let phases = |all: Vec<StoredCalls>| -> Vec<(i64, String)> {
        all.into_iter().map(|calls| (calls.began.local_day(0), calls.phase)).collect()
    };
    let both = |day: i64| [(day, "scan".to_owned()), (day, "again".to_owned())];
    let photos = found("photo-batch", Timestamp::UNIX_EPOCH);
    assert!(photos.iter().all(|phase| phase.calls[0].operation == Operation::ALL[0]));
    // All example runs have a start time in the first seconds of 1970, so a later `since` finds none of
    // them.
    assert_eq!(phases(photos), [both(3), both(8)].concat());
    assert_eq!(
        (found("photo-batch", Timestamp::UNIX_EPOCH + DAY), found("no-task", Timestamp::UNIX_EPOCH)),
        (vec![], vec![])
    );
}

#[test]
fn run_numbers_start_at_1_and_trace_ids_have_32_digits() {
    let stored = TestDb::filled(3).runs();
    assert_eq!(stored.iter().map(|stored| stored.number).collect::<Vec<_>>(), [1, 2, 3]);
    for stored in &stored {
        assert!(stored.trace_id.len() == 32 && stored.trace_id.chars().all(|c| c.is_ascii_hexdigit()));
    }
    assert_ne!(stored[0].trace_id, stored[1].trace_id);
}

#[test]
fn filter_returns_the_latest_runs_oldest_first() {
    let db = TestDb::filled(5);
    let slots = |filter: RunFilter| -> Vec<u32> {
        db.reader().runs(&filter).unwrap().iter().map(|stored| stored.run.slot).collect()
    };
    assert_eq!(slots(RunFilter { limit: Some(2), ..RunFilter::default() }), [3, 4]);
    assert_eq!(
        slots(RunFilter { since: Some(at(2_000_000)), limit: Some(9), ..RunFilter::default() }),
        [2, 3, 4]
    );
    let photos = RunFilter {
        target: Some(target().name),
        workload: Some("photo-batch".into()),
        since: Some(at(4_000_000)),
        outcome: Some(Outcome::Ok),
        skip: 0,
        limit: None,
    };
    assert_eq!((slots(photos.clone()), db.reader().run_count(&photos).unwrap()), (vec![4], 1));
    let page = RunFilter { skip: 1, limit: Some(2), ..RunFilter::default() };
    assert_eq!((slots(page.clone()), db.reader().run_count(&page).unwrap()), (vec![2, 3], 5));
    let hung = RunFilter { outcome: Some(Outcome::Hung), ..RunFilter::default() };
    assert_eq!((slots(hung.clone()), db.reader().run_count(&hung).unwrap()), (vec![], 0));
    assert!(slots(RunFilter { workload: Some("no-such".into()), ..RunFilter::default() }).is_empty());
    assert!(slots(RunFilter { target: Some("nfs".parse().unwrap()), ..RunFilter::default() }).is_empty());
    assert_eq!(db.reader().run(99).unwrap(), None);
}

#[test]
fn round_is_open_until_its_end_and_ends_once() {
    let (db, writer, round) = TestDb::with_round();
    let found = db.reader().rounds().unwrap().remove(0);
    assert_eq!((found.number, found.round, found.end), (round, new_round(), None));
    let end = RoundEnd { status: RoundStatus::CutShort, reason: Some("stopped".into()), ended: at(7) };
    writer.end_round(round, end.clone()).unwrap();
    assert_eq!(db.reader().rounds().unwrap()[0].end.as_ref(), Some(&end));
    assert!(matches!(writer.end_round(round, end.clone()), Err(Error::NoSuchRound { round: 1, .. })));
    assert!(matches!(writer.end_round(9, end), Err(Error::NoSuchRound { round: 9, .. })));
}

#[test]
fn target_has_its_latest_path_even_if_not_utf8() {
    let db = TestDb::filled(2);
    let moved = Target { path: OsStr::from_bytes(b"/m/\xff\xfe").into(), role: Role::Baseline, ..target() };
    db.writer().add_run(&moved, &samples::run(1, 2), &[]).unwrap();
    let found = db.reader().targets().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].target, found[0].runs, found[0].added), (&moved, 3, at(0)));
}

#[test]
fn run_that_cannot_be_stored_exactly_is_refused() {
    let db = TestDb::filled(1);
    let writer = db.writer();
    let mut broken = samples::run(1, 1);
    broken.phases[1].figures.push(Figure::new("photos", Unit::PerSecond, f64::NAN));
    assert!(matches!(writer.add_run(&target(), &broken, &[]), Err(Error::Unstorable { .. })));
    let mut broken = samples::run(1, 1);
    broken.conditions.load_average = Some(f64::INFINITY);
    assert!(matches!(writer.add_run(&target(), &broken, &[]), Err(Error::Unstorable { .. })));
    let other = Target { name: "nfs".parse().unwrap(), ..target() };
    assert!(matches!(writer.add_run(&other, &samples::run(1, 1), &[]), Err(Error::Unstorable { .. })));
    assert!(matches!(
        writer.add_run(&target(), &samples::run(2, 1), &[]),
        Err(Error::NoSuchRound { round: 2, .. })
    ));
    assert_eq!(db.runs().len(), 1);
    assert_eq!(writer.add_run(&target(), &samples::run(1, 1), &[]).unwrap().number, 2);
}

#[test]
fn size_includes_the_write_ahead_log() {
    let db = TestDb::filled(1);
    let closed = db.reader().size_bytes().unwrap();
    assert_eq!(closed, std::fs::metadata(db.path()).unwrap().len());
    let writer = db.writer();
    writer.add_run(&target(), &samples::run(1, 1), &[]).unwrap();
    assert!(db.reader().size_bytes().unwrap() > closed);
}
