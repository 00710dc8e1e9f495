//! Tests of the outbox: an item is pending until its delivery status is stored, and the first status is final.

use std::time::Duration;

use longhaul_model::{Event, RoundStatus, Timestamp};

use super::{TestDb, at, new_round, samples, target};
use crate::{DeliveryStatus, NewRound, RoundEnd, Signal, Writer};

fn finished_round(writer: &Writer, started: Timestamp) -> i64 {
    let round = writer.begin_round(NewRound { started, ..new_round() }).unwrap();
    for slot in [1, 0] {
        writer.add_run(&target(), &samples::run(round, slot), &[]).unwrap();
    }
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended: started + Duration::from_micros(10) };
    writer.end_round(round, end).unwrap();
    round
}

#[test]
fn outbox_keeps_its_last_delivery_and_rejection() {
    let db = TestDb::new();
    let writer = db.writer();
    let rounds = [100, 200, 300].map(|started| finished_round(&writer, at(started)));
    let reader = db.reader();
    assert_eq!(reader.pending_items(Signal::Traces, 2).unwrap(), rounds[..2]);
    let deliver = |round, status, time| {
        writer.record_delivery(Signal::Traces, vec![round], status, at(time)).unwrap();
    };
    deliver(rounds[0], DeliveryStatus::Sent, 1000);
    deliver(rounds[1], DeliveryStatus::Rejected("why".into()), 1001);
    deliver(rounds[1], DeliveryStatus::Sent, 1002);
    let outbox = reader.outbox_status(Signal::Traces).unwrap();
    assert_eq!(outbox.last_sent, Some(at(1000)));
    let rejection = outbox.last_rejection.unwrap();
    assert_eq!((rejection.item, rejection.at, rejection.reason.as_str()), (rounds[1], at(1001), "why"));
}

#[test]
fn finished_round_has_runs_events_and_previous_round() {
    let db = TestDb::new();
    let writer = db.writer();
    let first = finished_round(&writer, at(100));
    writer.add_skipped(vec![(new_round(), "byte-budget".into())]).unwrap();
    let second = finished_round(&writer, at(200));
    for at_us in [199, 200, 210, 211].map(at) {
        let event = Event { target: None, kind: "wake".into(), detail: serde_json::Value::Null, at_us };
        writer.add_event(event).unwrap();
    }
    let reader = db.reader();
    let found = reader.finished_round(second).unwrap().unwrap();
    assert_eq!(found.stored.number, second);
    assert_eq!(found.runs.iter().map(|stored| stored.run.slot).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(found.runs[0].run, samples::run(second, 0));
    assert_eq!(found.events.iter().map(|event| event.at_us).collect::<Vec<_>>(), [at(200), at(210)]);
    assert_eq!(found.previous, Some((first, at(100))));
    assert_eq!(reader.finished_round(first).unwrap().unwrap().previous, None);
    assert_eq!(reader.finished_round(2).unwrap(), None, "a skipped round is not a finished round");
    assert_eq!(reader.items_between(Signal::Metrics, at(100), at(200)).unwrap(), [first]);
    assert_eq!(
        reader.items_between(Signal::Metrics, Timestamp::MIN, Timestamp::MAX).unwrap(),
        [first, second]
    );
}

#[test]
fn items_that_expired_while_the_clock_was_ahead_are_pending_again() {
    let db = TestDb::new();
    let writer = db.writer();
    let round = finished_round(&writer, at(100));
    assert_eq!(writer.expire(Signal::Traces, at(1_000_000), at(2_000_000)).unwrap(), 1);
    assert_eq!(writer.expire(Signal::Traces, at(50), at(1_000)).unwrap(), 0, "the clock is right again");
    let reader = db.reader();
    assert_eq!(reader.pending_items(Signal::Traces, 9).unwrap(), [round]);
    assert_eq!(reader.outbox_status(Signal::Traces).unwrap().expired, 0);
    assert_eq!(writer.expire(Signal::Traces, at(1_000), at(2_000)).unwrap(), 1, "it is old now");
}

#[test]
fn clock_that_is_behind_makes_no_expired_item_pending() {
    let db = TestDb::new();
    let writer = db.writer();
    finished_round(&writer, at(100));
    assert_eq!(writer.expire(Signal::Traces, at(1_000), at(2_000)).unwrap(), 1);
    assert_eq!(writer.expire(Signal::Traces, at(10), at(50)).unwrap(), 0, "before the last round");
    let outbox = db.reader().outbox_status(Signal::Traces).unwrap();
    assert_eq!((outbox.pending, outbox.expired), (0, 1));
}
