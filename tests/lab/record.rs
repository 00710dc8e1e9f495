//! Checks replays of recordings against the programs themselves: on the share where they were recorded, and on another one.
//!
//! In simulated time (tests/lab/simulated.sh) delays are exact and processor work takes almost no time, so that strace costs nothing and a
//! time consists of round trips.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::machines::{Findings, note, text};
use serde_json::Value;

/// One-way delays of the network.
const DELAYS: [&str; 3] = ["500us", "2ms", "10ms"];
/// Programs, as `record.sh` names them.
const PROGRAMS: [&str; 5] = ["walk", "search", "copy", "unpack", "edit"];
/// Replays: the share where the program was recorded, and the one where it is replayed.
const REPLAYS: [(&str, &str); 5] =
    [("smb3", "smb3"), ("nfs3", "nfs3"), ("nfs4", "nfs4"), ("nfs4", "smb3"), ("smb3", "nfs4")];
/// Largest relative error of a replay on the share where it was recorded.
const SAME_SHARE: f64 = 0.10;
/// Largest relative error of a replay on another share.
const OTHER_SHARE: f64 = 0.15;
/// Ratio of the programs' times from which the replays must have the same winner.
const CLEAR: f64 = 1.1;

/// Times of the programs by delay, program and share, in seconds.
type Times = BTreeMap<[String; 3], f64>;

#[test]
#[ignore = "boots a virtual machine for each delay; run with --ignored"]
fn replays_take_as_long_as_the_programs() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target folder is writable");
    let mut findings = Findings::default();
    for delay in DELAYS {
        let plain = plain_times(&measure(delay, scratch.path()));
        PROGRAMS.iter().for_each(|program| judge([delay, program], (&plain, scratch.path()), &mut findings));
    }
    findings.print(&[
        "one way",
        "program",
        "recorded on",
        "replayed on",
        "program itself",
        "replay",
        "error",
    ]);
    assert!(findings.wrong.is_empty(), "{}", findings.wrong.join("\n"));
}

fn measure(delay: &str, export: &Path) -> String {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab");
    let output = Command::new("bash")
        .arg(lab.join("simulated.sh"))
        .args(["run", "env", &format!("EXPORT={}", export.display())])
        .arg(format!("LONGHAUL={}", env!("CARGO_BIN_EXE_longhaul")))
        .args(["bash", &format!("/host{}", lab.join("record.sh").display()), delay, &PROGRAMS.join("+")])
        .env(
            "LAB_SHARE",
            Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder"),
        )
        .env("SIMULATED_MOUNTS", "local smb3 nfs3 nfs4")
        .env("SIMULATED_MEM", "3G")
        .env("SIMULATED_START", "2026-03-02T08:00:00Z")
        .env("SIMULATED_TIMEOUT", "3600")
        .stdin(Stdio::null())
        .output()
        .expect("bash starts");
    note(&format!("{delay}: {}", text(&output)));
    assert!(output.status.success(), "{delay}: {}", text(&output));
    text(&output)
}

/// Returns the shortest time of each program on each share.
fn plain_times(printed: &str) -> Times {
    let mut times = Times::new();
    for line in printed.lines() {
        if let ["plain", delay, program, share, seconds] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let seconds: f64 = seconds.parse().expect("a time is a number");
            let key = [delay, program, share].map(str::to_owned);
            times.entry(key).and_modify(|known| *known = known.min(seconds)).or_insert(seconds);
        }
    }
    times
}

/// Checks the replays of a program at a delay.
fn judge([delay, program]: [&str; 2], (plain, export): (&Times, &Path), findings: &mut Findings) {
    let itself = |share: &str| plain[&[delay, program, share].map(str::to_owned)];
    for (from, to) in REPLAYS {
        let replays = replay_times(&export.join(format!("{delay}-{program}-{from}-{to}.replay")));
        // The one that is farthest from the program counts.
        let error = |replay: &f64| replay / itself(to) - 1.0;
        let farthest = |one: &&f64, other: &&f64| error(one).abs().total_cmp(&error(other).abs());
        let replay = replays.iter().max_by(farthest).copied();
        let error = replay.as_ref().map(error);
        findings.row(&[
            delay,
            program,
            from,
            to,
            &format!("{:.3} s", itself(to)),
            &replay.map_or("failed".to_owned(), |replay| format!("{replay:.3} s")),
            &error.map_or(String::new(), |error| format!("{:+.0} %", error * 100.0)),
        ]);
        let most = if from == to { SAME_SHARE } else { OTHER_SHARE };
        let what = format!("{delay}: {program} recorded on {from}, replayed on {to}: {error:?}");
        findings.check(error.is_some_and(|error| error.abs() <= most), || what);
    }
    for (from, other) in [("nfs4", "smb3"), ("smb3", "nfs4")] {
        let at = |to: &str| {
            longhaul_model::median(&replay_times(
                &export.join(format!("{delay}-{program}-{from}-{to}.replay")),
            ))
        };
        let (ratio, replayed) = (itself(from) / itself(other), at(from).zip(at(other)));
        let is_clear = ratio.max(1.0 / ratio) > CLEAR;
        let is_right = replayed.is_some_and(|(one, another)| (one < another) == (ratio < 1.0));
        findings.check(!is_clear || is_right, || format!("{delay}: {program}: the wrong winner by {from}"));
    }
}

/// Returns the totals of the replays that succeeded, in seconds; none if the file is not there.
fn replay_times(file: &Path) -> Vec<f64> {
    let printed = std::fs::read_to_string(file).unwrap_or_default();
    let runs = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let total = |run: Value| {
        let figures = run["phases"][0]["figures"].as_array()?.clone();
        figures.iter().find(|figure| figure["name"] == "total")?["value"].as_f64()
    };
    runs.filter(|run| run["outcome"] == "ok").filter_map(total).collect()
}
