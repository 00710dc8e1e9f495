//! What the tests ask of this machine: processes, users, patience.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

/// How long anything may take before a test calls it stuck. It says nothing about speed.
const PATIENCE: Duration = Duration::from_secs(180);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// The user and group of nobody.
const NOBODY: u32 = 65534;

/// Says that a test did not run, on a line of its own and past the test harness, which hides what passing tests print.
///
/// In one write: the harness writes to the same line meanwhile.
pub fn skip(test: &str, why: &str) {
    let _ = std::io::stderr().write_all(format!("\nskipped: {test}: {why}\n").as_bytes());
}

/// Looks until something is so; panics when it is not for too long.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Lets this thread, and what it starts from now on, go before all other programs, where that may be: for a test that
/// measures times. It has to leave the machine alone for most of the time.
pub fn go_first() {
    let thread = fs::read_link("/proc/thread-self").unwrap();
    let mut command = Command::new("chrt");
    command.args(["--rr", "--pid", "1"]).arg(thread.file_name().unwrap());
    if !command.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("\nother programs may disturb what is measured: no priority over them is given here");
    }
}

/// Whether a program can be run here.
pub fn has(program: &str) -> bool {
    let quiet = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok()
}

/// Why processes cannot be looked at here, if so.
pub fn without_proc() -> Option<&'static str> {
    (!Path::new("/proc/self/environ").exists()).then_some("there is no /proc to find processes in")
}

/// Whether the tests run as root, for whom permissions do not count.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Why a program cannot be run here as a user without rights, if so.
pub fn without_nobody() -> Option<&'static str> {
    (is_root() && !has("setpriv")).then_some("as root it needs setpriv to become another user")
}

/// What to put before a command so that it runs without rights: nothing for those who have none.
pub fn as_nobody() -> Vec<OsString> {
    if !is_root() {
        return vec![];
    }
    let words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    words.into_iter().map(OsString::from).collect()
}

/// Hands a tree to the user without rights; for one who is no root, it is theirs already.
pub fn give_to_nobody(path: &Path) {
    if !is_root() {
        return;
    }
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        fs::read_dir(path).unwrap().for_each(|entry| give_to_nobody(&entry.unwrap().path()));
    }
}

/// The worker processes, alive, whose home is below this folder.
pub fn workers_of(root: &Path) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| is_worker_of(*pid, root)).collect()
}

/// The worker processes whose program lies in this folder.
pub fn workers_from(folder: &Path) -> Vec<i32> {
    let program = [folder.as_os_str().as_bytes(), b"/"].concat();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let runs =
        |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(&program));
    numbers.filter(runs).collect()
}

fn is_worker_of(pid: i32, root: &Path) -> bool {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let home = [b"HOME=", root.as_os_str().as_bytes(), b"/"].concat();
    let at_home = read("environ").split(|byte| *byte == 0).any(|variable| variable.starts_with(&home));
    at_home && read("cmdline").ends_with(b"\0worker\0")
}

/// Whether a process has something below this folder open.
pub fn has_open(pid: i32, folder: &Path) -> bool {
    let Ok(handles) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    handles.flatten().any(|handle| fs::read_link(handle.path()).is_ok_and(|path| path.starts_with(folder)))
}

/// Whether a process is in a folder below one of these trees other than the one that is shown before the walk.
pub fn walks_below(pid: i32, trees: &Path) -> bool {
    let Ok(handles) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let paths = handles.flatten().filter_map(|handle| fs::read_link(handle.path()).ok());
    let inside = |path: &Path| path.strip_prefix(trees).is_ok_and(|rest| rest.components().count() > 1);
    paths.into_iter().any(|path| inside(&path) && !path.ends_with("Inbox"))
}

/// What a process has read so far.
pub fn bytes_read(pid: i32) -> u64 {
    let facts = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let line = facts.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Sends a signal to a process that may have ended.
pub fn signal(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Waits until no worker of a place is left.
pub fn wait_for_no_worker(root: &Path) {
    wait_until("the last worker to end", || workers_of(root).is_empty());
}

/// The flight recorders that a longhaul with this process number has left.
pub fn recorders_of(pid: u32) -> Vec<String> {
    let prefix = format!("longhaul-{pid}-");
    let Ok(entries) = fs::read_dir("/dev/shm") else { return vec![] };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&prefix)).collect()
}
