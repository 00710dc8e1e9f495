//! Test of attribution with readings of the NAS by its own servers: with them its slow disk is named, without them the NAS, and a busy
//! processor of the NAS is never its disk.

use serde_json::Value;

use crate::machines::{Findings, Lab};

use super::faults::Fault;
use super::runs::{FORGOTTEN_AFTER, Runs, SHARES, Share};

/// Way to read the NAS.
struct Reading {
    name: &'static str,
    /// Command that starts its server on the NAS.
    begin: &'static str,
    /// Section of the configuration.
    section: &'static str,
    /// Largest part of a backup to a slow disk: the first one where a run is long enough for the readings, else one of them.
    largest: &'static [&'static str],
}

const READINGS: [Reading; 3] = [
    Reading { name: "none", begin: "true", section: "", largest: &["server"] },
    Reading {
        name: "node_exporter",
        begin: "setsid prometheus-node-exporter --web.listen-address=10.77.0.2:9100 >/dev/null 2>&1 </dev/null &",
        section: "[nas]\nkind = \"node-exporter\"\nurl = \"http://10.77.0.2:9100/metrics\"\n",
        largest: &["server-disk"],
    },
    Reading {
        name: "SNMP",
        begin: "printf 'agentaddress udp:161\nrocommunity public\n' >/run/snmpd.conf && snmpd -C -c /run/snmpd.conf -Lf /dev/null",
        section: "[nas]\nkind = \"snmp\"\nhost = \"10.77.0.2\"\n",
        largest: &["server-disk", "server"],
    },
];
/// Faults of the NAS.
const FAULTS: [Fault; 2] = [Fault::Disk(40), Fault::BusyNas(27)];
/// Database and configuration of a case.
const FILES: &str = "--database /m/local/why/r.sqlite --config /m/local/why/r.toml";
/// Seconds that a run must take for the counters of an SNMP agent to be used.
const LONG_RUN: f64 = 2.0;

/// Backups to a share with a fault of the NAS.
struct Case<'a> {
    lab: &'a Lab,
    reading: &'a Reading,
    share: Share,
    fault: Fault,
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn fault_of_the_nas_is_placed_by_its_readings() {
    let runs = Runs::live();
    let lab = runs.lab().expect("machines run");
    let mut findings = Findings::default();
    for reading in &READINGS {
        lab.ask_nas(reading.begin);
        for share in SHARES.into_iter().filter(|share| share.name != "nfs3") {
            for fault in FAULTS {
                Case { lab, reading, share, fault }.check(&mut findings);
            }
        }
    }
    findings.print(&["readings", "share", "fault", "largest part", "backup", "parts"]);
    findings.assert(lab);
}

impl Case<'_> {
    /// Makes backups, and checks which part is said to be the largest.
    fn check(&self, findings: &mut Findings) {
        let Self { lab, reading, share, fault } = *self;
        lab.ask(&format!("rm -f /m/local/why/r.*; printf '{}' >/m/local/why/r.toml", reading.section));
        // Files are made without the fault; then most rounds have it.
        self.backups(1);
        fault.begin(lab);
        self.backups(2);
        fault.end(lab);
        let answer = lab.ask(&format!("{} {FILES} why --json", env!("CARGO_BIN_EXE_longhaul")));
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        let mut metrics = answer.as_array().into_iter().flatten();
        let found = metrics.find(|found| found["metric"] == "backup").unwrap_or(&Value::Null);
        let parts = found["parts"].as_array().into_iter().flatten();
        let seconds: f64 = parts.filter_map(|part| part["seconds"].as_f64()).sum();
        let largest = found["largest"].as_str().unwrap_or("-");
        let name = format!("{}, {}, {fault:?}", reading.name, share.name);
        findings.check(self.allowed(seconds).contains(&largest), || format!("{name}: {answer}"));
        let (fault, seconds) = (format!("{fault:?}"), format!("{seconds:.2} s"));
        findings.row(&[reading.name, share.name, &fault, largest, &seconds, &found["parts"].to_string()]);
    }

    /// Returns the parts of which one must be the largest.
    fn allowed(&self, seconds: f64) -> &[&str] {
        match self.fault {
            Fault::Disk(_) if seconds >= LONG_RUN => &self.reading.largest[..1],
            Fault::Disk(_) => self.reading.largest,
            _ => &["server"],
        }
    }

    fn backups(&self, rounds: u32) {
        std::thread::sleep(FORGOTTEN_AFTER);
        let (program, Share { name, path, .. }) = (env!("CARGO_BIN_EXE_longhaul"), self.share);
        self.lab.ask(&format!(
            "{program} {FILES} run --rounds {rounds} --scale quick --workload incremental-backup --target {name}={path}/t \
             >/m/local/why/output 2>&1 || {{ cat /m/local/why/output; exit 1; }}"
        ));
    }
}
