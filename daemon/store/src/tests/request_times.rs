//! Tests of the times of requests.

use longhaul_model::{
    CacheState, Conditions, Figure, Histogram, Operation, OperationStats, Outcome, PhaseTimes, RequestTimes,
    RoundStatus, Run, Scale, Unit,
};

use super::history::run_with_metrics;
use super::{TestDb, at, new_round, target};
use crate::RoundEnd;
use crate::request_times::from_values;

fn times() -> RequestTimes {
    from_values(std::array::from_fn(|index| (index % 3 > 0).then_some(index as u64)))
}

fn stats(operation: Operation, nanoseconds: u64, count: u64) -> OperationStats {
    let mut latency = Histogram::new();
    (0..count).for_each(|_| latency.record(nanoseconds));
    OperationStats { operation, latency, errors: 0 }
}

/// Returns a run whose first phase has times and operations.
fn timed_run(round: i64, slot: u32) -> Run {
    let mut run = run_with_metrics("folder-index", round, slot);
    run.phases[0].request_times = Some(times());
    run.phases[0].operations = vec![
        stats(Operation::Getattr, 1_000_000, 3),
        stats(Operation::Read, 2_000_000, 2),
        stats(Operation::Decode, 500_000_000, 1),
    ];
    run.conditions = Conditions { round_trip_us: Some(450), ..run.conditions };
    run
}

fn phases(db: &TestDb, rounds: u32) -> Vec<PhaseTimes> {
    db.reader().phase_times(rounds, None).unwrap()
}

/// Returns the numbers of the rounds of which there are phases.
fn rounds_of(phases: &[PhaseTimes]) -> Vec<i64> {
    let mut rounds: Vec<i64> = phases.iter().map(|phase| phase.round).collect();
    rounds.dedup();
    rounds
}

#[test]
fn a_phase_has_its_times_metrics_and_calls() {
    let (db, writer, round) = TestDb::with_round();
    writer.add_run(&target(), &timed_run(round, 0), &[]).unwrap();
    let found = phases(&db, 1);
    assert_eq!((found.len(), found[0].phase.as_str(), found[0].cache), (4, "open-folder", CacheState::Cold));
    assert_eq!((found[0].times.clone(), found[1].times.clone()), (Some(times()), None));
    assert_eq!((found[0].round_trip_us, found[0].metrics.len()), (Some(450), 4));
    let calls = found[0].calls;
    assert_eq!((calls.calls, calls.data_calls), (5, 2));
    assert!((calls.seconds - 0.007).abs() < 1e-9 && (calls.decode_seconds - 0.5).abs() < 1e-9, "{calls:?}");
}

#[test]
fn times_of_a_stored_run_are_read_back_unchanged() {
    let (db, writer, round) = TestDb::with_round();
    writer.add_run(&target(), &timed_run(round, 0), &[]).unwrap();
    assert_eq!(db.runs()[0].run.phases[0].request_times, Some(times()));
    assert_eq!(db.runs()[0].run.phases[1].request_times, None);
}

#[test]
fn failed_runs_and_older_rounds_are_left_out() {
    let db = TestDb::new();
    let writer = db.writer();
    for _ in 0..3 {
        let round = writer.begin_round(new_round()).unwrap();
        writer.add_run(&target(), &timed_run(round, 0), &[]).unwrap();
        let hung = Run { outcome: Outcome::Hung, ..timed_run(round, 1) };
        writer.add_run(&target(), &hung, &[]).unwrap();
    }
    let rounds: Vec<i64> = phases(&db, 2).iter().map(|phase| phase.round).collect();
    assert_eq!(rounds, [2, 2, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn skipped_rounds_do_not_count_as_rounds() {
    let (db, writer, round) = TestDb::with_round();
    writer.add_run(&target(), &timed_run(round, 0), &[]).unwrap();
    writer.add_skipped(vec![(new_round(), "not-running".to_owned()); 3]).unwrap();
    assert_eq!(phases(&db, 1).len(), 4);
}

#[test]
fn rounds_of_a_scale_are_found_among_many_of_another() {
    let db = TestDb::new();
    let writer = db.writer();
    for scale in [[Scale::Standard; 9].as_slice(), &[Scale::Quick; 15]].concat() {
        let round = writer.begin_round(new_round()).unwrap();
        writer.add_run(&target(), &Run { scale, ..timed_run(round, 0) }, &[]).unwrap();
    }
    let of_scale = |rounds, scale| rounds_of(&db.reader().phase_times(rounds, scale).unwrap());
    assert_eq!(of_scale(24, Some(Scale::Standard)), (1..=9).collect::<Vec<_>>());
    assert_eq!(of_scale(2, Some(Scale::Standard)), [8, 9], "the newest of the scale");
    assert_eq!(of_scale(24, None), (10..=24).collect::<Vec<_>>(), "the scale of most runs");
}

#[test]
fn void_rounds_are_left_out_and_do_not_count() {
    let db = TestDb::new();
    let writer = db.writer();
    for status in [RoundStatus::Ok, RoundStatus::Void, RoundStatus::CutShort] {
        let round = writer.begin_round(new_round()).unwrap();
        writer.add_run(&target(), &timed_run(round, 0), &[]).unwrap();
        writer.end_round(round, RoundEnd { status, reason: None, ended: at(2_000) }).unwrap();
    }
    assert_eq!(rounds_of(&phases(&db, 2)), [1, 3]);
}

#[test]
fn runs_of_other_scales_and_other_recordings_are_left_out() {
    let db = TestDb::new();
    let writer = db.writer();
    let replay = |round, recording: &str| {
        let mut run = Run { workload: "your-day".to_owned(), ..run_with_metrics("folder-index", round, 1) };
        run.phases.truncate(1);
        run.phases[0].name = "replay".to_owned();
        run.phases[0].figures = vec![Figure::new("total", Unit::Seconds, 9.0)];
        run.facts.insert(Run::RECORDING_FACT.to_owned(), recording.to_owned());
        run
    };
    for (scale, recording) in [(Scale::Quick, "a"), (Scale::Standard, "a"), (Scale::Standard, "b")] {
        let round = writer.begin_round(new_round()).unwrap();
        writer.add_run(&target(), &Run { scale, ..timed_run(round, 0) }, &[]).unwrap();
        writer.add_run(&target(), &Run { scale: Scale::Standard, ..replay(round, recording) }, &[]).unwrap();
    }
    let rounds = |workload: &str| {
        let all = phases(&db, 9);
        let mut rounds: Vec<i64> =
            all.iter().filter(|phase| phase.workload == workload).map(|phase| phase.round).collect();
        rounds.dedup();
        rounds
    };
    assert_eq!((rounds("folder-index"), rounds("your-day")), (vec![2, 3], vec![3]));
}
