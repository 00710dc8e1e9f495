//! Tests of sampling on real servers: a cut cable is one stall, a changed mount option is an event and a new epoch.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::machines::daemon::Daemon;
use crate::machines::{Lab, json_lines, note, text};
use longhaul_model::time::{SECOND, Timestamp};
use serde_json::Value;

const SHARES: [&str; 3] = ["smb3", "nfs3", "nfs4"];
/// Folder of the service in the client.
const FOLDER: &str = "/m/local/sampling";
/// Interval between two slots of the probe, in seconds. Every other slot is a read, which needs the network.
const INTERVAL: f64 = 1.0;
/// Duration of the cut.
const CUT: Duration = Duration::from_secs(20);
/// Allowed difference between the start and end of a stall and those seen by an independent reader, in seconds.
const TOLERANCE: f64 = 1.0;

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn cut_cable_is_one_stall_and_remount_opens_an_epoch() {
    let lab = Lab::up("local smb3 nfs3 nfs4");
    lab.assert_starts(env!("CARGO_BIN_EXE_longhauld"));
    lab.ask("mkdir -p /m/local/media /m/nfs4/media && chmod 777 /m/nfs4/media");
    let service = start(&lab);
    let mut wrong = vec![];
    note(
        "\n| share | start, seconds after the reader's | end, seconds after the reader's | duration | calls |\n|---|---|---|---|---|",
    );
    wrong.extend(cut(&service));
    wrong.extend(other_option(&service).err());
    note(&service.ask("stalls --since 1h"));
    note(&service.ask("events --since 1h"));
    note(&service.ask("latency --since 1h"));
    assert!(wrong.is_empty(), "{}{}", wrong.join("\n"), lab.logs());
}

/// Starts the service and waits until every probe is active.
fn start(lab: &Lab) -> Daemon<'_> {
    let targets = SHARES.map(|share| format!("[targets.{share}]\npath = \"/m/{share}/media\"\n")).concat();
    let config = format!(
        "scale = \"quick\"\nworkloads = [\"folder-index\"]\n[folder-index]\nfiles = 200\n[schedule]\nrounds-per-day = 1\nfreshness = false\n\
         [sampling]\nprobe-when = \"always\"\nprobe-interval-seconds = 1\n{targets}"
    );
    let service = Daemon::start(lab, FOLDER, &config);
    service.wait("every probe to answer", || {
        let status = service.status();
        let targets = status["targets"].as_array().cloned().unwrap_or_default();
        targets.len() == 3 && targets.iter().all(|target| target["probe"]["name"] == "active")
    });
    // The first round ends with a check of every share. A check stops the process of a share that does not answer, and
    // then the end of a stall is known to a second only.
    service.wait("the first round to end", || {
        let status = service.status();
        status["state"]["name"] != "measuring" && status["last_round"]["number"].is_i64()
    });
    // The probe creates the file that it reads between its requests.
    service.wait("the file of every probe", || {
        let has_file = |share: &str| {
            let found = lab.run(&format!("find /m/{share}/media -path '*/probe/read' -size +512k"));
            !text(&found).trim().is_empty()
        };
        SHARES.into_iter().all(has_file)
    });
    service
}

/// Cuts the network of all shares for a while. On each share an independent reader reads five times a second and
/// records how long it waited; the recorded stall must match. Returns the violations.
fn cut(service: &Daemon<'_>) -> Vec<String> {
    let mut watchers = SHARES.map(|share| Watcher::start(service.lab, &format!("/m/{share}/watched")));
    watchers.iter_mut().for_each(Watcher::next_read);
    let since = now();
    service.lab.cut();
    std::thread::sleep(CUT);
    service.lab.heal();
    let seen = watchers.map(Watcher::all_reads);
    let same = |(share, seen): (&str, &String)| {
        let (began, ended) = longest(seen).ok_or("the reader recorded nothing")?;
        has_one_stall(service, share, since, (began, ended))
    };
    SHARES.into_iter().zip(&seen).filter_map(|pair| same(pair).err()).collect()
}

