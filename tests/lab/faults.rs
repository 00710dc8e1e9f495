//! Network and server faults during a run of the background service, in the lab. For each fault and share the test
//! checks the stored outcome, the response time of the status, the runs on the local disk, the recovery, and that no
//! run or file is lost or left behind. One test has all faults, the other two of them.

use std::time::{Duration, Instant};

use crate::machines::fault::{FAULTS, Fault, SHORT};
use crate::machines::service::{AMPLE_CAP, Answer, Runs, Service};
use crate::machines::{Findings, Lab, note, program, text};
use longhaul_model::Timestamp;
use serde_json::Value;

const SHARES: [&str; 3] = ["smb3", "nfs3", "nfs4"];
/// Bandwidth limit (`tc netem`) that makes a run slow enough for a fault to occur in its middle.
const SLOW: &str = "rate 60mbit";
/// Response time of the status, in seconds, above which a response is late. The start of a trivial program is held to
/// the same limit, to find out what this machine can do.
const STATUS_LIMIT: f64 = 0.1;
/// Time within which a client must reconnect to a server after the fault.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(240);

#[test]
#[ignore = "boots two virtual machines, and takes 35 minutes; run by name with --ignored"]
fn service_stores_each_fault_and_recovers() {
    run_faults(&FAULTS.map(|fault| fault.name));
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn service_stores_two_faults_and_recovers() {
    run_faults(&SHORT);
}

/// Runs the named faults on each share, and checks what the service stored.
fn run_faults(names: &[&str]) {
    let lab = Lab::up("local smb3 nfs3 nfs4");
    let program = program();
    lab.assert_starts(program);
    lab.assert_starts(&format!("{program}d"));
    let mut findings = Findings::default();
    for share in SHARES {
        let service = Service::start(&lab, program, share);
        for fault in FAULTS.iter().filter(|fault| names.contains(&fault.name)) {
            Cell { lab: &lab, service: &service, fault }.fill(&mut findings);
        }
        check_leaves_nothing(&lab, &service, &mut findings);
    }
    findings.print(&COLUMNS);
    findings.assert(&lab);
}

const COLUMNS: [&str; 8] = [
    "share",
    "fault during a run",
    "outcome",
    "response time of the status: median; slowest; over 100 ms by itself (start of a trivial program)",
    "local disk",
    "next rounds",
    "runs lost",
    "stray files",
];

/// One fault on one share.
struct Cell<'a> {
    lab: &'a Lab,
    service: &'a Service<'a>,
    fault: &'a Fault,
}

/// Observations during a fault.
struct Seen {
    answers: Vec<Answer>,
    /// Start of the fault by the client's clock.
    since: Timestamp,
    /// All stored runs after the fault.
    runs: Runs,
}

