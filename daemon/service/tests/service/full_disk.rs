//! Simulates a week in which the disk of the database is full: what was measured is stored later, every slot is
//! accounted for, and memory does not grow.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use longhaul_service::handle::ServiceHandle;
use longhaul_store::{Reader, RoundStatus, StoredRound};
use parking_lot::Mutex;
use rustix::process::geteuid;

use crate::own_process::in_own_process;
use crate::world::{DAY, HOUR, SimulatedEvent, Simulation, folder, rounds};

/// Resident memory of this process in kB, once a day of the full week.
static MEMORY: Mutex<Vec<u64>> = Mutex::new(vec![]);

#[test]
fn week_on_a_full_disk_loses_no_run() {
    // In a mount namespace of its own it may mount, with root or an unprivileged user namespace, and leaves no mount behind.
    let user: &[&str] = if geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    let unshare = [&["unshare"][..], user, &["--mount", "--"]].concat();
    if !in_own_process(week_on_a_full_disk_loses_no_run, &unshare) {
        return;
    }
    let folder = folder();
    mount_memory(folder.path());
    let mut simulation = Simulation::new(folder.path())
        .lasting(10 * DAY)
        .then(DAY, SimulatedEvent::Call(fill))
        .then(8 * DAY, SimulatedEvent::Call(empty));
    for day in 2..8 {
        simulation = simulation.then(day * DAY - HOUR, SimulatedEvent::Call(record_memory));
    }
    let database = simulation.database.clone();
    simulation.run();
    let all = rounds(&database);
    check_rounds(&all);
    let runs = Reader::open(&database).unwrap().runs(&Default::default()).unwrap();
    let waited = all.iter().find(|round| round.end.as_ref().unwrap().status == RoundStatus::Void).unwrap();
    assert!(runs.iter().any(|run| run.run.round == waited.number), "what was measured is stored");
    let memory = MEMORY.lock();
    let growth = memory.last().unwrap() - memory.first().unwrap();
    assert!(memory.len() == 6 && growth < 2_000, "kB: {memory:?}");
}

/// Checks that the only void round is the one that waited for the disk, that each slot is a round or missed, and that
/// rounds continue afterwards.
fn check_rounds(all: &[StoredRound]) {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for round in all {
        let end = round.end.as_ref().expect("no round is open");
        let code = end.reason.as_deref().unwrap_or_default().split(':').next().unwrap_or_default();
        *counts.entry((end.status.name(), code)).or_default() += 1;
    }
    let of = |status, code| counts.get(&(status, code)).copied().unwrap_or(0);
    let (void, missed, ok) = (of("void", "stored-late"), of("skipped", "late"), of("ok", ""));
    assert!(void == 1 && (160..=168).contains(&missed) && ok >= 70, "{counts:?}");
    assert!((void + missed + ok).abs_diff(10 * 24) <= 2, "each slot of ten days: {counts:?}");
}

fn fill(_: &ServiceHandle, database: &Path) {
    let mut ballast = fs::File::create(database.with_file_name("ballast")).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while ballast.write(&vec![0; size]).is_ok_and(|written| written > 0) {}
    }
}

fn empty(_: &ServiceHandle, database: &Path) {
    fs::remove_file(database.with_file_name("ballast")).unwrap();
}

fn record_memory(_: &ServiceHandle, _: &Path) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    MEMORY.lock().push(line.trim().split(' ').next().unwrap().parse().unwrap());
}

fn mount_memory(at: &Path) {
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(at).status().unwrap();
    assert!(mounted.success());
}
