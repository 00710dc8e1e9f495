//! Tests of the causes of stalls on real servers: pauses at an interval and lost packets are named, quiet rounds are not.
//!
//! `LAB_STALL_TRIALS` is the number of rounds with each fault (1 by default), `LAB_STALL_SHARES` the shares.

use std::time::Duration;

use crate::machines::{Findings, Lab, json_lines, note, text};
use longhaul_model::time::SECOND;

/// Tasks of a trial. A rhythm must show in two of them.
const WORKLOADS: &str = "--workload folder-index --workload photo-batch --workload incremental-backup";
/// Rounds of a trial: all together they move for as long as one or two rounds of the service, which must show the pulses. In two
/// of them the right interval was found, but as often by chance.
const ROUNDS: u32 = 9;
/// One-way delay of the network, as of a home network with Wi-Fi.
const DELAY: &str = "delay 2ms";

/// Fault during a trial, with the cause that must be named.
struct Fault {
    name: &'static str,
    cause: Option<&'static str>,
    begin: fn(&Lab) -> Option<std::process::Child>,
}

const FAULTS: [Fault; 4] = [
    Fault { name: "none", cause: None, begin: |_| None },
    Fault {
        name: "85 ms every 1.5 s",
        cause: Some("periodic-pulses"),
        begin: |lab| Some(lab.pause_nas(Duration::from_millis(1500), Duration::from_millis(85))),
    },
    Fault {
        name: "400 ms every 5 s",
        cause: Some("commit"),
        begin: |lab| Some(lab.pause_nas(5 * SECOND, Duration::from_millis(400))),
    },
    Fault {
        name: "1 % loss",
        cause: Some("retransmission-timeout"),
        begin: |lab| {
            lab.net(&format!("{DELAY} loss 1%"));
            None
        },
    },
];

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn injected_causes_of_slow_calls_are_named() {
    let shares = std::env::var("LAB_STALL_SHARES").unwrap_or_else(|_| "smb3 nfs4".to_owned());
    let trials = std::env::var("LAB_STALL_TRIALS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let lab = Lab::up(&format!("local {shares}"));
    lab.ask("mkdir -p /m/local/stalls && printf '[folder-index]\nfiles = 400\n' >/m/local/stalls/c.toml");
    let mut findings = Findings::default();
    for trial in 0..trials {
        for fault in &FAULTS {
            for share in shares.split_whitespace() {
                Trial { lab: &lab, fault, share, trial }.check(&mut findings);
            }
        }
    }
    findings.print(&["share", "fault", "trial", "named", "evidence"]);
    findings.assert(&lab);
}

struct Trial<'a> {
    lab: &'a Lab,
    fault: &'a Fault,
    share: &'a str,
    trial: u32,
}

impl Trial<'_> {
    /// Measures a share during the fault, and checks that its cause is named and no other.
    fn check(&self, findings: &mut Findings) {
        let Self { lab, fault, share, trial } = self;
        let database = format!("/m/local/stalls/{share}-{}-{trial}.sqlite", fault.cause.unwrap_or("none"));
        let program = env!("CARGO_BIN_EXE_longhaul");
        let longhaul =
            format!("HOME=/m/local/stalls {program} --config /m/local/stalls/c.toml --database {database}");
        lab.net(DELAY);
        lab.ask(&format!("mkdir -p /m/{share}/stalls"));
        let pauses = (fault.begin)(lab);
        let run = lab.run(&format!(
            "{longhaul} run --scale quick --rounds {ROUNDS} {WORKLOADS} --target {share}=/m/{share}/stalls --json"
        ));
        if let Some(mut pauses) = pauses {
            let ended = pauses.kill().and_then(|()| pauses.wait());
            assert!(ended.is_ok(), "the pauses do not end: {ended:?}");
            lab.thaw();
        }
        findings.check(run.status.success(), || format!("{share}, {}: {}", fault.name, text(&run)));
        let lines = lab.ask(&format!("{longhaul} stalls --causes --since 1h --json"));
        let named = json_lines(&lines);
        let causes: Vec<&str> = named.iter().filter_map(|named| named["cause"].as_str()).collect();
        let evidence = named.first().map(|named| named["evidence"].to_string()).unwrap_or_default();
        note(&format!("{share}, {}, trial {trial}: {causes:?} {evidence}", fault.name));
        findings.row(&[share, fault.name, &trial.to_string(), &causes.join(", "), &evidence]);
        findings.check(causes == Vec::from_iter(fault.cause), || {
            format!("{share}, {}, trial {trial}: {lines}", fault.name)
        });
    }
}
