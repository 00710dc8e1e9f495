//! Tests of the checks after a round: their time, and when one is due again.

use std::time::Duration;

use longhaul_model::stored::RoundEnd;
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{Finding, KeepResult, Property, ReadBack, RoundStatus, TargetFidelity, Timestamp};

use super::{TestDb, at, new_round, target};
use crate::NewRound;

fn checked(at: Timestamp, result: KeepResult) -> TargetFidelity {
    let (property, read_back) = (Property::Permissions, ReadBack::Server);
    let findings = vec![Finding { property, result, detail: String::new(), read_back }];
    TargetFidelity { target: target().name, protocol: None, at, findings }
}

#[test]
fn failed_fidelity_check_is_due_again_after_a_day() {
    let db = TestDb::filled(1);
    let (writer, failed_at) = (db.writer(), at(0) + 2 * DAY);
    let due = |now| db.reader().is_fidelity_due(&target().name, now).unwrap();
    assert!(due(failed_at), "nothing was checked in this epoch");
    writer.add_fidelity(&target(), &checked(failed_at, KeepResult::NotTested)).unwrap();
    assert_eq!([failed_at, failed_at + 23 * HOUR, failed_at + DAY].map(due), [false, false, true]);
    assert!(due(failed_at - HOUR), "the clock was set back, so the age of the check is unknown");
    writer.add_fidelity(&target(), &checked(failed_at + DAY, KeepResult::Kept)).unwrap();
    assert!(!due(failed_at + 400 * DAY), "a target is checked once in an epoch");
}

#[test]
fn time_of_checks_counts_in_the_time_of_rounds() {
    let db = TestDb::new();
    let writer = db.writer();
    let scheduled = Some(at(1_000));
    let round = writer.begin_round(NewRound { scheduled, ..new_round() }).unwrap();
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended: at(3_000) };
    writer.end_round(round, end).unwrap();
    assert_eq!(db.reader().busy_since(at(0)).unwrap(), Duration::from_micros(2_000));
    writer.add_check_time(round, Duration::from_micros(500)).unwrap();
    assert_eq!(db.reader().busy_since(at(0)).unwrap(), Duration::from_micros(2_500));
}
