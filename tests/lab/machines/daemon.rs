//! A background service in the client machine of the lab.

use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Lab, text};

/// Time after which a waiting test fails.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Running longhauld. It ends when this value is dropped.
pub struct Daemon<'a> {
    /// The machines.
    pub lab: &'a Lab,
    /// Folder with configuration and database, on the client's local disk.
    folder: &'static str,
    process: Child,
}

impl<'a> Daemon<'a> {
    /// Starts the service with a configuration.
    pub fn start(lab: &'a Lab, folder: &'static str, configuration: &str) -> Self {
        lab.ask(&format!("mkdir -p {folder} && cat >{folder}/c.toml <<'EOF'\n{configuration}EOF"));
        let process = lab.start(&command(folder, env!("CARGO_BIN_EXE_longhauld")));
        Self { lab, folder, process }
    }

    /// Runs a command of longhaul, and returns what it prints.
    pub fn ask(&self, words: &str) -> String {
        let longhaul = command(self.folder, env!("CARGO_BIN_EXE_longhaul"));
        text(&self.lab.run(&format!("{longhaul} {words}")))
    }

    /// Returns the output of `longhaul status --json`.
    pub fn status(&self) -> Value {
        serde_json::from_str(&self.ask("status --json")).unwrap_or_default()
    }

    /// Waits until a condition is true.
    pub fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let patience = Instant::now() + TIMEOUT;
        while !is_so() {
            assert!(Instant::now() < patience, "timed out waiting for {what}{}", self.lab.logs());
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Stops the service with SIGTERM and waits for its end.
    pub fn stop(&mut self) {
        self.lab.run("pkill -x longhauld");
        let _ = self.process.wait();
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

fn command(folder: &str, program: &str) -> String {
    format!("HOME={folder} {program} --config {folder}/c.toml --database {folder}/l.sqlite")
}
