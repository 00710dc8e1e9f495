//! Tests of reading the history.

use std::time::Duration;

use longhaul_model::{
    CacheState, Event, Figure, History, MachineStep, Outcome, Phase, Role, RoundStatus, Run,
    STANDARD_TASKS as TASKS, Target, Unit,
};
use rusqlite::Connection;

use super::{TestDb, at, new_round, samples, target};
use crate::{NewRound, PlannedRun, RoundEnd, Samples};

/// Returns a run with every figure of every metric of a workload; each figure has a different value.
pub(super) fn run_with_metrics(workload_name: &str, round: i64, slot: u32) -> Run {
    let metrics = TASKS.iter().find(|task| task.name() == workload_name).unwrap().metrics();
    let parts = metrics.iter().flat_map(|metric| metric.figures.iter().map(|part| (part, metric.cache)));
    let phases = parts.enumerate().map(|(index, ((phase, figure), cache))| Phase {
        seconds: 9.0,
        figures: vec![Figure::new(figure, Unit::Seconds, 0.1 + index as f64 / 3.0)],
        ..Phase::new(*phase, if *phase == "scan" { CacheState::Cold } else { cache })
    });
    Run { workload: workload_name.to_owned(), phases: phases.collect(), ..samples::run(round, slot) }
}

fn filled_database() -> TestDb {
    let (db, writer, round) = TestDb::with_round();
    for (slot, workload) in TASKS.iter().enumerate() {
        writer.add_run(&target(), &run_with_metrics(workload.name(), round, slot as u32), &[]).unwrap();
    }
    let hung = Run { outcome: Outcome::Hung, ..run_with_metrics("photo-batch", round, 9) };
    writer.add_run(&target(), &hung, &[]).unwrap();
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended: at(7) };
    writer.end_round(round, end).unwrap();
    let event =
        Event { target: None, kind: "mtu".into(), detail: serde_json::json!({"after": 9000}), at_us: at(5) };
    writer.add_event(event).unwrap();
    db
}

fn history(db: &TestDb) -> History {
    db.reader().history().unwrap()
}

#[test]
fn version_changes_exactly_when_the_history_changes() {
    let db = TestDb::new();
    let writer = db.writer();
    let reader = db.reader();
    let mut before = (reader.history_version().unwrap(), reader.history().unwrap());
    let mut changed = |what: &str| {
        let now = (reader.history_version().unwrap(), reader.history().unwrap());
        assert_eq!(now.0 != before.0, now.1 != before.1, "{what}");
        assert_eq!(reader.history_since(before.1.clone()).unwrap(), now.1, "{what}");
        let has_changed = now.1 != before.1;
        before = now;
        has_changed
    };
    let round = writer.begin_round(new_round()).unwrap();
    assert!(changed("a round starts"));
    writer.add_run(&target(), &run_with_metrics("photo-batch", round, 0), &[]).unwrap();
    assert!(changed("a run"));
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended: at(7) };
    writer.end_round(round, end).unwrap();
    assert!(changed("a round ends"));
    writer
        .add_event(Event { target: None, kind: "mtu".into(), detail: serde_json::Value::Null, at_us: at(5) })
        .unwrap();
    assert!(changed("an event"));
    let baseline = Target { role: Role::Baseline, ..target() };
    writer.add_run(&baseline, &run_with_metrics("photo-batch", round, 1), &[]).unwrap();
    assert!(changed("a target of another role"));
    writer.set_threshold_once(1.2).unwrap();
    assert!(changed("the threshold"));
    let samples =
        Samples { targets: vec![baseline], machine: vec![MachineStep::default()], ..Samples::default() };
    writer.add_samples(samples).unwrap();
    assert!(!changed("samples"));
}

