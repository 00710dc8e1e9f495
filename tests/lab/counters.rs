//! Tests of traffic counters on real servers: they match transfers of known size, and the bytes on the wire match the
//! cache state that each phase claims.

use crate::machines::{Findings, Lab, json_lines, note, text};
use serde_json::Value;

/// Size of the transferred file in bytes. Its content is incompressible, and it fits into the client's memory.
const BYTES: u64 = 32 << 20;
/// Allowed relative error of a counter.
const TOLERANCE: f64 = 0.03;
/// Mounts, each with the counter source that covers exactly this mount.
const MOUNTS: [(&str, &str); 5] = [
    ("nfs3", "mountstats"),
    ("nfs4", "mountstats"),
    ("smb1", "cifs-stats"),
    ("smb2", "cifs-stats"),
    ("smb3", "cifs-stats"),
];

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn counters_match_a_known_transfer() {
    let lab = Lab::up("local smb1 smb2 smb3 nfs3 nfs4");
    let program = env!("CARGO_BIN_EXE_longhaul");
    lab.assert_starts(program);
    lab.ask("head -c 33554432 /dev/urandom >/m/local/blob && sync");
    let mut findings = Findings::default();
    for (mount, source) in MOUNTS {
        Transfers { lab: &lab, program, mount, source }.all(&mut findings);
    }
    findings.print(&["mount", "what", "source", "moved", "counted", "off", "requests", "used"]);
    phases(&lab, program, &mut findings);
    findings.print(&["target", "phase", "claim", "crossed", "delivered", "found"]);
    cold_listings(&lab, program, &mut findings);
    findings.print(&["round", "phase", "requests for names", "requests"]);
    findings.assert(&lab);
}

/// Transfers on one mount, each between two readings of the counters.
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
        findings.check(idle["used"] == false, || format!("{mount}: reported as used while idle: {idle}"));
        self.lab.ask(&format!("rm {blob}"));
    }

    /// Checks that both the mount's own counters and the TCP connections count a transfer within the tolerance.
    fn moved(&self, (what, command): (&str, &str), (key, bytes): (&str, u64), findings: &mut Findings) {
        let lines = self.lines(command);
        for source in [self.source, "connections"] {
            let line = self.of(&lines, source, findings);
            let counted = line["traffic"][key].as_u64();
            self.row(what, source, (bytes, counted), (&line, findings));
            let off = counted.map(|counted| (counted as f64 / bytes as f64 - 1.0).abs());
            findings
                .check(off.is_some_and(|off| off <= TOLERANCE), || format!("{}: {what}: {line}", self.mount));
            findings.check(line["used"] == true, || {
                format!("{}: {what} is not reported as use: {line}", self.mount)
            });
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
        let output =
            self.lab.run(&format!("{}-bench traffic /m/{} --around '{command}'", self.program, self.mount));
        json_lines(&text(&output))
    }

    fn of(&self, lines: &[Value], source: &str, findings: &mut Findings) -> Value {
        let is_it = |line: &&Value| line["target"] == self.mount && line["traffic"]["source"] == source;
        let found = lines.iter().find(is_it).cloned();
        findings.check(found.is_some(), || format!("{}: nothing from {source}: {lines:?}", self.mount));
        found.unwrap_or_default()
    }
}

/// Runs photo-batch, whose phases claim to be cold or warm, and checks the claims against the bytes on the wire.
fn phases(lab: &Lab, program: &str, findings: &mut Findings) {
    lab.ask("mkdir -p /m/local/media /m/nfs3/media && chmod 777 /m/nfs3/media");
    let targets = ["local", "smb3", "nfs3", "nfs4"].map(|name| format!("--target {name}=/m/{name}/media"));
    let run = format!(
        "{program} run --database /m/local/c.sqlite --scale quick --workload photo-batch --rounds 3 --json"
    );
    let output = lab.run(&format!("{run} {}", targets.join(" ")));
    let lines = json_lines(&text(&output));
    let runs: Vec<&Value> = lines.iter().filter(|value| value["type"] == "run").collect();
    findings.check(runs.len() == 12, || format!("{} runs: {}", runs.len(), text(&output)));
    for run in runs {
        for phase in run["phases"].as_array().into_iter().flatten() {
            let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            let (target, name) = (word(&run["target"]), word(&phase["name"]));
            findings.check(!phase["wire"].is_null(), || {
                format!("{target}: {name}: no counter for the bytes on the wire")
            });
            let claim = format!("{} {}", word(&phase["cache"]), word(&phase["cold_by"]));
            // The SMB client drops its cache a second after a file is closed, so the second read may be cold.
            let found = word(&phase["served_from"]);
            let matches = found == word(&phase["cache"]) || (target == "smb3" && found == "cold");
            findings.check(matches, || {
                format!("{target}: {name} claims to be {} but was {found}", phase["cache"])
            });
            let (crossed, read) = (phase["wire"]["read"].to_string(), phase["bytes_read"].to_string());
            findings.row(&[&target, &name, &claim, &crossed, &read, &found]);
        }
    }
    caching(&lab.ask(&format!("{program} runs --summary --database /m/local/c.sqlite")), findings);
}

/// Checks that a cold folder over SMB is listed by requests in each round. Without eviction the client keeps the listings of the
/// folders that it saw first: those of the backup, and of the slice that the fifth round uses again.
fn cold_listings(lab: &Lab, program: &str, findings: &mut Findings) {
    let output = lab.run(&format!(
        "printf '[folder-index]\nfiles = 200\n' >/m/local/l.toml && \
         {program} --config /m/local/l.toml run --database /m/local/l.sqlite --scale quick --workload folder-index --workload incremental-backup --rounds 5 --json --target smb3=/m/smb3/media"
    ));
    let lines = json_lines(&text(&output));
    let phases = lines.iter().filter(|value| value["type"] == "run").flat_map(|run| {
        let phases = run["phases"].as_array().into_iter().flatten();
        phases.map(|phase| (run["round"].to_string(), phase))
    });
    let lists = |phase: &Value| ["open-folder", "walk", "scan"].iter().any(|name| phase["name"] == *name);
    let cold: Vec<(String, &Value)> =
        phases.filter(|(_, phase)| phase["cache"] == "cold" && lists(phase)).collect();
    findings.check(cold.len() == 15, || format!("{} cold phases: {}", cold.len(), text(&output)));
    for (round, phase) in cold {
        let (name, wire) = (phase["name"].as_str().unwrap_or("-"), &phase["wire"]);
        findings.check(wire["listings"].as_u64() > Some(0), || {
            format!("round {round}: the cold {name} asked for no names: {wire}")
        });
        findings.row(&[&round, name, &wire["listings"].to_string(), &wire["requests"].to_string()]);
    }
}

/// Checks that the summary says for each target if the client caches its data.
fn caching(summary: &str, findings: &mut Findings) {
    let output: Vec<&str> = summary.lines().filter(|line| line.contains("cached by the client")).collect();
    findings.check(output.len() == 4, || format!("the summary says nothing about caching: {summary}"));
    for target in ["local", "nfs3", "nfs4"] {
        let is_cached =
            output.iter().any(|line| line.trim_start().starts_with(target) && line.contains("client: yes"));
        findings.check(is_cached, || format!("{target} is not cached: {output:?}"));
    }
    note(&output.join("\n"));
}
