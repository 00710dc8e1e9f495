//! Tests of the use of the NAS.

use longhaul_model::{DiskUse, NasProblem, NasUse, RunNasUse};

use super::TestDb;

fn disk(name: &str) -> DiskUse {
    DiskUse {
        name: name.to_owned(),
        busy_share: Some(0.75),
        request_seconds: Some(2.5),
        requests: Some(120),
        bytes: None,
    }
}

#[test]
fn use_of_the_nas_is_read_back_with_the_busiest_disk() {
    let db = TestDb::filled(3);
    let writer = db.writer();
    let used = NasUse { seconds: 3.5, processor_share: None, disks: vec![disk("sda"), disk("sdb")] };
    let numbers: Vec<i64> = db.runs().iter().map(|run| run.number).collect();
    writer.add_nas_use(RunNasUse { run: numbers[0], found: Ok(used.clone()) }).unwrap();
    writer.add_nas_use(RunNasUse { run: numbers[2], found: Err(NasProblem::Timeout) }).unwrap();
    let expected = [
        RunNasUse { run: numbers[0], found: Ok(NasUse { disks: vec![disk("sda")], ..used }) },
        RunNasUse { run: numbers[2], found: Err(NasProblem::Timeout) },
    ];
    assert_eq!(db.reader().nas_use(i64::MIN..=i64::MAX).unwrap(), expected);
    assert_eq!(db.reader().nas_use(numbers[1]..=numbers[1]).unwrap(), []);
}

#[test]
fn use_of_the_nas_needs_a_stored_run() {
    let db = TestDb::filled(1);
    let found = Err(NasProblem::Timeout);
    assert!(db.writer().add_nas_use(RunNasUse { run: 99, found }).is_err());
}
