//! `longhaul selfcheck`: every call is answered and judged, a hang is an answer, nothing is left, nobody is named.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::mounts::{Fuse, Memory, are_our_own};
use support::{Call, Place, Said, arena, find_arena, machine};

/// A minute is what the command promises.
const PROMISED: Duration = Duration::from_secs(60);

/// Calls that the first Mac is to answer; each has its row on every system.
const CALLS: [&str; 23] = [
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
    "time of change",
    "permissions",
    "case of names",
    "normalization of names",
    "odd characters in names",
    "longest name",
    "byte-range lock",
    "rename over a file",
    "rename over an open file",
    "hard link",
    "sync",
    "eviction",
    "removal",
];
/// Calls that need no target.
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

/// The rows of one place.
fn rows(said: &Said, place: &str) -> Vec<Value> {
    let rows = said.value()["checks"].as_array().unwrap().clone();
    rows.into_iter().filter(|row| row["place"] == place).collect()
}

/// The row of a call of a target.
fn row(said: &Said, place: &str, call: &str) -> Value {
    let found: Vec<Value> = rows(said, place).into_iter().filter(|row| row["call"] == call).collect();
    assert_eq!(found.len(), 1, "{call}: {said}");
    found.into_iter().next().unwrap()
}

fn calls(rows: &[Value]) -> BTreeSet<&str> {
    rows.iter().map(|row| row["call"].as_str().unwrap()).collect()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

/// Files below a home that are not what longhaul said.
fn files_below(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| match path.is_dir() {
        true => files_below(&path),
        false => vec![path.display().to_string()],
    });
    files.collect()
}

