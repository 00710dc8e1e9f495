//! Tests of freshness, integrity and fidelity on shares that fill up, turn read-only or disappear, and of two longhauls on one
//! folder: a clear outcome, no false result, and nothing left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::fuse::hang::Fuse;
use crate::support::daemon::{BUSY, Daemon, target};
use crate::support::mounts::{Memory, only_in_own_mounts};
use crate::support::{CommandOutput, Place, Running, assert_all_ok, machine, sandbox, sessions};

/// Size of the small file systems in KiB.
const SIZE: u32 = 64 << 10;

/// Returns a folder with a small file system, which has a sandbox with the files of one task.
fn small_share(place: &Place) -> (PathBuf, Memory) {
    let share = place.folder("share");
    let memory = Memory::mount(&share, SIZE);
    assert_all_ok(&place.run(&["folder-index"], &[("nas", &share)]).expect(0).runs());
    (share, memory)
}

/// A process that ended.
struct Ended {
    code: i32,
    output: CommandOutput,
}

/// Waits for a process to end, with any exit code.
fn ended(mut running: Running) -> Ended {
    let code = running.wait_for_exit().code().unwrap();
    let output = running.output_so_far();
    assert!(!output.err.contains("panicked"), "{output}");
    Ended { code, output }
}

/// Returns the result of each property.
fn results(output: &CommandOutput) -> BTreeMap<String, String> {
    let rows = output.value().as_array().unwrap().clone();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "property"), text(row, "result"))).collect()
}

/// Checks that a share in trouble is accused of nothing that it keeps otherwise.
fn assert_not_accused(healthy: &CommandOutput, troubled: &CommandOutput) {
    let healthy = results(healthy);
    for (property, result) in results(troubled) {
        let is_fine = result == healthy[&property] || result == "not-tested";
        assert!(is_fine, "{property}: {result}, before {}", healthy[&property]);
    }
}

fn fidelity(place: &Place, share: &Path, code: i32) -> CommandOutput {
    place.longhaul("fidelity --json").target("nas", share).expect(code)
}

/// Returns the outcome of the newest run; `None` if there is none yet.
fn last_outcome(place: &Place) -> Option<String> {
    let runs = place.longhaul("runs --json").expect(0).runs();
    let last = runs.into_iter().max_by_key(|run| run["number"].as_i64())?;
    last["outcome"].as_str().map(str::to_owned)
}

/// Returns the number of changes whose freshness was measured.
fn measured_changes(place: &Place) -> u64 {
    let cells = place.longhaul("freshness --json").start().value_of_any_exit();
    cells.as_array().unwrap().iter().map(|cell| cell["n"].as_u64().unwrap()).sum()
}

fn try_mount(arguments: &[&str], at: &Path) -> bool {
    let status = Command::new("mount").args(arguments).arg(at).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Checks that nothing was written below the mount point of a share that disappeared.
fn assert_nothing_below(mount_point: &Path) {
    let files = Command::new("find").arg(mount_point).args(["-mindepth", "1"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&files.stdout), "", "files below the mount point");
}

/// Waits until the file system can be made read-only, which no file that is open for writing allows.
fn make_read_only(share: &Path) {
    machine::wait_until("a moment without a file open for writing", || {
        try_mount(&["-o", "remount,ro", "none"], share)
    });
}

#[test]
fn full_share_refuses_nothing_that_it_keeps() {
    only_in_own_mounts!(full_share_refuses_nothing_that_it_keeps);
    let place = Place::with_tiny_trees();
    let (share, memory) = small_share(&place);
    let healthy = fidelity(&place, &share, 0);
    let ballast = memory.fill();
    let full = ended(place.longhaul("fidelity --json").target("nas", &share).start());
    if full.code == 0 {
        assert_not_accused(&healthy, &full.output);
    }
    fs::remove_file(ballast).unwrap();
    assert_eq!(results(&fidelity(&place, &share, 0)), results(&healthy));
    assert!(!sandbox(&share).join("fidelity").exists(), "nothing is left");
    let events = place.longhaul("events --json").expect(0);
    assert!(!events.out.contains("fidelity"), "no change is told: {events}");
}

#[test]
fn share_that_turns_read_only_is_accused_of_nothing() {
    only_in_own_mounts!(share_that_turns_read_only_is_accused_of_nothing);
    let place = Place::with_tiny_trees();
    let (share, memory) = small_share(&place);
    let healthy = fidelity(&place, &share, 0);
    let running = place.longhaul("fidelity --json").target("nas", &share).start();
    machine::wait_until("the check to begin", || sandbox(&share).join("fidelity").exists());
    make_read_only(&share);
    let ended = ended(running);
    match ended.code {
        0 => assert_not_accused(&healthy, &ended.output),
        _ => drop(ended.output.assert_stderr(&["nas", "read-only"])),
    }
    memory.make_writable();
    assert_eq!(results(&fidelity(&place, &share, 0)), results(&healthy));
    assert!(!sandbox(&share).join("fidelity").exists(), "the next check removes what was left");
}

#[test]
fn share_that_disappears_is_accused_of_nothing() {
    only_in_own_mounts!(share_that_disappears_is_accused_of_nothing);
    let place = Place::with_tiny_trees();
    let (share, memory) = small_share(&place);
    let healthy = fidelity(&place, &share, 0);
    let running = place.longhaul("fidelity --json").target("nas", &share).start();
    machine::wait_until("the check to begin", || sandbox(&share).join("fidelity").exists());
    drop(memory);
    let ended = ended(running);
    if ended.code == 0 {
        assert_not_accused(&healthy, &ended.output);
    }
    assert_nothing_below(&share);
}

/// Starts the service with two targets in one folder, and waits until it measures freshness there for the second time.
fn start_service<'a>(place: &'a Place, share: &Path) -> Daemon<'a> {
    let as_share = |name: &str| target(name, share) + "role = \"share\"\n";
    place.configure(&(BUSY.replace("freshness = false\n", "") + &as_share("nas") + &as_share("again")));
    let daemon = Daemon::start(place);
    // The service knows a share that is missing by what was there in an earlier round.
    daemon.round();
    machine::wait_until("a run", || last_outcome(place).as_deref() == Some("ok"));
    daemon.send_command("round", "{}");
    machine::wait_until("a session of the next round", || sessions(share) > 0);
    daemon
}

