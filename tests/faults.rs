//! Faults on the wire and in the server, in the middle of a run of the background service: what is booked, how fast the service
//! answers meanwhile, who goes on, whether it mends itself, and whether anything is lost or left over. One row per fault and
//! share; all of them with `LONGHAUL_LAB=faults`, a few with `LONGHAUL_LAB=faults-short`.

mod lab;

use std::time::{Duration, Instant};

use lab::fault::{FAULTS, Fault, SHORT};
use lab::service::{AMPLE, Answer, Runs, Service};
use lab::{Findings, Lab, note, program, skip, text};
use serde_json::Value;

const TEST: &str = "a_fault_in_mid_run_is_booked_and_mends_itself";
const SHARES: [&str; 3] = ["smb3", "nfs3", "nfs4"];
/// Slow enough that a fault meets a run in its middle.
const SLOW: &str = "rate 60mbit";
/// Within these seconds the status has to be there, where this machine starts a trivial program in this time.
const AT_ONCE: f64 = 0.1;
/// How long a client may take until it reaches a server that is well again.
const RECOVERY: Duration = Duration::from_secs(240);

#[test]
fn a_fault_in_mid_run_is_booked_and_mends_itself() {
    let wanted = lab::asked_for("faults").map(|()| &[][..]);
    let wanted = wanted.or_else(|why| lab::asked_for("faults-short").map(|()| &SHORT[..]).map_err(|_| why));
    let (lab, wanted) = match wanted.and_then(|wanted| Ok((Lab::up("local smb3 nfs3 nfs4")?, wanted))) {
        Ok(found) => found,
        Err(why) => return skip(TEST, &why),
    };
    let program = program();
    let version = lab.run(&format!("{program} --version && {program}d --version"));
    if !version.status.success() {
        return skip(TEST, &format!("the programs do not start in the client: {}", text(&version)));
    }
    let mut findings = Findings::default();
    for share in SHARES {
        let service = Service::start(&lab, &program, share);
        for fault in FAULTS.iter().filter(|fault| wanted.is_empty() || wanted.contains(&fault.name)) {
            Cell { lab: &lab, service: &service, fault }.fill(&mut findings);
        }
        leaves_nothing(&lab, &service, &mut findings);
    }
    findings.print(&COLUMNS);
    findings.assert(&lab);
}

