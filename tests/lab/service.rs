//! The background service inside the client, and what a test asks of it.

use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Lab, text};

/// How long anything may take before a test calls it stuck. It says nothing about speed.
const PATIENCE: Duration = Duration::from_secs(900);
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// A cap, in seconds, that no healthy run comes near, also not while a client waits to reconnect.
pub const AMPLE: u32 = 300;
/// Tells the script that asks for the status to end.
const ENOUGH: &str = "/tmp/enough";
/// One task that writes, no round but those that a test orders, and nothing that this machine does is a reason to skip.
const CONFIGURATION: &str = concat!(
    r#"scale = "quick"
workloads = ["time-machine"]
[schedule]
rounds-per-day = 1
"#,
    include_str!("../support/never-skip.toml")
);

/// longhauld with a share and the local disk as its targets. The share's target is the folder of the share's own name. The
/// local disk has the same role, because a baseline takes part in every fourth round only.
pub struct Service<'a> {
    lab: &'a Lab,
    /// The share, by the name of its mount.
    pub share: &'a str,
    /// longhaul, with the database and the configuration.
    longhaul: String,
}

/// One answer of the service, beside what the machine could do meanwhile. In seconds.
pub struct Answer {
    /// Until it was connected.
    pub connected: f64,
    /// From connecting to the last byte of the status.
    pub status: f64,
    /// For how long of that the whole machine stood still.
    pub stood_still: f64,
    /// For how long of that the service or whoever asked was ready, and the only processor did something else.
    pub waited: f64,
    /// What starting and ending a trivial program took right after.
    pub start: f64,
}

impl Answer {
    /// One line of what the script prints.
    fn parse(line: &str) -> Option<Self> {
        let mut seconds = line.split(' ').map(str::parse);
        let mut next = || seconds.next()?.ok();
        let (connected, status, stood_still) = (next()?, next()?, next()?);
        Some(Self { connected, status, stood_still, waited: next()?, start: next()? })
    }

    /// What it took while the machine went on and let them: what is left is the service's, be it a lock, a disk or its work.
    pub fn own(&self) -> f64 {
        self.status - self.stood_still.max(self.waited)
    }
}

/// What has been booked: runs by their number.
pub type Runs = BTreeMap<i64, Value>;

impl<'a> Service<'a> {
    /// Makes the folders, starts the service and waits for the round with which it begins.
    pub fn start(lab: &'a Lab, program: &str, share: &'a str) -> Self {
        let folder = folder(share);
        let place = format!("--database {folder}/l.sqlite --config {folder}/config.toml");
        let service = Self { lab, share, longhaul: format!("{program} {place}") };
        let made = lab.nas(&format!("install -d -o lab -g lab /srv/share/{share}"));
        assert!(made.status.success(), "{}{}", text(&made), lab.logs());
        lab.ask(&format!("mkdir -p {folder} /m/local/{share}"));
        service.configure(AMPLE);
        let said = format!("--log-directory {folder} </dev/null >{folder}/said 2>&1");
        lab.ask(&format!("HOME={folder} setsid -f {program}d {place} {said}"));
        service.wait_for("the first round", |status| status["last"]["number"].as_i64() >= Some(1));
        service.wait_until_idle();
        service
    }

    /// Stops it in order, and waits for its end.
    pub fn stop(&self) {
        let process = format!("sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/' {}/l.daemon.json", folder(self.share));
        self.lab.ask(&format!("p=$({process}); kill $p; while kill -0 $p 2>/dev/null; do sleep 0.1; done"));
    }

    fn configure(&self, cap_seconds: u32) {
        let share = self.share;
        let targets = format!(
            "[limits]\ncap-seconds = {cap_seconds}\n[targets.{share}]\npath = \"/m/{share}/{share}\"\n\
             [targets.local]\npath = \"/m/local/{share}\"\n"
        );
        // In one step, as editors do it: the service may read a file that is half written.
        let file = format!("{}/config.toml", folder(self.share));
        self.lab.ask(&format!("cat >{file}.new <<'END'\n{CONFIGURATION}{targets}END\nmv {file}.new {file}"));
    }

    /// Changes the cap in the configuration file, and waits until it is in force.
    pub fn cap(&self, seconds: u32) {
        let told = || {
            let lines = format!("grep -c 'a new configuration' {}/longhaul.log || true", folder(self.share));
            self.lab.ask(&lines).trim().parse::<u32>().unwrap_or(0)
        };
        let before = told();
        self.configure(seconds);
        self.wait("the new configuration", || told() > before);
    }

    /// What `longhaul status --json` says; it exits with 3 where something is wrong.
    pub fn status(&self) -> Value {
        let output = self.lab.run(&format!("{} status --json", self.longhaul));
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Orders a round.
    pub fn order(&self) {
        self.lab.ask(&format!("{} round now", self.longhaul));
    }

    /// Orders a round and waits for its end.
    pub fn round(&self) {
        let number = |status: &Value| status["last"]["number"].as_i64();
        let before = number(&self.status());
        self.order();
        self.wait_for("the round", |status| {
            number(status) > before && status["state"]["name"] != "measuring"
        });
    }

    /// Waits until no round is in progress.
    pub fn wait_until_idle(&self) {
        self.wait_for("the end of the round", |status| status["state"]["name"] == "waiting");
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        self.wait(what, || is_so(&self.status()));
    }

    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < PATIENCE, "{}: waited in vain for {what}{}", self.share, self.logs());
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// All runs that are booked.
    pub fn runs(&self) -> Runs {
        let lines = self.lab.ask(&format!("{} runs --json --last 0", self.longhaul));
        let runs = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        runs.filter_map(|run| Some((run["run"].as_i64()?, run))).collect()
    }

    /// Begins to ask for the status.
    pub fn begin_asking(&self) -> Child {
        let script = concat!("/host", env!("CARGO_MANIFEST_DIR"), "/tests/lab/ask_status.py");
        self.lab
            .start(&format!("rm -f {ENOUGH}; python3 {script} {}/l.daemon.json {ENOUGH}", folder(self.share)))
    }

    /// Ends what [`Service::begin_asking`] began.
    pub fn end_asking(&self, asking: Child) -> Vec<Answer> {
        self.lab.ask(&format!("touch {ENOUGH}"));
        let output = asking.wait_with_output().expect("the client answers");
        let lines = text(&output);
        assert!(output.status.success(), "the status is no status: {lines}{}", self.logs());
        let answers: Vec<Answer> = lines.lines().filter_map(Answer::parse).collect();
        assert!(!answers.is_empty(), "nobody asked for the status: {lines}");
        answers
    }

    /// What `clean --yes` says of the share. The service must have ended.
    pub fn clean(&self) -> String {
        text(&self.lab.run(&format!("{} clean --yes {}", self.longhaul, self.share)))
    }

    /// What the service and the machines have said lately.
    pub fn logs(&self) -> String {
        let lately = format!("tail -n 25 {}/longhaul.log | cut -c 1-400", folder(self.share));
        format!("\n--- longhaul.log\n{}{}", text(&self.lab.run(&lately)), self.lab.logs())
    }
}

/// Where the service of a share keeps what is its own, on the client's local disk.
fn folder(share: &str) -> String {
    format!("/m/local/longhaul-{share}")
}
