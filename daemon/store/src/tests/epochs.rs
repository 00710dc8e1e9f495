//! Tests of when a run starts a new epoch of its target.

use longhaul_model::{NegotiatedOptions, Outcome, Protocol, Role, Run, SHARE_KEYS, Target};
use serde_json::json;

use super::{TestDb, samples, target};
use crate::Writer;

struct EpochTest {
    db: TestDb,
    writer: Writer,
    round: i64,
}

impl EpochTest {
    fn new() -> Self {
        let (db, writer, round) = TestDb::with_round();
        Self { db, writer, round }
    }

    /// Stores a run and returns the number of its epoch.
    fn epoch(&self, target: &Target, change: impl FnOnce(&mut Run)) -> i64 {
        let mut run = samples::run(self.round, 0);
        change(&mut run);
        self.writer.add_run(target, &run, &[]).unwrap().epoch
    }
}

#[test]
fn each_changed_property_opens_an_epoch_with_an_event() {
    let test = EpochTest::new();
    let unsigned = |run: &mut Run| run.conditions.negotiated = [("signing".into(), "off".into())].into();
    assert_eq!(test.epoch(&target(), |_| ()), 1);
    assert_eq!(test.epoch(&target(), |run| run.outcome = Outcome::Error), 1);
    assert_eq!(test.epoch(&target(), |run| run.protocol = Some(Protocol::Smb(Some("2.1".into())))), 2);
    assert_eq!(test.epoch(&target(), |_| ()), 3, "changing back opens another epoch");
    assert_eq!(test.epoch(&target(), unsigned), 4);
    let moved = Target { path: "/Volumes/other".into(), ..target() };
    assert_eq!(test.epoch(&moved, unsigned), 5);
    let events = test.db.reader().events(None).unwrap();
    assert_eq!(events.len(), 4, "the first epoch stores no event");
    let signing = &events[2].event;
    assert_eq!((signing.kind.as_str(), signing.target.clone()), ("epoch", Some(target().name)));
    assert_eq!(signing.detail["before"]["negotiated"], json!({ "signing": "on" }));
    assert_eq!(signing.detail["after"]["negotiated"], json!({ "signing": "off" }));
    assert_eq!(signing.detail["epoch"], 4);
}

#[test]
fn unknown_values_open_no_epoch() {
    let test = EpochTest::new();
    let unavailable = |run: &mut Run| {
        (run.protocol, run.conditions.negotiated) = (None, NegotiatedOptions::new());
        run.outcome = Outcome::Unavailable;
    };
    let no_options = |run: &mut Run| run.conditions.negotiated.clear();
    let epochs = [
        test.epoch(&target(), |_| ()),
        test.epoch(&target(), unavailable),
        test.epoch(&target(), no_options),
        test.epoch(&target(), |_| ()),
    ];
    assert_eq!(epochs, [1, 1, 1, 1]);
    assert!(test.db.reader().events(None).unwrap().is_empty());
}

#[test]
fn run_that_never_met_its_target_opens_no_epoch() {
    let test = EpochTest::new();
    let mistyped = Target { path: "/no/such/folder".into(), ..target() };
    let unavailable = |run: &mut Run| (run.protocol, run.outcome) = (None, Outcome::Unavailable);
    let mistyped = Target { role: Role::Baseline, ..mistyped };
    let epochs = [test.epoch(&target(), |_| ()), test.epoch(&mistyped, unavailable)];
    let stored = test.db.reader().targets().unwrap().pop().unwrap().target;
    assert_eq!((epochs, stored), ([1, 1], target()), "path and role stay");
    assert_eq!([test.epoch(&target(), |_| ()), test.epoch(&mistyped, |_| ())], [1, 2]);
}

#[test]
fn unknown_dialect_opens_no_epoch() {
    let test = EpochTest::new();
    // As on a Mac: the protocol comes from the mount table, the version from a tool that can time out.
    let version_unknown = |run: &mut Run| {
        run.protocol = Some(Protocol::Smb(None));
        run.conditions.negotiated.clear();
    };
    let with_longhaul_key = |run: &mut Run| {
        version_unknown(run);
        run.conditions.negotiated = [("longhaul-sync".into(), "fsync".into())].into();
    };
    let epochs = [
        test.epoch(&target(), |_| ()),
        test.epoch(&target(), version_unknown),
        test.epoch(&target(), |_| ()),
        test.epoch(&target(), |run| run.protocol = Some(Protocol::Nfs(None))),
    ];
    assert_eq!(epochs, [1, 1, 1, 2], "another protocol opens an epoch, even if its version is unknown");
    assert_eq!(test.epoch(&target(), with_longhaul_key), 3, "a changed longhaul key opens an epoch");
}

#[test]
fn another_share_at_the_same_path_opens_an_epoch() {
    let test = EpochTest::new();
    let share = |key: usize, tag: &'static str| {
        move |run: &mut Run| _ = run.conditions.negotiated.insert(SHARE_KEYS[key].to_owned(), tag.to_owned())
    };
    let epochs = [
        test.epoch(&target(), |_| ()),
        test.epoch(&target(), share(0, "3f2a")),
        test.epoch(&target(), |_| ()),
        test.epoch(&target(), share(1, "77aa")),
        test.epoch(&target(), share(0, "3f2a")),
        test.epoch(&target(), share(0, "90c1")),
        test.epoch(&target(), share(1, "12ab")),
        test.epoch(&target(), share(1, "77aa")),
    ];
    assert_eq!(epochs, [1, 1, 1, 1, 1, 2, 2, 3], "an unknown share is no other one");
}

