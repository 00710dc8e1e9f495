//! Test of counted usage on real servers: what the service counts while a program runs agrees with the program's own
//! calls, as strace counts them.
//!
//! The program opens and reads files that are smaller than one read request and not in the cache, writes small files
//! and syncs each, and makes folders: with each of these calls the client sends one request. Other kinds are not
//! compared, because no single call causes one. Over SMB a new folder and the look-up of a name are opened, too, so there
//! the program only reads.

use std::process::Child;
use std::time::{Duration, Instant};

use crate::machines::{Findings, Lab, note, text};
use serde_json::Value;

/// Number of files that the program reads and writes, and of folders that it makes.
const CALLS: u64 = 400;
/// Allowed relative difference between counted requests and calls.
const TOLERANCE: f64 = 0.02;
const DATABASE: &str = "/m/local/usage/l.sqlite";
const CONFIG: &str = "/m/local/usage/c.toml";

/// A share, the parts of the program that run on it, and the kinds of request with the call that causes them.
struct Share {
    name: &'static str,
    parts: &'static str,
    kinds: &'static [(&'static str, &'static str)],
}

const SHARES: [Share; 3] = [
    Share {
        name: "nfs3",
        parts: "read write mkdir",
        kinds: &[("read", "read"), ("write", "write"), ("change", "mkdir")],
    },
    Share {
        name: "nfs4",
        parts: "read mkdir",
        kinds: &[("read", "read"), ("open", "openat"), ("change", "mkdir")],
    },
    Share { name: "smb3", parts: "read", kinds: &[("read", "read"), ("open", "openat")] },
];

/// The program, in Python's core. It opens and reads each file with one call each, without asking for attributes.
const PROGRAM: &str = r"
import os, sys
folder, count, parts = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
for number in range(count):
    if 'read' in parts:
        file = os.open(f'{folder}/in-{number}', os.O_RDONLY)
        os.read(file, 32768)
        os.close(file)
    if 'write' in parts:
        file = os.open(f'{folder}/out-{number}', os.O_WRONLY | os.O_CREAT)
        os.write(file, b'x' * 4096)
        os.fsync(file)
        os.close(file)
    if 'mkdir' in parts:
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
    let service = Service::start(&lab);
    let traced: Vec<String> = SHARES.iter().map(|share| service.run_program(share)).collect();
    std::thread::sleep(Duration::from_secs(5));
    let usage = service.stop();
    for (share, traced) in SHARES.iter().zip(&traced) {
        compare(share, (traced, &usage), &mut findings);
    }
    findings.print(&["share", "kind", "call", "calls", "counted", "off"]);
    findings.assert(&lab);
}

/// Compares what the service counted on a share with the calls that strace counted.
fn compare(share: &Share, (traced, usage): (&str, &Value), findings: &mut Findings) {
    let targets = usage["counted"]["targets"].as_array().cloned().unwrap_or_default();
    let counted = targets.iter().find(|target| target["target"] == share.name);
    for (kind, call) in share.kinds {
        let calls = calls_on(traced, call, share.name);
        let counted = counted.and_then(|target| target["requests"][*kind].as_u64());
        let off = counted.map(|counted| counted as f64 / calls as f64 - 1.0);
        let percent = off.map_or("not counted".to_owned(), |off| format!("{:+.2} %", off * 100.0));
        let counted = counted.map_or("-".to_owned(), |counted| counted.to_string());
        findings.row(&[share.name, kind, call, &calls.to_string(), &counted, &percent]);
        findings.check(off.is_some_and(|off| off.abs() <= TOLERANCE), || {
            format!("{}: {kind}: {counted} counted, {calls} calls: {usage}", share.name)
        });
    }
}

/// Returns how many successful calls of this name strace recorded on a share.
fn calls_on(traced: &str, call: &str, share: &str) -> u64 {
    let is_call = |line: &&str| {
        line.contains(&format!(" {call}("))
            && line.contains(&format!("/m/{share}/use-"))
            && !line.contains(" = -1")
    };
    traced.lines().filter(is_call).count() as u64
}

/// Service running in the client machine of the lab. It makes no rounds and sends no requests of its own.
struct Service<'a> {
    lab: &'a Lab,
    process: Option<Child>,
}

impl<'a> Service<'a> {
    /// Starts the service, and waits until it has read the counters.
    fn start(lab: &'a Lab) -> Self {
        let targets =
            SHARES.map(|Share { name, .. }| format!("[targets.{name}]\npath = \"/m/{name}/use-{name}\"\n"));
        let config = format!(
            "[schedule]\nrounds-per-day = 1\n[sampling]\nprobe-when = \"never\"\ncounter-interval-seconds = 1\n{}",
            targets.concat()
        );
        lab.ask(&format!("cat >{CONFIG} <<'EOF'\n{config}EOF"));
        let program = env!("CARGO_BIN_EXE_longhauld");
        let process =
            lab.start(&format!("HOME=/m/local/usage {program} --config {CONFIG} --database {DATABASE}"));
        let service = Self { lab, process: Some(process) };
        let patience = Instant::now() + Duration::from_secs(180);
        while !service.ask("status --json").contains("\"targets\"") {
            assert!(Instant::now() < patience, "the service does not start{}", lab.logs());
            std::thread::sleep(Duration::from_secs(1));
        }
        // The first look at the targets sends requests; the pause ends before any round begins.
        service.ask("pause");
        std::thread::sleep(Duration::from_secs(15));
        service
    }

    fn ask(&self, command: &str) -> String {
        let program = env!("CARGO_BIN_EXE_longhaul");
        let command =
            format!("HOME=/m/local/usage {program} --config {CONFIG} --database {DATABASE} {command}");
        text(&self.lab.run(&command))
    }

    /// Runs the program on a share with an empty cache, and returns the calls that strace recorded.
    fn run_program(&self, share: &Share) -> String {
        let Share { name, parts, .. } = share;
        let trace = "strace -f -y -e trace=openat,read,write,mkdir -o /m/local/usage/trace";
        self.lab.ask(&format!(
            "echo 3 >/proc/sys/vm/drop_caches; {trace} \
             python3 /m/local/usage/program.py /m/{name}/use-{name} {CALLS} {parts}; sync"
        ));
        self.lab.ask("cat /m/local/usage/trace")
    }

    /// Ends the service, which stores what it counted, and returns it.
    fn stop(mut self) -> Value {
        self.lab.run("pkill -x longhauld");
        if let Some(process) = &mut self.process {
            let _ = process.wait();
        }
        let printed = self.ask("usage --json");
        note(&self.ask("usage"));
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        self.lab.run("pkill -x longhauld");
        if let Some(process) = &mut self.process {
            let _ = process.wait();
        }
    }
}
