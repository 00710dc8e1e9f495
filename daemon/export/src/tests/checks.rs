//! Tests of the exported checks, on a real database.

use std::time::Duration;

use longhaul_model::{
    ChangeKind, Finding, FreshnessOutcome, FreshnessSample, KeepResult, Property, ReadBack, Role, Target,
    TargetFidelity, Timestamp,
};
use longhaul_store::{Reader, Store, Writer};
use tempfile::TempDir;

use super::bytes_of;
use crate::{Format, Window};

const AT: Timestamp = Timestamp::from_us(1_793_595_600_000_000);

fn sample(kind: ChangeKind, outcome: FreshnessOutcome) -> FreshnessSample {
    FreshnessSample {
        target: "smb".parse().unwrap(),
        protocol: Some(longhaul_model::Protocol::Smb(Some("3.1.1".to_owned()))),
        epoch: None,
        changed_through: Some("nfs".parse().unwrap()),
        shares_client: false,
        round: None,
        kind,
        at: AT,
        outcome,
    }
}

/// Returns a database with three changes and a check of one property.
fn database() -> (TempDir, Reader) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("longhaul.sqlite");
    let writer = Writer::spawn(Store::open(&path, &[]).unwrap());
    let seen = FreshnessOutcome::Seen { earliest: Duration::ZERO, latest: Duration::from_millis(90) };
    let samples = vec![
        sample(ChangeKind::NewFile, FreshnessOutcome::NotSeen { limit: Duration::from_secs(60) }),
        sample(ChangeKind::Deletion, seen),
        sample(ChangeKind::Rename, FreshnessOutcome::Void { reason: "open /nas/anna: EIO".to_owned() }),
    ];
    writer.add_freshness(samples).unwrap();
    let detail = "640 was accepted, 755 stays".to_owned();
    let finding = Finding {
        property: Property::Permissions,
        result: KeepResult::Lost,
        detail,
        read_back: ReadBack::Server,
    };
    let target = Target { name: "smb".parse().unwrap(), path: "/nas/anna".into(), role: Role::Share };
    let fidelity =
        TargetFidelity { target: target.name.clone(), protocol: None, at: AT, findings: vec![finding] };
    writer.add_fidelity(&target, &fidelity).unwrap();
    drop(writer);
    let reader = Reader::open(&path).unwrap();
    (folder, reader)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn changes_are_exported_with_their_interval_and_no_path() {
    let (_folder, reader) = database();
    let window = Window::default();
    let csv = text(bytes_of(Format::Csv, |output| crate::freshness(&reader, &window, output)));
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    let row = |kind: &str, rest: &str| format!("smb,SMB 3.1.1,,,nfs,0,{kind},1793595600000000,{rest}");
    assert_eq!(
        rows,
        [row("new-file", "not-seen,,60"), row("deletion", "seen,0,0.09"), row("rename", "void,,")]
    );
    let later = Window { from: Some(AT + Duration::from_secs(1)), to: None };
    let csv = text(bytes_of(Format::Csv, |output| crate::freshness(&reader, &later, output)));
    assert_eq!(csv.lines().count(), 1, "only the header: {csv}");
}

#[test]
fn last_fidelity_check_is_exported_by_property() {
    let (_folder, reader) = database();
    let window = Window::default();
    let json = text(bytes_of(Format::Json, |output| crate::fidelity(&reader, &window, output)));
    let row: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((row["property"].as_str(), row["result"].as_str()), (Some("permissions"), Some("lost")));
    assert_eq!(row["detail"], "640 was accepted, 755 stays");
    assert!(!json.contains("anna"), "{json}");
}

#[test]
fn empty_integrity_is_a_table_without_rows() {
    let (_folder, reader) = database();
    let csv = text(bytes_of(Format::Csv, |output| crate::integrity(&reader, output)));
    assert!(csv.starts_with("target,protocol,bytes_verified,"), "{csv}");
    assert_eq!(csv.lines().count(), 1);
}
