//! Faults on the wire and in the server, in the middle of a run: what is booked, who goes on, and whether it mends itself.

mod lab;

use std::time::{Duration, Instant};

use lab::{Lab, note, program, skip, text};
use serde_json::Value;

const TEST: &str = "a_fault_in_mid_run_is_booked_and_mends_itself";
const SHARES: [&str; 2] = ["smb3", "nfs4"];
/// Slow enough that a fault meets a run in its middle.
const SLOW: &str = "rate 60mbit";
/// After this a run is booked as hung, where a test waits for that.
const CAP: u32 = 8;
/// No limit that a healthy run comes near, also not while a client waits to reconnect.
const AMPLE: u32 = 240;

/// One share and what is found out about it.
struct Cell<'a> {
    lab: &'a Lab,
    program: &'a str,
    share: &'a str,
    rows: Vec<String>,
    wrong: Vec<String>,
}

#[test]
fn a_fault_in_mid_run_is_booked_and_mends_itself() {
    let lab = match lab::asked_for("faults").and_then(|()| Lab::up("local smb3 nfs4")) {
        Ok(lab) => lab,
        Err(why) => return skip(TEST, &why),
    };
    let program = program();
    let version = lab.run(&format!("{program} --version"));
    if !version.status.success() {
        return skip(TEST, &format!("the program does not start in the client: {}", text(&version)));
    }
    lab.ask("mkdir -p /m/local/media /m/nfs4/media && chmod 777 /m/nfs4/media");
    let (mut rows, mut wrong) = (vec![], vec![]);
    for share in SHARES {
        let mut cell = Cell { lab: &lab, program: &program, share, rows: vec![], wrong: vec![] };
        cell.expect_ok("before any fault");
        cell.cut_for_five_seconds();
        cell.frozen_until_the_cap();
        cell.power_cut();
        rows.extend(cell.rows);
        wrong.extend(cell.wrong);
    }
    note("\n| share | fault in mid-run | booked | operation | phases kept | on the local disk | next run |");
    note("|---|---|---|---|---|---|---|");
    note(&rows.join("\n"));
    assert!(wrong.is_empty(), "{}{}", wrong.join("\n"), lab.logs());
}