#[test]
fn every_call_has_a_judged_row_in_the_json() {
    let place = Place::new();
    let said = self_check(&place, &[("nas", &place.folder("share"))]).expect(0);
    let value = said.value();
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    assert!(value["system"].as_str().unwrap().starts_with("Linux "), "{said}");
    for row in value["checks"].as_array().unwrap() {
        for key in ["place", "call", "answer", "expected", "source"] {
            assert!(row[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {row}");
        }
        assert!(["ok", "unknown"].contains(&row["verdict"].as_str().unwrap()), "{row}");
    }
    let of_target = rows(&said, "target 1");
    assert!(CALLS.iter().all(|call| calls(&of_target).contains(call)), "{said}");
    assert!(of_target.iter().all(|row| row["protocol"].is_string()), "{said}");
    assert!(OF_MACHINE.iter().all(|call| calls(&rows(&said, "machine")).contains(call)), "{said}");
    assert_eq!(row(&said, "target 1", "rename over a file")["answer"], "replaced");
}

#[test]
fn the_table_is_markdown_with_a_row_for_each_call() {
    let place = Place::new();
    let said = place.longhaul("selfcheck").target("nas", &place.folder("share")).expect(0);
    assert!(said.out.contains("### machine\n") && said.out.contains("### target 1 ("), "{said}");
    for call in CALLS.iter().chain(&OF_MACHINE) {
        let begin = format!(" {call} ");
        let found: Vec<&str> = said.out.lines().filter(|line| line.contains(&begin)).collect();
        assert!(found.iter().any(|line| line.matches(" | ").count() == 4), "{call}: {said}");
    }
    assert!(said.out.contains(" as expected, 0 different, "), "{said}");
}

#[test]
fn nothing_is_left_of_a_self_check() {
    let place = Place::new();
    let (share, temporary) = (place.folder("share"), place.folder("tmp"));
    self_check(&place, &[("nas", &share)]).expect(0);
    assert!(is_empty(&share));
    let output = self_check(&place, &[]).command().env("TMPDIR", &temporary).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = Said { out: String::from_utf8(output.stdout).unwrap(), err: String::new() };
    assert_eq!(row(&said, "target 1", "removal")["answer"], "the sandbox is gone");
    assert!(is_empty(&temporary));
    assert_eq!(files_below(&place.path("home")), Vec::<String>::new());
}

#[test]
fn without_arguments_the_targets_of_the_configuration_are_checked() {
    let place = Place::new();
    let (one, two) = (place.folder("one"), place.folder("two"));
    let target = |name: &str, path: &Path| format!("[targets.{name}]\npath = \"{}\"\n", path.display());
    place.configure(&(target("one", &one) + &target("two", &two)));
    let said = self_check(&place, &[]).expect(0);
    assert_eq!(rows(&said, "target 2").len(), rows(&said, "target 1").len());
    assert!(rows(&said, "target 3").is_empty() && is_empty(&one) && is_empty(&two));
}

#[test]
fn a_sandbox_that_was_there_stays_and_clean_knows_what_is_in_it() {
    let place = Place::with_tiny_trees();
    let share = place.folder("share");
    place.run(&["folder-index"], &[("nas", &share)]).expect(0);
    let said = self_check(&place, &[("nas", &share)]).expect(0);
    assert!(row(&said, "target 1", "removal")["answer"].as_str().unwrap().contains("stays as it was before"));
    let scratch = arena(&share).join("selfcheck");
    assert!(!scratch.exists());
    // As a self-check leaves it that is killed.
    fs::create_dir(&scratch).unwrap();
    ["time", "._time", "entry-3"].iter().for_each(|name| fs::write(scratch.join(name), "x").unwrap());
    place.longhaul("clean nas --yes").expect(0);
    assert!(is_empty(&share));
}

#[test]
fn what_a_killed_self_check_left_goes_with_the_next_one() {
    let place = Place::new();
    let share = place.folder("share");
    self_check(&place, &[("nas", &share)]).expect(0);
    let scratch = share.join(".longhaul-selfcheck-nas/selfcheck");
    fs::create_dir_all(&scratch).unwrap();
    fs::write(
        share.join(".longhaul-selfcheck-nas/arena.json"),
        r#"{"longhaul_arena":1,"machine":"selfcheck","target":"nas"}"#,
    )
    .unwrap();
    fs::write(scratch.join("marked-2"), "x").unwrap();
    self_check(&place, &[("nas", &share)]).expect(0);
    assert!(is_empty(&share));
}

#[test]
fn a_target_that_is_not_there_or_read_only_differs() {
    let test = "a_target_that_is_not_there_or_read_only_differs";
    if !are_our_own(test) {
        return;
    }
    let place = Place::new();
    let memory = Memory::mount(&place.folder("memory"), 4096);
    memory.make_read_only();
    let (read_only, absent) = (place.path("memory"), place.path("absent"));
    let said = self_check(&place, &[("ro", &read_only), ("absent", &absent)]).expect(3);
    let answer = |place: &str, call: &str| row(&said, place, call)["answer"].as_str().unwrap().to_owned();
    assert!(answer("target 1", "mount of the folder").contains("read-only"), "{said}");
    assert!(answer("target 1", "sandbox").contains("EROFS"), "{said}");
    assert!(answer("target 2", "sandbox").contains("no such folder"), "{said}");
    assert!(answer("target 2", "eviction").starts_with("not asked"), "{said}");
    assert_eq!(row(&said, "target 2", "eviction")["verdict"], "unknown");
}

#[test]
fn a_share_that_hangs_is_an_answer_within_a_minute() {
    let test = "a_share_that_hangs_is_an_answer_within_a_minute";
    if let Some(why) = machine::without_proc().or_else(Fuse::impossible) {
        return machine::skip(test, why);
    }
    let place = Place::new();
    let (source, stuck, local) = (place.folder("source"), place.folder("mount"), place.folder("local"));
    fs::create_dir(source.join("below")).unwrap();
    let below = stuck.join("below");
    let fuse = Fuse::over(&source, &stuck);
    fuse.freeze();
    let began = Instant::now();
    let targets = [("stuck", stuck.as_path()), ("below", &below), ("local", &local)];
    let said = self_check(&place, &targets).word("--limit").word("1").expect(3);
    assert!(began.elapsed() < PROMISED, "{:?}", began.elapsed());
    // What the mount table tells is told; the root of the mount is then asked for its attributes.
    assert_eq!(answers_before_hang(&rows(&said, "target 1"), "getattr"), 3);
    // A worker that cannot even find its mount answers nothing.
    assert_eq!(answers_before_hang(&rows(&said, "target 2"), "lookup"), 0);
    assert!(rows(&said, "target 3").iter().all(|row| row["verdict"] != "differs"), "{said}");
    fuse.thaw();
    machine::wait_for_no_worker(place.root());
    let said = self_check(&place, &[("stuck", &below)]).expect(0);
    assert!(rows(&said, "target 1")[0]["protocol"].as_str().unwrap().starts_with("FUSE"), "{said}");
    assert!(is_empty(&source.join("below")) && is_empty(&local));
}

/// How many calls were answered before the one that hung, after which nothing was asked.
fn answers_before_hang(rows: &[Value], operation: &str) -> usize {
    let hang = format!("did not return within 1 s (`{operation}`)");
    let at = rows.iter().position(|row| row["answer"] == hang.as_str()).unwrap_or_else(|| panic!("{rows:?}"));
    assert!(rows[..at].iter().all(|row| row["verdict"] != "differs"), "{rows:?}");
    assert_eq!(rows[at]["verdict"], "differs");
    for row in &rows[at + 1..] {
        assert_eq!(row["answer"], "not asked: an earlier call has not returned");
        assert_eq!(row["verdict"], "unknown");
    }
    at
}

#[test]
fn a_call_that_hangs_in_the_middle_keeps_the_answers_before_it() {
    let test = "a_call_that_hangs_in_the_middle_keeps_the_answers_before_it";
    if let Some(why) = machine::without_proc().or_else(Fuse::impossible) {
        return machine::skip(test, why);
    }
    let place = Place::new();
    let (source, stuck) = (place.folder("source"), place.folder("mount"));
    let fuse = Fuse::writing_for_ever(&source, &stuck);
    let said = self_check(&place, &[("stuck", &stuck)]).word("--limit").word("1").expect(3);
    assert_eq!(row(&said, "target 1", "mount of the folder")["verdict"], "ok");
    assert_eq!(row(&said, "target 1", "sandbox")["answer"], "did not return within 1 s (`write`)");
    assert!(row(&said, "target 1", "removal")["answer"].as_str().unwrap().starts_with("not asked"));
    fuse.end();
    machine::wait_for_no_worker(place.root());
}

#[test]
fn nobody_and_no_place_is_named() {
    let place = Place::new();
    let secret = place.folder("annas-secret-folder");
    let absent = place.path("bobs-absent-folder");
    for form in ["selfcheck", "selfcheck --json"] {
        let call = place.longhaul(form).target("annas-nas", &secret).target("bobs-nas", &absent);
        let mut command = call.command();
        let output = command.env("USER", "annaplanted").env("LOGNAME", "annaplanted").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "the second is not there");
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
fn it_does_not_begin_beside_another_longhaul() {
    let place = Place::new();
    let _held = longhaul_service::exclusive::Exclusive::take(&place.database()).unwrap();
    let said = self_check(&place, &[]).expect(1);
    said.complains_of(&["another longhaul", "stop it"]);
    assert!(find_arena(place.root()).is_none());
}