#[test]
fn directory_leases_that_come_and_go_open_no_epoch() {
    let test = EpochTest::new();
    let leases = |value: &'static str| {
        move |run: &mut Run| {
            _ = run.conditions.negotiated.insert("directory-leases".to_owned(), value.to_owned())
        }
    };
    let epochs = [
        test.epoch(&target(), |_| ()),
        test.epoch(&target(), leases("granted")),
        test.epoch(&target(), |_| ()),
        test.epoch(&target(), leases("granted")),
        test.epoch(&target(), leases("none")),
    ];
    assert_eq!(epochs, [1, 1, 1, 1, 2], "only another value is a change");
}

/// Returns a change of a run's negotiated options to these.
fn options(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&mut Run) + Copy {
    move |run: &mut Run| {
        let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        run.conditions.negotiated = owned.collect();
    }
}

#[test]
fn attribute_that_a_newer_smbutil_reports_opens_no_epoch() {
    let test = EpochTest::new();
    let old = options(&[("dialect", "3.1.1"), ("signing", "yes")]);
    let new = options(&[("dialect", "3.1.1"), ("signing", "yes"), ("signing_algorithm", "AES-128-GMAC")]);
    let other = options(&[("dialect", "3.1.1"), ("signing", "yes"), ("signing_algorithm", "AES-128-CMAC")]);
    let epochs = [old, new, old].map(|change| test.epoch(&target(), change));
    assert_eq!(epochs, [1, 1, 1], "an attribute that is missing is unknown");
    assert_eq!(test.epoch(&target(), other), 2);
}

#[test]
fn flag_that_leaves_the_mount_table_opens_an_epoch() {
    let test = EpochTest::new();
    let on = options(&[("vers", "3.1.1"), ("multichannel", "yes")]);
    assert_eq!(test.epoch(&target(), on), 1);
    assert_eq!(test.epoch(&target(), options(&[("vers", "3.1.1")])), 2);
}

#[test]
fn late_dialect_completes_its_epoch() {
    let test = EpochTest::new();
    let version_unknown = |run: &mut Run| {
        run.protocol = Some(Protocol::Smb(None));
        run.conditions.negotiated.clear();
    };
    let older = |run: &mut Run| run.protocol = Some(Protocol::Smb(Some("2.1".into())));
    assert_eq!(test.epoch(&target(), version_unknown), 1);
    assert_eq!(test.epoch(&target(), |_| ()), 1, "the late version completes the open epoch");
    let found = test.db.reader().epochs().unwrap();
    assert_eq!(found[0].protocol, Some(Protocol::Smb(Some("3.1.1".into()))));
    assert!(test.db.reader().events(None).unwrap().is_empty());
    assert_eq!(test.epoch(&target(), older), 2, "after that, another version opens an epoch");
}

/// 45 recorded runs with epochs that were assigned before the rule for unknown versions existed: SMB 3.1.1 and
/// 2.1, NFS 3 and 4.2 and a local disk, with a change of dialect and back, an unavailable share, and changed
/// options.
const RECORDED: &str = include_str!("fixtures/recorded-epochs.jsonl");

#[derive(serde::Deserialize)]
struct Recorded {
    target: longhaul_model::TargetName,
    path: std::path::PathBuf,
    protocol: Option<Protocol>,
    negotiated: NegotiatedOptions,
    epoch: i64,
}

#[test]
fn recorded_runs_on_linux_keep_their_epochs() {
    let test = EpochTest::new();
    let runs: Vec<Recorded> = RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((runs.len(), runs.iter().map(|run| run.epoch).max()), (45, Some(10)));
    for (index, recorded) in runs.into_iter().enumerate() {
        let target = Target { name: recorded.target.clone(), path: recorded.path, ..target() };
        let epoch = test.epoch(&target, |run| {
            run.target = recorded.target;
            run.protocol = recorded.protocol;
            run.conditions.negotiated = recorded.negotiated;
        });
        assert_eq!(epoch, recorded.epoch, "run {}", index + 1);
    }
}

#[test]
fn epochs_of_two_targets_do_not_mix() {
    let test = EpochTest::new();
    let nfs = Target { name: "nfs".parse().unwrap(), ..target() };
    assert_eq!(test.epoch(&target(), |_| ()), 1);
    assert_eq!(test.epoch(&nfs, |run| run.target = nfs.name.clone()), 2);
    assert_eq!(test.epoch(&target(), |_| ()), 1);
    let found = test.db.reader().epochs().unwrap();
    assert_eq!(found.iter().map(|epoch| epoch.target.as_str()).collect::<Vec<_>>(), ["smb", "nfs"]);
    assert_eq!(found[0].protocol, Some(Protocol::Smb(Some("3.1.1".into()))));
    assert_eq!(found[0].path, target().path);
}
