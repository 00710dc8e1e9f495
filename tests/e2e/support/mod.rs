//! Helpers for the end-to-end tests: run longhaul with some arguments and check its exit code and output.
//!
//! Each test has its own [`Place`]: a temporary folder with a home, a database and targets. The real program runs in
//! it, on real files.

// Some tests, and with them the only uses of some helpers, exist only on Linux.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

pub mod collector;
pub mod daemon;
pub mod exporter;
pub mod hostile;
pub mod machine;
pub mod mounts;
pub mod probing;
pub mod real_programs;
pub mod receiver;
pub mod schema;
pub mod systemd;
pub mod tcp_server;
pub mod template;
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

/// Configuration with trees of ten files (40 files in four slices), so that a round takes milliseconds.
pub const TINY_TREES: &str = "[folder-index]\nfiles = 40\n";

/// Test environment: a temporary folder with a home, configuration, database and targets. Removed when dropped.
pub struct Place {
    root: TempDir,
    program: PathBuf,
    calls: AtomicU32,
}

/// Creates a temporary folder, in memory if there is room and `TMPDIR` does not say otherwise: where a disk has ext4 without a
/// journal, two fifths of the processor time go into the search for inodes that were not freed within seconds.
pub fn temporary_folder(prefix: &str) -> TempDir {
    const ROOM: u64 = 8 << 30;
    let room = || rustix::fs::statvfs("/dev/shm").map_or(0, |memory| memory.f_bavail * memory.f_frsize);
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    let is_in_memory = std::env::var_os("TMPDIR").is_none() && room() >= ROOM;
    if is_in_memory { builder.tempdir_in("/dev/shm") } else { builder.tempdir() }.unwrap()
}

impl Place {
    /// Creates an environment with an empty home.
    pub fn new() -> Self {
        let root = temporary_folder("longhaul-e2e-");
        fs::create_dir(root.path().join("home")).unwrap();
        fs::create_dir(root.path().join("output")).unwrap();
        Self { root, program: env!("CARGO_BIN_EXE_longhaul").into(), calls: AtomicU32::new(0) }
    }

    /// Creates an environment whose configuration has [`TINY_TREES`].
    pub fn with_tiny_trees() -> Self {
        let place = Self::new();
        place.configure(TINY_TREES);
        place
    }

    /// Creates an environment owned by an unprivileged user, with a copy of the program which that user can execute.
    pub fn for_unprivileged_user() -> Self {
        let mut place = Self::with_tiny_trees();
        place.program = place.path("longhaul");
        fs::copy(env!("CARGO_BIN_EXE_longhaul"), &place.program).unwrap();
        machine::chown_to_nobody(place.root.path());
        place
    }

    /// Creates an environment with `longhaul` and `longhauld` in the given folder.
    pub fn with_programs_in(folder: &str) -> Self {
        let mut place = Self::new();
        place.program = place.folder(folder).join("longhaul");
        link(env!("CARGO_BIN_EXE_longhaul"), &place.program);
        link(env!("CARGO_BIN_EXE_longhauld"), &place.program.with_file_name("longhauld"));
        place
    }

    /// Returns the temporary folder that contains everything.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Returns a path below the temporary folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Creates a folder below the temporary folder and returns its path.
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Returns the default data folder of longhaul.
    pub fn data(&self) -> PathBuf {
        self.path("home/data/longhaul")
    }

    /// Returns the path of the default database.
    pub fn database(&self) -> PathBuf {
        self.data().join("longhaul.sqlite")
    }

    /// Writes the configuration file.
    pub fn configure(&self, text: &str) {
        fs::write(self.folder("home/config/longhaul").join("config.toml"), text).unwrap();
    }

    /// Sets the environment variables of this environment, and removes those of a service manager that may run these
    /// tests.
    pub fn at_home(&self, mut command: Command) -> Command {
        command
            .env_remove("LONGHAUL_LOG")
            .env("HOME", self.path("home"))
            .env("XDG_DATA_HOME", self.path("home/data"))
            .env("XDG_CONFIG_HOME", self.path("home/config"))
            .env("XDG_STATE_HOME", self.path("home/state"))
            .env_remove("NOTIFY_SOCKET")
            .env_remove("INVOCATION_ID")
            .env_remove("SYSTEMD_EXEC_PID")
            .env_remove("XPC_SERVICE_NAME")
            .current_dir(self.path("home"))
            .stdin(Stdio::null());
        command
    }

