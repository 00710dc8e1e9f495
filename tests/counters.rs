//! Counters against a known truth, on real servers: what was moved is what is counted, and what a phase claims about caches
//! is what its bytes say.

mod lab;

use lab::{Findings, Lab, note, skip, text};
use serde_json::Value;

const TEST: &str = "a_known_transfer_is_counted";
/// What is moved: incompressible, and small beside the client's memory.
const BYTES: u64 = 32 << 20;
/// How far what is counted may be off.
const TOLERANCE: f64 = 0.03;
/// Each mount with the source that counts it alone.
const MOUNTS: [(&str, &str); 5] = [
    ("nfs3", "mountstats"),
    ("nfs4", "mountstats"),
    ("smb1", "cifs-stats"),
    ("smb2", "cifs-stats"),
    ("smb3", "cifs-stats"),
];

#[test]
fn a_known_transfer_is_counted() {
    let lab = match lab::asked_for("counters").and_then(|()| Lab::up("local smb1 smb2 smb3 nfs3 nfs4")) {
        Ok(lab) => lab,
        Err(why) => return skip(TEST, &why),
    };
    let program = env!("CARGO_BIN_EXE_longhaul");
    let version = lab.run(&format!("{program} --version"));
    if !version.status.success() {
        return skip(TEST, &format!("the program does not start in the client: {}", text(&version)));
    }
    lab.ask("head -c 33554432 /dev/urandom >/m/local/blob && sync");
    let mut findings = Findings::default();
    for (mount, source) in MOUNTS {
        Transfers { lab: &lab, program, mount, source }.all(&mut findings);
    }
    findings.print(&["mount", "what", "source", "moved", "counted", "off", "requests", "used"]);
    phases(&lab, program, &mut findings);
    findings.print(&["target", "phase", "claim", "crossed", "delivered", "found"]);
    findings.assert(&lab);
}

/// Transfers on one mount, with the counters before and after each.
struct Transfers<'a> {
    lab: &'a Lab,
    program: &'a str,
    mount: &'a str,
    source: &'a str,
}

impl Transfers<'_> {
    fn all(&self, findings: &mut Findings) {
        let mount = self.mount;
        let blob = format!("/m/{mount}/blob-{mount}");
        let write = format!("cp /m/local/blob {blob} && sync {blob}");
        let read = format!("echo 3 >/proc/sys/vm/drop_caches && cat {blob} >/dev/null");
        self.moved(("written", &write), ("user_written", BYTES), findings);
        self.moved(("read cold", &read), ("user_read", BYTES), findings);
        let again = self.counted(&format!("cat {blob} >/dev/null"), self.source, findings);
        self.row("read again", self.source, (0, again["traffic"]["user_read"].as_u64()), (&again, findings));
        let idle = self.counted("sleep 2", self.source, findings);
        findings.check(idle["used"] == false, || format!("{mount}: idle and yet used: {idle}"));
        self.lab.ask(&format!("rm {blob}"));
    }

    /// A transfer is counted by the mount's own source within the tolerance, and by the connections with their headers.
    fn moved(&self, (what, command): (&str, &str), (key, bytes): (&str, u64), findings: &mut Findings) {
        let lines = self.lines(command);
        for source in [self.source, "connections"] {
            let line = self.of(&lines, source, findings);
            let counted = line["traffic"][key].as_u64();
            self.row(what, source, (bytes, counted), (&line, findings));
            let off = counted.map(|counted| (counted as f64 / bytes as f64 - 1.0).abs());
            findings
                .check(off.is_some_and(|off| off <= TOLERANCE), || format!("{}: {what}: {line}", self.mount));
            findings.check(line["used"] == true, || format!("{}: {what} is no use: {line}", self.mount));
        }
    }

    fn row(
        &self,
        what: &str,
        source: &str,
        (moved, counted): (u64, Option<u64>),
        (line, findings): (&Value, &mut Findings),
    ) {
        let off = counted
            .filter(|_| moved > 0)
            .map(|counted| format!("{:+.2} %", (counted as f64 / moved as f64 - 1.0) * 100.0));
        findings.row(&[
            self.mount,
            what,
            source,
            &moved.to_string(),
            &counted.map_or("not counted".to_owned(), |counted| counted.to_string()),
            &off.unwrap_or_default(),
            &line["traffic"]["requests"].to_string(),
            &line["used"].to_string(),
        ]);
    }

    fn counted(&self, command: &str, source: &str, findings: &mut Findings) -> Value {
        let lines = self.lines(command);
        self.of(&lines, source, findings)
    }

    fn lines(&self, command: &str) -> Vec<Value> {
        let said =
            self.lab.run(&format!("{} bench traffic /m/{} --around '{command}'", self.program, self.mount));
        text(&said).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn of(&self, lines: &[Value], source: &str, findings: &mut Findings) -> Value {
        let is_it = |line: &&Value| line["target"] == self.mount && line["traffic"]["source"] == source;
        let found = lines.iter().find(is_it).cloned();
        findings.check(found.is_some(), || format!("{}: nothing from {source}: {lines:?}", self.mount));
        found.unwrap_or_default()
    }
}

/// A task whose phases claim to be cold and warm: what crossed bears the claims out, or says that they are wrong.
fn phases(lab: &Lab, program: &str, findings: &mut Findings) {
    lab.ask("mkdir -p /m/local/media /m/nfs3/media && chmod 777 /m/nfs3/media");
    let targets = ["local", "smb3", "nfs3", "nfs4"].map(|name| format!("--target {name}=/m/{name}/media"));
    let run = format!(
        "{program} run --database /m/local/c.sqlite --scale quick --workload photo-batch --rounds 3 --json"
    );
    let said = lab.run(&format!("{run} {}", targets.join(" ")));
    let runs: Vec<Value> = text(&said).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let runs: Vec<&Value> = runs.iter().filter(|value| value["type"] == "run").collect();
    findings.check(runs.len() == 12, || format!("{} runs: {}", runs.len(), text(&said)));
    for run in runs {
        for phase in run["phases"].as_array().into_iter().flatten() {
            let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            let (target, name) = (word(&run["target"]), word(&phase["name"]));
            findings.check(!phase["wire"].is_null(), || {
                format!("{target}: {name}: nothing counted what crossed")
            });
            let claim = format!("{} {}", word(&phase["cache"]), word(&phase["cold_by"]));
            // the SMB client gives its cache up a second after a file is closed, so its second reading may be cold
            let found = word(&phase["served_from"]);
            let bears = found == word(&phase["cache"]) || (target == "smb3" && found == "cold");
            findings.check(bears, || {
                format!("{target}: {name} is said to be {} and was {found}", phase["cache"])
            });
            let (crossed, read) = (phase["wire"]["read"].to_string(), phase["bytes_read"].to_string());
            findings.row(&[&target, &name, &claim, &crossed, &read, &found]);
        }
    }
    caching(&lab.ask(&format!("{program} summary --database /m/local/c.sqlite")), findings);
}

/// Whether each protocol is cached is said, with what it rests on.
fn caching(summary: &str, findings: &mut Findings) {
    let said: Vec<&str> = summary.lines().filter(|line| line.contains("cached by the client")).collect();
    findings.check(said.len() == 4, || format!("no word on caching: {summary}"));
    for target in ["local", "nfs3", "nfs4"] {
        let is_cached = said.iter().any(|line| line.starts_with(target) && line.contains("client: yes"));
        findings.check(is_cached, || format!("{target} is not cached: {said:?}"));
    }
    note(&said.join("\n"));
}
