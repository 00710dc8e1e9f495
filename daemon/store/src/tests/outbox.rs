//! What an outbox promises: everything waits until something became of it, once.

use longhaul_measure::model::{Event, RoundStatus};

use super::{Place, new_round, samples, target};
use crate::{Fate, NewRound, RoundEnd, Signal, Writer};

fn ended(writer: &Writer, started_us: i64) -> i64 {
    let round = writer.begin_round(NewRound { started_us, ..new_round() }).unwrap();
    for slot in [1, 0] {
        writer.add_run(&target(), &samples::run(round, slot)).unwrap();
    }
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended_us: started_us + 10, after: None };
    writer.end_round(round, end).unwrap();
    round
}

#[test]
fn a_round_waits_from_its_end_until_something_became_of_it() {
    let place = Place::new();
    let writer = place.writer();
    writer.add_skipped(vec![(new_round(), "budget".into())]).unwrap();
    let rounds = [ended(&writer, 100), ended(&writer, 200), ended(&writer, 300)];
    writer.begin_round(new_round()).unwrap();
    let reader = place.reader();
    assert_eq!(reader.waiting(Signal::Traces, 9).unwrap(), rounds, "neither skipped nor open ones");
    assert_eq!(reader.waiting(Signal::Traces, 2).unwrap(), rounds[..2]);
    writer.settle(Signal::Traces, vec![rounds[0]], (Fate::Sent, 1000)).unwrap();
    writer.settle(Signal::Traces, vec![rounds[1]], (Fate::Rejected("why".into()), 1001)).unwrap();
    writer.settle(Signal::Traces, vec![rounds[1]], (Fate::Sent, 1002)).unwrap();
    assert_eq!(reader.waiting(Signal::Traces, 9).unwrap(), rounds[2..]);
    assert_eq!(reader.waiting(Signal::Metrics, 9).unwrap(), rounds, "each signal has its own");
    let outbox = reader.outbox(Signal::Traces).unwrap();
    assert_eq!((outbox.waiting, outbox.sent, outbox.rejected, outbox.expired), (1, 1, 1, 0));
    assert_eq!(outbox.last_sent_us, Some(1000));
    let rejection = outbox.last_rejection.unwrap();
    assert_eq!((rejection.item, rejection.at_us, rejection.reason.as_str()), (rounds[1], 1001, "why"));
}

#[test]
fn what_waited_too_long_is_given_up_and_counted() {
    let place = Place::new();
    let writer = place.writer();
    let rounds = [ended(&writer, 100), ended(&writer, 200), ended(&writer, 300)];
    writer.settle(Signal::Metrics, vec![rounds[0]], (Fate::Sent, 1)).unwrap();
    assert_eq!(writer.expire(Signal::Metrics, 300, 400).unwrap(), 1);
    assert_eq!(writer.expire(Signal::Metrics, 300, 401).unwrap(), 0);
    let outbox = place.reader().outbox(Signal::Metrics).unwrap();
    assert_eq!((outbox.waiting, outbox.sent, outbox.expired), (1, 1, 1));
}

#[test]
fn a_finished_round_comes_with_its_runs_its_events_and_the_one_before() {
    let place = Place::new();
    let writer = place.writer();
    let first = ended(&writer, 100);
    writer.add_skipped(vec![(new_round(), "budget".into())]).unwrap();
    let second = ended(&writer, 200);
    for at_us in [199, 200, 210, 211] {
        let event = Event { target: None, kind: "wake".into(), detail: serde_json::Value::Null, at_us };
        writer.add_event(event).unwrap();
    }
    let reader = place.reader();
    let found = reader.finished_round(second).unwrap().unwrap();
    assert_eq!(found.stored.number, second);
    assert_eq!(found.runs.iter().map(|stored| stored.run.slot).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(found.runs[0].run, samples::run(second, 0));
    assert_eq!(found.events.iter().map(|event| event.at_us).collect::<Vec<_>>(), [200, 210]);
    assert_eq!(found.previous, Some((first, 100)));
    assert_eq!(reader.finished_round(first).unwrap().unwrap().previous, None);
    assert_eq!(reader.finished_round(2).unwrap(), None, "a skipped one has nothing to tell");
    assert_eq!(reader.items_between(Signal::Metrics, 100, 200).unwrap(), [first]);
    assert_eq!(reader.items_between(Signal::Metrics, i64::MIN, i64::MAX).unwrap(), [first, second]);
}
