//! A small language for the end-to-end tests: run longhaul like this, expect that.
//!
//! Each test has a [`Place`] of its own: a home, a database, targets. The real program runs in it, on real files.

// Every test file compiles this module and uses its own part of it.
#![allow(dead_code, clippy::unwrap_used)]

pub mod collector;
pub mod daemon;
pub mod exporting;
pub mod machine;
pub mod mounts;
pub mod probing;
pub mod schema;
pub mod systemd;
pub mod tree;
pub mod weeks;

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use longhaul_store::Reader;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Trees of ten files: every file is looked at in every round, and a round takes a moment.
pub const TINY_TREES: &str = "[folder-index]\nfiles = 40\n";

/// A home of its own, with everything that a person would have.
pub struct Place {
    root: TempDir,
    program: PathBuf,
    calls: AtomicU32,
}

impl Place {
    /// An empty home.
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("longhaul-e2e-").tempdir().unwrap();
        fs::create_dir(root.path().join("home")).unwrap();
        fs::create_dir(root.path().join("said")).unwrap();
        Self { root, program: env!("CARGO_BIN_EXE_longhaul").into(), calls: AtomicU32::new(0) }
    }

    /// A home in which trees are tiny.
    pub fn with_tiny_trees() -> Self {
        let place = Self::new();
        place.configure(TINY_TREES);
        place
    }

    /// A home that belongs to a user without rights, who runs a copy of the program that this user can reach.
    pub fn of_nobody() -> Self {
        let mut place = Self::with_tiny_trees();
        place.program = place.path("longhaul");
        fs::copy(env!("CARGO_BIN_EXE_longhaul"), &place.program).unwrap();
        machine::give_to_nobody(place.root.path());
        place
    }

    /// A home, and the programs installed in this folder of it: longhaul, and a stand-in for the daemon where there is
    /// none.
    pub fn with_programs_in(folder: &str) -> Self {
        let mut place = Self::new();
        place.program = place.folder(folder).join("longhaul");
        fs::copy(env!("CARGO_BIN_EXE_longhaul"), &place.program).unwrap();
        systemd::put_daemon(&place.program.with_file_name("longhauld"));
        place
    }

    /// The folder of everything.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A folder in it, made.
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Where longhaul keeps its data when nobody says otherwise.
    pub fn data(&self) -> PathBuf {
        self.path("home/data/longhaul")
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.data().join("longhaul.sqlite")
    }

    /// Writes the configuration file.
    pub fn configure(&self, text: &str) {
        fs::write(self.folder("home/config/longhaul").join("config.toml"), text).unwrap();
    }

    /// A call of longhaul, its arguments separated by spaces.
    pub fn longhaul(&self, arguments: &str) -> Call<'_> {
        Call {
            place: self,
            before: vec![],
            arguments: arguments.split_whitespace().map(OsString::from).collect(),
        }
    }

    /// A quick run of these workloads on these targets, as JSON.
    pub fn run(&self, workloads: &[&str], targets: &[(&str, &Path)]) -> Call<'_> {
        let call = self.longhaul("run --json --scale quick");
        let call = workloads.iter().fold(call, |call, workload| call.word("--workload").word(workload));
        targets.iter().fold(call, |call, (name, path)| call.target(name, path))
    }

    /// All runs in the database, as the program lists them.
    pub fn stored_runs(&self) -> Vec<Value> {
        self.longhaul("runs --json --last 0").expect(0).runs()
    }

    /// How the rounds in the database ended.
    pub fn round_ends(&self) -> Vec<Option<longhaul_store::RoundStatus>> {
        let rounds = Reader::open(&self.database()).unwrap().rounds().unwrap();
        rounds.into_iter().map(|round| round.end.map(|end| end.status)).collect()
    }
}

/// The arena of a target; there has to be exactly one.
pub fn arena(target: &Path) -> PathBuf {
    find_arena(target).unwrap_or_else(|| panic!("no arena in {}", target.display()))
}

/// The arena of a target, if there is one.
pub fn find_arena(target: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(target).ok()?.flatten().map(|entry| entry.path());
    entries.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with(".longhaul-"))
}

/// A call that is being put together.
pub struct Call<'a> {
    place: &'a Place,
    before: Vec<OsString>,
    arguments: Vec<OsString>,
}

