//! Tests of freshness samples.

use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_model::{ChangeKind, FreshnessDay, FreshnessOutcome, FreshnessSample, Timestamp};

use super::{TestDb, at, samples, target};

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
    writer.add_freshness(vec![old.clone()]).unwrap();
    writer.add_freshness(vec![FreshnessSample { at: old.at + 401 * DAY, ..old }]).unwrap();
    assert_eq!(db.reader().freshness(Timestamp::MIN).unwrap().len(), 1);
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
