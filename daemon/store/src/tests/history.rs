//! The narrow form of what is kept.

use longhaul_measure::model::{
    CacheState, Event, Figure, MachineStep, Outcome, Phase, Role, RoundStatus, Run, Target, Unit,
};
use longhaul_measure::summary::History;
use longhaul_measure::workloads::{WORKLOADS, workload};
use rusqlite::Connection;

use super::{Place, new_round, samples, target};
use crate::{RoundEnd, Samples};

/// A run that gives each figure of each of its workload's endpoints, every one with a value of its own.
fn run_of(workload_name: &str, round: i64, slot: u32) -> Run {
    let endpoints = workload(workload_name).unwrap().endpoints();
    let parts =
        endpoints.iter().flat_map(|endpoint| endpoint.figures.iter().map(|part| (part, endpoint.cache)));
    let phases = parts.enumerate().map(|(place, ((phase, figure), cache))| Phase {
        name: (*phase).to_owned(),
        cache: if *phase == "scan" { CacheState::Cold } else { cache },
        cold_by: None,
        began_us: None,
        seconds: 9.0,
        bytes_read: 0,
        bytes_written: 0,
        complete: true,
        figures: vec![Figure::new(figure, Unit::Seconds, 0.1 + place as f64 / 3.0)],
        operations: vec![],
        calls: vec![],
        wire: None,
    });
    Run { workload: workload_name.to_owned(), phases: phases.collect(), ..samples::run(round, slot) }
}

fn filled() -> Place {
    let place = Place::new();
    let writer = place.writer();
    let round = writer.begin_round(new_round()).unwrap();
    for (slot, workload) in WORKLOADS.iter().enumerate() {
        writer.add_run(&target(), &run_of(workload.name(), round, slot as u32)).unwrap();
    }
    let hung = Run { outcome: Outcome::Hung, ..run_of("photo-batch", round, 9) };
    writer.add_run(&target(), &hung).unwrap();
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended_us: 7, after: None };
    writer.end_round(round, end).unwrap();
    let event =
        Event { target: None, kind: "mtu".into(), detail: serde_json::json!({"after": 9000}), at_us: 5 };
    writer.add_event(event).unwrap();
    place
}

fn history(place: &Place) -> History {
    place.reader().history().unwrap()
}

#[test]
fn a_mark_changes_with_the_history_and_with_nothing_else() {
    let place = Place::new();
    let writer = place.writer();
    let reader = place.reader();
    let mut before = (reader.history_mark().unwrap(), reader.history().unwrap());
    let mut holds = |what: &str| {
        let now = (reader.history_mark().unwrap(), reader.history().unwrap());
        assert_eq!(now.0 != before.0, now.1 != before.1, "{what}");
        let has_changed = now.1 != before.1;
        before = now;
        has_changed
    };
    let round = writer.begin_round(new_round()).unwrap();
    assert!(holds("a round begins"));
    writer.add_run(&target(), &run_of("photo-batch", round, 0)).unwrap();
    assert!(holds("a run"));
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended_us: 7, after: None };
    writer.end_round(round, end).unwrap();
    assert!(holds("a round ends"));
    writer
        .add_event(Event { target: None, kind: "mtu".into(), detail: serde_json::Value::Null, at_us: 5 })
        .unwrap();
    assert!(holds("an event"));
    let baseline = Target { role: Role::Baseline, ..target() };
    writer.add_run(&baseline, &run_of("photo-batch", round, 1)).unwrap();
    assert!(holds("a target of another role"));
    writer.settle_threshold(1.2).unwrap();
    assert!(holds("the difference that matters"));
    let samples =
        Samples { targets: vec![baseline], machine: vec![MachineStep::default()], ..Samples::default() };
    writer.add_samples(samples).unwrap();
    assert!(!holds("samples"));
}

