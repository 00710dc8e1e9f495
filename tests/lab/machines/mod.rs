//! Controls the lab: real file servers and real client mounts in two small virtual machines (see README.md in this
//! folder).

pub mod daemon;
pub mod fault;
pub mod service;
pub mod simulated;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Both running machines. They end when this value is dropped or when the test process ends, even if it is killed.
pub struct Lab {
    directory: PathBuf,
    /// File that is locked while the lab is in use. Other tests wait for the lock; when it is released the machines
    /// end.
    lifeline: File,
}

impl Lab {
    /// Boots both machines with these mounts, after waiting until no other test uses them. Panics if this host cannot
    /// run the lab.
    pub fn up(mounts: &str) -> Self {
        let directory = directory();
        let lifeline = std::fs::create_dir_all(&directory)
            .and_then(|()| File::options().append(true).create(true).open(directory.join("lifeline")))
            .and_then(|file| file.lock().map(|()| file));
        let lifeline = lifeline.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let lab = Self { directory, lifeline };
        lab.must(&["check"]);
        lab.must(&["setup"]);
        lab.script(&["down"]);
        let up = lab.command(&["up"]).env("LAB_MOUNTS", mounts).output().expect("bash starts");
        assert!(up.status.success(), "the lab does not come up: {}{}", text(&up), lab.logs());
        note(&text(&up));
        lab
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("bash");
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/lab.sh"))
            .args(arguments)
            .env("LAB_DIR", &self.directory)
            .env("LAB_LIFELINE", self.directory.join("lifeline"))
            .env("LAB_SHARE", target_directory())
            .env("LAB_TIMEOUT", "900")
            .current_dir(target_directory())
            .stdin(Stdio::null());
        command
    }

    fn script(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("bash starts")
    }

    fn must(&self, arguments: &[&str]) {
        let output = self.script(arguments);
        assert!(output.status.success(), "lab.sh {arguments:?}: {}{}", text(&output), self.logs());
    }

    /// Runs a shell command in the client; its standard error comes with its output.
    pub fn run(&self, command: &str) -> Output {
        self.script(&["run", "sh", "-c", command])
    }

    /// Runs a shell command in the client and returns its output. Panics if it fails.
    pub fn ask(&self, command: &str) -> String {
        let output = self.run(command);
        assert!(output.status.success(), "client: {command}: {}{}", text(&output), self.logs());
        text(&output)
    }

    /// Starts a shell command in the client, with pipes for its output.
    pub fn start(&self, command: &str) -> Child {
        let mut process = self.command(&["run", "sh", "-c", command]);
        process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bash starts")
    }

    /// Runs a shell command in the NAS.
    pub fn nas(&self, command: &str) -> Output {
        self.script(&["nas", "sh", "-c", command])
    }

    /// Runs a shell command in the NAS and returns its output. Panics if it fails.
    pub fn ask_nas(&self, command: &str) -> String {
        let output = self.nas(command);
        assert!(output.status.success(), "NAS: {command}: {}{}", text(&output), self.logs());
        text(&output)
    }

    /// Panics if a program does not start in the client.
    pub fn assert_starts(&self, program: &str) {
        let version = self.run(&format!("{program} --version"));
        assert!(version.status.success(), "{program} does not start in the client: {}", text(&version));
    }

    /// Returns the real path of the AFP folder, after mounting it again if needed; `None` if it cannot be mounted.
    pub fn afp_path(&self) -> Option<String> {
        let seen = self.run("ls /m/afp/media >/dev/null 2>&1 || mount-afp; cd /m/afp/media && pwd -P");
        text(&seen).lines().last().filter(|_| seen.status.success()).map(str::to_owned)
    }

    /// Sets `tc netem` options on both ends, such as `"delay 5ms loss 0.1%"` (one way); `"clear"` removes them.
    pub fn net(&self, arguments: &str) {
        self.must(&[&["net"][..], &arguments.split(' ').collect::<Vec<_>>()].concat());
    }

    /// Cuts the network: all packets are dropped, while the links stay up.
    pub fn cut(&self) {
        self.must(&["cut"]);
    }