impl Cell<'_> {
    fn command(&self, targets: &[&str], cap: u32) -> String {
        let targets: Vec<String> =
            targets.iter().map(|name| format!("--target {name}=/m/{name}/media")).collect();
        format!(
            "{} run --database /m/local/longhaul-{}/l.sqlite {} --workload time-machine --scale quick --cap {cap} --json",
            self.program,
            self.share,
            targets.join(" ")
        )
    }

    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            let what = format!("{}: {}", self.share, what());
            note(&format!("wrong: {what}"));
            self.wrong.push(what);
        }
    }

    /// A run without a fault.
    fn expect_ok(&mut self, when: &str) -> &'static str {
        let output = self.lab.run(&self.command(&[self.share], AMPLE));
        let ok = runs(&output.stdout).first().is_some_and(|run| run["outcome"] == "ok");
        self.check(ok, || format!("{when}: {}", text(&output)));
        if ok { "ok" } else { "not ok" }
    }

    /// Begins a run and comes back when its first file grows on the share.
    fn begin(&mut self, targets: &[&str], cap: u32) -> std::process::Child {
        assert!(self.lab.nas("touch /tmp/begin").status.success(), "{}", self.lab.logs());
        self.lab.net(SLOW);
        let child = self.lab.start(&self.command(targets, cap));
        let large = format!(
            "find /srv/share/media/.longhaul-*-{}/time-machine/speed -name large -newer /tmp/begin | grep -q .",
            self.share
        );
        let patience = Instant::now() + Duration::from_secs(120);
        while !self.lab.nas(&large).status.success() {
            assert!(Instant::now() < patience, "the run does not begin{}", self.lab.logs());
        }
        child
    }

    fn cut_for_five_seconds(&mut self) {
        let mut child = self.begin(&[self.share], AMPLE);
        self.lab.cut();
        std::thread::sleep(Duration::from_secs(5));
        self.check(matches!(child.try_wait(), Ok(None)), || {
            "the run ended before the cable was mended".into()
        });
        self.lab.heal();
        let run = self.booked(child, "cable cut for 5 s");
        let outcome = word(&run, "outcome");
        self.check(["ok", "error"].contains(&outcome.as_str()), || format!("cut: {run}"));
        let next = self.expect_ok("after the cut");
        self.row("cable cut for 5 s", &run, "-", next);
    }

    fn frozen_until_the_cap(&mut self) {
        let child = self.begin(&[self.share, "local"], CAP);
        self.lab.freeze();
        let output = child.wait_with_output().expect("the client answers");
        let runs = runs(&output.stdout);
        let find = |name: &str| runs.iter().find(|run| run["target"] == name).cloned().unwrap_or_default();
        let (run, local) = (find(self.share), find("local"));
        self.check(is_hung_with_all_it_had(&run), || format!("frozen: {}", text(&output)));
        self.check(local["outcome"] == "ok", || format!("frozen: the local disk: {local}"));
        self.lab.thaw();
        self.lab.heal();
        let next = self.expect_ok("after thawing");
        self.row("NAS frozen until the cap", &run, &word(&local, "outcome"), next);
    }

    fn power_cut(&mut self) {
        let child = self.begin(&[self.share], CAP);
        self.lab.power_off();
        let run = self.booked(child, "power cut");
        let outcome = word(&run, "outcome");
        self.check(["hung", "error"].contains(&outcome.as_str()), || format!("power cut: {run}"));
        self.lab.power_on();
        self.lab.net("clear");
        let next = self.after_losing_power();
        self.row("NAS without power", &run, "-", next);
    }

    /// A server that lost its power may have lost bytes that it had confirmed. Then the next run has to say so, of a
    /// file of its own and as nothing else, and the one after it has to be well; the table says which it was.
    fn after_losing_power(&mut self) -> &'static str {
        let output = self.lab.run(&self.command(&[self.share], AMPLE));
        let run = runs(&output.stdout).into_iter().next().unwrap_or_default();
        if run["outcome"] == "ok" {
            return "ok";
        }
        let said = run["failure"]["message"].as_str().unwrap_or_default().to_owned();
        let found = run["outcome"] == "error" && said.contains("/.longhaul-") && said.contains("is damaged");
        self.check(found, || format!("after booting: {}", text(&output)));
        note(&format!("{}: after the power cut: {said}", self.share));
        match self.expect_ok("the second run after booting") {
            "ok" => "damage found, then ok",
            other => other,
        }
    }

    /// The one run that has to come out of it, whatever happened.
    fn booked(&mut self, child: std::process::Child, fault: &str) -> Value {
        let output = child.wait_with_output().expect("the client answers");
        let runs = runs(&output.stdout);
        self.check(runs.len() == 1, || {
            format!("{fault}: {} runs were booked: {}", runs.len(), text(&output))
        });
        runs.into_iter().next().unwrap_or_default()
    }

    fn row(&mut self, fault: &str, run: &Value, local: &str, next: &str) {
        let operation = run["failure"]["operation"].as_str().unwrap_or("-");
        let phases = run["phases"].as_array().map_or(0, Vec::len);
        let outcome = word(run, "outcome");
        self.rows.push(format!(
            "| {} | {fault} | {outcome} | {operation} | {phases} | {local} | {next} |",
            self.share
        ));
    }
}

/// Hung, with the operation named, and the operations of the phase in which it hung.
fn is_hung_with_all_it_had(run: &Value) -> bool {
    let phases = run["phases"].as_array();
    let last = phases.and_then(|phases| phases.last());
    let kept =
        last.and_then(|phase| phase["ops"].as_array()).is_some_and(|operations| !operations.is_empty());
    run["outcome"] == "hung" && run["failure"]["operation"].is_string() && kept
}

fn word(run: &Value, key: &str) -> String {
    run[key].as_str().unwrap_or("?").to_owned()
}

/// The runs among the lines that `--json` prints.
fn runs(printed: &[u8]) -> Vec<Value> {
    let printed = String::from_utf8_lossy(printed).into_owned();
    let values = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    values.filter(|value| value["type"] == "run").collect()
}