const COLUMNS: [&str; 8] = [
    "share",
    "fault in mid-run",
    "booked",
    "status answered: median; slowest; over 100 ms that are its own (start of a trivial program)",
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

/// What was seen while the fault lasted.
struct Seen {
    answers: Vec<Answer>,
    /// The client's clock as it began, in microseconds.
    since_us: i64,
    /// All runs after it.
    runs: Runs,
}

impl Cell<'_> {
    fn fill(&self, findings: &mut Findings) {
        let before = findings.wrong.len();
        let acknowledged = self.service.runs();
        self.begin_run();
        match self.suffer() {
            Ok(seen) => self.judge(&acknowledged, &seen, findings),
            Err(why) => self.skip(&why, findings),
        }
        note(findings.rows.last().map_or("", String::as_str));
        if findings.wrong.len() > before {
            note(&format!("wrong: {}{}", findings.wrong[before..].join("\n"), self.service.logs()));
        }
    }

    fn skip(&self, why: &str, findings: &mut Findings) {
        let name = format!("{} on {}", self.fault.name, self.service.share);
        skip(&name, why);
        let why = format!("skipped: {}", why.trim());
        findings.row(&[self.service.share, self.fault.name, &why, "", "", "", "", ""]);
    }

    /// Orders a round and comes back when the first file of the run on the share grows.
    fn begin_run(&self) {
        let (lab, share) = (self.lab, self.service.share);
        self.service.cap(self.fault.cap);
        assert!(lab.nas("touch /tmp/begin").status.success(), "{}", lab.logs());
        lab.net(SLOW);
        self.service.order();
        let large = format!(
            "find /srv/share/{share}/.longhaul-*/time-machine/speed -name large -newer /tmp/begin | grep -q ."
        );
        let patience = Instant::now() + RECOVERY;
        while !lab.nas(&large).status.success() {
            assert!(Instant::now() < patience, "the run does not begin{}", self.service.logs());
        }
    }

    /// Lets the fault come, last and go.
    fn suffer(&self) -> Result<Seen, String> {
        let since_us = self.lab.ask("date +%s%6N").trim().parse().expect("a clock says a number");
        let begun = (self.fault.begin)(self.lab, self.service.share);
        let answers = begun.map(|()| self.endure(since_us));
        (self.fault.end)(self.lab, self.service.share)?;
        self.lab.heal();
        self.service.wait_until_idle();
        Ok(Seen { answers: answers?, since_us, runs: self.service.runs() })
    }

    /// What lasts until the run is booked also lasts until a run on the local disk has begun after it and is booked.
    fn endure(&self, since_us: i64) -> Vec<Answer> {
        let asking = self.service.begin_asking();
        if let Some(seconds) = self.fault.lasts {
            std::thread::sleep(Duration::from_secs(seconds));
            return self.service.end_asking(asking);
        }
        self.service.wait_until_idle();
        if local(&self.service.runs(), since_us).next().is_none() {
            self.service.round();
        }
        self.service.end_asking(asking)
    }

    /// Holds what was seen, and what comes after it, against what has to be.
    fn judge(&self, acknowledged: &Runs, seen: &Seen, findings: &mut Findings) {
        let run = self.booked_rightly(acknowledged, seen, findings);
        let (answered, is_fast) = answered(&seen.answers);
        self.check(findings, is_fast, || format!("the status came late: {answered}"));
        let local = self.local_goes_on(acknowledged, seen, findings);
        let (recovered, is_well) = self.recover();
        self.check(findings, is_well, || format!("does not recover: {recovered}"));
        let lost = self.lost(acknowledged, seen);
        self.check(findings, lost == 0, || format!("{lost} runs lost"));
        let strays = self.strays();
        self.check(findings, strays.is_empty(), || format!("stray files: {strays}"));
        let (lost, strays) = (lost.to_string(), strays.lines().count().to_string());
        let fault = self.fault.name;
        findings.row(&[
            self.service.share,
            fault,
            &booked(&run),
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

    /// The run on the share that the fault came into.
    fn booked_rightly(&self, acknowledged: &Runs, seen: &Seen, findings: &mut Findings) -> Value {
        let run = new(acknowledged, seen).find(|run| run["target"] == self.service.share);
        let run = run.cloned().unwrap_or_default();
        let is_right = self.fault.right.contains(&word(&run, "outcome")) && says_what_failed(&run);
        self.check(findings, is_right, || format!("booked as {run}"));
        run
    }

    /// Every run on the local disk is ok, and one of them began while a fault lasted that lasts.
    fn local_goes_on(&self, acknowledged: &Runs, seen: &Seen, findings: &mut Findings) -> &'static str {
        let runs: Vec<&Value> = new(acknowledged, seen).filter(|run| run["target"] == "local").collect();
        let is_ok = !runs.is_empty() && runs.iter().all(|run| run["outcome"] == "ok");
        self.check(findings, is_ok, || format!("the local disk: {runs:?}"));
        let goes_on = local(&seen.runs, seen.since_us).next().is_some();
        self.check(findings, goes_on || self.fault.lasts.is_some(), || "no local run meanwhile".to_owned());
        match (is_ok, goes_on) {
            (false, _) => "not ok",
            (true, true) => "ok meanwhile",
            (true, false) => "ok before",
        }
    }

    /// How many runs that were booked are not there any more as they were.
    fn lost(&self, acknowledged: &Runs, seen: &Seen) -> usize {
        let after = self.service.runs();
        let shown = acknowledged.iter().chain(&seen.runs);
        shown.filter(|(number, run)| after.get(number) != Some(run)).count()
    }

    /// Rounds until one is ok on the share: how they were booked, and whether the last was well.
    fn recover(&self) -> (String, bool) {
        let began = Instant::now();
        let mut said = vec![];
        self.service.cap(AMPLE);
        loop {
            let waited = began.elapsed();
            let run = self.next_run();
            said.push(booked(&run));
            let is_ok = run["outcome"] == "ok";
            if is_ok || waited > RECOVERY || self.may_not_be(&run) {
                let when = if said.len() > 1 {
                    format!(", begun {} s after", waited.as_secs())
                } else {
                    String::new()
                };
                return (said.join(", ") + &when, is_ok);
            }
        }
    }

    /// The run on the share in a round that is ordered now.
    fn next_run(&self) -> Value {
        self.service.round();
        let runs = self.service.runs();
        let run = runs.into_values().rfind(|run| run["target"] == self.service.share).unwrap_or_default();
        if let Some(message) = run["failure"]["message"].as_str() {
            note(&format!("{}, after {}: {message}", self.service.share, self.fault.name));
        }
        run
    }

    /// Only a server that lost its power may have lost bytes that it had confirmed; then a run has to say so.
    fn may_not_be(&self, run: &Value) -> bool {
        let is_damage =
            run["failure"]["message"].as_str().is_some_and(|message| message.contains("is damaged"));
        is_damage && !self.fault.name.contains("power")
    }

    /// What lies on the NAS outside arenas, or in them only while a run goes on.
    fn strays(&self) -> String {
        let outside = "-mindepth 1 -not -type d -not -path '*/.longhaul-*' -not -path '*/lost+found*'";
        let inside = "-name '.nfs*' -o -name '.smb*' -o -name '*.partial' -o -path '*/time-machine/speed/*'";
        let share = self.service.share;
        text(&self.lab.nas(&format!("find /srv/share {outside}; find /srv/share/{share} {inside}")))
    }
}

/// Stopped in order and asked to clean, longhaul leaves nothing on the NAS: the manifest names everything.
fn leaves_nothing(lab: &Lab, service: &Service<'_>, findings: &mut Findings) {
    service.stop();
    let said = service.clean();
    let left = text(&lab.nas(&format!("find /srv/share/{} -mindepth 1 | head -5", service.share)));
    findings.check(left.is_empty(), || format!("{}: left behind: {left}\nclean said: {said}", service.share));
}

/// Runs that were booked since the round with the fault began.
fn new<'r>(acknowledged: &'r Runs, seen: &'r Seen) -> impl Iterator<Item = &'r Value> {
    seen.runs.iter().filter(|(number, _)| !acknowledged.contains_key(number)).map(|(_, run)| run)
}

/// Runs on the local disk that began after this, by the client's clock in microseconds.
fn local(runs: &Runs, since_us: i64) -> impl Iterator<Item = &Value> {
    let began = move |run: &Value| run["started_us"].as_i64() >= Some(since_us);
    runs.values().filter(move |run| run["target"] == "local" && began(run))
}

/// A run that is not ok names what happened; one that hung also has the operations of the phase in which it did.
fn says_what_failed(run: &Value) -> bool {
    let said = run["failure"]["message"].as_str().is_some_and(|message| !message.is_empty());
    let last = run["phases"].as_array().and_then(|phases| phases.last());
    let kept =
        last.and_then(|phase| phase["ops"].as_array()).is_some_and(|operations| !operations.is_empty());
    match word(run, "outcome") {
        "ok" => true,
        "hung" => said && kept,
        _ => said,
    }
}

/// `hung: sync`, `error: write, ENOSPC`.
fn booked(run: &Value) -> String {
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

/// In milliseconds, and whether no more of them were late than starts of a trivial program: on a machine where none of these
/// is late, no answer may be. What the machine takes, by standing still or by doing something else, is nobody's.
fn answered(answers: &[Answer]) -> (String, bool) {
    for answer in answers.iter().filter(|answer| answer.status > AT_ONCE) {
        let ms = [answer.connected, answer.status, answer.stood_still, answer.waited];
        let [connected, answered, stood_still, waited] = ms.map(|seconds| format!("{:.0}", seconds * 1e3));
        note(&format!(
            "connected after {connected} ms, answered after {answered}; stood still for {stood_still}, waited for the processor for {waited}"
        ));
    }
    let (status, late) = told(answers, |answer| answer.status, Answer::own);
    let (starts, late_starts) = told(answers, |answer| answer.start, |answer| answer.start);
    (format!("{status} ({starts})"), late <= late_starts)
}

/// What is shown of the seconds that something took, and how many of them were late by those that count.
fn told(answers: &[Answer], took: fn(&Answer) -> f64, counts: fn(&Answer) -> f64) -> (String, usize) {
    let mut seconds: Vec<f64> = answers.iter().map(took).collect();
    seconds.sort_by(f64::total_cmp);
    let late = answers.iter().filter(|answer| counts(answer) > AT_ONCE).count();
    let ms = |seconds: f64| format!("{:.0}", seconds * 1e3);
    let (median, slowest) = (ms(seconds[seconds.len() / 2]), ms(seconds[seconds.len() - 1]));
    (format!("{median}; {slowest} ms, {late} of {} late", seconds.len()), late)
}
