//! Targets and files that are not as they should be: said clearly, booked honestly, and without harm to the others.

#![allow(clippy::unwrap_used)]

mod support;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::mounts::{self, Memory};
use support::{Place, Said, arena, assert_all_ok, assert_failure, find_arena, machine, schema, tree};

const INDEX: &[&str] = &["folder-index"];

/// Runs on a bad target and a good one: the bad one is booked like this, the good one is ok.
fn assert_bad(place: &Place, bad: &Path, outcome: &str, parts: &[&str]) {
    let good = place.folder("good");
    let said = place.run(INDEX, &[("bad", bad), ("good", &good)]).expect(3);
    assert_booked(&said, outcome, parts);
}

fn assert_booked(said: &Said, outcome: &str, parts: &[&str]) {
    schema::check_output(&said.lines());
    assert_failure(&said.run_on("bad"), outcome, parts);
    assert_all_ok(&said.runs_on("good"));
}

#[test]
fn a_path_that_is_no_text_is_refused_with_the_way_out() {
    let place = Place::with_tiny_trees();
    let mut argument = OsString::from("odd=");
    argument.push(place.path("").join(OsStr::from_bytes(b"a\xffb")));
    for command in ["run", "try", "init"] {
        let output = place.longhaul(command).command().arg("--target").arg(&argument).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains("not UTF-8") && said.contains("Rename"),
            "{said}"
        );
    }
}