/// Checks that a service that had trouble with its shares says nothing bad about them.
fn assert_no_accusation(place: &Place) {
    for cell in place.longhaul("freshness --json").start().value_of_any_exit().as_array().unwrap() {
        assert_eq!(cell["not_seen"], 0, "{cell}");
    }
    let fidelity = place.longhaul("fidelity --json").expect(0);
    let lost = results(&fidelity).into_iter().filter(|(_, result)| result == "lost" || result == "hung");
    assert_eq!(lost.count(), 0, "{fidelity}");
}

#[test]
fn service_accuses_no_share_that_turned_read_only() {
    only_in_own_mounts!(service_accuses_no_share_that_turned_read_only);
    let place = Place::with_tiny_trees();
    let (share, memory) = small_share(&place);
    let daemon = start_service(&place, &share);
    make_read_only(&share);
    machine::wait_until("a run that fails", || last_outcome(&place).is_some_and(|outcome| outcome != "ok"));
    let status = daemon.wait_for("the share to be a problem", |status| {
        status["targets"].as_array().unwrap().iter().any(|target| target["state"]["name"] == "unavailable")
    });
    let shown = place.longhaul("status").expect(3).out;
    assert!(shown.contains("failed in its last round") && shown.contains("Read-only"), "{shown}");
    assert_eq!(status["problems"], serde_json::json!([]), "the service itself is well");
    memory.make_writable();
    let measured = measured_changes(&place);
    machine::wait_until("a round on the healthy share", || measured_changes(&place) > measured);
    daemon.stop();
    assert_no_accusation(&place);
    assert_eq!(sessions(&share), 0, "nothing is left");
}

#[test]
fn service_accuses_no_share_that_disappeared() {
    only_in_own_mounts!(service_accuses_no_share_that_disappeared);
    let place = Place::with_tiny_trees();
    let share = place.folder("share");
    let fuse = Fuse::mount(&share);
    let daemon = start_service(&place, &share);
    fuse.end();
    drop(fuse);
    daemon.wait_for("the share to be missing, before the next round", |status| {
        let is_missing =
            |target: &serde_json::Value| target["state"]["is_now"] == true && target["protocol"].is_null();
        status["targets"].as_array().unwrap().iter().any(is_missing)
    });
    machine::wait_until("a run without the share", || last_outcome(&place).as_deref() == Some("unavailable"));
    daemon.stop();
    assert_no_accusation(&place);
    assert_nothing_below(&share);
}