    /// Prepares a call of longhaul; the arguments are separated by spaces.
    pub fn longhaul(&self, arguments: &str) -> Call<'_> {
        Call {
            place: self,
            before: vec![],
            arguments: arguments.split_whitespace().map(OsString::from).collect(),
            first_on_path: None,
        }
    }

    /// Prepares `longhaul run --json --scale quick` with the given workloads and targets.
    pub fn run(&self, workloads: &[&str], targets: &[(&str, &Path)]) -> Call<'_> {
        let call = self.longhaul("run --json --scale quick");
        let call = workloads.iter().fold(call, |call, workload| call.arg("--workload").arg(workload));
        targets.iter().fold(call, |call, (name, path)| call.target(name, path))
    }

    /// Returns all runs in the database as `longhaul runs --json` prints them.
    pub fn stored_runs(&self) -> Vec<Value> {
        self.longhaul("runs --json --last 0").expect(0).runs()
    }

    /// Returns the status of each round in the database; `None` for a round that is still open.
    pub fn round_ends(&self) -> Vec<Option<longhaul_store::RoundStatus>> {
        let rounds = Reader::open(&self.database()).unwrap().rounds().unwrap();
        rounds.into_iter().map(|round| round.end.map(|end| end.status)).collect()
    }
}

/// Puts a program at a path where there is no file: as a hard link if both are on one file system, or else as a copy. Nothing may be
/// written to that path, because the link leads to the program itself.
pub fn link(program: &str, at: &Path) {
    if fs::hard_link(program, at).is_err() {
        fs::copy(program, at).unwrap();
    }
}

/// Returns the sandbox of a target. Panics if there is none.
pub fn sandbox(target: &Path) -> PathBuf {
    find_sandbox(target).unwrap_or_else(|| panic!("no sandbox in {}", target.display()))
}

/// Returns the sandbox of a target, if there is one.
pub fn find_sandbox(target: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(target).ok()?.flatten().map(|entry| entry.path());
    entries.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with(".longhaul-"))
}

/// Returns how many sessions of freshness the sandboxes of a folder hold.
pub fn sessions(folder: &Path) -> usize {
    let sandboxes = fs::read_dir(folder).unwrap().flatten();
    let sessions = sandboxes.filter_map(|sandbox| fs::read_dir(sandbox.path().join("freshness")).ok());
    sessions.map(Iterator::count).sum()
}

/// Builder of one call of longhaul.
pub struct Call<'a> {
    place: &'a Place,
    before: Vec<OsString>,
    arguments: Vec<OsString>,
    first_on_path: Option<PathBuf>,
}

impl Call<'_> {
    /// Lets longhaul find programs in a folder before it finds those of this machine.
    pub fn first_on_path(mut self, folder: &Path) -> Self {
        self.first_on_path = Some(folder.to_owned());
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, word: impl Into<OsString>) -> Self {
        self.arguments.push(word.into());
        self
    }

    /// Adds `--target NAME=PATH`.
    pub fn target(self, name: &str, path: &Path) -> Self {
        self.arg("--target").arg(format!("{name}={}", path.display()))
    }

    /// Runs the program as an unprivileged user if the tests run as root.
    pub fn unprivileged(mut self) -> Self {
        self.before = machine::unprivileged_prefix();
        self
    }

    /// Runs the program below another one, such as `strace`.
    pub fn below(mut self, program: &[&str]) -> Self {
        self.before = program.iter().map(OsString::from).collect();
        self
    }

    /// Runs the program, checks its exit code and returns its output.
    pub fn expect(self, code: i32) -> CommandOutput {
        self.start().finish(code)
    }

    /// Starts the program. Its output goes to files: a pipe would stay open while a hung worker process holds its
    /// end.
    pub fn start(self) -> Running {
        let number = self.place.calls.fetch_add(1, Ordering::Relaxed);
        let at = |name: &str| self.place.path(&format!("output/{number}.{name}"));
        let (root, out, err) = (self.place.root().to_owned(), at("out"), at("err"));
        let mut command = self.command();
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Running { root, child: command.spawn().unwrap(), out, err }
    }

    /// Returns the command for a test that starts the process itself.
    pub fn command(self) -> Command {
        let program = self.place.program.as_os_str().to_owned();
        let mut words = self.before.into_iter().chain([program]).chain(self.arguments);
        let mut command = self.place.at_home(Command::new(words.next().unwrap()));
        command.args(words);
        if let Some(folder) = self.first_on_path {
            let path = std::env::var("PATH").unwrap_or_default();
            command.env("PATH", format!("{}:{path}", folder.display()));
        }
        command
    }
}

