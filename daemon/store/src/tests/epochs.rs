//! When a target's life begins anew.

use longhaul_measure::model::{Negotiated, Outcome, Protocol, Run, Target};
use serde_json::json;

use super::{Place, new_round, samples, target};
use crate::Writer;

struct Life {
    place: Place,
    writer: Writer,
    round: i64,
}

impl Life {
    fn new() -> Self {
        let place = Place::new();
        let writer = place.writer();
        let round = writer.begin_round(new_round()).unwrap();
        Self { place, writer, round }
    }

    /// The epoch that a run is booked in.
    fn epoch(&self, target: &Target, change: impl FnOnce(&mut Run)) -> i64 {
        let mut run = samples::run(self.round, 0);
        change(&mut run);
        self.writer.add_run(target, &run).unwrap().epoch
    }
}

#[test]
fn each_change_of_circumstances_opens_an_epoch_and_leaves_an_event() {
    let life = Life::new();
    let unsigned = |run: &mut Run| run.conditions.negotiated = [("signing".into(), "off".into())].into();
    assert_eq!(life.epoch(&target(), |_| ()), 1);
    assert_eq!(life.epoch(&target(), |run| run.outcome = Outcome::Error), 1);
    assert_eq!(life.epoch(&target(), |run| run.protocol = Some(Protocol::Smb(Some("2.1".into())))), 2);
    assert_eq!(life.epoch(&target(), |_| ()), 3, "a return is a change too");
    assert_eq!(life.epoch(&target(), unsigned), 4);
    let moved = Target { path: "/Volumes/other".into(), ..target() };
    assert_eq!(life.epoch(&moved, unsigned), 5);
    let events = life.place.reader().events(None).unwrap();
    assert_eq!(events.len(), 4, "the first epoch is no change");
    let signing = &events[2].event;
    assert_eq!((signing.kind.as_str(), signing.target.clone()), ("epoch", Some(target().name)));
    assert_eq!(signing.detail["before"]["negotiated"], json!({ "signing": "on" }));
    assert_eq!(signing.detail["after"]["negotiated"], json!({ "signing": "off" }));
    assert_eq!(signing.detail["epoch"], 4);
}

#[test]
fn what_a_run_does_not_know_is_no_change() {
    let life = Life::new();
    let away = |run: &mut Run| {
        (run.protocol, run.conditions.negotiated) = (None, Negotiated::new());
        run.outcome = Outcome::Unavailable;
    };
    let unanswered = |run: &mut Run| run.conditions.negotiated.clear();
    let epochs = [
        life.epoch(&target(), |_| ()),
        life.epoch(&target(), away),
        life.epoch(&target(), unanswered),
        life.epoch(&target(), |_| ()),
    ];
    assert_eq!(epochs, [1, 1, 1, 1]);
    assert!(life.place.reader().events(None).unwrap().is_empty());
}

#[test]
fn an_unanswered_question_about_the_dialect_opens_no_epoch() {
    let life = Life::new();
    // As on a Mac: the mount table tells the protocol, a tool that may hang tells the version.
    let unanswered = |run: &mut Run| {
        run.protocol = Some(Protocol::Smb(None));
        run.conditions.negotiated.clear();
    };
    let paced = |run: &mut Run| {
        unanswered(run);
        run.conditions.negotiated = [("longhaul-sync".into(), "fsync".into())].into();
    };
    let epochs = [
        life.epoch(&target(), |_| ()),
        life.epoch(&target(), unanswered),
        life.epoch(&target(), |_| ()),
        life.epoch(&target(), |run| run.protocol = Some(Protocol::Nfs(None))),
    ];
    assert_eq!(epochs, [1, 1, 1, 2], "another protocol is another epoch, whatever its version");
    assert_eq!(life.epoch(&target(), paced), 3, "what longhaul itself does otherwise is told apart");
}

#[test]
fn an_answer_that_came_late_completes_its_epoch() {
    let life = Life::new();
    let unanswered = |run: &mut Run| {
        run.protocol = Some(Protocol::Smb(None));
        run.conditions.negotiated.clear();
    };
    let older = |run: &mut Run| run.protocol = Some(Protocol::Smb(Some("2.1".into())));
    assert_eq!(life.epoch(&target(), unanswered), 1);
    assert_eq!(life.epoch(&target(), |_| ()), 1, "the first answer says what the epoch always was");
    let found = life.place.reader().epochs().unwrap();
    assert_eq!(found[0].protocol, Some(Protocol::Smb(Some("3.1.1".into()))));
    assert!(life.place.reader().events(None).unwrap().is_empty());
    assert_eq!(life.epoch(&target(), older), 2, "from then on another version is a change");
}

/// 45 runs in the lab, booked by the longhaul before this rule: SMB 3.1.1 and 2.1, NFS 3 and 4.2 and a disk, with a change of
/// dialect and back, a share that was away, and changes of options.
const RECORDED: &str = include_str!("fixtures/recorded-epochs.jsonl");

#[derive(serde::Deserialize)]
struct Recorded {
    target: longhaul_measure::model::TargetName,
    path: std::path::PathBuf,
    protocol: Option<Protocol>,
    negotiated: Negotiated,
    epoch: i64,
}

#[test]
fn recorded_runs_on_linux_keep_their_epochs() {
    let life = Life::new();
    let runs: Vec<Recorded> = RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((runs.len(), runs.iter().map(|run| run.epoch).max()), (45, Some(10)));
    for (place, recorded) in runs.into_iter().enumerate() {
        let target = Target { name: recorded.target.clone(), path: recorded.path, ..target() };
        let booked = life.epoch(&target, |run| {
            run.target = recorded.target;
            run.protocol = recorded.protocol;
            run.conditions.negotiated = recorded.negotiated;
        });
        assert_eq!(booked, recorded.epoch, "run {}", place + 1);
    }
}

#[test]
fn epochs_of_two_targets_do_not_mix() {
    let life = Life::new();
    let nfs = Target { name: "nfs".parse().unwrap(), ..target() };
    assert_eq!(life.epoch(&target(), |_| ()), 1);
    assert_eq!(life.epoch(&nfs, |run| run.target = nfs.name.clone()), 2);
    assert_eq!(life.epoch(&target(), |_| ()), 1);
    let found = life.place.reader().epochs().unwrap();
    assert_eq!(found.iter().map(|epoch| epoch.target.as_str()).collect::<Vec<_>>(), ["smb", "nfs"]);
    assert_eq!(found[0].protocol, Some(Protocol::Smb(Some("3.1.1".into()))));
    assert_eq!(found[0].path, target().path);
}
