//! Tests of the verified data and the mismatches.

use longhaul_analysis::checks::integrity_lines;
use longhaul_model::{
    Conditions, DamagePattern, DataAge, Mismatch, MismatchReread, OtherReread, Protocol, Run,
};

use super::{TestDb, at, samples, target};

fn mismatch(offset: u64, fingerprint: u64) -> Mismatch {
    Mismatch {
        offset,
        pattern: DamagePattern::OtherFile { name: "IMG_0002.JPG".to_owned() },
        written_us: Some(at(1_000_000)),
        phase: Some("browse".to_owned()),
        fingerprint,
        expected: vec![1, 2, 3],
        found: vec![4, 5, 6],
        ..Mismatch::new("photo-batch/16-0/IMG_0001.JPG".to_owned(), 4096, at(5_000_000))
    }
}

/// Returns the number of events that name a wrong range.
fn events(db: &TestDb) -> usize {
    let events = db.reader().events(None).unwrap();
    events.iter().filter(|stored| stored.event.kind == Mismatch::EVENT).count()
}

#[test]
fn the_same_mismatch_is_stored_once_and_counted() {
    let (db, writer, round) = TestDb::with_round();
    for (slot, found) in
        [vec![mismatch(0, 1)], vec![mismatch(0, 1), mismatch(0, u64::MAX)]].iter().enumerate()
    {
        writer.add_run(&target(), &samples::run(round, slot as u32), found).unwrap();
    }
    let stored = db.reader().mismatches(None).unwrap();
    let times: Vec<u64> = stored.iter().map(|mismatch| mismatch.times_found).collect();
    assert_eq!(times, [2, 1], "other content at the same place is another mismatch");
    assert_eq!(stored[0].pattern, mismatch(0, 1).pattern);
    assert_eq!(events(&db), 2, "each is one event");
    assert_eq!(db.reader().mismatches(Some(at(5_000_001))).unwrap(), []);
}

#[test]
fn mismatch_found_over_another_protocol_counts_there_too() {
    let (db, writer, round) = TestDb::with_round();
    for (slot, version) in (0..).zip(["3.0.2", "3.1.1", "3.1.1"]) {
        let protocol = Some(Protocol::Smb(Some(version.to_owned())));
        let run = Run { protocol, ..samples::run(round, slot) };
        writer.add_run(&target(), &run, &[mismatch(0, 1)]).unwrap();
    }
    let reader = db.reader();
    let found = reader.mismatches(None).unwrap();
    let lines = integrity_lines(&reader.verified_totals().unwrap(), &found);
    let counts: Vec<_> = lines.iter().map(|line| (line.protocol.as_deref(), line.mismatches)).collect();
    assert_eq!(counts, [(Some("SMB 3.0.2"), 1), (Some("SMB 3.1.1"), 1)]);
    assert_eq!((found[0].times_found, found[1].times_found, events(&db)), (1, 2, 2));
    let first_finds = reader.verified_runs(1..=3).unwrap();
    assert_eq!(first_finds.iter().map(|run| run.mismatches).collect::<Vec<_>>(), [1, 1, 0]);
}

#[test]
fn mismatch_found_with_other_options_is_another_event() {
    let (db, writer, round) = TestDb::with_round();
    for (slot, signing) in (0..).zip(["on", "off", "off"]) {
        let negotiated = [("signing".to_owned(), signing.to_owned())].into();
        let conditions = Conditions { negotiated, ..Conditions::default() };
        let run = Run { conditions, ..samples::run(round, slot) };
        writer.add_run(&target(), &run, &[mismatch(0, 1)]).unwrap();
    }
    let found = db.reader().mismatches(None).unwrap();
    assert_eq!((found.len(), found[0].times_found), (1, 3), "the protocol stayed the same");
    assert_eq!((db.reader().epochs().unwrap().len(), events(&db)), (2, 2));
}

#[test]
fn what_other_shares_read_is_kept_until_they_read_again() {
    let (db, writer, round) = TestDb::with_round();
    let read = |result| OtherReread { target: "nfs".parse().unwrap(), protocol: None, result };
    let (correct, same) = (read(MismatchReread::Correct), read(MismatchReread::SameDamage));
    for (slot, elsewhere) in [vec![], vec![correct.clone()], vec![], vec![same.clone()]].iter().enumerate() {
        let found = Mismatch { elsewhere: elsewhere.clone(), ..mismatch(0, 1) };
        writer.add_run(&target(), &samples::run(round, slot as u32), &[found]).unwrap();
        let expected = [vec![], vec![correct.clone()], vec![correct.clone()], vec![same.clone()]];
        assert_eq!(db.reader().mismatches(None).unwrap()[0].elsewhere, expected[slot]);
    }
}

#[test]
fn a_mismatch_without_its_run_is_not_stored() {
    let (db, writer, round) = TestDb::with_round();
    let unstorable = longhaul_model::Run { seconds: f64::NAN, ..samples::run(round, 0) };
    assert!(writer.add_run(&target(), &unstorable, &[mismatch(0, 1)]).is_err());
    assert_eq!(db.reader().mismatches(None).unwrap(), []);
    assert_eq!(db.reader().events(None).unwrap().len(), 0);
}

#[test]
fn verified_data_is_added_up_by_target_protocol_and_age() {
    let db = TestDb::filled(3);
    let totals = db.reader().verified_totals().unwrap();
    let phases = db.runs()[0].run.phases.len() as u64;
    assert_eq!(totals.len(), 1);
    assert_eq!((totals[0].age, totals[0].bytes), (DataAge::Weeks, 3 * phases * 40_000_000));
    assert!(totals[0].wire_bytes < totals[0].bytes, "the warm phase came from the cache");
    assert!(totals[0].first < totals[0].last);
}
