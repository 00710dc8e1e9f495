//! Programs that use a mount, found by what `/proc` says of them; no file of the mount is touched.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Program;

/// Tells whether a process exists.
pub fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Tells whether a signal that ends a call of a thread has arrived.
pub fn has_signal(thread: u32) -> bool {
    let status = fs::read(format!("/proc/{thread}/status")).unwrap_or_default();
    shows_signal(&String::from_utf8_lossy(&status))
}

/// Signals that a thread ignores never wait for it.
fn shows_signal(status: &str) -> bool {
    let signals = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| u64::from_str_radix(value.trim(), 16).ok()).unwrap_or(0)
    };
    (signals("SigPnd:") | signals("ShdPnd:")) & !signals("SigBlk:") != 0
}

/// Returns the programs whose working folder or open files are below a folder. Those of other users are not seen.
pub fn using(folder: &Path) -> Vec<Program> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    numbers.filter(|process| *process != own && uses(*process, folder)).map(program).collect()
}

fn uses(process: u32, folder: &Path) -> bool {
    let at = |part: &str| PathBuf::from(format!("/proc/{process}/{part}"));
    let files = fs::read_dir(at("fd")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut links = files.chain([at("cwd"), at("root")]);
    links.any(|link| fs::read_link(link).is_ok_and(|to| to.starts_with(folder)))
}

fn program(process: u32) -> Program {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    Program { process, name: name.trim_end().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_are_blocked_do_not_count() {
        let shown = |own: &str, shared: &str, blocked: &str| {
            shows_signal(&format!("Name:\tsh\nSigPnd:\t{own}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\n"))
        };
        let [none, kill, interrupt] = ["0000000000000000", "0000000000000100", "0000000000000002"];
        assert!(shown(kill, none, interrupt) && shown(none, interrupt, none));
        assert!(!shown(none, none, none) && !shown(none, interrupt, interrupt));
        assert!(!shows_signal(""), "a thread of another namespace");
    }
}
