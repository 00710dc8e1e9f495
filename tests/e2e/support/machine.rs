//! Helpers that depend on this machine: processes, users and timeouts.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

/// Time after which a waiting test fails. It is a generous limit for slow machines, not a performance requirement.
pub const TIMEOUT: Duration = Duration::from_secs(180);
/// Shortest and longest time between two polls.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(300)];
/// User and group id of the unprivileged user (65534).
const NOBODY: u32 = 65534;

/// Polls until a condition is true. Panics after [`TIMEOUT`].
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    loop {
        let polled = Instant::now();
        if is_so() {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "timed out waiting for {what}");
        pause_after_poll(polled.elapsed());
    }
}

/// Sleeps for nine times as long as a poll took, so that tests that wait leave the processors to the others.
pub fn pause_after_poll(took: Duration) {
    std::thread::sleep((took * 9).clamp(PAUSES[0], PAUSES[1]));
}

/// Requests real-time priority for this thread and for everything that it starts from now on, for a test that
/// measures times. Such a test must be idle most of the time, or it would starve all other programs.
pub fn request_realtime_priority() {
    let thread = fs::read_link("/proc/thread-self").unwrap();
    let mut command = Command::new("chrt");
    command.args(["--rr", "--pid", "1"]).arg(thread.file_name().unwrap());
    if !command.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("\nreal-time priority is not permitted here: other programs may disturb the measurement");
    }
}

/// Returns true if the tests run as root, to whom file permissions do not apply.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Returns the command prefix that drops root's privileges with setpriv(1); empty if the tests do not run as root.
pub fn unprivileged_prefix() -> Vec<OsString> {
    if !is_root() {
        return vec![];
    }
    let words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    words.into_iter().map(OsString::from).collect()
}

/// Changes the owner of a tree to the unprivileged user. Does nothing if the tests do not run as root.
pub fn chown_to_nobody(path: &Path) {
    if !is_root() {
        return;
    }
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        fs::read_dir(path).unwrap().for_each(|entry| chown_to_nobody(&entry.unwrap().path()));
    }
}

/// Returns the process ids of live worker processes whose `HOME` is below this folder.
pub fn workers_of(root: &Path) -> Vec<i32> {
    processes().filter(|pid| is_worker_of(*pid, root)).collect()
}

/// Returns the process ids of processes whose program file is in this folder.
pub fn workers_from(folder: &Path) -> Vec<i32> {
    let program = [folder.as_os_str().as_bytes(), b"/"].concat();
    let runs =
        |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(&program));
    processes().filter(runs).collect()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn is_worker_of(pid: i32, root: &Path) -> bool {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let home = [b"HOME=", root.as_os_str().as_bytes(), b"/"].concat();
    let at_home = read("environ").split(|byte| *byte == 0).any(|variable| variable.starts_with(&home));
    at_home && read("cmdline").ends_with(b"\0worker\0")
}

/// Returns true if a process has a file or folder below this folder open.
pub fn has_open(pid: i32, folder: &Path) -> bool {
    let Ok(handles) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    handles.flatten().any(|handle| fs::read_link(handle.path()).is_ok_and(|path| path.starts_with(folder)))
}

/// Returns true if a process has a folder below one of these trees open, other than `Inbox`, which is listed before
/// the walk begins.
pub fn is_walking(pid: i32, trees: &Path) -> bool {
    let Ok(handles) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let paths = handles.flatten().filter_map(|handle| fs::read_link(handle.path()).ok());
    let inside = |path: &Path| path.strip_prefix(trees).is_ok_and(|rest| rest.components().count() > 1);
    paths.into_iter().any(|path| inside(&path) && !path.ends_with("Inbox"))
}

/// Returns the number of bytes that a process has read so far.
pub fn bytes_read(pid: i32) -> u64 {
    let facts = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let line = facts.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Sends a signal to a process. Ignores that it may have ended.
pub fn signal(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Waits until no worker process of a test environment is left.
pub fn wait_for_no_worker(root: &Path) {
    wait_until("the last worker to end", || workers_of(root).is_empty());
}

/// Returns the names of the flight recorders that a longhaul with this process id left in shared memory.
pub fn recorders_of(pid: u32) -> Vec<String> {
    let prefix = format!("longhaul-{pid}-");
    let Ok(entries) = fs::read_dir("/dev/shm") else { return vec![] };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&prefix)).collect()
}
