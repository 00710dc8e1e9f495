//! Tests of unusable targets and damaged files: each failure is reported clearly, and other targets are still
//! measured.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::daemon::target;
use crate::support::mounts::{self, Memory};
use crate::support::{
    CommandOutput, Place, TINY_TREES, assert_all_ok, assert_failure, find_sandbox, machine, sandbox, schema,
    tree,
};
use serde_json::Value;

const INDEX: &[&str] = &["folder-index"];

/// Runs on a bad and a good target. Checks the outcome and failure message of the bad one, and that the good one is
/// ok.
fn assert_bad(place: &Place, bad: &Path, outcome: &str, parts: &[&str]) {
    let good = place.folder("good");
    let output = place.run(INDEX, &[("bad", bad), ("good", &good)]).expect(3);
    assert_stored_as(&output, outcome, parts);
}

fn assert_stored_as(output: &CommandOutput, outcome: &str, parts: &[&str]) {
    schema::check_output(&output.lines());
    assert_failure(&output.run_on("bad"), outcome, parts);
    assert_all_ok(&output.runs_on("good"));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "needs /dev/full")]
fn output_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    for command in ["config --print", "preset list", "targets"] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = place.longhaul(command).command().stdout(full).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {printed}");
        assert!(printed.contains("write to standard output") && !printed.contains("panicked"), "{printed}");
    }
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let status = place.longhaul("preset list").command().stdout(full()).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(1), "also if nothing can be said about it");
}

#[test]
fn target_path_that_is_not_utf8_is_refused() {
    let place = Place::with_tiny_trees();
    let mut argument = OsString::from("odd=");
    argument.push(place.path("").join(OsStr::from_bytes(b"a\xffb")));
    for command in ["run", "try", "init"] {
        let output = place.longhaul(command).command().arg("--target").arg(&argument).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && printed.contains("not UTF-8") && printed.contains("Rename"),
            "{printed}"
        );
    }
}

