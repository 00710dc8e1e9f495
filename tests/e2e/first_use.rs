//! Tests of the first steps of a user: trial, runs, lists, summary and cleaning.

use std::fs;
use std::path::{Path, PathBuf};

use longhaul_store::{Reader, RoundStatus};
use rustix::process::Signal;

use crate::support::daemon::target;
use crate::support::{Place, TINY_TREES, assert_all_ok, find_sandbox, machine, sandbox, schema, tree};
use serde_json::Value;

const ALL: [&str; 5] =
    ["folder-index", "photo-batch", "incremental-backup", "time-machine", "time-machine-throttled"];

#[test]
fn trial_leaves_only_the_database_which_purge_removes() {
    let place = Place::with_tiny_trees();
    let target = place.folder("share");
    let running = place.longhaul("try").target("share", &target).start();
    let pid = running.pid();
    let output = running.finish(0);
    assert!(
        output.out.contains("too few to name a winner") && output.out.contains("photo-batch"),
        "{output}"
    );
    assert!(output.out.contains("20 runs on 2 targets, 0 failed"), "{output}");
    assert!(!output.err.contains("other users"), "its own folder is private from the beginning: {output}");
    assert_eq!(tree::files(&place.data()), [PathBuf::from("longhaul.sqlite")]);
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 1, "no empty folder is left");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    assert_eq!(machine::recorders_of(pid), [""; 0]);
    schema::check_summary(&place.longhaul("runs --summary --json").expect(0).value());
    let shown = place.longhaul("service uninstall --purge --dry-run").expect(0);
    assert!(!shown.out.contains("test data of `local`"), "the trial removed its test data: {shown}");
    place.longhaul("service uninstall --purge --yes").expect(0);
    assert!(!place.data().exists());
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn trial_whose_terminal_is_closed_leaves_nothing() {
    let place = Place::with_tiny_trees();
    let target = place.folder("share");
    let mut trial = place.longhaul("try").target("share", &target).start();
    trial.wait_for("a run", |output| ALL.iter().any(|task| output.out.contains(task)));
    // The shell and the kernel may each send one.
    for signal in [Signal::HUP; 2] {
        trial.signal(signal);
    }
    trial.finish(0);
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn trial_refuses_a_wrong_path_before_it_measures() {
    let place = Place::with_tiny_trees();
    let file = place.path("file");
    fs::write(&file, "").unwrap();
    place.longhaul("try").target("a", &file).expect(2).assert_stderr(&["is not a folder"]);
    let (missing, folder) = (place.path("missing"), place.folder("folder"));
    place
        .longhaul("try")
        .target("b", &folder)
        .target("a", &missing)
        .expect(2)
        .assert_stderr(&["mount the share, or correct the path"]);
    place.longhaul("run --workload photos").target("b", &folder).expect(2);
    place.longhaul("run").target("b", &folder).target("b", &folder).expect(2);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "the folder stays empty");
    assert!(!place.database().exists());
}

#[test]
fn trial_that_cannot_use_a_target_fails_as_a_run_does() {
    let place = Place::with_tiny_trees();
    let target = place.folder("share");
    place.longhaul("try --keep").target("share", &target).expect(0);
    let sandbox = find_sandbox(&target).unwrap();
    fs::remove_dir_all(&sandbox).unwrap();
    fs::write(&sandbox, "mine").unwrap();
    let output = place.longhaul("try").target("share", &target).expect(3);
    output.assert_stderr(&["left behind", &sandbox.display().to_string()]);
    assert_eq!(fs::read(&sandbox).unwrap(), b"mine");
}

#[test]
fn overview_reports_a_wrong_configuration_and_a_damaged_database() {
    let place = Place::with_tiny_trees();
    place.longhaul("").expect(0);
    let damaged = place.path("damaged.sqlite");
    fs::write(&damaged, "garbage ".repeat(1000)).unwrap();
    place.longhaul("--database").arg(&damaged).expect(1).assert_stderr(&["damaged"]);
    place.configure("scael = \"quick\"\n");
    let output = place.longhaul("").expect(2);
    assert!(output.out.contains("Problem:") && output.out.contains("scael"), "{output}");
    assert!(output.out.contains("Service:"), "the rest is shown: {output}");
}

