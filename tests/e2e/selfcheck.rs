//! Tests of `longhaul selfcheck`: every call gets a verdict, a hang is reported, nothing is left behind, and the
//! output contains no names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use crate::fuse::hang::Fuse;
use crate::support::mounts::{Memory, only_in_own_mounts};
use crate::support::tree::{self, is_empty};
use crate::support::{Call, CommandOutput, Place, find_sandbox, sandbox};
use serde_json::Value;

/// Calls that are checked on each target, on every operating system.
const CALLS: [&str; 18] = [
    "mount of the folder",
    "negotiated",
    "counters",
    "sandbox",
    "space",
    "folder listing",
    "._ files",
    "folder watch",
    "extended attribute",
    "Finder info",
    "modification time",
    "permissions",
    "byte-range lock",
    "rename over a file",
    "hard link",
    "sync",
    "eviction",
    "removal",
];
/// Calls that are checked on the machine, without a target.
const OF_MACHINE: [&str; 10] = [
    "clocks",
    "peak memory",
    "flight recorder",
    "I/O policy",
    "mount table",
    "mount watch",
    "disk counters",
    "interface counters",
    "power source",
    "service manager",
];

fn self_check<'a>(place: &'a Place, targets: &[(&str, &Path)]) -> Call<'a> {
    let call = place.longhaul("selfcheck --json");
    targets.iter().fold(call, |call, (name, path)| call.target(name, path))
}

/// Returns the rows of the machine or of one target.
fn rows(output: &CommandOutput, place: &str) -> Vec<Value> {
    let rows = output.value()["checks"].as_array().unwrap().clone();
    rows.into_iter().filter(|row| row["place"] == place).collect()
}

/// Returns the row of one call.
fn row(output: &CommandOutput, place: &str, call: &str) -> Value {
    let found: Vec<Value> = rows(output, place).into_iter().filter(|row| row["call"] == call).collect();
    assert_eq!(found.len(), 1, "{call}: {output}");
    found.into_iter().next().unwrap()
}

fn calls(rows: &[Value]) -> BTreeSet<&str> {
    rows.iter().map(|row| row["call"].as_str().unwrap()).collect()
}

