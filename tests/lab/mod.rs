//! The lab for tests: real file servers and real client mounts in two small machines (see README.md beside this file).

#![allow(dead_code)] // each test binary uses its share of it

pub mod fault;
pub mod service;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Both machines, running until this value is dropped or the test process ends, however it ends.
pub struct Lab {
    directory: PathBuf,
    /// Locked for as long as the lab is wanted: keeps other tests waiting, and when it is let go the machines end.
    lifeline: File,
}

impl Lab {
    /// Boots both machines with these mounts, after whoever uses them now. `Err` says why this machine cannot do it.
    ///
    /// # Panics
    ///
    /// If the machines do not come up although everything that they need is there.
    pub fn up(mounts: &str) -> Result<Self, String> {
        let directory = directory();
        let io = |error| format!("{}: {error}", directory.display());
        std::fs::create_dir_all(&directory).map_err(io)?;
        let lifeline =
            File::options().append(true).create(true).open(directory.join("lifeline")).map_err(io)?;
        lifeline.lock().map_err(io)?;
        let lab = Self { directory, lifeline };
        lab.can("check")?;
        lab.can("setup")?;
        lab.script(&["down"]);
        let up = lab.command(&["up"]).env("LAB_MOUNTS", mounts).output().expect("bash starts");
        assert!(up.status.success(), "the lab does not come up: {}{}", text(&up), lab.logs());
        note(&text(&up));
        Ok(lab)
    }

    fn can(&self, step: &str) -> Result<(), String> {
        let output = self.script(&[step]);
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("lab.sh {step}: {}", text(&output).trim())),
        }
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

    /// The same, which has to succeed; returns what it printed.
    pub fn ask(&self, command: &str) -> String {
        let output = self.run(command);
        assert!(output.status.success(), "client: {command}: {}{}", text(&output), self.logs());
        text(&output)
    }

    /// Begins a shell command in the client; what it prints can be piped.
    pub fn start(&self, command: &str) -> Child {
        let mut process = self.command(&["run", "sh", "-c", command]);
        process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bash starts")
    }

    /// Runs a shell command in the NAS.
    pub fn nas(&self, command: &str) -> Output {
        self.script(&["nas", "sh", "-c", command])
    }

    /// What `tc netem` does to every packet, one way, on both ends: `"delay 5ms loss 0.1%"`, or `"clear"`.
    pub fn net(&self, arguments: &str) {
        self.must(&[&["net"][..], &arguments.split(' ').collect::<Vec<_>>()].concat());
    }

    /// Pulls the cable: packets are lost, and nobody is told.
    pub fn cut(&self) {
        self.must(&["cut"]);
    }

    /// Plugs it in again; also takes away what [`Lab::net`] set.
    pub fn heal(&self) {
        self.must(&["heal"]);
    }

    /// Stops the NAS in mid-air.
    pub fn freeze(&self) {
        self.must(&["freeze", "nas"]);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.must(&["thaw", "nas"]);
    }

    /// Cuts the power of the NAS.
    pub fn power_off(&self) {
        self.must(&["kill-nas"]);
    }

    /// Boots the NAS and waits until it serves.
    pub fn power_on(&self) {
        self.must(&["boot-nas"]);
    }

    /// The last lines of what both machines printed, for a failing test.
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

/// Whether a suite is asked for: `LONGHAUL_LAB` names those that run, as in `LONGHAUL_LAB=protocols,faults`. They boot two
/// machines and fetch 750 MB the first time, which nobody should meet unasked.
pub fn asked_for(suite: &str) -> Result<(), String> {
    let named = std::env::var("LONGHAUL_LAB").unwrap_or_default();
    let is_named = named.split(',').any(|name| name == suite);
    is_named
        .then_some(())
        .ok_or_else(|| format!("it boots two machines: ask for it with LONGHAUL_LAB={suite}"))
}

/// Where the lab keeps its machines: `$LAB_DIR`, or beside everything else that is built.
fn directory() -> PathBuf {
    std::env::var_os("LAB_DIR").map_or_else(|| target_directory().join("lab"), PathBuf::from)
}

fn target_directory() -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    scratch.parent().expect("cargo's scratch folder lies in the target folder").to_owned()
}

/// The release program, with the background service, `longhauld`, beside it. They are built where the tests themselves are
/// not: unoptimised, images decode too slowly to be a task.
pub fn program() -> String {
    if !cfg!(debug_assertions) {
        return env!("CARGO_BIN_EXE_longhaul").to_owned();
    }
    let mut command = Command::new(env!("CARGO"));
    // What a test is told of its own package would have libraries with build scripts of their own compiled anew.
    let told = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name == "OUT_DIR" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    let built = told
        .fold(&mut command, |command, name| command.env_remove(name))
        .args(["build", "--quiet", "--release", "--locked", "--bins", "--target-dir"])
        .arg(target_directory())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(built.is_ok_and(|status| status.success()), "the release programs do not build");
    target_directory().join("release/longhaul").display().to_string()
}

/// What a process printed, errors last.
pub fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

/// Prints past the test harness, which keeps what `println!` prints of a test that passes to itself.
pub fn note(text: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", text.trim_end()).as_bytes());
}

/// Says loudly that a test, or a part of it, is not run.
pub fn skip(test: &str, why: &str) {
    note(&format!("skipped: {test}: {}", why.replace('\n', " ")));
}

/// What is collected on the way: rows for a table, and everything that is not as it has to be.
#[derive(Default)]
pub struct Findings {
    /// Lines of a Markdown table.
    pub rows: Vec<String>,
    /// What does not hold, for a person.
    pub wrong: Vec<String>,
}

impl Findings {
    /// Keeps what does not hold.
    pub fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(what());
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[&str]) {
        self.rows.push(format!("| {} |", cells.join(" | ")));
    }

    /// Prints the rows in order below this head, and forgets them.
    pub fn print(&mut self, columns: &[&str]) {
        note(&format!("\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len())));
        note(&self.rows.join("\n"));
        self.rows.clear();
    }

    /// Fails with all that does not hold, and what the lab's machines have said.
    pub fn assert(&self, lab: &Lab) {
        assert!(self.wrong.is_empty(), "{}\n{}", self.wrong.join("\n"), lab.logs());
    }
}
