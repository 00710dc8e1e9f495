//! Tests of `longhaul fidelity`: what is lost silently is found, nothing is left behind, and changes are events.

use std::fs;
use std::path::Path;

#[cfg(target_os = "linux")]
use crate::fuse::hang::Fuse;
#[cfg(target_os = "linux")]
use crate::fuse::{Disk, Quirk, maclike::MacLike};
use crate::support::daemon::{BUSY, Daemon, log, target};
#[cfg(target_os = "linux")]
use crate::support::mounts::only_in_own_mounts;
use crate::support::tree::is_empty;
use crate::support::{CommandOutput, Place, sandbox};

fn check(place: &Place, path: &Path) -> CommandOutput {
    place.longhaul("fidelity --json").target("nas", path).expect(0)
}

/// Returns the result of one property.
fn result(output: &CommandOutput, property: &str) -> String {
    let value = output.value();
    let rows: Vec<_> = value.as_array().unwrap().iter().filter(|row| row["property"] == property).collect();
    assert_eq!(rows.len(), 1, "{property}: {output}");
    rows[0]["result"].as_str().unwrap().to_owned()
}

#[test]
fn local_folder_keeps_names_and_nothing_is_left() {
    let place = Place::new();
    let share = place.folder("share");
    let output = check(&place, &share);
    for property in
        ["colon", "backslash", "case-pair", "long-name", "hard-link", "symbolic-link", "memory-map"]
    {
        assert_eq!(result(&output, property), "kept", "{property}: {output}");
    }
    assert_eq!(output.value().as_array().unwrap().len(), 38);
    assert!(is_empty(&share), "the sandbox that the check created is removed");
    let stored = place.longhaul("fidelity").expect(0);
    stored.assert_stderr(&["these are stored results"]);
    assert!(stored.out.contains("nas"), "{stored}");
}

#[test]
fn target_that_is_given_twice_is_refused() {
    let place = Place::new();
    let share = place.folder("share");
    let call = place.longhaul("fidelity").target("nas", &share).target("nas", &share);
    call.expect(2).assert_stderr(&["the target name `nas` is used twice"]);
    assert!(is_empty(&share));
}

/// Checks two targets, and returns result and detail of the lock that one holds and the other tries, for both.
fn locks_across(place: &Place, [one, other]: [&Path; 2]) -> Vec<(String, String)> {
    let output = place.longhaul("fidelity --json").target("one", one).target("other", other).expect(0);
    let rows = output.value().as_array().unwrap().clone();
    let locks = rows.iter().filter(|row| row["property"] == "lock-across-mounts");
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    locks.map(|row| (text(row, "result"), text(row, "detail"))).collect()
}

#[test]
fn lock_is_tried_through_every_target_of_the_folder() {
    let place = Place::new();
    let (share, elsewhere) = (place.folder("share"), place.folder("elsewhere"));
    let pair = |result: &str, detail: &str| (result.to_owned(), detail.to_owned());
    let found = locks_across(&place, [&share, &share]);
    let kept = ["other", "one"].map(|name| pair("kept", &format!("against programs that use {name}")));
    assert_eq!(found, kept);
    let found = locks_across(&place, [&share, &elsewhere]);
    assert_eq!(found, [(); 2].map(|()| pair("not-tested", "needs a second mount of the same folder")));
    assert!(is_empty(&share) && is_empty(&elsewhere));
}

#[cfg(target_os = "linux")]
#[test]
fn lock_that_another_mount_does_not_see_is_lost() {
    only_in_own_mounts!(lock_that_another_mount_does_not_see_is_lost);
    let place = Place::new();
    let (one, other) = (place.folder("one"), place.folder("other"));
    // Linux keeps the locks of a user-space file system without locks to itself, in each mount.
    let disk = Disk::new();
    let _mounts = [Fuse::of(&disk, &one), Fuse::of(&disk, &other)];
    let found = locks_across(&place, [&one, &other]);
    let lost = ["other", "one"].map(|name| format!("another program took the same lock through {name}"));
    assert_eq!(found, lost.map(|detail| ("lost".to_owned(), detail)));
}

#[test]
fn existing_sandbox_stays_and_leftovers_are_cleaned() {
    let place = Place::with_tiny_trees();
    let share = place.folder("share");
    place.run(&["folder-index"], &[("nas", &share)]).expect(0);
    check(&place, &share);
    let scratch = sandbox(&share).join("fidelity");
    assert!(!scratch.exists() && sandbox(&share).join("folder-index").exists());
    // Files that a killed check leaves behind.
    fs::create_dir_all(scratch.join("colon-renamed")).unwrap();
    for name in ["longhaul-a:b", "longhaul-end.", &format!("longhaul-{}", "n".repeat(246))] {
        fs::write(scratch.join("colon-renamed").join(name), "x").unwrap();
    }
    place.longhaul("targets clean nas --yes").expect(0);
    assert!(is_empty(&share));
}

#[test]
fn missing_target_is_refused_and_stores_nothing() {
    let place = Place::new();
    let output = place.longhaul("fidelity").target("nas", &place.path("absent")).expect(2);
    output.assert_stderr(&["nas", "there is no"]);
    assert_eq!(output.out, "");
    assert!(!place.database().exists());
}

#[test]
fn stored_results_of_a_removed_target_are_shown() {
    let place = Place::new();
    check(&place, &place.folder("nas"));
    place.configure(&target("other", &place.path("absent")));
    let output = place.longhaul("fidelity").expect(3);
    output.assert_stderr(&["no such folder", "these are stored results"]);
    assert!(output.out.contains("nas"), "{output}");
}

#[cfg(target_os = "linux")]
#[test]
fn share_that_loses_metadata_silently_is_found() {
    only_in_own_mounts!(share_that_loses_metadata_silently_is_found);
    let place = Place::new();
    let share = place.folder("nas");
    let quirks = [Quirk::LosesMetadata, Quirk::CaseInsensitive, Quirk::NoRenameOverOpen, Quirk::TimeStep(2)];
    let mac = MacLike::mount(&share, &quirks);
    let output = check(&place, &share);
    for property in ["permissions", "tiny-attribute", "finder-tags", "finder-info", "case-pair"] {
        assert_eq!(result(&output, property), "lost", "{property}: {output}");
    }
    assert_eq!(result(&output, "modification-time"), "changed");
    assert_eq!(result(&output, "rename-over-open"), "refused");
    assert!(is_empty(&share));
    drop(mac);
    // The same target on a folder that keeps them: each change is told.
    check(&place, &share);
    let events = place.longhaul("events").expect(0);
    assert!(events.out.contains("file properties are now kept differently"), "{events}");
    assert!(events.out.contains("permission bits: lost → kept"), "{events}");
    assert!(is_empty(&share));
}

#[test]
fn service_checks_each_target_once() {
    let place = Place::new();
    place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a"))));
    let daemon = Daemon::start(&place);
    (0..3).for_each(|_| daemon.round());
    // The command shows what the service found, because two checks at once would disturb a round.
    let output = place.longhaul("fidelity --json").expect(0);
    assert_eq!(result(&output, "hard-link"), "kept");
    output.assert_stderr(&["these are stored results"]);
    daemon.stop();
    let logged = fs::read_to_string(log(&place)).unwrap();
    assert_eq!(logged.matches("the fidelity of a target was checked").count(), 1, "{logged}");
}