#[test]
fn a_target_that_is_missing_a_file_or_a_link_is_unavailable() {
    let place = Place::with_tiny_trees();
    let (missing, file, link) = (place.path("missing"), place.path("file"), place.path("link"));
    fs::write(&file, "x").unwrap();
    symlink(place.folder("elsewhere"), &link).unwrap();
    let said = [
        (&missing, "there is no such folder", "Mount the share"),
        (&file, "it is not a folder", "Give a folder"),
        (&link, "it is a symbolic link", "Give the path that it leads to"),
    ];
    for (path, reason, advice) in said {
        assert_bad(&place, path, "unavailable", &[path.to_str().unwrap(), reason, advice]);
    }
    assert!(!missing.exists(), "no folder is made where none is: the share is not mounted there");
    assert_eq!(fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_read_only_target_is_unavailable() {
    if !mounts::are_our_own("a_read_only_target_is_unavailable") {
        return;
    }
    let place = Place::with_tiny_trees();
    let bad = place.folder("bad");
    let memory = Memory::mount(&bad, 1024);
    memory.make_read_only();
    assert_bad(&place, &bad, "unavailable", &[bad.to_str().unwrap(), "read-only", "Mount it for writing"]);
}

#[test]
fn a_target_without_room_is_unavailable_before_anything_is_written() {
    if !mounts::are_our_own("a_target_without_room_is_unavailable_before_anything_is_written") {
        return;
    }
    let place = Place::new();
    let bad = place.folder("bad");
    let _memory = Memory::mount(&bad, 1024);
    assert_bad(&place, &bad, "unavailable", &[bad.to_str().unwrap(), "have to stay free", "Free space"]);
    let is_own = |path: &PathBuf| {
        path.ends_with(".metadata_never_index") || path.extension().is_some_and(|end| end == "json")
    };
    assert!(tree::files(&bad).iter().all(is_own), "no corpus");
}

#[test]
fn a_target_that_is_full_to_the_last_byte_is_said_to_be_full() {
    if !mounts::are_our_own("a_target_that_is_full_to_the_last_byte_is_said_to_be_full") {
        return;
    }
    let place = Place::with_tiny_trees();
    let bad = place.folder("bad");
    let memory = Memory::mount(&bad, 4096);
    memory.fill();
    assert_bad(&place, &bad, "error", &[bad.to_str().unwrap(), "full", "free space"]);
}

#[test]
fn a_target_that_fills_up_in_mid_run_recovers_when_there_is_room_again() {
    if !mounts::are_our_own("a_target_that_fills_up_in_mid_run_recovers_when_there_is_room_again") {
        return;
    }
    let place = Place::new();
    place.configure("[limits]\nfree-floor-percent = 0.0\n");
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    // There is room for every byte, which is looked at before a run, but not for every file of the tree.
    let memory = Memory::mount(&bad, 200 * 1024);
    memory.keep_places(500);
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let said = place.run(INDEX, &targets).expect(3);
    assert!(has_a_tree(&bad), "it was in the middle of it");
    assert_booked(
        &said,
        "error",
        &[bad.to_str().unwrap(), "No space left", "The target is full", "longhaul clean"],
    );
    assert_eq!(said.run_on("bad")["failure"]["error"], "ENOSPC");
    memory.keep_places(0);
    let again = place.run(INDEX, &targets).word("--rounds").word("4").expect(0);
    assert_all_ok(&again.runs());
    place.longhaul("clean bad --yes").expect(0);
    assert_eq!(fs::read_dir(&bad).unwrap().count(), 0);
}

/// Whether something is in a tree of the target.
fn has_a_tree(target: &Path) -> bool {
    let trees = find_arena(target).and_then(|arena| fs::read_dir(arena.join("folder-index")).ok());
    let mut trees = trees.into_iter().flatten().flatten();
    trees.any(|tree| fs::read_dir(tree.path()).is_ok_and(|mut entries| entries.next().is_some()))
}

#[test]
fn a_target_that_is_removed_in_mid_run_is_booked_and_works_when_it_is_back() {
    let place = Place::new();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let mut running = place.run(INDEX, &targets).word("--rounds").word("8").start();
    running.wait_for("the tree to grow", |_| has_a_tree(&bad));
    // Moved away in one step, as a share goes when it is unmounted; then emptied.
    let gone = place.path("gone");
    fs::rename(&bad, &gone).unwrap();
    machine::wait_until("everything to be removed", || fs::remove_dir_all(&gone).is_ok());
    let said = running.finish(3);
    // On a slow day a round or two were through before it went.
    let booked: Vec<Value> = said.runs_on("bad").into_iter().filter(|run| run["outcome"] != "ok").collect();
    assert!(!booked.is_empty(), "{said}");
    for run in booked {
        assert!(["error", "unavailable"].contains(&run["outcome"].as_str().unwrap()), "{run}");
        let message = run["failure"]["message"].as_str().unwrap();
        assert!(message.contains(bad.to_str().unwrap()) && message.contains(". "), "{message}");
    }
    assert_all_ok(&said.runs_on("good"));
    fs::create_dir(&bad).unwrap();
    assert_all_ok(&place.run(INDEX, &targets).expect(0).runs());
}

#[test]
fn an_arena_of_another_machine_is_left_alone() {
    let (place, bad, _) = four_rounds();
    let marker = arena(&bad).join("arena.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&marker).unwrap()).unwrap();
    value["machine"] = "0123456789abcdef".into();
    fs::write(&marker, value.to_string()).unwrap();
    let before = tree::identities(&bad);
    let parts = [marker.to_str().unwrap(), "another machine (0123456789abcdef)", "Move it away"];
    assert_bad(&place, &bad, "unavailable", &parts);
    place.longhaul("clean bad --yes").expect(1).complains_of(&parts);
    assert_eq!(tree::identities(&bad), before);
}

/// Two targets on which every slice of the tree is built and was run on once.
fn four_rounds() -> (Place, PathBuf, PathBuf) {
    let place = Place::with_tiny_trees();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    let call = place.run(INDEX, &[("bad", &bad), ("good", &good)]).word("--rounds").word("4");
    assert_all_ok(&call.expect(0).runs());
    (place, bad, good)
}

/// Harms the corpus that the fifth round meets: that round is an error, and the ninth, which meets it again, is ok.
fn assert_repaired_after(harm: impl FnOnce(&Path), parts: &[&str]) {
    let (place, bad, good) = four_rounds();
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let file = tree::some_file(&arena(&bad).join("folder-index/10-1"));
    harm(&file);
    let parts: Vec<&str> = parts.iter().copied().chain([file.to_str().unwrap(), "the next run"]).collect();
    assert_booked(&place.run(INDEX, &targets).expect(3), "error", &parts);
    let later = place.run(INDEX, &targets).word("--rounds").word("4").expect(0);
    assert_all_ok(&later.runs());
    place.longhaul("clean bad --yes").expect(0);
    assert_eq!(fs::read_dir(&bad).unwrap().count(), 0);
}

#[test]
fn a_changed_file_of_the_corpus_is_found_and_made_anew() {
    let change = |file: &Path| {
        let mut bytes = fs::read(file).unwrap();
        bytes[0] ^= 1;
        fs::write(file, bytes).unwrap();
    };
    assert_repaired_after(change, &["is damaged", "byte 0"]);
}

#[test]
fn a_truncated_file_of_the_corpus_is_found_and_made_anew() {
    let truncate = |file: &Path| fs::File::options().write(true).open(file).unwrap().set_len(1).unwrap();
    assert_repaired_after(truncate, &["is damaged", "1 bytes"]);
}

#[test]
fn a_deleted_file_of_the_corpus_is_missed_and_made_anew() {
    let (place, bad, good) = four_rounds();
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let file = tree::some_file(&arena(&bad).join("folder-index/10-1"));
    fs::remove_file(&file).unwrap();
    let parts = [file.to_str().unwrap(), "it is gone", "the next run makes it anew"];
    assert_booked(&place.run(INDEX, &targets).expect(3), "error", &parts);
    assert_all_ok(&place.run(INDEX, &targets).word("--rounds").word("4").expect(0).runs());
    assert!(file.exists());
}

#[test]
fn a_deleted_folder_of_the_corpus_is_missed_and_made_anew() {
    let (place, bad, good) = four_rounds();
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let slice = arena(&bad).join("folder-index/10-1");
    fs::remove_dir_all(&slice).unwrap();
    assert_booked(&place.run(INDEX, &targets).expect(3), "error", &[slice.to_str().unwrap(), "the next run"]);
    assert_all_ok(&place.run(INDEX, &targets).word("--rounds").word("4").expect(0).runs());
}

/// A folder of the tree that is walked, not only shown.
fn walked_folder(slice: &Path) -> PathBuf {
    let walked = tree::files(slice).into_iter().find(|path| !path.starts_with("Inbox")).unwrap();
    slice.join(walked).parent().unwrap().to_owned()
}

#[test]
fn a_foreign_file_in_the_tree_is_noted_and_left_alone() {
    let (place, bad, good) = four_rounds();
    let foreign = walked_folder(&arena(&bad).join("folder-index/10-1")).join("diary.txt");
    fs::write(&foreign, "mine").unwrap();
    let said = place.run(INDEX, &[("bad", &bad), ("good", &good)]).expect(0);
    assert_all_ok(&said.runs());
    assert_eq!(said.run_on("bad")["facts"]["foreign-files-in-the-tree"], "1");
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine");
}

/// Says that a test is skipped where nobody can be without rights.
fn rights_can_be_missing(test: &str) -> bool {
    machine::without_nobody().map(|why| machine::skip(test, why)).is_none()
}

#[test]
fn a_folder_of_another_user_is_unavailable() {
    if !rights_can_be_missing("a_folder_of_another_user_is_unavailable") {
        return;
    }
    let place = Place::of_nobody();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o555)).unwrap();
    machine::give_to_nobody(&good);
    let said = place.run(INDEX, &[("bad", &bad), ("good", &good)]).without_rights().expect(3);
    assert_booked(
        &said,
        "unavailable",
        &[bad.to_str().unwrap(), "may not write", "Choose a folder that is yours"],
    );
}

#[test]
fn a_denied_folder_of_the_corpus_is_an_error_until_it_is_opened_again() {
    if !rights_can_be_missing("a_denied_folder_of_the_corpus_is_an_error_until_it_is_opened_again") {
        return;
    }
    let place = Place::of_nobody();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    [&bad, &good].iter().for_each(|path| machine::give_to_nobody(path));
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let run = |rounds: &str| place.run(INDEX, &targets).word("--rounds").word(rounds).without_rights();
    assert_all_ok(&run("4").expect(0).runs());
    let denied = tree::some_file(&arena(&bad).join("folder-index/10-1")).parent().unwrap().to_owned();
    fs::set_permissions(&denied, fs::Permissions::from_mode(0o000)).unwrap();
    let said = run("1").expect(3);
    fs::set_permissions(&denied, fs::Permissions::from_mode(0o755)).unwrap();
    assert_booked(
        &said,
        "error",
        &[denied.to_str().unwrap(), "Permission denied", "check the folder's owner"],
    );
    assert_all_ok(&run("4").expect(0).runs());
}

#[test]
fn what_a_killed_backup_left_half_copied_is_overwritten_or_removed() {
    let place = Place::new();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    let back_up = || place.run(&["incremental-backup"], &[("bad", &bad), ("good", &good)]).expect(0).runs();
    assert_all_ok(&back_up());
    let copies = arena(&bad).join("incremental-backup");
    for file in tree::files(&copies) {
        let name = format!(".partial-{}", file.file_name().unwrap().to_str().unwrap());
        fs::write(copies.join(file).with_file_name(name), "half").unwrap();
    }
    assert_all_ok(&back_up());
    let left = tree::files(&copies).into_iter().filter(|path| path.to_string_lossy().contains(".partial-"));
    assert_eq!(left.count(), 0);
}

#[test]
fn a_planted_marker_or_manifest_is_refused_at_once() {
    let place = Place::with_tiny_trees();
    let target = place.folder("share");
    assert_all_ok(&place.run(INDEX, &[("share", &target)]).expect(0).runs());
    for (name, reason) in [("arena.json", "not a marker"), ("manifest.json", "manifest is damaged")] {
        let file = arena(&target).join(name);
        let kept = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        place.longhaul("clean share --yes").expect(1).complains_of(&[reason, "no regular file"]);
        fs::remove_file(&file).unwrap();
        fs::File::create(&file).unwrap().set_len(6 << 30).unwrap();
        let said = place.run(INDEX, &[("share", &target)]).expect(3);
        assert_failure(&said.run_on("share"), "unavailable", &[reason, "larger than 1 MiB"]);
        fs::write(&file, kept).unwrap();
    }
    place.longhaul("clean share --yes").expect(0);
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    let place = Place::new();
    place.longhaul("profile check /dev/zero").expect(2).complains_of(&["/dev/zero", "larger than 1 MiB"]);
    place.longhaul("--config /dev/zero run").expect(2).complains_of(&["/dev/zero", "larger than 1 MiB"]);
}
