//! Programs that use a mount, found by what `/proc` says of them; no file of the mount is touched.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Program;

/// Tells whether a process exists.
pub fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
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
