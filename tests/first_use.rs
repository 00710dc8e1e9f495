//! What a person meets first: a trial, runs, lists, the summary, cleaning up.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Place, arena, assert_all_ok, find_arena, machine, mounts, schema, tree};

const ALL: [&str; 5] =
    ["folder-index", "photo-batch", "incremental-backup", "time-machine", "time-machine-throttled"];

#[test]
fn a_trial_leaves_nothing_behind_but_the_database() {
    let place = Place::with_tiny_trees();
    let target = place.folder("share");
    let running = place.longhaul("try").target("share", &target).start();
    let pid = running.pid();
    let said = running.finish(0);
    assert!(said.out.contains("median") && said.out.contains("photo-batch (quick)"), "{said}");
    assert!(said.out.contains("20 runs, 0 failed"), "{said}");
    assert_eq!(tree::files(&place.data()), [PathBuf::from("longhaul.sqlite")]);
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 1, "no empty folder either");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    assert_eq!(machine::recorders_of(pid), [""; 0]);
    schema::check_summary(&place.longhaul("summary --json").expect(0).value());
}

#[test]
fn a_trial_that_is_told_to_keep_its_data_keeps_it() {
    let place = Place::new();
    place.longhaul("try --keep").expect(0);
    assert!(tree::files(&arena(&place.data().join("try"))).len() > 1000);
}

#[test]
fn all_tasks_run_on_all_targets_in_complete_rounds() {
    let place = Place::with_tiny_trees();
    let (a, b) = (place.folder("a"), place.folder("b"));
    let said = place.run(&[], &[("a", &a), ("b", &b)]).word("--rounds").word("2").expect(0);
    schema::check_output(&said.lines());
    assert_all_ok(&said.runs());
    let mut cells: Vec<String> = said.runs().iter().map(cell).collect();
    cells.sort();
    assert_eq!(cells, every_cell());
    check_lists(&place, &said.runs());
    check_pairing(&place.longhaul("summary --json").expect(0).value());
}

fn cell(run: &Value) -> String {
    format!("{} {} {}", run["round"], run["target"], run["workload"].as_str().unwrap())
}

fn every_cell() -> Vec<String> {
    let cells = [1, 2].iter().flat_map(|round| {
        ["a", "b"].iter().flat_map(move |t| ALL.iter().map(move |w| format!("{round} \"{t}\" {w}")))
    });
    let mut cells: Vec<String> = cells.collect();
    cells.sort();
    cells
}

/// What is listed later is what was printed while it was measured.
fn check_lists(place: &Place, printed: &[Value]) {
    assert_eq!(place.stored_runs(), printed);
    let listed = place.longhaul("runs").expect(0);
    assert_eq!(listed.out.lines().count(), printed.len());
    let shown = place.longhaul("show 1").expect(0).out;
    for part in ["operation", "p99", "conditions", "cache:", "system"] {
        assert!(shown.contains(part), "`{part}` is not shown:\n{shown}");
    }
    assert_eq!(place.longhaul("show 1 --json").expect(0).value(), printed[0]);
    place.longhaul("show 999").expect(2).complains_of(&["999", "longhaul runs"]);
}

fn check_pairing(summary: &Value) {
    schema::check_summary(summary);
    let names: Vec<&str> =
        summary["workloads"].as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap()).collect();
    assert_eq!(names, ALL);
    for workload in summary["workloads"].as_array().unwrap() {
        let total = &workload["figures"][0];
        assert_eq!(
            (&total["by_target"]["a"]["n"], &total["by_target"]["b"]["failed"]),
            (&2.into(), &0.into())
        );
        assert_eq!(total["ratios"][0]["rounds"], 2, "paired by round: {total}");
    }
}

#[test]
fn without_a_database_every_list_says_what_to_do() {
    let place = Place::new();
    for command in ["summary", "summary --json", "runs", "runs --json", "show 1", "clean nas"] {
        let said = place.longhaul(command).expect(5);
        said.complains_of(&["longhaul try", "longhaul.sqlite"]);
    }
    assert!(!place.database().exists(), "a reader makes no database");
}

