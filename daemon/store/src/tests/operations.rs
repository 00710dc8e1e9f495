//! Operations one at a time, and many rounds at once.

use std::ops::ControlFlow;

use longhaul_measure::model::Run;

use super::{Place, new_round, samples, target};
use crate::{Error, StoredOperation};

#[test]
fn every_operation_is_shown_once_in_the_order_of_runs_and_phases() {
    let place = Place::filled(3);
    let mut seen: Vec<StoredOperation> = vec![];
    let visit = |stored| {
        seen.push(stored);
        ControlFlow::Continue(())
    };
    place.reader().operations(visit).unwrap();
    let runs = place.runs();
    let expected = runs.iter().flat_map(|stored| {
        let phases = stored.run.phases.iter();
        phases.flat_map(|phase| phase.operations.iter().map(|stats| (stored.number, &phase.name, stats)))
    });
    assert!(expected.eq(seen.iter().map(|stored| (stored.run, &stored.phase, &stored.stats))));
}

#[test]
fn a_visitor_that_has_seen_enough_is_shown_no_more() {
    let mut count = 0;
    let visit = |_| {
        count += 1;
        ControlFlow::Break(())
    };
    Place::filled(2).reader().operations(visit).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn what_is_added_in_bulk_is_there_as_a_whole_or_not_at_all() {
    let place = Place::new();
    let mut store = place.store();
    let mut add = |seconds: f64| {
        store.in_bulk(|bulk| {
            let round = bulk.begin_round(&new_round())?;
            bulk.add_run(&target(), &samples::run(round, 0))?;
            bulk.add_run(&target(), &Run { seconds, ..samples::run(round, 1) }).map(|_| ())
        })
    };
    assert!(matches!(add(f64::NAN), Err(Error::Unstorable { .. })));
    assert_eq!(place.runs().len(), 0);
    add(1.0).unwrap();
    assert_eq!(place.runs().len(), 2);
}