/// The mount table does not tell where the link leads.
#[test]
fn share_behind_a_link_is_measured_in_every_round() {
    only_in_own_mounts!(share_behind_a_link_is_measured_in_every_round);
    let place = Place::with_tiny_trees();
    let fuse = Fuse::mount(&place.folder("real/share"));
    let link = place.path("link");
    std::os::unix::fs::symlink(place.path("real"), &link).unwrap();
    let daemon = start_service(&place, &link.join("share"));
    let rounds = || {
        let runs = place.longhaul("runs --json").expect(0).runs();
        runs.iter().map(|run| run["round"].as_i64()).max().flatten().unwrap_or(0)
    };
    daemon.round();
    machine::wait_until("three rounds", || rounds() >= 3);
    assert_eq!(last_outcome(&place).as_deref(), Some("ok"));
    daemon.stop();
    drop(fuse);
}

#[test]
fn changes_on_a_share_that_turns_read_only_are_void() {
    only_in_own_mounts!(changes_on_a_share_that_turns_read_only_are_void);
    let place = Place::with_tiny_trees();
    let (share, memory) = small_share(&place);
    let running = measure(&place, &share, "--limit 60");
    machine::wait_until("a session", || sessions(&share) > 0);
    make_read_only(&share);
    let output = ended(running);
    assert_nothing_missed(&output);
    memory.make_writable();
    measure(&place, &share, "--limit 2").finish(0);
    assert_eq!(sessions(&share), 0, "the next session removes what was left");
}

#[test]
fn changes_on_a_share_that_disappears_are_not_missed() {
    only_in_own_mounts!(changes_on_a_share_that_disappears_are_not_missed);
    let place = Place::with_tiny_trees();
    let (share, memory) = small_share(&place);
    let running = measure(&place, &share, "--limit 20");
    machine::wait_until("a session", || sessions(&share) > 0);
    std::thread::sleep(Duration::from_millis(500));
    drop(memory);
    assert_nothing_missed(&ended(running));
    assert_nothing_below(&share);
}

#[test]
fn changes_on_a_full_share_are_void_or_an_error() {
    only_in_own_mounts!(changes_on_a_full_share_are_void_or_an_error);
    let place = Place::with_tiny_trees();
    let (share, memory) = small_share(&place);
    let ballast = memory.fill();
    let output = ended(measure(&place, &share, "--limit 3"));
    assert_nothing_missed(&output);
    fs::remove_file(ballast).unwrap();
    measure(&place, &share, "--limit 2").finish(0);
    assert_eq!(sessions(&share), 0);
}

/// Starts a measurement through one target, which another one with the same folder watches.
fn measure(place: &Place, share: &Path, options: &str) -> Running {
    let call = place.longhaul(&format!("freshness measure --json --through nas {options}"));
    call.target("nas", share).target("again", share).start()
}

/// Checks that a measurement ended in an error, or without a change that was not seen.
fn assert_nothing_missed(ended: &Ended) {
    let output = &ended.output;
    if ended.code != 0 {
        assert!(output.err.contains("nas") || output.err.contains("no two of"), "{output}");
        return;
    }
    for cell in output.value().as_array().unwrap() {
        assert_eq!(cell["not_seen"], 0, "{output}");
    }
}

#[test]
fn data_on_a_share_that_disappears_is_not_damaged() {
    only_in_own_mounts!(data_on_a_share_that_disappears_is_not_damaged);
    let place = Place::with_tiny_trees();
    let (share, memory) = small_share(&place);
    memory.make_read_only();
    let output = ended(place.longhaul("integrity --check --json").target("nas", &share).start());
    assert_nothing_damaged(&output);
    drop(memory);
    let output = ended(place.longhaul("integrity --check --json").target("nas", &share).start());
    assert_nothing_damaged(&output);
}

fn assert_nothing_damaged(ended: &Ended) {
    let output = &ended.output;
    for line in output.value().as_array().unwrap() {
        assert_eq!(
            (&line["mismatches"], &line["wrong_ranges"]),
            (&0.into(), &Value::Array(vec![])),
            "{output}"
        );
    }
}

#[test]
fn two_longhauls_on_one_folder_do_not_disturb_each_other() {
    let places = [Place::new(), Place::new()];
    let share = places[0].folder("share");
    let alone = fidelity(&places[0], &share, 0);
    let running =
        places.each_ref().map(|place| place.longhaul("fidelity --json").target("nas", &share).start());
    for running in running {
        assert_not_accused(&alone, &running.finish(0));
    }
    let running = places.each_ref().map(|place| measure(place, &share, "--limit 2"));
    for output in running.map(|running| running.finish(0)) {
        for cell in output.value().as_array().unwrap() {
            assert_eq!((&cell["n"], &cell["not_seen"]), (&3.into(), &0.into()), "{output}");
        }
    }
    assert_eq!(fs::read_dir(&share).unwrap().count(), 0, "both removed their sandbox");
}