#[test]
fn mistyped_target_is_not_taken_for_one_without_results() {
    let place = Place::with_tiny_trees();
    let a = place.folder("a");
    assert_all_ok(&place.run(&["folder-index"], &[("share-a", &a)]).expect(0).runs());
    for command in ["stalls", "events", "runs", "why", "latency"] {
        let output = place.longhaul(&format!("{command} --target typo")).expect(2);
        output.assert_stderr(&["there is no target `typo`", "known targets: share-a"]);
    }
    place.longhaul("events --target share-a").expect(0);
}

#[test]
fn trial_with_keep_keeps_its_data() {
    let place = Place::new();
    place.longhaul("try --keep").expect(0);
    assert!(tree::files(&sandbox(&place.data().join("try"))).len() > 1000);
}

#[test]
fn all_tasks_run_on_all_targets_in_complete_rounds() {
    let place = Place::with_tiny_trees();
    let (a, b) = (place.folder("a"), place.folder("b"));
    let output = place.run(&[], &[("a", &a), ("b", &b)]).arg("--rounds").arg("2").expect(0);
    schema::check_output(&output.lines());
    assert_all_ok(&output.runs());
    let mut cells: Vec<String> = output.runs().iter().map(cell).collect();
    cells.sort();
    assert_eq!(cells, every_cell());
    check_lists(&place, &output.runs());
    check_pairing(&place.longhaul("runs --summary --json").expect(0).value());
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

/// Checks that `runs` lists what `run` printed.
fn check_lists(place: &Place, printed: &[Value]) {
    assert_eq!(place.stored_runs(), printed);
    let listed = place.longhaul("runs").expect(0);
    assert_eq!(listed.out.lines().count(), 1 + printed.len(), "a line of titles, then a line per run");
    let shown = place.longhaul("runs 1").expect(0).out;
    for part in ["operation", "p99", "Conditions", "cold (", "system"] {
        assert!(shown.contains(part), "`{part}` is not shown:\n{shown}");
    }
    assert_eq!(place.longhaul("runs 1 --json").expect(0).value(), printed[0]);
    place.longhaul("runs 999").expect(2).assert_stderr(&["999", "longhaul runs"]);
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
fn lists_without_a_database_say_what_to_do() {
    let place = Place::new();
    for command in
        ["runs --summary", "runs --summary --json", "runs", "runs --json", "runs 1", "targets clean nas"]
    {
        let output = place.longhaul(command).expect(5);
        output.assert_stderr(&["longhaul try", "longhaul.sqlite"]);
    }
    assert!(!place.database().exists(), "reading creates no database");
}

#[test]
fn the_printed_configuration_is_accepted() {
    let place = Place::new();
    let sample = place.longhaul("config --print").expect(0).out;
    fs::write(place.path("sample.toml"), &sample).unwrap();
    let none = place.longhaul("config").expect(0).out;
    assert!(none.contains("config.toml  (none yet; these are the defaults)"), "{none}");
    assert!(none.contains("`longhaul init`"), "{none}");
    let output = place.longhaul("config --config").arg(place.path("sample.toml")).expect(0);
    assert!(ALL.iter().all(|workload| output.out.contains(workload)), "{output}");
}

#[test]
fn config_reports_that_the_database_is_a_folder() {
    let place = Place::new();
    let folder = place.folder("data");
    let output = place.longhaul("config --database").arg(&folder).expect(3);
    assert!(output.out.contains(&format!("{} is a folder", folder.display())), "{output}");
    assert!(output.out.contains("Name a file in it"), "{output}");
}

#[test]
fn config_error_names_file_line_and_key() {
    let place = Place::new();
    place.configure("scale = \"quick\"\n\n[limits]\ncap-secnds = 5\n");
    let file = place.path("home/config/longhaul/config.toml").display().to_string();
    for command in ["config", "run --target a=/tmp", "runs --summary", "try"] {
        let output = place.longhaul(command).expect(2);
        output.assert_stderr(&[&format!("{file}:4:"), "`cap-secnds`", "did you mean `cap-seconds`?"]);
    }
    let missing = place.path("missing.toml");
    place.longhaul("config --config").arg(&missing).expect(2).assert_stderr(&["missing.toml", "--config"]);
}

/// Creates a test environment with one small round on one target.
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
    let output = place.longhaul("targets clean nas").expect(2);
    output.assert_stderr(&["--yes"]);
    assert!(output.out.contains("would remove folder-index: 10 files"), "{output}");
    assert_eq!(tree::identities(&target), before);
}

#[test]
fn cleaning_with_consent_leaves_an_empty_target() {
    let (place, target) = measured();
    place.longhaul("targets clean nas --yes").expect(0);
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    let again = place.longhaul("targets clean nas --yes").expect(0);
    assert!(again.out.contains("longhaul has no data for"), "{again}");
    place.longhaul("targets clean other --yes").expect(2).assert_stderr(&["`other`", "nas"]);
}

#[test]
fn cleaning_names_other_sandboxes_and_leaves_them() {
    let (place, target) = measured();
    let renamed = place.run(&["folder-index"], &[("new-name", &target)]).expect(0);
    assert_all_ok(&renamed.runs());
    let foreign = target.join(".longhaul-0123456789abcdef-nas");
    fs::create_dir(&foreign).unwrap();
    let output = place.longhaul("targets clean new-name --yes").expect(0);
    let command = format!("targets clean nas={}", target.display());
    assert!(output.out.contains(&command) && output.out.contains("of another computer"), "{output}");
    place.longhaul(&format!("{command} --yes")).expect(0);
    let left: Vec<_> = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [foreign]);
}

