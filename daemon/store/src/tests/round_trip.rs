//! What was stored is what is read.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use longhaul_measure::model::{Call, Figure, Kept, Operation, Role, Run, Target, Unit};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Place, bare, new_round, samples, target};
use crate::{Error, Event, NewRound, RoundEnd, RoundStatus, RunFilter, StoredCalls, StoredRun};

fn on(run: &Run) -> Target {
    Target { name: run.target.clone(), path: "/Volumes/nas".into(), role: Role::Share }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_run_is_read_as_it_was_given(runs in vec(samples::any_run(), 1..5)) {
        let place = Place::new();
        let writer = place.writer();
        writer.begin_round(new_round()).unwrap();
        let mut stored: Vec<StoredRun> = runs.iter().map(|run| writer.add_run(&on(run), run).unwrap()).collect();
        prop_assert_eq!(&bare(stored.clone()), &runs);
        stored.sort_by_key(|stored| (stored.run.started_us, stored.number));
        prop_assert_eq!(&place.runs(), &stored);
        for stored in stored {
            prop_assert_eq!(place.reader().run(stored.number).unwrap(), Some(stored));
        }
    }

    #[test]
    fn every_event_is_read_as_it_was_given(kind in samples::text(), detail in samples::text(), at_us: i64) {
        let place = Place::new();
        let event = Event { target: None, kind, detail: serde_json::json!({ "x": [detail, null, 1.5] }), at_us };
        let number = place.writer().add_event(event.clone()).unwrap();
        let found = place.reader().events(None).unwrap();
        prop_assert_eq!((found[0].number, &found[0].event, found.len()), (number, &event, 1));
    }
}

#[test]
fn single_calls_are_kept_for_a_week() {
    const DAY_US: i64 = 86_400_000_000;
    let place = Place::new();
    let writer = place.writer();
    for day in [0, 3, 8] {
        let round = writer.begin_round(NewRound { started_us: day * DAY_US, ..new_round() }).unwrap();
        let mut run = samples::run(round, 0);
        for phase in &mut run.phases {
            phase.began_us = Some(day * DAY_US);
            let operation = phase.operations[0].operation;
            let call = Call { operation, after_ns: 1, nanoseconds: 2, is_error: false, kept: Kept::Slowest };
            phase.calls = vec![call];
        }
        writer.add_run(&on(&run), &run).unwrap();
        let end =
            RoundEnd { status: RoundStatus::Ok, reason: None, ended_us: day * DAY_US + 10, after: None };
        writer.end_round(round, end).unwrap();
    }
    let kept: Vec<usize> = place.runs().iter().map(|stored| stored.run.phases[0].calls.len()).collect();
    assert_eq!(kept, [0, 1, 1]);
    let found = |workload, since_us| place.reader().calls(workload, since_us).unwrap();
    let phases = |all: Vec<StoredCalls>| -> Vec<(i64, String)> {
        all.into_iter().map(|calls| (calls.began_us / DAY_US, calls.phase)).collect()
    };
    let both = |day: i64| [(day, "scan".to_owned()), (day, "again".to_owned())];
    let photos = found("photo-batch", 0);
    assert!(photos.iter().all(|phase| phase.calls[0].operation == Operation::ALL[0]));
    // The samples' runs all say that they began in the first seconds of 1970.
    assert_eq!(phases(photos), [both(3), both(8)].concat());
    assert_eq!((found("photo-batch", DAY_US), found("no-task", 0)), (vec![], vec![]));
}

#[test]
fn numbers_count_from_one_and_trace_ids_are_32_hexadecimal_digits() {
    let stored = Place::filled(3).runs();
    assert_eq!(stored.iter().map(|stored| stored.number).collect::<Vec<_>>(), [1, 2, 3]);
    for stored in &stored {
        assert!(stored.trace_id.len() == 32 && stored.trace_id.chars().all(|c| c.is_ascii_hexdigit()));
    }
    assert_ne!(stored[0].trace_id, stored[1].trace_id);
}

