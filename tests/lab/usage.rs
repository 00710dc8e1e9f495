//! Test of counted usage on real servers: what the service counts while a program runs agrees with the program's own
//! calls, as strace counts them.
//!
//! The program opens and reads files that are smaller than one read request and not in the cache, writes small files
//! and syncs each, and makes folders: each of these calls causes one request. Not compared: attributes, which no single
//! call causes, and what SMB opens, because it also opens a file to look up its name.

use std::time::Duration;

use crate::machines::daemon::Daemon;
use crate::machines::{Findings, Lab, note};
use serde_json::Value;

/// Number of files that the program reads and writes, and of folders that it makes.
const CALLS: u64 = 400;
/// Allowed relative difference between counted requests and calls.
const TOLERANCE: f64 = 0.02;
/// Time in which the latency probe is the only program that uses the shares.
const PROBED: Duration = Duration::from_secs(90);

/// A share, and the kinds of request that are compared with system calls.
struct Share {
    name: &'static str,
    kinds: &'static [Kind],
}

/// A kind of request, and parts of the strace lines of the calls that cause one each.
type Kind = (&'static str, &'static [&'static str]);

const READ: Kind = ("read", &[" read("]);
const WRITE: Kind = ("write", &[" write("]);

const SHARES: [Share; 3] = [
    // NFS 3 creates a file with a request of its own.
    Share { name: "nfs3", kinds: &[READ, WRITE, ("change", &[" mkdir(", "|O_CREAT"])] },
    Share { name: "nfs4", kinds: &[READ, WRITE, ("change", &[" mkdir("]), ("open", &[" openat("])] },
    Share { name: "smb3", kinds: &[READ, WRITE] },
];

/// The program. It opens and reads each file with one call each, without asking for attributes.
const PROGRAM: &str = r"
import os, sys
folder, count = sys.argv[1], int(sys.argv[2])
for number in range(count):
    file = os.open(f'{folder}/in-{number}', os.O_RDONLY)
    os.read(file, 32768)
    os.close(file)
    file = os.open(f'{folder}/out-{number}', os.O_WRONLY | os.O_CREAT)
    os.write(file, b'x' * 4096)
    os.fsync(file)
    os.close(file)
    os.mkdir(f'{folder}/new-{number}')
";

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn counted_usage_agrees_with_strace() {
    let lab = Lab::up("local smb3 nfs3 nfs4");
    lab.ask("mkdir -p /m/local/usage");
    lab.ask(&format!("cat >/m/local/usage/program.py <<'EOF'{PROGRAM}EOF"));
    for Share { name, .. } in SHARES {
        lab.ask(&format!(
            "mkdir -p /m/{name}/use-{name} && cd /m/{name}/use-{name} && \
             for i in $(seq 0 {CALLS}); do head -c 20000 /dev/urandom >in-$i; done && sync"
        ));
    }
    let mut findings = Findings::default();
    let service = start(&lab, "never");
    let traced: Vec<String> = SHARES.iter().map(|share| run_program(&lab, share)).collect();
    std::thread::sleep(Duration::from_secs(5));
    let usage = stop(service);
    for (share, traced) in SHARES.iter().zip(&traced) {
        compare(share, (traced, &usage), &mut findings);
    }
    findings.print(&["share", "kind", "call", "calls", "counted", "off"]);
    findings.assert(&lab);
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn requests_of_the_probe_are_no_usage() {
    let lab = Lab::up("local smb3 nfs3 nfs4");
    for Share { name, .. } in SHARES {
        lab.ask(&format!("mkdir -p /m/{name}/use-{name}"));
    }
    let service = start(&lab, "always");
    std::thread::sleep(PROBED);
    let status = service.status();
    // The pause ends the probe, which then reports its last samples.
    service.ask("pause");
    std::thread::sleep(Duration::from_secs(10));
    let usage = stop(service);
    let mut findings = Findings::default();
    for target in status["targets"].as_array().into_iter().flatten() {
        findings.check(target["probe"]["name"] == "active", || format!("no probe: {target}"));
    }
    for target in usage["counted"]["targets"].as_array().into_iter().flatten() {
        let count = |kind: &str| target["requests"][kind].as_u64();
        findings.row(
            &["target", "requests", "files_read"]
                .map(|key| target[key].to_string())
                .each_ref()
                .map(|cell| cell.as_str()),
        );
        // Reads of 4 KiB every two seconds: without the subtraction there would be 45.
        findings.check(count("read").is_some_and(|reads| reads <= 8), || format!("reads: {target}"));
        findings.check(count("list").is_some_and(|listings| listings <= 4), || format!("listings: {target}"));
        findings.check(target["files_read"].as_u64().is_none_or(|files| files <= 8), || {
            format!("files: {target}")
        });
    }
    findings.check(findings.rows.len() == SHARES.len(), || format!("not all were counted: {usage}"));
    findings.print(&["share", "requests", "files read"]);
    findings.assert(&lab);
}

/// Compares what the service counted on a share with the calls that strace counted.
fn compare(share: &Share, (traced, usage): (&str, &Value), findings: &mut Findings) {
    let targets = usage["counted"]["targets"].as_array().cloned().unwrap_or_default();
    let counted = targets.iter().find(|target| target["target"] == share.name);
    for (kind, causes) in share.kinds {
        let calls = calls_on(traced, causes, share.name);
        let counted = counted.and_then(|target| target["requests"][*kind].as_u64());
        let off = counted.map(|counted| counted as f64 / calls as f64 - 1.0);
        let percent = off.map_or("not counted".to_owned(), |off| format!("{:+.2} %", off * 100.0));
        let counted = counted.map_or("-".to_owned(), |counted| counted.to_string());
        findings.row(&[share.name, kind, causes.concat().trim(), &calls.to_string(), &counted, &percent]);
        findings.check(off.is_some_and(|off| off.abs() <= TOLERANCE), || {
            format!("{}: {kind}: {counted} counted, {calls} calls: {usage}", share.name)
        });
    }
}

/// Returns how many successful calls with one of these parts strace recorded on a share.
fn calls_on(traced: &str, causes: &[&str], share: &str) -> u64 {
    let folder = format!("/m/{share}/use-");
    let is_call = |line: &&str| {
        causes.iter().any(|cause| line.contains(cause)) && line.contains(&folder) && !line.contains(" = -1")
    };
    traced.lines().filter(is_call).count() as u64
}

/// Starts a service that makes no rounds, and waits until it has read the counters. `probe_when` says when its probe sends requests.
fn start<'a>(lab: &'a Lab, probe_when: &str) -> Daemon<'a> {
    let targets =
        SHARES.map(|Share { name, .. }| format!("[targets.{name}]\npath = \"/m/{name}/use-{name}\"\n"));
    let config = format!(
        "[schedule]\nquiet-hours = \"00:00-23:59\"\n[sampling]\nprobe-when = \"{probe_when}\"\n\
         probe-interval-seconds = 1\ncounter-interval-seconds = 1\n{}",
        targets.concat()
    );
    let service = Daemon::start(lab, "/m/local/usage", &config);
    service.wait("the service to start", || service.ask("status --json").contains("\"targets\""));
    // The first look at the targets sends requests.
    std::thread::sleep(Duration::from_secs(15));
    service
}

/// Runs the program on a share with an empty cache, and returns the calls that strace recorded.
fn run_program(lab: &Lab, share: &Share) -> String {
    let name = share.name;
    let trace = "strace -f -y -e trace=openat,read,write,mkdir -o /m/local/usage/trace";
    lab.ask(&format!(
        "echo 3 >/proc/sys/vm/drop_caches; {trace} \
         python3 /m/local/usage/program.py /m/{name}/use-{name} {CALLS}; sync"
    ));
    lab.ask("cat /m/local/usage/trace")
}

/// Ends the service, which stores what it counted, and returns it.
fn stop(mut service: Daemon<'_>) -> Value {
    service.stop();
    let printed = service.ask("usage --json");
    note(&service.ask("usage"));
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}