impl Cell<'_> {
    fn fill(&self, findings: &mut Findings) {
        let before = findings.wrong.len();
        let acknowledged = self.service.runs();
        self.begin_run();
        let seen = self.run_with_fault();
        self.judge(&acknowledged, &seen, findings);
        note(findings.rows.last().map_or("", String::as_str));
        if findings.wrong.len() > before {
            note(&format!("wrong: {}{}", findings.wrong[before..].join("\n"), self.service.logs()));
        }
    }

    /// Requests a round and returns when the run on the share has created its first large file.
    fn begin_run(&self) {
        let (lab, share) = (self.lab, self.service.share);
        self.service.cap(self.fault.cap);
        lab.ask_nas("touch /tmp/begin");
        lab.net(SLOW);
        self.service.request_round();
        let large = format!(
            "find /srv/share/{share}/.longhaul-*/time-machine/speed -name large -newer /tmp/begin | grep -q ."
        );
        let patience = Instant::now() + RECOVERY_TIMEOUT;
        while !lab.nas(&large).status.success() {
            assert!(Instant::now() < patience, "the run does not start{}", self.service.logs());
        }
    }

    /// Starts the fault, polls the status while it lasts, ends it and waits until the round is over.
    fn run_with_fault(&self) -> Seen {
        let since_us = self.lab.ask("date +%s%6N").trim().parse().expect("a clock says a number");
        let since = Timestamp::from_us(since_us);
        (self.fault.begin)(self.lab, self.service.share);
        let answers = self.poll_during_fault(since);
        (self.fault.end)(self.lab, self.service.share);
        self.lab.heal();
        self.service.wait_until_idle();
        Seen { answers, since, runs: self.service.runs() }
    }

    /// Polls the status during the fault and returns the responses. A fault without a duration lasts until the run on
    /// the share is stored and a run on the local disk has started and ended during the fault.
    fn poll_during_fault(&self, since: Timestamp) -> Vec<Answer> {
        let poller = self.service.start_polling();
        if let Some(seconds) = self.fault.lasts {
            std::thread::sleep(Duration::from_secs(seconds));
            return self.service.stop_polling(poller);
        }
        self.service.wait_until_idle();
        if local(&self.service.runs(), since).next().is_none() {
            self.service.round();
        }
        self.service.stop_polling(poller)
    }

    /// Checks the observations during the fault and the recovery after it, and adds a row to the table.
    fn judge(&self, acknowledged: &Runs, seen: &Seen, findings: &mut Findings) {
        let run = self.check_outcome(acknowledged, seen, findings);
        let (answered, is_fast) = response_times(&seen.answers);
        self.check(findings, is_fast, || format!("the status was late: {answered}"));
        let local = self.check_local_disk(acknowledged, seen, findings);
        let (recovered, has_recovered) = self.recover();
        self.check(findings, has_recovered, || format!("does not recover: {recovered}"));
        let lost = self.lost(acknowledged, seen);
        self.check(findings, lost == 0, || format!("{lost} runs lost"));
        let strays = self.strays();
        self.check(findings, strays.is_empty(), || format!("stray files: {strays}"));
        let (lost, strays) = (lost.to_string(), strays.lines().count().to_string());
        let fault = self.fault.name;
        findings.row(&[
            self.service.share,
            fault,
            &outcome_text(&run),
            &answered,
            local,
            &recovered,
            &lost,
            &strays,
        ]);
    }

    fn check(&self, findings: &mut Findings, holds: bool, what: impl FnOnce() -> String) {
        findings.check(holds, || format!("{}, {}: {}", self.service.share, self.fault.name, what()));
    }

    /// Returns the run on the share during the fault, and checks its outcome and failure message.
    fn check_outcome(&self, acknowledged: &Runs, seen: &Seen, findings: &mut Findings) -> Value {
        let run = new(acknowledged, seen).find(|run| run["target"] == self.service.share);
        let run = run.cloned().unwrap_or_default();
        let is_right = self.fault.right.contains(&word(&run, "outcome")) && has_failure_details(&run);
        self.check(findings, is_right, || format!("stored as {run}"));
        run
    }

    /// Checks that every run on the local disk is ok, and that one started during a fault without a fixed duration.
    fn check_local_disk(&self, acknowledged: &Runs, seen: &Seen, findings: &mut Findings) -> &'static str {
        let runs: Vec<&Value> = new(acknowledged, seen).filter(|run| run["target"] == "local").collect();
        let is_ok = !runs.is_empty() && runs.iter().all(|run| run["outcome"] == "ok");
        self.check(findings, is_ok, || format!("runs on the local disk: {runs:?}"));
        let has_local_run = local(&seen.runs, seen.since).next().is_some();
        self.check(findings, has_local_run || self.fault.lasts.is_some(), || {
            "no run on the local disk during the fault".to_owned()
        });
        match (is_ok, has_local_run) {
            (false, _) => "not ok",
            (true, true) => "ok during the fault",
            (true, false) => "ok before the fault",
        }
    }

    /// Returns the number of stored runs that are now missing or changed.
    fn lost(&self, acknowledged: &Runs, seen: &Seen) -> usize {
        let after = self.service.runs();
        let shown = acknowledged.iter().chain(&seen.runs);
        shown.filter(|(number, run)| after.get(number) != Some(run)).count()
    }

    /// Runs rounds until the run on the share is ok or the timeout is over. Returns the outcomes as text, and true if
    /// the last run was ok.
    fn recover(&self) -> (String, bool) {
        let began = Instant::now();
        let mut outcomes = vec![];
        self.service.cap(AMPLE_CAP);
        loop {
            let waited = began.elapsed();
            let run = self.next_run();
            outcomes.push(outcome_text(&run));
            let is_ok = run["outcome"] == "ok";
            if is_ok || waited > RECOVERY_TIMEOUT || self.is_unexpected_damage(&run) {
                let when = if outcomes.len() > 1 {
                    format!(", started {} s after", waited.as_secs())
                } else {
                    String::new()
                };
                return (outcomes.join(", ") + &when, is_ok);
            }
        }
    }

    /// Runs a round now and returns its run on the share.
    fn next_run(&self) -> Value {
        self.service.round();
        let runs = self.service.runs();
        let run = runs.into_values().rfind(|run| run["target"] == self.service.share).unwrap_or_default();
        if let Some(message) = run["failure"]["message"].as_str() {
            note(&format!("{}, after {}: {message}", self.service.share, self.fault.name));
        }
        run
    }

    /// Returns true if a run reports damaged data after a fault other than a power loss. Only a server that lost
    /// power may lose bytes that it had confirmed.
    fn is_unexpected_damage(&self, run: &Value) -> bool {
        let is_damage =
            run["failure"]["message"].as_str().is_some_and(|message| message.contains("is damaged"));
        is_damage && !self.fault.name.contains("power")
    }

    /// Returns files on the NAS that lie outside sandboxes, and files in them that only exist during a run.
    fn strays(&self) -> String {
        let outside = "-mindepth 1 -not -type d -not -path '*/.longhaul-*' -not -path '*/lost+found*'";
        let inside = "-name '.nfs*' -o -name '.smb*' -o -name '*.partial' -o -path '*/time-machine/speed/*'";
        let share = self.service.share;
        text(&self.lab.nas(&format!("find /srv/share {outside}; find /srv/share/{share} {inside}")))
    }
}