impl Call<'_> {
    /// One more argument.
    pub fn word(mut self, word: impl Into<OsString>) -> Self {
        self.arguments.push(word.into());
        self
    }

    /// One more target.
    pub fn target(self, name: &str, path: &Path) -> Self {
        self.word("--target").word(format!("{name}={}", path.display()))
    }

    /// As a user without rights, when the tests run as root.
    pub fn without_rights(mut self) -> Self {
        self.before = machine::as_nobody();
        self
    }

    /// Runs it to its end, which has to have this exit code.
    pub fn expect(self, code: i32) -> Said {
        self.start().finish(code)
    }

    /// Starts it. What it says goes to files: unlike a pipe, a file is not kept waiting by a process that hangs.
    pub fn start(self) -> Running {
        let number = self.place.calls.fetch_add(1, Ordering::Relaxed);
        let at = |name: &str| self.place.path(&format!("said/{number}.{name}"));
        let (root, out, err) = (self.place.root().to_owned(), at("out"), at("err"));
        let mut command = self.command();
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Running { root, child: command.spawn().unwrap(), out, err }
    }

    /// The command, for a test that wants to start it in its own way.
    pub fn command(self) -> Command {
        let program = self.place.program.as_os_str().to_owned();
        let mut words = self.before.into_iter().chain([program]).chain(self.arguments);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .env_remove("LONGHAUL_LOG")
            .env("HOME", self.place.path("home"))
            .env("XDG_DATA_HOME", self.place.path("home/data"))
            .env("XDG_CONFIG_HOME", self.place.path("home/config"))
            .env("XDG_STATE_HOME", self.place.path("home/state"))
            .current_dir(self.place.path("home"))
            .stdin(Stdio::null());
        command
    }
}

/// A longhaul that is running. It is killed when it is dropped before its end.
pub struct Running {
    root: PathBuf,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// The folder of its place.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// What it has said so far.
    pub fn so_far(&self) -> Said {
        let read = |path| String::from_utf8(fs::read(path).unwrap()).unwrap();
        Said { out: read(&self.out), err: read(&self.err) }
    }

    /// Waits until it has said enough; it must not end before.
    pub fn wait_for(&mut self, what: &str, enough: impl Fn(&Said) -> bool) -> Said {
        machine::wait_until(what, || {
            let ended = self.child.try_wait().unwrap();
            let said = self.so_far();
            assert!(ended.is_none() || enough(&said), "longhaul ended ({ended:?}) before {what}:\n{said}");
            enough(&said)
        });
        self.so_far()
    }

    /// Waits for its end, however that is.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        machine::wait_until("longhaul to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Waits for its end, which has to have this exit code.
    pub fn finish(mut self, code: i32) -> Said {
        let status = self.ended();
        let said = self.so_far();
        assert_eq!(status.code(), Some(code), "{status} (signal {:?})\n{said}", status.signal());
        assert!(!said.err.contains("panicked"), "{said}");
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What longhaul said.
#[derive(Debug, Clone)]
pub struct Said {
    /// To standard output.
    pub out: String,
    /// To standard error.
    pub err: String,
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let out: String =
            self.out.lines().map(|line| line.chars().take(1500).chain(['\n']).collect::<String>()).collect();
        write!(f, "--- out\n{out}--- err\n{}{}", self.err, self.failures())
    }
}

impl Said {
    /// The runs that failed, one a line and last, where the whole is too long to be read.
    fn failures(&self) -> String {
        let runs = self.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let failed = runs.filter(|run| run["failure"].is_object());
        failed
            .map(|run| format!("--- {}: {}: {}\n", run["workload"], run["outcome"], run["failure"]))
            .collect()
    }

    /// Every whole line of the output, as JSON.
    pub fn lines(&self) -> Vec<Value> {
        let whole = self.out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// The output as one JSON value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// The runs among the lines.
    pub fn runs(&self) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["type"] == "run").collect()
    }

    /// The runs on one target.
    pub fn runs_on(&self, target: &str) -> Vec<Value> {
        self.runs().into_iter().filter(|run| run["target"] == target).collect()
    }

    /// The outcomes on one target, in order.
    pub fn outcomes_on(&self, target: &str) -> Vec<String> {
        self.runs_on(target).iter().map(|run| run["outcome"].as_str().unwrap().to_owned()).collect()
    }

    /// The only run on one target.
    pub fn run_on(&self, target: &str) -> Value {
        let runs = self.runs_on(target);
        assert_eq!(runs.len(), 1, "{self}");
        runs.into_iter().next().unwrap()
    }

    /// Checks that standard error says all this.
    pub fn complains_of(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.err.contains(part), "`{part}` is not said:\n{self}");
        }
        self
    }
}

/// Checks the outcome of a run and that its message says all this: what, where, and what to do.
pub fn assert_failure(run: &Value, outcome: &str, parts: &[&str]) {
    schema::check_run(run);
    assert_eq!(run["outcome"], outcome, "{run}");
    let message = run["failure"]["message"].as_str().unwrap_or_else(|| panic!("no message: {run}"));
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

/// Checks that every run is whole and ok.
pub fn assert_all_ok(runs: &[Value]) {
    assert!(!runs.is_empty(), "no run");
    for run in runs {
        schema::check_run(run);
        assert_eq!(run["outcome"], "ok", "{run}");
    }
}