#[test]
fn what_is_asked_wrongly_is_refused_with_a_hint() {
    let place = Place::new();
    let target = place.folder("a");
    place
        .longhaul("run --workload photos")
        .target("a", &target)
        .expect(2)
        .complains_of(&["photos", "photo-batch"]);
    place.longhaul("run").expect(2).complains_of(&["--target NAME=PATH"]);
    place.longhaul("run --target a").expect(2).complains_of(&["NAME=PATH"]);
    place.longhaul("run --rounds 0").expect(2);
    place.longhaul("fly").expect(2).complains_of(&["fly"]);
    let twice = place.longhaul("run").target("a", &target).target("a", &target);
    twice.expect(2).complains_of(&["`a` is given twice"]);
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn the_printed_configuration_is_accepted() {
    let place = Place::new();
    let sample = place.longhaul("config --print").expect(0).out;
    fs::write(place.path("sample.toml"), &sample).unwrap();
    let said = place.longhaul("config --config").word(place.path("sample.toml")).expect(0);
    assert!(ALL.iter().all(|workload| said.out.contains(workload)), "{said}");
}

#[test]
fn a_wrong_configuration_is_named_by_file_line_and_key() {
    let place = Place::new();
    place.configure("scale = \"quick\"\n\n[limits]\ncap-secnds = 5\n");
    let file = place.path("home/config/longhaul/config.toml").display().to_string();
    for command in ["config", "run --target a=/tmp", "summary", "try"] {
        let said = place.longhaul(command).expect(2);
        said.complains_of(&[&format!("{file}:4:"), "`cap-secnds`", "did you mean `cap-seconds`?"]);
    }
    let missing = place.path("missing.toml");
    place.longhaul("config --config").word(&missing).expect(2).complains_of(&["missing.toml", "--config"]);
}

/// A place with one tiny round on one target.
fn measured() -> (Place, PathBuf) {
    let place = Place::with_tiny_trees();
    let target = place.folder("nas");
    assert_all_ok(&place.run(&["folder-index"], &[("nas", &target)]).expect(0).runs());
    (place, target)
}

#[test]
fn cleaning_lists_and_removes_nothing_without_consent() {
    let (place, target) = measured();
    let before = tree::identities(&target);
    let said = place.longhaul("clean nas").expect(2);
    said.complains_of(&["--yes"]);
    assert!(said.out.contains("would remove folder-index: 10 files"), "{said}");
    assert_eq!(tree::identities(&target), before);
}

#[test]
fn cleaning_with_consent_leaves_an_empty_target() {
    let (place, target) = measured();
    place.longhaul("clean nas --yes").expect(0);
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    let again = place.longhaul("clean nas --yes").expect(0);
    assert!(again.out.contains("nothing of longhaul"), "{again}");
    place.longhaul("clean other --yes").expect(2).complains_of(&["`other`", "nas"]);
}

#[test]
fn a_foreign_file_in_the_arena_survives_cleaning_and_is_named() {
    let (place, target) = measured();
    let inside = tree::some_file(&arena(&target).join("folder-index")).with_file_name("diary.txt");
    let beside = arena(&target).join("letter.txt");
    [&inside, &beside].iter().for_each(|path| fs::write(path, "mine").unwrap());
    let said = place.longhaul("clean nas --yes").expect(0);
    assert!([&inside, &beside].iter().all(|path| said.out.contains(&path.display().to_string())), "{said}");
    let left: Vec<PathBuf> = tree::files(&target)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    assert_eq!(left.len(), 2);
    assert_eq!(fs::read_to_string(inside).unwrap(), "mine");
}

#[test]
fn mounts_are_listed_with_the_file_system_of_this_disk() {
    let listed = Place::new().longhaul("targets --json").expect(0).value();
    let points: Vec<&str> =
        listed.as_array().unwrap().iter().map(|mount| mount["mount_point"].as_str().unwrap()).collect();
    assert!(!points.is_empty());
    let keys = ["protocol", "source", "negotiated", "read_only"];
    assert!(listed.as_array().unwrap().iter().all(|mount| keys.iter().all(|key| mount.get(key).is_some())));
}

#[test]
fn mounts_are_listed_although_one_hangs() {
    if let Some(why) = mounts::Fuse::impossible() {
        return machine::skip("mounts_are_listed_although_one_hangs", why);
    }
    let place = Place::new();
    let (source, at) = (place.folder("source"), place.folder("at"));
    let fuse = mounts::Fuse::over(&source, &at);
    fuse.freeze();
    let listed = place.longhaul("targets --json").expect(0).value();
    let here = listed.as_array().unwrap().iter().find(|mount| mount["mount_point"] == at.to_str().unwrap());
    let protocol = here.expect("the mount that hangs")["protocol"].as_str().unwrap();
    assert!(protocol.starts_with("FUSE"), "{protocol}");
    assert!(here.unwrap()["free_bytes"].is_null(), "asking for it would hang");
}

#[test]
fn a_corpus_is_built_once_and_its_slices_take_turns() {
    let place = Place::with_tiny_trees();
    let target = place.folder("nas");
    let rounds = |count: &str| {
        let call = place.run(&["folder-index"], &[("nas", &target)]);
        assert_all_ok(&call.word("--rounds").word(count).expect(0).runs());
    };
    let slices = || fs::read_dir(arena(&target).join("folder-index")).unwrap().count();
    rounds("1");
    assert_eq!(slices(), 1);
    rounds("3");
    assert_eq!(slices(), 4);
    let built = tree::identities(&arena(&target).join("folder-index"));
    rounds("5");
    assert_eq!(tree::identities(&arena(&target).join("folder-index")), built);
}

#[test]
fn after_a_backup_the_destination_equals_the_source() {
    let place = Place::new();
    let target = place.folder("nas");
    let call = place.run(&["incremental-backup"], &[("nas", &target)]).word("--rounds").word("3");
    assert_all_ok(&call.expect(0).runs());
    let source = only_folder(&place.data().join("local/nas/incremental-backup"));
    let destination = only_folder(&arena(&target).join("incremental-backup"));
    let (wanted, found) = (tree::contents(&source), tree::contents(&destination));
    assert!(wanted.len() > 500);
    assert!(wanted.keys().eq(found.keys()), "the names differ");
    let differing: Vec<_> = wanted.iter().filter(|(path, content)| found[*path] != **content).collect();
    assert!(differing.is_empty(), "{:?}", differing.iter().map(|(path, _)| path).collect::<Vec<_>>());
}

fn only_folder(path: &Path) -> PathBuf {
    let mut entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let first = entries.next().expect("one folder");
    assert!(entries.next().is_none(), "more than one folder in {}", path.display());
    first
}

#[test]
fn a_second_database_is_a_second_machine_to_the_target() {
    let (place, target) = measured();
    let first = arena(&target);
    let other = place.path("other.sqlite");
    let said = place.run(&["folder-index"], &[("nas", &target)]).word("--database").word(&other).expect(0);
    assert_all_ok(&said.runs());
    place.longhaul("clean nas --yes --database").word(&other).expect(0);
    assert_eq!(find_arena(&target), Some(first), "only the own arena was removed");
}

#[test]
fn a_limit_of_operations_is_kept_and_runs_under_it_stand_apart() {
    let (place, most) = (Place::new(), 400.0);
    let trees = "[folder-index]\nfiles = 400\n";
    place.configure(trees);
    let target = place.folder("share");
    let run = || place.run(&["folder-index"], &[("share", &target)]).expect(0).run_on("share");
    let free = run();
    place.configure(&format!("{trees}[limits]\noperations-per-second = {most}\n"));
    let held = run();
    let phases = held["phases"].as_array().unwrap();
    let busy = phases.iter().filter(|phase| operations(phase) > 100.0);
    let rates: Vec<f64> = busy.map(|phase| operations(phase) / phase["seconds"].as_f64().unwrap()).collect();
    // One call may begin at once, and a phase is as long as the last call takes.
    assert!(!rates.is_empty() && rates.iter().all(|rate| *rate < most * 1.05), "{rates:?}");
    assert!(rates.iter().any(|rate| *rate > most / 4.0), "and it is the limit that holds it: {rates:?}");
    let paced = |run: &Value| run["conditions"]["negotiated"]["longhaul-operations-per-second"].clone();
    assert_eq!((paced(&free), paced(&held)), (Value::Null, "400".into()));
    assert_ne!(free["epoch"], held["epoch"], "what was held back is never pooled with what was not");
}

fn operations(phase: &Value) -> f64 {
    let all = phase["ops"].as_array().unwrap().iter();
    all.filter(|op| op["op"] != "decode").map(|op| op["count"].as_f64().unwrap()).sum()
}
