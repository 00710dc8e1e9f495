//! Controls the background service in the client machine of the lab.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Lab, json_lines, text};

/// Time after which a waiting test fails. It is a generous limit for slow machines, not a performance requirement.
const TIMEOUT: Duration = Duration::from_secs(900);
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Cap in seconds that no run reaches unless it hangs, even while a client waits to reconnect.
pub const AMPLE_CAP: u32 = 300;
/// File in the client whose existence makes the polling script end.
const STOP_FILE: &str = "/tmp/enough";
/// Configuration with one workload that writes, rounds only on request, and all reasons to skip disabled.
const CONFIGURATION: &str = concat!(
    r#"scale = "quick"
workloads = ["time-machine"]
[schedule]
rounds-per-day = 1
freshness = false
"#,
    include_str!("../../e2e/support/never-skip.toml")
);

/// Running longhauld with a share and the local disk as targets. The target on the share is a folder named after the
/// share. The local disk has the role of a share as well, because a baseline is measured only in every fourth round.
pub struct Service<'a> {
    lab: &'a Lab,
    /// Mount name of the share.
    pub share: &'a str,
    /// Command prefix: longhaul with the options for database and configuration.
    longhaul: String,
    /// Cap in the configuration file, in seconds.
    current_cap: Cell<u32>,
}

/// Response times of the service, and how busy the machine was at that time; all in seconds.
pub struct Answer {
    /// Time until the connection was established.
    pub connected: f64,
    /// Time from the start of the connection attempt to the last byte of the status.
    pub status: f64,
    /// Part of `status` in which the whole machine stood still.
    pub stood_still: f64,
    /// Part of `status` in which the service or the client was runnable but the only processor was busy.
    pub waited: f64,
    /// Time to start and end a trivial program right afterwards.
    pub start: f64,
}

impl Answer {
    /// Parses one line of the polling script.
    fn parse(line: &str) -> Option<Self> {
        let mut seconds = line.split(' ').map(str::parse);
        let mut next = || seconds.next()?.ok();
        let (connected, status, stood_still) = (next()?, next()?, next()?);
        Some(Self { connected, status, stood_still, waited: next()?, start: next()? })
    }

    /// Returns the part of `status` for which the service is responsible: locks, disk or its own work, without the
    /// time in which the machine stood still or the processor was busy.
    pub fn own(&self) -> f64 {
        self.status - self.stood_still.max(self.waited)
    }
}

/// Stored runs by number.
pub type Runs = BTreeMap<i64, Value>;

impl<'a> Service<'a> {
    /// Creates the folders, starts the service and waits for the end of its first round.
    pub fn start(lab: &'a Lab, program: &str, share: &'a str) -> Self {
        let folder = folder(share);
        let options = format!("--database {folder}/l.sqlite --config {folder}/config.toml");
        let longhaul = format!("{program} {options}");
        let service = Self { lab, share, longhaul, current_cap: AMPLE_CAP.into() };
        lab.ask_nas(&format!("install -d -o lab -g lab /srv/share/{share}"));
        lab.ask(&format!("mkdir -p {folder} /m/local/{share}"));
        service.configure(AMPLE_CAP);
        let redirects = format!("--log-directory {folder} </dev/null >{folder}/output 2>&1");
        lab.ask(&format!("HOME={folder} setsid -f {program}d {options} {redirects}"));
        service.wait_for("the first round", |status| status["last_round"]["number"].as_i64() >= Some(1));
        service.wait_until_idle();
        service
    }

    /// Stops the service with SIGTERM and waits for its end.
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
        // Replaced with a rename, as editors do, because the service could otherwise read a partial file.
        let file = format!("{}/config.toml", folder(self.share));
        self.lab.ask(&format!("cat >{file}.new <<'END'\n{CONFIGURATION}{targets}END\nmv {file}.new {file}"));
    }

    /// Changes the cap in the configuration file, and waits until the service has applied it.
    pub fn cap(&self, seconds: u32) {
        let reload_count = || {
            let lines = format!("grep -c 'new configuration' {}/longhaul.log || true", folder(self.share));
            self.lab.ask(&lines).trim().parse::<u32>().unwrap_or(0)
        };
        // A file with the same content is no change.
        if self.current_cap.replace(seconds) == seconds {
            return;
        }
        let before = reload_count();
        self.configure(seconds);
        self.wait("the new configuration", || reload_count() > before);
    }

    /// Returns the output of `longhaul status --json`, also if the command exits with 3 because of a problem.
    pub fn status(&self) -> Value {
        let output = self.lab.run(&format!("{} status --json", self.longhaul));
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Requests a round.
    pub fn request_round(&self) {
        self.lab.ask(&format!("{} round", self.longhaul));
    }

    /// Requests a round and waits for its end.
    pub fn round(&self) {
        let number = |status: &Value| status["last_round"]["number"].as_i64();
        let before = number(&self.status());
        self.request_round();
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
            assert!(began.elapsed() < TIMEOUT, "{}: timed out waiting for {what}{}", self.share, self.logs());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns all stored runs.
    pub fn runs(&self) -> Runs {
        let lines = self.lab.ask(&format!("{} runs --json --last 0", self.longhaul));
        json_lines(&lines).into_iter().filter_map(|run| Some((run["run"].as_i64()?, run))).collect()
    }

    /// Starts the script that polls the status.
    pub fn start_polling(&self) -> Child {
        let script = concat!("/host", env!("CARGO_MANIFEST_DIR"), "/tests/lab/ask_status.py");
        self.lab.start(&format!(
            "rm -f {STOP_FILE}; python3 {script} {}/l.daemon.json {STOP_FILE}",
            folder(self.share)
        ))
    }

    /// Ends the script of [`Service::start_polling`] and returns its results.
    pub fn stop_polling(&self, poller: Child) -> Vec<Answer> {
        self.lab.ask(&format!("touch {STOP_FILE}"));
        let output = poller.wait_with_output().expect("the client answers");
        let lines = text(&output);
        assert!(output.status.success(), "the polling script failed: {lines}{}", self.logs());
        let answers: Vec<Answer> = lines.lines().filter_map(Answer::parse).collect();
        assert!(!answers.is_empty(), "the polling script printed no results: {lines}");
        answers
    }

    /// Runs `targets clean --yes` for the share and returns its output. The service must have ended.
    pub fn clean(&self) -> String {
        text(&self.lab.run(&format!("{} targets clean --yes {}", self.longhaul, self.share)))
    }

    /// Returns the latest log lines of the service and the machines.
    pub fn logs(&self) -> String {
        let lately = format!("tail -n 25 {}/longhaul.log | cut -c 1-400", folder(self.share));
        format!("\n--- longhaul.log\n{}{}", text(&self.lab.run(&lately)), self.lab.logs())
    }
}

/// Returns the folder of a share's service on the client's local disk: configuration, database and log.
fn folder(share: &str) -> String {
    format!("/m/local/longhaul-{share}")
}