#[test]
fn history_has_every_metric_except_of_failed_runs() {
    let history = history(&filled_database());
    assert_eq!(history.runs.len(), TASKS.len() + 1);
    for run in &history.runs[..TASKS.len()] {
        let metrics = TASKS[run.workload].metrics();
        let times: Vec<f64> = (0..metrics.len()).map(|index| run.times.get(index).unwrap()).collect();
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "each metric has its own figures: {times:?}");
    }
    // The metric of this workload is the sum of the figures of its phases scan, copy and delete.
    let backup = TASKS.iter().position(|workload| workload.name() == "incremental-backup").unwrap();
    let sum = 0.1 + (0.1 + 1.0 / 3.0) + (0.1 + 2.0 / 3.0);
    assert_eq!(history.runs[backup].times.get(0), Some(sum));
    assert_eq!(history.runs.last().unwrap().times.get(0), None);
    assert_eq!(history.rounds[0].status, Some(RoundStatus::Ok));
    assert_eq!((history.targets.len(), history.epochs[0].protocol.as_deref()), (1, Some("SMB 3.1.1")));
    assert_eq!(history.events.iter().filter(|event| event.kind == "mtu").count(), 1);
    assert_eq!(history.settings.machine.as_ref().map(String::len), Some(16));
}

#[test]
fn round_trip_time_of_a_run_is_in_the_history() {
    let (db, writer, round) = TestDb::with_round();
    for (slot, us) in [(0, Some(3_200)), (1, None)] {
        let mut run = run_with_metrics("photo-batch", round, slot);
        run.conditions.round_trip_us = us;
        writer.add_run(&target(), &run, &[]).unwrap();
    }
    let times: Vec<Option<Duration>> = history(&db).runs.iter().map(|run| run.rtt).collect();
    assert_eq!(times, [Some(Duration::from_micros(3_200)), None]);
}

#[test]
fn round_without_a_task_is_not_in_the_history() {
    let db = TestDb::new();
    let writer = db.writer();
    let begin = |workloads: &[&str]| {
        let planned = PlannedRun::each(workloads.iter().copied(), [&target().name].into_iter());
        writer.begin_round(NewRound { planned, ..new_round() }).unwrap()
    };
    begin(&["read-back"]);
    begin(&["blogbench"]);
    let measured = [begin(&["photo-batch"]), begin(&["blogbench", "photo-batch", "read-back"]), begin(&[])];
    let numbers: Vec<i64> = history(&db).rounds.iter().map(|round| round.number).collect();
    assert_eq!(numbers, measured);
}

#[test]
fn threshold_is_set_only_once() {
    let db = TestDb::new();
    let writer = db.writer();
    writer.set_threshold_once(1.05).unwrap();
    writer.set_threshold_once(1.5).unwrap();
    assert_eq!(history(&db).settings.threshold, 1.05);
}

#[test]
fn history_is_read_from_a_covering_index() {
    let db = filled_database();
    let connection = Connection::open(db.path()).unwrap();
    let plan: String = connection
        .query_row(&format!("EXPLAIN QUERY PLAN {}", crate::history::RUNS_QUERY), [0], |row| row.get(3))
        .unwrap();
    assert!(plan.contains("COVERING INDEX run_history"), "{plan}");
}

#[test]
fn runs_after_an_earlier_history_give_the_same_history_with_each_recording() {
    let (db, writer, round) = TestDb::with_round();
    let mut earlier = history(&db);
    let replays = [None, Some("photos"), None, Some("mail"), Some("mail"), Some("photos"), None];
    for (slot, recording) in replays.into_iter().enumerate() {
        let task = if recording.is_some() { "your-day" } else { "photo-batch" };
        let mut run = run_with_metrics("photo-batch", round, slot as u32);
        run.workload = task.to_owned();
        run.facts.extend(recording.map(|name| ("recording".to_owned(), name.to_owned())));
        writer.add_run(&target(), &run, &[]).unwrap();
        let whole = history(&db);
        assert_eq!(db.reader().history_since(earlier).unwrap(), whole, "slot {slot}");
        earlier = whole;
    }
    assert_eq!(earlier.runs.len(), 5, "two of the same recording, three of another task");
}

#[test]
fn replay_that_failed_before_it_read_its_recording_stays_a_failure() {
    let (db, writer, round) = TestDb::with_round();
    let add = |slot, recording: Option<&str>| {
        let mut run = run_with_metrics("photo-batch", round, slot);
        run.workload = "your-day".to_owned();
        run.outcome = if recording.is_some() { Outcome::Ok } else { Outcome::Error };
        run.facts.extend(recording.map(|name| ("recording".to_owned(), name.to_owned())));
        writer.add_run(&target(), &run, &[]).unwrap();
        history(&db).runs.len()
    };
    assert_eq!(add(0, None), 1, "no recording was ever read");
    assert_eq!(add(1, Some("mail")), 2);
    assert_eq!(add(2, None), 3);
}
