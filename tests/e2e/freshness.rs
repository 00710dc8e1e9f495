//! Tests of freshness on local folders, which show every change at once: two targets with one folder.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::support::daemon::{BUSY, Daemon, target};
use crate::support::{Place, find_sandbox, machine, sessions};
use rustix::process::Signal;
use serde_json::Value;

const KINDS: [&str; 6] =
    ["changed-content", "deletion", "grown-file", "looked-up-name", "new-file", "rename"];

/// Returns the measured cells, and checks the keys that programs rely on.
fn cells(value: &Value) -> Vec<Value> {
    let cells = value.as_array().unwrap().clone();
    for cell in &cells {
        for key in [
            "target",
            "kind",
            "changed_through",
            "n",
            "not_seen",
            "limit_seconds",
            "median_seconds",
            "p90_seconds",
        ] {
            assert!(cell.get(key).is_some(), "`{key}` is missing: {cell}");
        }
    }
    cells
}

#[test]
fn changes_are_seen_through_the_other_target() {
    let place = Place::new();
    let share = place.folder("share");
    let call = place.longhaul("freshness measure --json --changes 2 --limit 3");
    let output = call.target("a", &share).target("b", &share).expect(0);
    let measured = cells(&output.value());
    for (target, writer) in [("a", "b"), ("b", "a")] {
        let of_target: Vec<&Value> = measured.iter().filter(|cell| cell["target"] == target).collect();
        let mut kinds: Vec<&str> = of_target.iter().map(|cell| cell["kind"].as_str().unwrap()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, KINDS, "{output}");
        for cell in of_target {
            assert_eq!(cell["changed_through"], writer, "{cell}");
            assert_eq!((&cell["n"], &cell["not_seen"]), (&2.into(), &0.into()), "{cell}");
            assert!(cell["p90_seconds"].as_f64().unwrap() < 2.0, "{cell}");
        }
    }
    assert_eq!(std::fs::read_dir(&share).unwrap().count(), 0, "no sandbox is left");
    assert_eq!(place.longhaul("freshness --json").expect(0).value(), output.value());
    let shown = place.longhaul("freshness").expect(0).out;
    assert!(shown.contains("Every change") && shown.contains("new file in a listing"), "{shown}");
}

#[test]
fn targets_with_different_folders_are_not_compared() {
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("b"));
    let call = place.longhaul("freshness measure --limit 1");
    call.target("a", &a).target("b", &b).expect(2).assert_stderr(&["no two of these targets", "one folder"]);
    assert!(find_sandbox(&a).is_none() && find_sandbox(&b).is_none());
    let shown = place.longhaul("freshness").expect(5).out;
    assert!(shown.contains("Not measured yet"), "{shown}");
}

#[test]
fn ctrl_c_ends_a_watch_and_leaves_nothing() {
    let place = Place::new();
    let share = place.folder("share");
    let call = place.longhaul("freshness measure --limit 60");
    let running = call.target("a", &share).target("b", &share).start();
    machine::wait_until("a session", || sessions(&share) > 0);
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::INT);
    let output = running.finish(0);
    assert!(find_sandbox(&share).is_none());
    assert!(!output.out.contains("showed"), "no statement about an interrupted watch: {output}");
}

#[test]
fn killed_worker_voids_the_session_and_leaves_nothing() {
    let place = Place::new();
    let share = place.folder("share");
    let call = place.longhaul("freshness measure --json --through a --limit 60");
    let running = call.target("a", &share).target("b", &share).start();
    machine::wait_until("a session with two workers", || {
        sessions(&share) > 0 && machine::workers_of(place.root()).len() == 2
    });
    std::thread::sleep(Duration::from_millis(500));
    for worker in machine::workers_of(place.root()) {
        machine::signal(worker, Signal::KILL);
    }
    let output = running.finish(0);
    for cell in cells(&output.value()) {
        assert_eq!(
            (&cell["n"], &cell["not_seen"], &cell["void"]),
            (&0.into(), &0.into(), &3.into()),
            "{output}"
        );
    }
    assert_eq!(sessions(&share), 0);
}

#[test]
fn service_measures_freshness_before_a_round() {
    let place = Place::new();
    let share = place.folder("share");
    let share_target = |name: &str| target(name, &share) + "role = \"share\"\n";
    let config = BUSY.replace("freshness = false\n", "") + &share_target("a") + &share_target("b");
    place.configure(&config);
    let daemon = Daemon::start(&place);
    (0..2).for_each(|_| daemon.round());
    machine::wait_until("two rounds with freshness", || {
        let measured = place.longhaul("freshness --json").start().value_of_any_exit();
        let writers =
            |name: &str| measured.as_array().unwrap().iter().any(|cell| cell["changed_through"] == name);
        writers("a") && writers("b")
    });
    daemon.stop();
    for cell in cells(&place.longhaul("freshness --json").expect(0).value()) {
        assert_eq!(cell["not_seen"], 0, "{cell}");
    }
    assert_eq!(sessions(&share), 0);
}

#[test]
fn share_without_permission_to_write_is_named() {
    let place = Place::for_unprivileged_user();
    let share = place.folder("share");
    std::fs::set_permissions(&share, std::fs::Permissions::from_mode(0o555)).unwrap();
    let call = place.longhaul("freshness measure --through a --limit 1").unprivileged();
    call.target("a", &share).target("b", &share).expect(1).assert_stderr(&["a: ", "may not write"]);
}