#[test]
fn a_filter_keeps_the_latest_and_gives_them_oldest_first() {
    let place = Place::filled(5);
    let slots = |filter: RunFilter| -> Vec<u32> {
        place.reader().runs(&filter).unwrap().iter().map(|stored| stored.run.slot).collect()
    };
    assert_eq!(slots(RunFilter { limit: Some(2), ..RunFilter::default() }), [3, 4]);
    assert_eq!(
        slots(RunFilter { since_us: Some(2_000_000), limit: Some(9), ..RunFilter::default() }),
        [2, 3, 4]
    );
    let photos = RunFilter {
        target: Some(target().name),
        workload: Some("photo-batch".into()),
        since_us: Some(4_000_000),
        limit: None,
    };
    assert_eq!(slots(photos), [4]);
    assert!(slots(RunFilter { workload: Some("no-such".into()), ..RunFilter::default() }).is_empty());
    assert!(slots(RunFilter { target: Some("nfs".parse().unwrap()), ..RunFilter::default() }).is_empty());
    assert_eq!(place.reader().run(99).unwrap(), None);
}

#[test]
fn a_round_is_open_until_it_is_ended_once() {
    let place = Place::new();
    let writer = place.writer();
    let round = writer.begin_round(new_round()).unwrap();
    let found = place.reader().rounds().unwrap().remove(0);
    assert_eq!((found.number, found.round, found.end), (round, new_round(), None));
    let end =
        RoundEnd { status: RoundStatus::CutShort, reason: Some("stopped".into()), ended_us: 7, after: None };
    writer.end_round(round, end.clone()).unwrap();
    assert_eq!(place.reader().rounds().unwrap()[0].end.as_ref(), Some(&end));
    assert!(matches!(writer.end_round(round, end.clone()), Err(Error::NoSuchRound { round: 1, .. })));
    assert!(matches!(writer.end_round(9, end), Err(Error::NoSuchRound { round: 9, .. })));
}

#[test]
fn a_target_is_known_by_its_latest_path_even_one_that_is_not_text() {
    let place = Place::filled(2);
    let moved = Target { path: OsStr::from_bytes(b"/m/\xff\xfe").into(), role: Role::Baseline, ..target() };
    place.writer().add_run(&moved, &samples::run(1, 2)).unwrap();
    let found = place.reader().targets().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].target, found[0].runs, found[0].added_us, found[0].epoch), (&moved, 3, 0, 2));
}

#[test]
fn a_run_that_would_come_back_changed_is_refused_whole() {
    let place = Place::filled(1);
    let writer = place.writer();
    let mut broken = samples::run(1, 1);
    broken.phases[1].figures.push(Figure::new("photos", Unit::PerSecond, f64::NAN));
    assert!(matches!(writer.add_run(&target(), &broken), Err(Error::Unstorable { .. })));
    let mut broken = samples::run(1, 1);
    broken.conditions.load_average = Some(f64::INFINITY);
    assert!(matches!(writer.add_run(&target(), &broken), Err(Error::Unstorable { .. })));
    let other = Target { name: "nfs".parse().unwrap(), ..target() };
    assert!(matches!(writer.add_run(&other, &samples::run(1, 1)), Err(Error::Unstorable { .. })));
    assert!(matches!(
        writer.add_run(&target(), &samples::run(2, 1)),
        Err(Error::NoSuchRound { round: 2, .. })
    ));
    assert_eq!(place.runs().len(), 1);
    assert_eq!(writer.add_run(&target(), &samples::run(1, 1)).unwrap().number, 2);
}

#[test]
fn the_size_on_disk_counts_the_log() {
    let place = Place::filled(1);
    let closed = place.reader().size_bytes().unwrap();
    assert_eq!(closed, std::fs::metadata(place.database()).unwrap().len());
    let writer = place.writer();
    writer.add_run(&target(), &samples::run(1, 1)).unwrap();
    assert!(place.reader().size_bytes().unwrap() > closed);
}