#[test]
fn a_history_holds_every_endpoint_of_every_workload_and_none_of_a_failed_run() {
    let history = history(&filled());
    assert_eq!(history.runs.len(), WORKLOADS.len() + 1);
    for run in &history.runs[..WORKLOADS.len()] {
        let endpoints = WORKLOADS[run.workload].endpoints();
        let times: Vec<f64> = (0..endpoints.len()).map(|place| run.times.get(place).unwrap()).collect();
        assert!(
            times.windows(2).all(|pair| pair[0] < pair[1]),
            "each endpoint has its own figures: {times:?}"
        );
    }
    // scan + copy + delete.
    let backup = WORKLOADS.iter().position(|workload| workload.name() == "incremental-backup").unwrap();
    let sum = 0.1 + (0.1 + 1.0 / 3.0) + (0.1 + 2.0 / 3.0);
    assert_eq!(history.runs[backup].times.get(0), Some(sum));
    assert_eq!(history.runs.last().unwrap().times.get(0), None);
    assert_eq!(history.rounds[0].status, Some(RoundStatus::Ok));
    assert_eq!((history.targets.len(), history.epochs[0].protocol.as_deref()), (1, Some("SMB 3.1.1")));
    assert_eq!(history.events.iter().filter(|event| event.kind == "mtu").count(), 1);
    assert_eq!(history.premises.machine.as_ref().map(String::len), Some(16));
}

#[test]
fn the_first_threshold_stays() {
    let place = Place::new();
    let writer = place.writer();
    writer.settle_threshold(1.05).unwrap();
    writer.settle_threshold(1.5).unwrap();
    assert_eq!(history(&place).premises.threshold, 1.05);
}

/// Takes away what all migrations since have added.
const BEFORE_VERDICTS: &str = "DROP INDEX run_history; ALTER TABLE run DROP COLUMN endpoints;
    DROP TABLE probe; DROP TABLE traffic; DROP TABLE machine; DROP TABLE stall; DROP TABLE surroundings;
    DROP INDEX phase_reread; ALTER TABLE phase DROP COLUMN wire_source; ALTER TABLE phase DROP COLUMN wire_covers;
    ALTER TABLE phase DROP COLUMN wire_read; ALTER TABLE phase DROP COLUMN wire_written;
    ALTER TABLE phase DROP COLUMN wire_requests;
    DROP INDEX phase_with_calls; ALTER TABLE phase DROP COLUMN calls;
    DROP TABLE outbox; ALTER TABLE phase DROP COLUMN began_us; PRAGMA user_version = 2";

#[test]
fn runs_from_before_there_were_verdicts_get_their_endpoints_from_their_figures() {
    let place = filled();
    let before = history(&place);
    let connection = Connection::open(place.database()).unwrap();
    connection.execute_batch(BEFORE_VERDICTS).unwrap();
    drop(connection);
    drop(place.store());
    let after = history(&place);
    assert_eq!(after.runs.len(), before.runs.len());
    let mut phases = place.runs().into_iter().flat_map(|stored| stored.run.phases);
    assert!(phases.all(|phase| phase.wire.is_none()), "what crossed the wire is not known of them");
    for (after, before) in after.runs.iter().zip(&before.runs) {
        for place in 0..longhaul_measure::model::MOST_ENDPOINTS {
            let (after, before) = (after.times.get(place), before.times.get(place));
            // SQLite adds in an order of its own.
            let close = after.zip(before).map(|(after, before)| (after - before).abs() < 1e-12);
            assert_eq!((after.is_some(), close), (before.is_some(), before.map(|_| true)));
        }
    }
}

#[test]
fn reading_a_history_touches_no_wide_row() {
    let place = filled();
    let connection = Connection::open(place.database()).unwrap();
    let plan: String = connection
        .query_row(&format!("EXPLAIN QUERY PLAN {}", crate::history::RUNS), [], |row| row.get(3))
        .unwrap();
    assert!(plan.contains("COVERING INDEX run_history"), "{plan}");
}
