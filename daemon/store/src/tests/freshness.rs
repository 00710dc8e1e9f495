//! Tests of freshness samples.

use std::time::Duration;

use longhaul_analysis::summary::Week;
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{ChangeKind, FreshnessDay, FreshnessOutcome, FreshnessSample, Timestamp};

use super::{TestDb, at, new_round, samples, target};
use crate::NewRound;

fn sample(kind: ChangeKind, outcome: FreshnessOutcome) -> FreshnessSample {
    FreshnessSample {
        target: target().name,
        protocol: None,
        epoch: None,
        changed_through: Some("nfs".parse().unwrap()),
        shares_client: false,
        round: None,
        kind,
        at: at(5_000),
        outcome,
    }
}

#[test]
fn freshness_samples_are_read_back_with_their_epoch() {
    let (db, writer, round) = TestDb::with_round();
    let stored = writer.add_run(&target(), &samples::run(round, 0), &[]).unwrap();
    let us = Duration::from_micros;
    let outcomes = [
        FreshnessOutcome::Seen { earliest: us(0), latest: us(90_000) },
        FreshnessOutcome::NotSeen { limit: us(60_000_000) },
        FreshnessOutcome::Void { reason: "stopped".to_owned() },
    ];
    let mut written: Vec<FreshnessSample> =
        ChangeKind::ALL.into_iter().zip(outcomes).map(|(kind, outcome)| sample(kind, outcome)).collect();
    written[0] = FreshnessSample {
        round: Some(round),
        changed_through: None,
        shares_client: true,
        protocol: stored.run.protocol.clone(),
        ..written[0].clone()
    };
    writer.add_freshness(written.clone()).unwrap();
    for sample in &mut written {
        sample.epoch = Some(stored.epoch);
    }
    assert_eq!(db.reader().freshness(at(5_000)).unwrap(), written);
    assert_eq!(db.reader().freshness(at(5_001)).unwrap(), []);
}

#[test]
fn expired_freshness_samples_are_deleted() {
    let db = TestDb::new();
    let writer = db.writer();
    let old = sample(ChangeKind::Rename, FreshnessOutcome::NotSeen { limit: Duration::ZERO });
    let on_day = |day: u32| FreshnessSample { at: old.at + day * DAY, ..old.clone() };
    writer.add_freshness((0..=400).map(on_day).collect()).unwrap();
    writer.add_freshness(vec![on_day(402)]).unwrap();
    let days_left = || {
        let left = db.reader().freshness(Timestamp::MIN).unwrap();
        left.iter().map(|sample| sample.at.since(old.at).as_secs() / DAY.as_secs()).collect::<Vec<u64>>()
    };
    assert_eq!(days_left(), (1..=400).chain([402]).collect::<Vec<u64>>());
    writer.add_freshness(vec![on_day(15 * 365)]).unwrap();
    assert_eq!(days_left().len(), 401, "a clock that is years ahead deletes little");
}

#[test]
fn history_counts_only_changes_of_other_clients_with_a_result() {
    let (db, writer, round) = TestDb::with_round();
    let stored = writer.add_run(&target(), &samples::run(round, 0), &[]).unwrap();
    let (ms, seconds) = (Duration::from_millis, Duration::from_secs);
    let seen = |latest| FreshnessOutcome::Seen { earliest: ms(0), latest };
    let of = |outcome| sample(ChangeKind::NewFile, outcome);
    writer
        .add_freshness(vec![
            of(seen(ms(90))),
            of(seen(ms(1_100))),
            of(FreshnessOutcome::NotSeen { limit: seconds(60) }),
            of(FreshnessOutcome::NotSeen { limit: seconds(55) }),
            of(FreshnessOutcome::Void { reason: "stopped".to_owned() }),
            FreshnessSample { shares_client: true, ..of(seen(ms(90))) },
        ])
        .unwrap();
    let counted = FreshnessDay {
        target: target().name,
        epoch: stored.epoch,
        kind: ChangeKind::NewFile,
        day: 0,
        changes: 4,
        not_seen: 2,
        slow: 1,
        limit: Some(seconds(55)),
    };
    assert_eq!(db.reader().history().unwrap().freshness, [counted]);
}

#[test]
fn changes_count_on_the_local_day_of_their_round() {
    let (db, monday) = (TestDb::new(), Timestamp::UNIX_EPOCH + 20_780 * DAY);
    let writer = db.writer();
    // Sunday, 22 November 2026, 16:00, where Monday has begun in UTC.
    let round = NewRound { started: monday, utc_offset_seconds: -8 * 3600, ..new_round() };
    let round = writer.begin_round(round).unwrap();
    writer.add_run(&target(), &samples::run(round, 0), &[]).unwrap();
    let outcome = FreshnessOutcome::Seen { earliest: Duration::ZERO, latest: Duration::ZERO };
    let change = |round, at| FreshnessSample { round, at, ..sample(ChangeKind::NewFile, outcome.clone()) };
    let in_round = change(Some(round), monday + HOUR / 2);
    let by_hand = [change(None, monday + HOUR), change(None, monday - 20 * HOUR)];
    writer.add_freshness([vec![in_round], by_hand.to_vec()].concat()).unwrap();
    let history = db.reader().history().unwrap();
    let days: Vec<_> = history.freshness.iter().map(|counts| (counts.day, counts.changes)).collect();
    assert_eq!(days, [(20_779, 3)], "without an earlier round it is the day in UTC");
    assert_eq!((Week::of_day(20_779).to_string().as_str(), history.rounds[0].day()), ("2026-W47", 20_779));
}