#[test]
fn missing_file_or_link_target_is_unavailable() {
    let place = Place::with_tiny_trees();
    let (missing, file, link) = (place.path("missing"), place.path("file"), place.path("link"));
    fs::write(&file, "x").unwrap();
    symlink(place.folder("elsewhere"), &link).unwrap();
    let cases = [
        (&missing, "there is no such folder", "Mount the share"),
        (&file, "it is not a folder", "Give a folder"),
        (&link, "it is a symbolic link", "Give the path that it leads to"),
    ];
    for (path, reason, advice) in cases {
        // Of the configuration: one of the command line is refused.
        place.configure(&[TINY_TREES, &target("bad", path), &target("good", &place.folder("good"))].concat());
        let output = place.run(INDEX, &[]).expect(3);
        assert_stored_as(&output, "unavailable", &[path.to_str().unwrap(), reason, advice]);
    }
    assert!(!missing.exists(), "no folder is created: a missing folder means that the share is not mounted");
    assert_eq!(fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn mistyped_target_of_the_command_line_is_refused() {
    let place = Place::with_tiny_trees();
    let (missing, good) = (place.path("missing"), place.folder("good"));
    let refused = place.run(INDEX, &[("bad", &missing), ("good", &good)]).expect(2);
    refused.assert_stderr(&[
        "there is no",
        missing.to_str().unwrap(),
        "mount the share, or correct the path",
    ]);
    for command in
        ["preset ioping --scale quick --runs 1", "integrity --check", "fidelity", "freshness measure"]
    {
        let refused = place.longhaul(command).target("bad", &missing).target("good", &good).expect(2);
        refused.assert_stderr(&["there is no", "mount the share, or correct the path"]);
    }
    assert!(!place.database().exists() && fs::read_dir(&good).unwrap().count() == 0, "nothing was measured");
}

#[test]
fn only_a_successful_run_elsewhere_causes_a_warning() {
    let place = Place::with_tiny_trees();
    let (missing, good, other) = (place.path("missing"), place.folder("good"), place.folder("other"));
    place.configure(&[TINY_TREES, &target("nas", &missing)].concat());
    place.run(INDEX, &[]).expect(3);
    place.configure(TINY_TREES);
    let first = place.run(INDEX, &[("nas", &good)]).expect(0);
    assert!(!first.err.contains("was measured in"), "{first}");
    let moved = place.run(INDEX, &[("nas", &other)]).expect(0);
    moved.assert_stderr(&["`nas` was measured in", good.to_str().unwrap()]);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn a_read_only_target_is_unavailable() {
    mounts::only_in_own_mounts!(a_read_only_target_is_unavailable);
    let place = Place::with_tiny_trees();
    let bad = place.folder("bad");
    let memory = Memory::mount(&bad, 1024);
    memory.make_read_only();
    assert_bad(&place, &bad, "unavailable", &[bad.to_str().unwrap(), "read-only", "Mount it for writing"]);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn target_without_free_space_is_unavailable() {
    mounts::only_in_own_mounts!(target_without_free_space_is_unavailable);
    let place = Place::new();
    let bad = place.folder("bad");
    let _memory = Memory::mount(&bad, 1024);
    assert_bad(&place, &bad, "unavailable", &[bad.to_str().unwrap(), "must stay free", "Free space"]);
    let is_own = |path: &PathBuf| {
        path.ends_with(".metadata_never_index") || path.extension().is_some_and(|end| end == "json")
    };
    assert!(tree::files(&bad).iter().all(is_own), "no corpus was created");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn completely_full_target_is_reported_as_full() {
    mounts::only_in_own_mounts!(completely_full_target_is_reported_as_full);
    let place = Place::with_tiny_trees();
    let bad = place.folder("bad");
    let memory = Memory::mount(&bad, 4096);
    memory.fill();
    assert_bad(&place, &bad, "error", &[bad.to_str().unwrap(), "full", "free some space"]);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn target_that_fills_up_during_a_run_recovers() {
    mounts::only_in_own_mounts!(target_that_fills_up_during_a_run_recovers);
    let place = Place::new();
    place.configure("[limits]\nmin-free-percent = 0.0\n");
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    // The check of free space before a run passes, but the inodes do not suffice for all files of the tree.
    let memory = Memory::mount(&bad, 200 * 1024);
    memory.limit_inodes(500);
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let output = place.run(INDEX, &targets).expect(3);
    assert!(has_a_tree(&bad), "the run failed while it created the tree");
    assert_stored_as(
        &output,
        "error",
        &[bad.to_str().unwrap(), "No space left", "The target is full", "longhaul targets clean"],
    );
    assert_eq!(output.run_on("bad")["failure"]["error"], "ENOSPC");
    memory.limit_inodes(0);
    let again = place.run(INDEX, &targets).arg("--rounds").arg("4").expect(0);
    assert_all_ok(&again.runs());
    place.longhaul("targets clean bad --yes").expect(0);
    assert_eq!(fs::read_dir(&bad).unwrap().count(), 0);
}

/// Returns true if a tree of the target contains anything.
fn has_a_tree(target: &Path) -> bool {
    let trees = find_sandbox(target).and_then(|sandbox| fs::read_dir(sandbox.join("folder-index")).ok());
    let mut trees = trees.into_iter().flatten().flatten();
    trees.any(|tree| fs::read_dir(tree.path()).is_ok_and(|mut entries| entries.next().is_some()))
}

#[test]
fn target_removed_during_a_run_fails_and_recovers() {
    let place = Place::new();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let mut running = place.run(INDEX, &targets).arg("--rounds").arg("8").start();
    running.wait_for("the tree to grow", |_| has_a_tree(&bad));
    // A rename is atomic, like the unmounting of a share; the folder is then deleted at its new path.
    let gone = place.path("gone");
    fs::rename(&bad, &gone).unwrap();
    machine::wait_until("everything to be removed", || fs::remove_dir_all(&gone).is_ok());
    let output = running.finish(3);
    // On a slow machine the first rounds may be complete before the folder is gone.
    let failed: Vec<Value> = output.runs_on("bad").into_iter().filter(|run| run["outcome"] != "ok").collect();
    assert!(!failed.is_empty(), "{output}");
    for run in failed {
        assert!(["error", "unavailable"].contains(&run["outcome"].as_str().unwrap()), "{run}");
        let message = run["failure"]["message"].as_str().unwrap();
        assert!(message.contains(bad.to_str().unwrap()) && message.contains(". "), "{message}");
    }
    assert_all_ok(&output.runs_on("good"));
    fs::create_dir(&bad).unwrap();
    assert_all_ok(&place.run(INDEX, &targets).expect(0).runs());
}

#[test]
fn sandbox_of_another_machine_is_not_touched() {
    let (place, bad, _) = four_rounds();
    let marker = sandbox(&bad).join("sandbox.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&marker).unwrap()).unwrap();
    value["machine"] = "0123456789abcdef".into();
    fs::write(&marker, value.to_string()).unwrap();
    let before = tree::identities(&bad);
    let parts = [marker.to_str().unwrap(), "another machine (0123456789abcdef)", "Move it away"];
    assert_bad(&place, &bad, "unavailable", &parts);
    place.longhaul("targets clean bad --yes").expect(1).assert_stderr(&parts);
    assert_eq!(tree::identities(&bad), before);
}

/// Creates two targets and runs four rounds, so that every slice of the tree exists and was used once.
fn four_rounds() -> (Place, PathBuf, PathBuf) {
    let place = Place::with_tiny_trees();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    let call = place.run(INDEX, &[("bad", &bad), ("good", &good)]).arg("--rounds").arg("4");
    assert_all_ok(&call.expect(0).runs());
    (place, bad, good)
}

/// Damages a file in the slice of the fifth round. Checks that this round is an error, and that the ninth round,
/// which uses the same slice, is ok.
fn assert_repaired_after(harm: impl FnOnce(&Path), parts: &[&str]) {
    let (place, bad, good) = four_rounds();
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let file = tree::some_file(&sandbox(&bad).join("folder-index/10-1"));
    harm(&file);
    let parts: Vec<&str> = parts.iter().copied().chain([file.to_str().unwrap(), "the next run"]).collect();
    assert_stored_as(&place.run(INDEX, &targets).expect(3), "error", &parts);
    let later = place.run(INDEX, &targets).arg("--rounds").arg("4").expect(0);
    assert_all_ok(&later.runs());
    place.longhaul("targets clean bad --yes").expect(0);
    assert_eq!(fs::read_dir(&bad).unwrap().count(), 0);
}

#[test]
fn changed_corpus_file_is_detected_and_rebuilt() {
    let change = |file: &Path| {
        let mut bytes = fs::read(file).unwrap();
        bytes[0] ^= 1;
        fs::write(file, bytes).unwrap();
    };
    assert_repaired_after(change, &["is damaged", "byte 0"]);
}

#[test]
fn truncated_corpus_file_is_detected_and_rebuilt() {
    let truncate = |file: &Path| fs::File::options().write(true).open(file).unwrap().set_len(1).unwrap();
    assert_repaired_after(truncate, &["is damaged", "1 bytes"]);
}

#[test]
fn deleted_corpus_file_is_detected_and_rebuilt() {
    let (place, bad, good) = four_rounds();
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let file = tree::some_file(&sandbox(&bad).join("folder-index/10-1"));
    fs::remove_file(&file).unwrap();
    let parts = [file.to_str().unwrap(), "the file is missing", "the next run creates it again"];
    assert_stored_as(&place.run(INDEX, &targets).expect(3), "error", &parts);
    assert_all_ok(&place.run(INDEX, &targets).arg("--rounds").arg("4").expect(0).runs());
    assert!(file.exists());
}

#[test]
fn deleted_corpus_folder_is_detected_and_rebuilt() {
    let (place, bad, good) = four_rounds();
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let slice = sandbox(&bad).join("folder-index/10-1");
    fs::remove_dir_all(&slice).unwrap();
    assert_stored_as(
        &place.run(INDEX, &targets).expect(3),
        "error",
        &[slice.to_str().unwrap(), "the next run"],
    );
    assert_all_ok(&place.run(INDEX, &targets).arg("--rounds").arg("4").expect(0).runs());
}

/// Returns a folder that the walk visits, not only the listed `Inbox`.
fn walked_folder(slice: &Path) -> PathBuf {
    let walked = tree::files(slice).into_iter().find(|path| !path.starts_with("Inbox")).unwrap();
    slice.join(walked).parent().unwrap().to_owned()
}

#[test]
fn foreign_file_in_the_tree_is_counted_and_kept() {
    let (place, bad, good) = four_rounds();
    let foreign = walked_folder(&sandbox(&bad).join("folder-index/10-1")).join("foreign.txt");
    fs::write(&foreign, "mine").unwrap();
    let output = place.run(INDEX, &[("bad", &bad), ("good", &good)]).expect(0);
    assert_all_ok(&output.runs());
    assert_eq!(output.run_on("bad")["facts"]["unexpected-files"], "1");
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine");
}

#[test]
fn copy_of_a_tree_file_in_other_letters_is_named() {
    let (place, bad, good) = four_rounds();
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let file = tree::some_file(&sandbox(&bad).join("folder-index/10-1"));
    let copy = file.with_file_name(file.file_name().unwrap().to_str().unwrap().to_uppercase());
    fs::copy(&file, &copy).unwrap();
    let parts = [copy.to_str().unwrap(), "longhaul did not make", "move them away"];
    assert_stored_as(&place.run(INDEX, &targets).expect(3), "unavailable", &parts);
    fs::remove_file(&copy).unwrap();
    assert_all_ok(&place.run(INDEX, &targets).arg("--rounds").arg("4").expect(0).runs());
}

#[test]
fn a_folder_of_another_user_is_unavailable() {
    let place = Place::for_unprivileged_user();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o555)).unwrap();
    machine::chown_to_nobody(&good);
    let output = place.run(INDEX, &[("bad", &bad), ("good", &good)]).unprivileged().expect(3);
    assert_stored_as(
        &output,
        "unavailable",
        &[bad.to_str().unwrap(), "may not write", "Choose a folder that is yours"],
    );
}

#[test]
fn folder_that_may_not_be_opened_is_unavailable() {
    let place = Place::for_unprivileged_user();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o000)).unwrap();
    machine::chown_to_nobody(&good);
    let output = place.run(INDEX, &[("bad", &bad), ("good", &good)]).unprivileged().expect(3);
    let trial = place.longhaul("try").target("bad", &bad).unprivileged().expect(3);
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o755)).unwrap();
    let parts = [bad.to_str().unwrap(), "Permission denied", "Check the folder's owner"];
    assert_stored_as(&output, "unavailable", &parts);
    assert!(!trial.err.contains("left behind"), "{trial}");
}

#[test]
fn unreadable_corpus_folder_is_an_error_until_readable() {
    let place = Place::for_unprivileged_user();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    [&bad, &good].iter().for_each(|path| machine::chown_to_nobody(path));
    let targets: [(&str, &Path); 2] = [("bad", &bad), ("good", &good)];
    let run = |rounds: &str| place.run(INDEX, &targets).arg("--rounds").arg(rounds).unprivileged();
    assert_all_ok(&run("4").expect(0).runs());
    let denied = tree::some_file(&sandbox(&bad).join("folder-index/10-1")).parent().unwrap().to_owned();
    fs::set_permissions(&denied, fs::Permissions::from_mode(0o000)).unwrap();
    let output = run("1").expect(3);
    fs::set_permissions(&denied, fs::Permissions::from_mode(0o755)).unwrap();
    assert_stored_as(
        &output,
        "error",
        &[denied.to_str().unwrap(), "Permission denied", "Check the folder's owner"],
    );
    assert_all_ok(&run("4").expect(0).runs());
}

#[test]
fn partial_files_of_a_killed_backup_are_removed() {
    let place = Place::new();
    let (bad, good) = (place.folder("bad"), place.folder("good"));
    let back_up = || place.run(&["incremental-backup"], &[("bad", &bad), ("good", &good)]).expect(0).runs();
    assert_all_ok(&back_up());
    let copies = sandbox(&bad).join("incremental-backup");
    for file in tree::files(&copies) {
        let name = format!(".partial-{}", file.file_name().unwrap().to_str().unwrap());
        fs::write(copies.join(file).with_file_name(name), "half").unwrap();
    }
    assert_all_ok(&back_up());
    let left = tree::files(&copies).into_iter().filter(|path| path.to_string_lossy().contains(".partial-"));
    assert_eq!(left.count(), 0);
}

#[test]
fn planted_marker_or_manifest_is_refused() {
    let place = Place::with_tiny_trees();
    let target = place.folder("share");
    assert_all_ok(&place.run(INDEX, &[("share", &target)]).expect(0).runs());
    for (name, reason) in [("sandbox.json", "not a marker"), ("manifest.json", "manifest is damaged")] {
        let file = sandbox(&target).join(name);
        let original = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        place.longhaul("targets clean share --yes").expect(1).assert_stderr(&[reason, "not a regular file"]);
        fs::remove_file(&file).unwrap();
        fs::File::create(&file).unwrap().set_len(6 << 30).unwrap();
        let output = place.run(INDEX, &[("share", &target)]).expect(3);
        assert_failure(&output.run_on("share"), "unavailable", &[reason, "larger than 1 MiB"]);
        fs::write(&file, original).unwrap();
    }
    place.longhaul("targets clean share --yes").expect(0);
}

#[test]
fn endless_and_large_input_files_are_refused() {
    let place = Place::new();
    let large = place.path("large");
    std::fs::write(&large, vec![b'#'; 2 << 20]).unwrap();
    let large = large.to_str().unwrap();
    for (file, reason) in [("/dev/zero", "not a regular file"), (large, "larger than 1 MiB")] {
        place.longhaul(&format!("preset check {file}")).expect(2).assert_stderr(&[file, reason]);
        place.longhaul(&format!("--config {file} run")).expect(2).assert_stderr(&[file, reason]);
    }
}