/// Stops the service, cleans the target, and checks that nothing of longhaul is left on the NAS.
fn check_leaves_nothing(lab: &Lab, service: &Service<'_>, findings: &mut Findings) {
    service.stop();
    let output = service.clean();
    let left = text(&lab.nas(&format!("find /srv/share/{} -mindepth 1 | head -5", service.share)));
    findings.check(left.is_empty(), || {
        format!("{}: left behind: {left}\noutput of clean: {output}", service.share)
    });
}

/// Returns the runs that were stored since the round with the fault started.
fn new<'r>(acknowledged: &'r Runs, seen: &'r Seen) -> impl Iterator<Item = &'r Value> {
    seen.runs.iter().filter(|(number, _)| !acknowledged.contains_key(number)).map(|(_, run)| run)
}

/// Returns the runs on the local disk that started after a time by the client's clock.
fn local(runs: &Runs, since: Timestamp) -> impl Iterator<Item = &Value> {
    let began = move |run: &Value| run["started_us"].as_i64() >= Some(since.as_us());
    runs.values().filter(move |run| run["target"] == "local" && began(run))
}

/// Returns true if a run that is not ok has a failure message, and a hung run also has the operations of its last
/// phase.
fn has_failure_details(run: &Value) -> bool {
    let has_message = run["failure"]["message"].as_str().is_some_and(|message| !message.is_empty());
    let last = run["phases"].as_array().and_then(|phases| phases.last());
    let has_operations =
        last.and_then(|phase| phase["ops"].as_array()).is_some_and(|operations| !operations.is_empty());
    match word(run, "outcome") {
        "ok" => true,
        "hung" => has_message && has_operations,
        _ => has_message,
    }
}

/// Returns the outcome as text, such as `hung: sync` or `error: write, ENOSPC`.
fn outcome_text(run: &Value) -> String {
    let failure = &run["failure"];
    let details: Vec<&str> = ["operation", "error"].iter().filter_map(|key| failure[key].as_str()).collect();
    match (word(run, "outcome"), details.is_empty()) {
        ("hung", true) => "hung: still at work at the cap".to_owned(),
        (outcome, true) => outcome.to_owned(),
        (outcome, false) => format!("{outcome}: {}", details.join(", ")),
    }
}

fn word<'a>(run: &'a Value, key: &str) -> &'a str {
    run[key].as_str().unwrap_or("?")
}

/// Returns the response times as text in milliseconds, and true if no more responses were late than starts of a
/// trivial program. Time in which the whole machine stood still or the processor was busy does not count.
fn response_times(answers: &[Answer]) -> (String, bool) {
    for answer in answers.iter().filter(|answer| answer.status > STATUS_LIMIT) {
        let ms = [answer.connected, answer.status, answer.stood_still, answer.waited];
        let [connected, answered, stood_still, waited] = ms.map(|seconds| format!("{:.0}", seconds * 1e3));
        note(&format!(
            "connected after {connected} ms, responded after {answered} ms; machine stood still for {stood_still} ms, waited {waited} ms for the processor"
        ));
    }
    let (status, late) = timing_text(answers, |answer| answer.status, Answer::own);
    let (starts, late_starts) = timing_text(answers, |answer| answer.start, |answer| answer.start);
    (format!("{status} ({starts})"), late <= late_starts)
}

/// Returns the times of `took` as text, and the number of responses whose time by `counts` is late.
fn timing_text(answers: &[Answer], took: fn(&Answer) -> f64, counts: fn(&Answer) -> f64) -> (String, usize) {
    let mut seconds: Vec<f64> = answers.iter().map(took).collect();
    seconds.sort_by(f64::total_cmp);
    let late = answers.iter().filter(|answer| counts(answer) > STATUS_LIMIT).count();
    let ms = |seconds: f64| format!("{:.0}", seconds * 1e3);
    let (median, slowest) = (ms(seconds[seconds.len() / 2]), ms(seconds[seconds.len() - 1]));
    (format!("{median}; {slowest} ms, {late} of {} late", seconds.len()), late)
}