#[test]
fn cleaning_keeps_and_lists_foreign_files() {
    let (place, target) = measured();
    let inside = tree::some_file(&sandbox(&target).join("folder-index")).with_file_name("foreign.txt");
    let outer = sandbox(&target).join("letter.txt");
    [&inside, &outer].iter().for_each(|path| fs::write(path, "mine").unwrap());
    let output = place.longhaul("targets clean nas --yes").expect(0);
    assert!(
        [&inside, &outer].iter().all(|path| output.out.contains(&path.display().to_string())),
        "{output}"
    );
    let left: Vec<PathBuf> = tree::files(&target)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    assert_eq!(left.len(), 2);
    assert_eq!(fs::read_to_string(inside).unwrap(), "mine");
}

#[test]
fn name_of_a_foreign_file_forges_no_line() {
    let (place, target) = measured();
    fs::write(sandbox(&target).join("a\u{1b}[2J\nremoved everything"), "mine").unwrap();
    let output = place.longhaul("targets clean nas --yes").expect(0);
    assert!(!output.out.contains('\u{1b}'), "{output}");
    assert!(output.out.lines().all(|line| line != "removed everything"), "{output}");
    assert!(output.out.contains("a\\u{1b}[2J\\nremoved everything (not created by longhaul)"), "{output}");
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

#[cfg(target_os = "linux")]
#[test]
fn mounts_are_listed_although_one_hangs() {
    crate::support::mounts::only_in_own_mounts!(mounts_are_listed_although_one_hangs);
    let place = Place::new();
    let at = place.folder("at");
    let fuse = crate::fuse::hang::Fuse::mount(&at);
    fuse.freeze();
    let listed = place.longhaul("targets --json").expect(0).value();
    let here = listed.as_array().unwrap().iter().find(|mount| mount["mount_point"] == at.to_str().unwrap());
    let protocol = here.expect("the mount that hangs")["protocol"].as_str().unwrap();
    assert!(protocol.starts_with("FUSE"), "{protocol}");
    assert!(here.unwrap()["free_bytes"].is_null(), "a request for the free space would hang");
}

#[test]
fn corpus_slices_are_built_once_and_rotate() {
    let place = Place::with_tiny_trees();
    let target = place.folder("nas");
    let rounds = |count: &str| {
        let call = place.run(&["folder-index"], &[("nas", &target)]);
        assert_all_ok(&call.arg("--rounds").arg(count).expect(0).runs());
    };
    let slices = || fs::read_dir(sandbox(&target).join("folder-index")).unwrap().count();
    rounds("1");
    assert_eq!(slices(), 1);
    rounds("3");
    assert_eq!(slices(), 4);
    let built = tree::identities(&sandbox(&target).join("folder-index"));
    rounds("5");
    assert_eq!(tree::identities(&sandbox(&target).join("folder-index")), built);
}

#[test]
fn after_a_backup_the_destination_equals_the_source() {
    let place = Place::new();
    let target = place.folder("nas");
    let call = place.run(&["incremental-backup"], &[("nas", &target)]).arg("--rounds").arg("3");
    assert_all_ok(&call.expect(0).runs());
    let source = only_folder(&place.data().join("local/nas/incremental-backup"));
    let destination = only_folder(&sandbox(&target).join("incremental-backup"));
    let (wanted, found) = (tree::contents(&source), tree::contents(&destination));
    assert!(wanted.len() > 500);
    assert!(wanted.keys().eq(found.keys()), "the file names differ");
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
fn second_database_gets_its_own_sandbox() {
    let (place, target) = measured();
    let first = sandbox(&target);
    let other = place.path("other.sqlite");
    let output = place.run(&["folder-index"], &[("nas", &target)]).arg("--database").arg(&other).expect(0);
    assert_all_ok(&output.runs());
    place.longhaul("targets clean nas --yes --database").arg(&other).expect(0);
    assert_eq!(find_sandbox(&target), Some(first), "only its own sandbox was removed");
}

#[test]
fn round_without_any_usable_target_is_void() {
    let place = Place::with_tiny_trees();
    place.configure(&[TINY_TREES, &target("a", &place.path("missing"))].concat());
    place.run(&["folder-index"], &[]).expect(3);
    let round = Reader::open(&place.database()).unwrap().last_round().unwrap().unwrap();
    let end = round.end.unwrap();
    assert_eq!(end.status, RoundStatus::Void);
    assert_eq!(end.reason.as_deref(), Some("no-target: no target could be used"));
}

#[test]
fn configured_target_is_measured_in_no_other_folder() {
    let place = Place::with_tiny_trees();
    let (a, b) = (place.folder("a"), place.folder("b"));
    place.configure(&format!("[targets.share]\npath = \"{}\"\n", a.display()));
    assert_all_ok(&place.run(&["folder-index"], &[("share", &a)]).expect(0).runs());
    let refused = place.run(&["folder-index"], &[("share", &b)]).expect(2);
    refused.assert_stderr(&[&a.display().to_string(), "another name"]);
    for command in ["try", "integrity --check", "preset ioping --scale quick --runs 1"] {
        let other = format!("share={}", b.display());
        let refused = place.longhaul(command).arg("--target").arg(&other).expect(2);
        refused.assert_stderr(&[&a.display().to_string(), "another name"]);
    }
    assert_eq!(fs::read_dir(&b).unwrap().count(), 0);
}

/// The trial measures one target of the configuration, and would name its own folder like the other one.
#[test]
fn trial_keeps_the_data_and_results_of_configured_targets() {
    let place = Place::new();
    let (share, local) = (place.folder("share"), place.folder("local"));
    place.configure(&[TINY_TREES, &target("share", &share), &target("local", &local)].concat());
    let both = [("share", share.as_path()), ("local", local.as_path())];
    assert_all_ok(&place.run(&["folder-index"], &both).expect(0).runs());
    let before = tree::files(&sandbox(&share));
    let output = place.longhaul("try").target("share", &share).expect(0);
    assert!(output.out.contains("The test data on `share` stays"), "{output}");
    let after = tree::files(&sandbox(&share));
    assert!(before.iter().all(|file| after.contains(file)), "{before:?} {after:?}");
    assert!(!place.data().join("try").exists());
    assert!(output.out.contains("local-2"), "{output}");
    let epochs = Reader::open(&place.database()).unwrap().epochs().unwrap();
    assert_eq!(epochs.iter().filter(|epoch| epoch.target.as_str() == "local").count(), 1);
}

#[test]
fn other_folder_of_a_measured_target_is_told() {
    let place = Place::with_tiny_trees();
    let (a, b) = (place.folder("a"), place.folder("b"));
    place.run(&["folder-index"], &[("share", &a)]).expect(0);
    let told = place.run(&["folder-index"], &[("share", &b)]).expect(0);
    told.assert_stderr(&[&a.display().to_string(), "no longer count"]);
}
