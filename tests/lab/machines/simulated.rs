//! Runs a script of the lab in a machine with simulated time (tests/lab/simulated.sh).

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{note, program, target_directory, text};

/// A script that measures in a machine with simulated time.
pub struct Simulation<'a> {
    /// File name of the script in this folder.
    pub script: &'a str,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// Shares that are mounted, separated by spaces.
    pub mounts: &'a str,
    /// Folder into which the script writes what it found.
    pub export: &'a Path,
    /// Longest time that it may take, in real seconds.
    pub limit_seconds: u32,
}

impl Simulation<'_> {
    /// Runs the script, prints its output, and returns it.
    pub fn run(&self) -> Output {
        let output = Command::new("bash")
            .arg(script("simulated.sh"))
            .args(["run", "env", &format!("EXPORT={}", self.export.display())])
            .arg(format!("LONGHAUL={}", program()))
            .arg(format!("LONGHAULD={}", env!("CARGO_BIN_EXE_longhauld")))
            .args(["bash", &format!("/host{}", script(self.script).display())])
            .args(self.arguments)
            .env("LAB_SHARE", target_directory())
            .env("SIMULATED_MOUNTS", self.mounts)
            .env("SIMULATED_MEM", "3G")
            .env("SIMULATED_START", "2026-03-02T08:00:00Z")
            .env("SIMULATED_TIMEOUT", self.limit_seconds.to_string())
            .stdin(Stdio::null())
            .output()
            .expect("bash starts");
        note(&format!("{}: {}", self.arguments.join(" "), text(&output)));
        output
    }
}

/// Returns the path of a script of the lab.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab").join(name)
}