#[test]
fn selfcheck_json_has_a_verdict_for_every_call() {
    let place = Place::new();
    let output = self_check(&place, &[("nas", &place.folder("share"))]).expect(0);
    let value = output.value();
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    assert!(value["system"].as_str().unwrap().starts_with("Linux "), "{output}");
    for row in value["checks"].as_array().unwrap() {
        for key in ["place", "call", "answer", "expected", "source"] {
            assert!(row[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {row}");
        }
        assert!(["ok", "unknown"].contains(&row["verdict"].as_str().unwrap()), "{row}");
    }
    let of_target = rows(&output, "target 1");
    assert!(CALLS.iter().all(|call| calls(&of_target).contains(call)), "{output}");
    assert!(of_target.iter().all(|row| row["protocol"].is_string()), "{output}");
    assert!(OF_MACHINE.iter().all(|call| calls(&rows(&output, "machine")).contains(call)), "{output}");
    assert_eq!(row(&output, "target 1", "rename over a file")["answer"], "replaced");
}

#[test]
fn selfcheck_prints_a_markdown_row_per_call() {
    let place = Place::new();
    let output = place.longhaul("selfcheck").target("nas", &place.folder("share")).expect(0);
    assert!(output.out.contains("## machine\n") && output.out.contains("## target 1 ("), "{output}");
    for call in CALLS.iter().chain(&OF_MACHINE) {
        let begin = format!(" {} ", call.replace('_', "\\_"));
        let found: Vec<&str> = output.out.lines().filter(|line| line.contains(&begin)).collect();
        assert!(found.iter().any(|line| line.matches(" | ").count() == 4), "{call}: {output}");
    }
    assert!(output.out.contains(" as expected, 0 different, "), "{output}");
}

#[test]
fn selfcheck_leaves_nothing_behind() {
    let place = Place::new();
    let (share, temporary) = (place.folder("share"), place.folder("tmp"));
    self_check(&place, &[("nas", &share)]).expect(0);
    assert!(is_empty(&share));
    let output = self_check(&place, &[]).command().env("TMPDIR", &temporary).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = CommandOutput { out: String::from_utf8(output.stdout).unwrap(), err: String::new() };
    assert_eq!(row(&printed, "target 1", "removal")["answer"], "the sandbox is removed");
    assert!(is_empty(&temporary));
    assert_eq!(tree::files(&place.path("home")), [] as [PathBuf; 0]);
}

#[test]
fn selfcheck_defaults_to_the_configured_targets() {
    let place = Place::new();
    let (one, two) = (place.folder("one"), place.folder("two"));
    let target = |name: &str, path: &Path| format!("[targets.{name}]\npath = \"{}\"\n", path.display());
    place.configure(&(target("one", &one) + &target("two", &two)));
    let output = self_check(&place, &[]).expect(0);
    assert_eq!(rows(&output, "target 2").len(), rows(&output, "target 1").len());
    assert!(rows(&output, "target 3").is_empty() && is_empty(&one) && is_empty(&two));
}

#[test]
fn selfcheck_keeps_an_existing_sandbox() {
    let place = Place::with_tiny_trees();
    let share = place.folder("share");
    place.run(&["folder-index"], &[("nas", &share)]).expect(0);
    let output = self_check(&place, &[("nas", &share)]).expect(0);
    assert!(
        row(&output, "target 1", "removal")["answer"].as_str().unwrap().contains("stays as it was before")
    );
    let scratch = sandbox(&share).join("selfcheck");
    assert!(!scratch.exists());
    // Files that a killed self-check leaves behind.
    fs::create_dir(&scratch).unwrap();
    ["time", "._time", "entry-3"].iter().for_each(|name| fs::write(scratch.join(name), "x").unwrap());
    place.longhaul("targets clean nas --yes").expect(0);
    assert!(is_empty(&share));
}

#[test]
fn selfcheck_removes_leftovers_of_a_killed_one() {
    let place = Place::new();
    let share = place.folder("share");
    self_check(&place, &[("nas", &share)]).expect(0);
    let scratch = share.join(".longhaul-selfcheck-nas/selfcheck");
    fs::create_dir_all(&scratch).unwrap();
    fs::write(
        share.join(".longhaul-selfcheck-nas/sandbox.json"),
        r#"{"longhaul_sandbox":1,"machine":"selfcheck","target":"nas"}"#,
    )
    .unwrap();
    fs::write(scratch.join("marked-2"), "x").unwrap();
    self_check(&place, &[("nas", &share)]).expect(0);
    assert!(is_empty(&share));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn selfcheck_reports_missing_and_read_only_targets() {
    only_in_own_mounts!(selfcheck_reports_missing_and_read_only_targets);
    let place = Place::new();
    let memory = Memory::mount(&place.folder("memory"), 4096);
    memory.make_read_only();
    let (read_only, absent) = (place.path("memory"), place.path("absent"));
    let output = self_check(&place, &[("ro", &read_only), ("absent", &absent)]).expect(3);
    let answer = |place: &str, call: &str| row(&output, place, call)["answer"].as_str().unwrap().to_owned();
    assert!(answer("target 1", "mount of the folder").contains("read-only"), "{output}");
    assert!(answer("target 1", "sandbox").contains("EROFS"), "{output}");
    assert!(answer("target 2", "sandbox").contains("no such folder"), "{output}");
    assert!(answer("target 2", "eviction").starts_with("not checked"), "{output}");
    assert_eq!(row(&output, "target 2", "eviction")["verdict"], "unknown");
}

#[cfg(target_os = "linux")]
#[test]
fn selfcheck_of_a_hung_share_ends_within_a_minute() {
    only_in_own_mounts!(selfcheck_of_a_hung_share_ends_within_a_minute);
    let place = Place::new();
    let (stuck, local) = (place.folder("mount"), place.folder("local"));
    let fuse = Fuse::mount(&stuck);
    let below = place.folder("mount/below");
    fuse.freeze();
    // The command promises to end within a minute, also with a hung share.
    let promised = std::time::Duration::from_secs(60);
    let began = std::time::Instant::now();
    let targets = [("stuck", stuck.as_path()), ("below", &below), ("local", &local)];
    let output = self_check(&place, &targets).arg("--limit").arg("1").expect(3);
    assert!(began.elapsed() < promised, "{:?}", began.elapsed());
    // The mount table is still readable; then `getattr` on the root of the mount hangs.
    assert_eq!(answers_before_hang(&rows(&output, "target 1"), "getattr"), 3);
    // For a folder below the mount point the first call, a `lookup`, hangs.
    assert_eq!(answers_before_hang(&rows(&output, "target 2"), "lookup"), 0);
    assert!(rows(&output, "target 3").iter().all(|row| row["verdict"] != "differs"), "{output}");
    fuse.thaw();
    crate::support::machine::wait_for_no_worker(place.root());
    let output = self_check(&place, &[("stuck", &below)]).expect(0);
    assert!(rows(&output, "target 1")[0]["protocol"].as_str().unwrap().starts_with("FUSE"), "{output}");
    assert!(is_empty(&below) && is_empty(&local));
}

#[cfg(target_os = "linux")]
/// Returns the number of calls answered before the one that hung. Checks that later calls were not made.
fn answers_before_hang(rows: &[Value], operation: &str) -> usize {
    let hang = format!("did not return within 1 s (`{operation}`)");
    let at = rows.iter().position(|row| row["answer"] == hang.as_str()).unwrap_or_else(|| panic!("{rows:?}"));
    assert!(rows[..at].iter().all(|row| row["verdict"] != "differs"), "{rows:?}");
    assert_eq!(rows[at]["verdict"], "differs");
    for row in &rows[at + 1..] {
        assert_eq!(row["answer"], "not checked: an earlier call has not returned");
        assert_eq!(row["verdict"], "unknown");
    }
    at
}

#[cfg(target_os = "linux")]
#[test]
fn selfcheck_keeps_the_answers_before_a_hang() {
    only_in_own_mounts!(selfcheck_keeps_the_answers_before_a_hang);
    let place = Place::new();
    let stuck = place.folder("mount");
    let fuse = Fuse::with_stuck_writes(&stuck);
    let output = self_check(&place, &[("stuck", &stuck)]).arg("--limit").arg("1").expect(3);
    assert_eq!(row(&output, "target 1", "mount of the folder")["verdict"], "ok");
    assert_eq!(row(&output, "target 1", "sandbox")["answer"], "did not return within 1 s (`write`)");
    assert!(row(&output, "target 1", "removal")["answer"].as_str().unwrap().starts_with("not checked"));
    fuse.end();
    crate::support::machine::wait_for_no_worker(place.root());
}

#[test]
fn selfcheck_prints_no_names_or_paths() {
    let place = Place::new();
    let secret = place.folder("annas-secret-folder");
    let absent = place.path("bobs-absent-folder");
    for form in ["selfcheck", "selfcheck --json"] {
        let call = place.longhaul(form).target("annas-nas", &secret).target("bobs-nas", &absent);
        let mut command = call.command();
        let output = command.env("USER", "annaplanted").env("LOGNAME", "annaplanted").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "the second target does not exist");
        let text = String::from_utf8(output.stdout).unwrap();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
        assert!(!words.contains(host.as_str()), "{host}: {text}");
        for planted in
            ["anna", "bob", "secret", "absent-folder", "longhaul-e2e", place.root().to_str().unwrap()]
        {
            assert!(!text.contains(planted), "{planted}: {text}");
        }
    }
}

#[test]
fn selfcheck_refuses_the_folder_of_the_database() {
    let place = Place::new();
    let output = self_check(&place, &[("data", &place.folder("home/data/longhaul"))]).expect(2);
    output.assert_stderr(&["is the folder of the database"]);
}

#[test]
fn selfcheck_is_refused_while_longhaul_measures() {
    let place = Place::new();
    let _lock = longhaul_service::database_lock::DatabaseLock::acquire(&place.database(), &[]).unwrap();
    let output = self_check(&place, &[]).expect(1);
    output.assert_stderr(&["another longhaul", "stop it"]);
    assert!(find_sandbox(place.root()).is_none());
}
