//! Processes of longhaul are killed just before their Nth call of a kind, by strace, at every stage of a sandbox's life. Cleaning
//! then removes all that longhaul made, and nothing else changes.
//!
//! `LONGHAUL_CRASHES` sets the number of crash points.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Call, Place, find_sandbox, tree};

/// Number of crash points, unless `LONGHAUL_CRASHES` is set. The published table has 300.
const CRASHES: u64 = 24;
/// Seed of the crash points.
const SEED: u64 = 38;
const WORKLOADS: [&str; 5] =
    ["folder-index", "photo-batch", "incremental-backup", "time-machine", "time-machine-throttled"];
/// Calls before which a process is killed: those that change something on a share, and the opening of files.
const CALLS: [&str; 9] = [
    "openat,openat2",
    "mkdirat",
    "write,pwrite64,pwritev",
    "unlinkat",
    "renameat,renameat2",
    "ftruncate",
    "fsync,fdatasync",
    "utimensat",
    "fsetxattr,setxattr,lsetxattr",
];
/// Largest number of the call that a process does not survive. A worker makes its calls after those of its start.
const LATEST_CALL: u64 = 300;

#[test]
#[ignore = "needs strace; run with --ignored"]
fn process_killed_at_any_call_leaves_nothing_and_takes_nothing() {
    let place = Place::with_tiny_trees();
    let share = place.folder("share");
    fs::create_dir(share.join("letters")).unwrap();
    (0..4).for_each(|number| fs::write(share.join(format!("letters/{number}.txt")), "mine").unwrap());
    let wanted = std::env::var("LONGHAUL_CRASHES").map_or(CRASHES, |number| number.parse().unwrap());
    let mut killed = 0;
    for crash in 0..wanted {
        let point = CrashPoint::draw(crash);
        let before = users_files(&share);
        killed += u64::from(run_and_kill(&place, &share, &point));
        // Files of others, also in the folders of the workloads, where another program may leave them at any time.
        if crash % 3 == 0 {
            plant(&share);
        }
        let with_planted = users_files(&share);
        killed += u64::from(clean_and_kill(&place, &share, &point));
        clean(&place, &share);
        assert_eq!(users_files(&share), with_planted, "{point:?}");
        remove_planted(&share);
        clean(&place, &share);
        assert_eq!(find_sandbox(&share), None, "{point:?}: something of longhaul is left");
        assert_eq!(users_files(&share), before, "{point:?}");
    }
    println!("{wanted} crash points, {killed} commands in which a process was killed");
    assert!(killed * 2 >= wanted, "only {killed} of {} commands had a killed process", 2 * wanted);
}

/// Point at which a process is killed.
#[derive(Debug)]
struct CrashPoint {
    workload: &'static str,
    calls: &'static str,
    number: u64,
}

impl CrashPoint {
    fn draw(crash: u64) -> Self {
        let draw = |what: u64, below: u64| longhaul_model::draw::draw_below(SEED, what, crash, below);
        let pick = |what: u64, list: &[&'static str]| list[draw(what, list.len() as u64) as usize];
        // Low numbers are likelier, because there are few calls of some kinds.
        let number =
            1 + draw(3, LATEST_CALL) * draw(4, LATEST_CALL) * draw(5, LATEST_CALL) / LATEST_CALL.pow(2);
        Self { workload: pick(1, &WORKLOADS), calls: pick(2, &CALLS), number }
    }

    /// Returns the call below strace, which kills each process of it just before its Nth call.
    fn injected<'a>(&self, call: Call<'a>, log: &Path) -> Call<'a> {
        let Self { calls, number, .. } = self;
        let inject = format!("inject={calls}:signal=SIGKILL:when={number}");
        let trace = format!("trace={calls}");
        let log = log.to_str().unwrap();
        call.below(&["strace", "-f", "-qq", "-o", log, "-e", &trace, "-e", &inject])
    }
}

/// Runs a workload in which a process is killed, and returns whether one was.
fn run_and_kill(place: &Place, share: &Path, point: &CrashPoint) -> bool {
    let log = place.path("strace.log");
    point.injected(place.run(&[point.workload], &[("smb", share)]), &log).start().wait_for_exit();
    was_killed(&log)
}

/// Cleans the share, during which a process is killed, and returns whether one was.
fn clean_and_kill(place: &Place, share: &Path, point: &CrashPoint) -> bool {
    let log = place.path("strace.log");
    point.injected(cleaning(place, share), &log).start().wait_for_exit();
    was_killed(&log)
}

fn clean(place: &Place, share: &Path) {
    let mut running = cleaning(place, share).start();
    running.wait_for_exit();
    let output = running.output_so_far();
    assert!(!output.err.contains("panicked"), "{output}");
}

fn cleaning<'a>(place: &'a Place, share: &Path) -> Call<'a> {
    place.longhaul("targets clean --yes").arg(format!("smb={}", share.display()))
}

fn was_killed(log: &Path) -> bool {
    fs::read_to_string(log).is_ok_and(|text| text.contains("killed by SIGKILL"))
}

/// Puts a file of another program into each folder of the sandbox.
fn plant(share: &Path) {
    let Some(sandbox) = find_sandbox(share) else { return };
    let folders = fs::read_dir(&sandbox).unwrap().map(|entry| entry.unwrap().path());
    for folder in folders.filter(|path| path.is_dir()) {
        fs::write(folder.join(PLANTED), "mine").unwrap();
    }
}

/// Name of the planted files.
const PLANTED: &str = "letter to the bank.txt";

fn remove_planted(share: &Path) {
    for path in tree::files(share).iter().filter(|path| path.ends_with(PLANTED)) {
        fs::remove_file(share.join(path)).unwrap();
    }
}

/// Returns the files on the share that are not longhaul's, with content and time of modification.
fn users_files(share: &Path) -> BTreeMap<PathBuf, tree::Content> {
    let is_theirs = |path: &PathBuf| path.starts_with("letters") || path.ends_with(PLANTED);
    tree::contents(share).into_iter().filter(|(path, _)| is_theirs(path)).collect()
}
