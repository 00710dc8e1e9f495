//! Tests of visiting operations one at a time, and of bulk inserts.

use std::ops::ControlFlow;

use longhaul_model::Run;

use super::{TestDb, new_round, samples, target};
use crate::{Error, StoredOperation};

#[test]
fn operations_are_visited_once_in_run_and_phase_order() {
    let db = TestDb::filled(3);
    let mut seen: Vec<StoredOperation> = vec![];
    let visit = |stored| {
        seen.push(stored);
        ControlFlow::Continue(())
    };
    db.reader().for_each_operation(1..=i64::MAX, visit).unwrap();
    let runs = db.runs();
    let expected = runs.iter().flat_map(|stored| {
        let phases = stored.run.phases.iter();
        phases.flat_map(|phase| phase.operations.iter().map(|stats| (stored.number, &phase.name, stats)))
    });
    assert!(expected.eq(seen.iter().map(|stored| (stored.run, &stored.phase, &stored.stats))));
}

#[test]
fn visitor_can_stop_early() {
    let mut count = 0;
    let visit = |_| {
        count += 1;
        ControlFlow::Break(())
    };
    TestDb::filled(2).reader().for_each_operation(1..=i64::MAX, visit).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn bulk_insert_is_atomic() {
    let db = TestDb::new();
    let mut store = db.store();
    let mut add = |seconds: f64| {
        store.bulk_insert(|bulk| {
            let round = bulk.begin_round(&new_round())?;
            bulk.add_run(&target(), &samples::run(round, 0))?;
            bulk.add_run(&target(), &Run { seconds, ..samples::run(round, 1) }).map(|_| ())
        })
    };
    assert!(matches!(add(f64::NAN), Err(Error::Unstorable { .. })));
    assert_eq!(db.runs().len(), 0);
    add(1.0).unwrap();
    assert_eq!(db.runs().len(), 2);
}