/// Running longhaul process. It is killed when dropped.
pub struct Running {
    root: PathBuf,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Returns the temporary folder of the test environment.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Returns the output so far.
    pub fn output_so_far(&self) -> CommandOutput {
        let read = |path| String::from_utf8(fs::read(path).unwrap()).unwrap();
        CommandOutput { out: read(&self.out), err: read(&self.err) }
    }

    /// Waits until the output satisfies a condition. Panics if the process ends before.
    pub fn wait_for(&mut self, what: &str, enough: impl Fn(&CommandOutput) -> bool) -> CommandOutput {
        machine::wait_until(what, || {
            let ended = self.child.try_wait().unwrap();
            let output = self.output_so_far();
            assert!(
                ended.is_none() || enough(&output),
                "longhaul ended ({ended:?}) before {what}:\n{output}"
            );
            enough(&output)
        });
        self.output_so_far()
    }

    /// Waits for the process to end, with any exit status.
    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let mut status = None;
        machine::wait_until("longhaul to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Waits for the process to end with any exit status, and returns its output as one JSON value.
    pub fn value_of_any_exit(mut self) -> Value {
        self.wait_for_exit();
        self.output_so_far().value()
    }

    /// Waits for the process to end, checks its exit code and returns its output.
    pub fn finish(mut self, code: i32) -> CommandOutput {
        let status = self.wait_for_exit();
        let output = self.output_so_far();
        assert_eq!(status.code(), Some(code), "{status} (signal {:?})\n{output}", status.signal());
        assert!(!output.err.contains("panicked"), "{output}");
        output
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Output of a longhaul process.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl std::fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let out: String =
            self.out.lines().map(|line| line.chars().take(1500).chain(['\n']).collect::<String>()).collect();
        write!(f, "--- out\n{out}--- err\n{}{}", self.err, self.failures())
    }
}

impl CommandOutput {
    /// Returns one line per failed run, for panic messages in which the complete output is too long to read.
    fn failures(&self) -> String {
        let runs = self.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let failed = runs.filter(|run| run["failure"].is_object());
        failed
            .map(|run| format!("--- {}: {}: {}\n", run["workload"], run["outcome"], run["failure"]))
            .collect()
    }

    /// Parses every complete line of standard output as JSON.
    pub fn lines(&self) -> Vec<Value> {
        let whole = self.out.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// Parses standard output as one JSON value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// Returns the JSON lines with type `run`.
    pub fn runs(&self) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["type"] == "run").collect()
    }

    /// Returns the runs on one target.
    pub fn runs_on(&self, target: &str) -> Vec<Value> {
        self.runs().into_iter().filter(|run| run["target"] == target).collect()
    }

    /// Returns the outcomes of the runs on one target, in order.
    pub fn outcomes_on(&self, target: &str) -> Vec<String> {
        self.runs_on(target).iter().map(|run| run["outcome"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the only run on one target. Panics if there is not exactly one.
    pub fn run_on(&self, target: &str) -> Value {
        let runs = self.runs_on(target);
        assert_eq!(runs.len(), 1, "{self}");
        runs.into_iter().next().unwrap()
    }

    /// Checks that standard error contains all these parts.
    pub fn assert_stderr(&self, parts: &[&str]) -> &Self {
        for part in parts {
            assert!(self.err.contains(part), "standard error lacks `{part}`:\n{self}");
        }
        self
    }
}

/// Checks the outcome of a run, and that its failure message contains all these parts.
pub fn assert_failure(run: &Value, outcome: &str, parts: &[&str]) {
    schema::check_run(run);
    assert_eq!(run["outcome"], outcome, "{run}");
    let message = run["failure"]["message"].as_str().unwrap_or_else(|| panic!("no message: {run}"));
    for part in parts {
        assert!(message.contains(part), "the message lacks `{part}`: {message}");
    }
}

/// Checks that every run matches the schema and has the outcome `ok`.
pub fn assert_all_ok(runs: &[Value]) {
    assert!(!runs.is_empty(), "no run");
    for run in runs {
        schema::check_run(run);
        assert_eq!(run["outcome"], "ok", "{run}");
    }
}