/// A reader in the client that is independent of longhaul.
struct Watcher {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Watcher {
    /// Makes a file and starts to read it.
    fn start(lab: &Lab, file: &str) -> Self {
        lab.ask(&format!("head -c 4096 /dev/urandom >{file} && sync"));
        let script = concat!("/host", env!("CARGO_MANIFEST_DIR"), "/tests/lab/watch.py");
        let mut process = lab.start(&format!("python3 {script} {file} 75"));
        let output = BufReader::new(process.stdout.take().expect("it is a pipe"));
        Self { process, output }
    }

    /// Waits for the end of the next read.
    fn next_read(&mut self) {
        self.output.read_line(&mut String::new()).expect("the client answers");
    }

    /// Returns the lines of all other reads, when it has ended.
    fn all_reads(mut self) -> String {
        let mut lines = String::new();
        self.output.read_to_string(&mut lines).expect("the client answers");
        self.process.wait().expect("the client answers");
        lines
    }
}

/// Waits until the stall has an end, and compares it with the reader's longest call.
fn has_one_stall(
    service: &Daemon<'_>,
    share: &str,
    since: Timestamp,
    (began, ended): (f64, f64),
) -> Result<(), String> {
    let of_share = || {
        let lines = json_lines(&service.ask("stalls --since 1h --json")).into_iter();
        let is_it = |stall: &Value| {
            stall["target"] == share && stall["started_us"].as_i64() >= Some((since - 2 * SECOND).as_us())
        };
        lines.filter(is_it).collect::<Vec<Value>>()
    };
    service.wait("the stall to be over", || of_share().iter().any(|stall| stall["ended_us"].is_i64()));
    let stalls = of_share();
    let seconds = |key: &str| stalls[0][key].as_i64().map_or(f64::NAN, |us| us as f64 / 1e6);
    let (late, later) = (seconds("started_us") - began, seconds("ended_us") - ended);
    let (lasted, calls) = (seconds("ended_us") - seconds("started_us"), &stalls[0]["calls"]);
    note(&format!("| {share} | {late:+.2} | {later:+.2} | {lasted:.1} s | {calls} |"));
    let start_matches = (-TOLERANCE..=2.0 * INTERVAL + TOLERANCE).contains(&late);
    if stalls.len() == 1 && start_matches && later.abs() <= TOLERANCE {
        return Ok(());
    }
    let count = stalls.len();
    Err(format!("{share}: {count} stalls, start off by {late:+.2} s, end by {later:+.2} s: {stalls:?}"))
}

/// Remounts a share with another option. The service must detect the remount, and the next round must open an
/// epoch.
fn other_option(service: &Daemon<'_>) -> Result<(), String> {
    round(service);
    let remount = "umount -l /m/nfs4 && mount -t nfs 10.77.0.2:/ /m/nfs4 -o vers=4.2,rsize=65536,wsize=65536";
    service.lab.ask(remount);
    service.wait("the remount to be noticed", || {
        service.ask("events --since 5m --target nfs4 --json").contains("65536")
    });
    round(service);
    let events = service.ask("events --since 1h --target nfs4 --json");
    let kinds = json_lines(&events);
    let is_epoch = |event: &&Value| event["event"]["kind"] == "epoch";
    match kinds.iter().filter(is_epoch).count() {
        0 => Err(format!("no epoch was opened: {events}")),
        _ => Ok(()),
    }
}

/// Runs one round and waits for its end.
fn round(service: &Daemon<'_>) {
    let done = || {
        let status = service.status();
        (status["state"]["name"] != "measuring").then(|| status["last_round"]["number"].as_i64().unwrap_or(0))
    };
    // A round or an examination that is running would be taken for the requested round.
    let before = Cell::new(None);
    service.wait("the service to be free", || {
        before.set(done());
        before.get().is_some()
    });
    service.ask("round");
    service.wait("a round", || done().is_some_and(|number| Some(number) > before.get()));
}

/// Returns start and end of the longest call, from lines with both times in seconds.
fn longest(lines: &str) -> Option<(f64, f64)> {
    let call = |line: &str| {
        let (begin, end) = line.split_once(' ')?;
        Some((begin.parse::<f64>().ok()?, end.trim().parse::<f64>().ok()?))
    };
    lines.lines().filter_map(call).max_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)))
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