    /// Restores the network; also removes the options set by [`Lab::net`].
    pub fn heal(&self) {
        self.must(&["heal"]);
    }

    /// Stops the NAS machine with SIGSTOP.
    pub fn freeze(&self) {
        self.must(&["freeze", "nas"]);
    }

    /// Continues the NAS machine.
    pub fn thaw(&self) {
        self.must(&["thaw", "nas"]);
    }

    /// Stops the NAS machine for a short time at a fixed interval, until the returned process is killed. [`Lab::thaw`]
    /// must follow, because it may be killed during a pause.
    pub fn pause_nas(&self, interval: Duration, pause: Duration) -> Child {
        let script = "import os, signal, sys, time\n\
             pid, interval, pause = int(open(sys.argv[1]).read()), float(sys.argv[2]), float(sys.argv[3])\n\
             at = time.monotonic()\n\
             while True:\n\
             \tat += interval; time.sleep(max(0, at - time.monotonic()))\n\
             \tos.kill(pid, signal.SIGSTOP); time.sleep(pause); os.kill(pid, signal.SIGCONT)";
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(self.directory.join("run/nas.pid"));
        command.args([interval, pause].map(|length| length.as_secs_f64().to_string()));
        command.spawn().expect("python3 starts")
    }

    /// Kills the NAS machine, as a power loss does.
    pub fn power_off(&self) {
        self.must(&["kill-nas"]);
    }

    /// Boots the NAS and waits until its servers answer.
    pub fn power_on(&self) {
        self.must(&["boot-nas"]);
    }

    /// Returns the last log lines of the supervisor and both machines, for panic messages.
    pub fn logs(&self) -> String {
        let tail = |name: &str| {
            let log = std::fs::read(self.directory.join("run").join(name)).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).into_owned();
            let lines: Vec<&str> = log.lines().collect();
            format!("\n--- {name}\n{}", lines[lines.len().saturating_sub(25)..].join("\n"))
        };
        ["supervisor.log", "nas.log", "client.log"].map(tail).concat()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.script(&["down"]);
        let _ = self.lifeline.unlock();
    }
}

/// Returns the folder of the lab's machines: `$LAB_DIR`, or `lab` in cargo's target folder.
fn directory() -> PathBuf {
    std::env::var_os("LAB_DIR").map_or_else(|| target_directory().join("lab"), PathBuf::from)
}

fn target_directory() -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    scratch.parent().expect("cargo's scratch folder lies in the target folder").to_owned()
}

/// Returns the path of the program, with `longhauld` in the same folder. In a debug build, too, what makes and decodes test data
/// is optimized.
pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_longhaul")
}

/// Returns standard output and standard error of a process as one text.
pub fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

/// Returns the lines of a text that are JSON.
pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Prints directly to standard error, because the test harness captures the `println!` output of passing tests.
pub fn note(text: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", text.trim_end()).as_bytes());
}

/// Prints that a part of a test is skipped.
pub fn skip(part: &str, why: &str) {
    note(&format!("skipped: {part}: {}", why.replace('\n', " ")));
}

/// Results of a test: rows of a table, and all violations.
#[derive(Default)]
pub struct Findings {
    /// Lines of a Markdown table.
    pub rows: Vec<String>,
    /// Descriptions of the violations.
    pub wrong: Vec<String>,
}

impl Findings {
    /// Records a violation if a condition is false.
    pub fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(what());
        }
    }

    /// Adds a row to the table.
    pub fn row(&mut self, cells: &[&str]) {
        self.rows.push(format!("| {} |", cells.join(" | ")));
    }

    /// Prints the table with these column titles, and clears the rows.
    pub fn print(&mut self, columns: &[&str]) {
        note(&format!("\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len())));
        note(&self.rows.join("\n"));
        self.rows.clear();
    }

    /// Panics with all violations and the logs of the lab, if there are violations.
    pub fn assert(&self, lab: &Lab) {
        assert!(self.wrong.is_empty(), "{}\n{}", self.wrong.join("\n"), lab.logs());
    }
}
