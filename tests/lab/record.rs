//! Checks replays of recordings against the programs themselves: on the share where they were recorded, and on another one.
//!
//! In simulated time (tests/lab/simulated.sh) delays are exact and processor work takes almost no time, so that strace costs nothing and a
//! time consists of round trips.

use std::collections::BTreeMap;
use std::path::Path;

use crate::machines::simulated::Simulation;
use crate::machines::{Findings, json_lines, note, text};
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
/// Largest relative error of median and 95th percentile of an operation, on the share where it was recorded.
const QUANTILES: f64 = 0.15;
/// Largest relative error of the number of requests, on the share where it was recorded.
const REQUESTS: f64 = 0.05;
/// Ratio of the programs' times from which the replays must have the same winner.
const CLEAR: f64 = 1.1;
/// Fewest operations of a kind whose quantiles are compared.
const FEWEST: u64 = 5;

/// A program's own time on a share, and the requests that it caused there.
#[derive(Debug, Clone, Copy)]
struct Plain {
    seconds: f64,
    requests: f64,
}

/// Numbers of quantiles that were compared, and of those that are too far from the program.
#[derive(Debug, Default)]
struct Quantiles {
    compared: usize,
    /// Those of the program recorded a second time, from the first time.
    of_itself: usize,
    /// Those of the replay, from both recordings.
    of_replay: usize,
}

/// The programs themselves, by delay, program and share.
type Programs = BTreeMap<[String; 3], Plain>;

#[test]
#[ignore = "boots a virtual machine for each delay; run with --ignored"]
fn replays_take_as_long_as_the_programs() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target folder is writable");
    let (mut findings, mut quantiles) = (Findings::default(), Quantiles::default());
    for delay in DELAYS {
        let plain = plain_programs(&measure(delay, scratch.path()));
        let cell = |program| Cell { delay, program, plain: &plain, export: scratch.path() };
        PROGRAMS.iter().for_each(|program| cell(program).judge(&mut findings));
        findings.print(&[
            "one way",
            "program",
            "recorded on",
            "replayed on",
            "program itself",
            "replay",
            "error",
            "requests",
        ]);
        PROGRAMS.iter().for_each(|program| cell(program).judge_operations(&mut findings, &mut quantiles));
        findings.print(&[
            "one way",
            "program",
            "share",
            "operation",
            "quantile",
            "recorded",
            "recorded again",
            "replay",
            "replay to the second",
        ]);
    }
    note(&format!("{quantiles:?}"));
    assert!(findings.wrong.is_empty(), "{}", findings.wrong.join("\n"));
}

fn measure(delay: &str, export: &Path) -> String {
    let arguments = [delay, &PROGRAMS.join("+")];
    let (script, mounts) = ("record.sh", "local smb3 nfs3 nfs4");
    let output = Simulation { script, arguments: &arguments, mounts, export, limit_seconds: 3600 }.run();
    assert!(output.status.success(), "{delay}: {}", text(&output));
    text(&output)
}

/// Returns the shortest time of each program on each share.
fn plain_programs(printed: &str) -> Programs {
    let mut programs = Programs::new();
    for line in printed.lines() {
        if let ["plain", delay, program, share, seconds, requests] =
            line.split_whitespace().collect::<Vec<_>>()[..]
        {
            let number = |text: &str| text.parse::<f64>().expect("a number");
            let plain = Plain { seconds: number(seconds), requests: number(requests) };
            let known = programs.entry([delay, program, share].map(str::to_owned)).or_insert(plain);
            if plain.seconds < known.seconds {
                *known = plain;
            }
        }
    }
    programs
}

/// A program at a delay, with its replays.
#[derive(Clone, Copy)]
struct Cell<'a> {
    delay: &'a str,
    program: &'a str,
    plain: &'a Programs,
    /// Folder with the files of `record.sh`.
    export: &'a Path,
}

impl Cell<'_> {
    fn itself(&self, share: &str) -> Plain {
        self.plain[&[self.delay, self.program, share].map(str::to_owned)]
    }

    /// Returns the lines of a file of this cell; none if it is not there.
    fn lines(&self, rest: &str) -> Vec<Value> {
        let file = self.export.join(format!("{}-{}-{rest}", self.delay, self.program));
        let printed = std::fs::read_to_string(file).unwrap_or_default();
        json_lines(&printed)
    }

    /// Returns the replays that succeeded.
    fn replays(&self, from: &str, to: &str) -> Vec<Plain> {
        let runs = self.lines(&format!("{from}-{to}.replay"));
        runs.iter().filter(|run| run["outcome"] == "ok").filter_map(replayed).collect()
    }

    /// Checks times, requests and winners.
    fn judge(&self, findings: &mut Findings) {
        REPLAYS.iter().for_each(|(from, to)| self.judge_replays(from, to, findings));
        for (from, other) in [("nfs4", "smb3"), ("smb3", "nfs4")] {
            let seconds = |to: &str| {
                let replays = self.replays(from, to);
                longhaul_model::median(&replays.iter().map(|replay| replay.seconds).collect::<Vec<_>>())
            };
            let ratio = self.itself(from).seconds / self.itself(other).seconds;
            let replayed = seconds(from).zip(seconds(other));
            let is_clear = ratio.max(1.0 / ratio) > CLEAR;
            let is_right = replayed.is_some_and(|(one, another)| (one < another) == (ratio < 1.0));
            let Self { delay, program, .. } = self;
            findings
                .check(!is_clear || is_right, || format!("{delay}: {program}: the wrong winner by {from}"));
        }
    }

    fn judge_replays(&self, from: &str, to: &str, findings: &mut Findings) {
        let Self { delay, program, .. } = *self;
        let (itself, replays) = (self.itself(to), self.replays(from, to));
        // The one that is farthest from the program counts.
        let error = |replay: &Plain| replay.seconds / itself.seconds - 1.0;
        let farthest = |one: &&Plain, other: &&Plain| error(one).abs().total_cmp(&error(other).abs());
        let Some(replay) = replays.iter().max_by(farthest) else {
            return findings
                .wrong
                .push(format!("{delay}: {program} from {from} on {to}: no replay succeeded"));
        };
        let error = error(replay);
        let requests = replay.requests / itself.requests - 1.0;
        findings.row(&[
            delay,
            program,
            from,
            to,
            &format!("{:.3} s", itself.seconds),
            &format!("{:.3} s", replay.seconds),
            &format!("{:+.0} %", error * 100.0),
            &format!("{} instead of {}", replay.requests, itself.requests),
        ]);
        let what = |what: &str, error: f64| {
            format!("{delay}: {program} recorded on {from}, replayed on {to}: {what} {:+.1} %", error * 100.0)
        };
        let most = if from == to { SAME_SHARE } else { OTHER_SHARE };
        findings.check(error.abs() <= most, || what("time", error));
        findings.check(from != to || requests.abs() <= REQUESTS, || what("requests", requests));
    }

    /// Checks median and 95th percentile of each kind of operation that waited for the network.
    fn judge_operations(&self, findings: &mut Findings, quantiles: &mut Quantiles) {
        for share in ["smb3", "nfs3", "nfs4"] {
            let [recorded, again] =
                ["recording", "again"].map(|which| self.recorded_operations(share, which));
            let replayed = self.last_operations(share);
            for recorded in recorded.iter().filter(|recorded| recorded["count"].as_u64() >= Some(FEWEST)) {
                let is_it = |row: &&Value| row["operation"] == recorded["operation"];
                let rows = again.iter().find(is_it).zip(replayed.iter().find(is_it));
                if let Some((again, replayed)) = rows {
                    quantiles.add(self.judge_quantiles(share, [recorded, again, replayed], findings));
                }
            }
        }
    }

    /// Returns the operations that are kept of one of two recordings on a share.
    fn recorded_operations(&self, share: &str, which: &str) -> Vec<Value> {
        let file = self.export.join(format!("{}-{}-{share}.{which}", self.delay, self.program));
        let recording: Value =
            serde_json::from_slice(&std::fs::read(file).unwrap_or_default()).unwrap_or_default();
        recording["recording"]["times"]["by_operation"].as_array().cloned().unwrap_or_default()
    }

    /// Returns the operations of the last replay on the share where it was recorded.
    fn last_operations(&self, share: &str) -> Vec<Value> {
        let rows = self.lines(&format!("{share}-{share}.operations"));
        let last = rows.iter().filter_map(|row| row["run"].as_i64()).max();
        rows.into_iter().filter(|row| row["run"].as_i64() == last).collect()
    }

    /// Checks the quantiles of an operation: the replay against the program, which was recorded twice.
    fn judge_quantiles(&self, share: &str, operations: [&Value; 3], findings: &mut Findings) -> Quantiles {
        let Self { delay, program, .. } = self;
        let operation = operations[0]["operation"].as_str().unwrap_or_default();
        let mut found = Quantiles::default();
        for quantile in ["p50", "p95"] {
            let [first, again] = [operations[0], operations[1]]
                .map(|recorded| recorded[format!("{quantile}_seconds")].as_f64().unwrap_or(0.0));
            let replay = operations[2][format!("{quantile}_ns")].as_f64().unwrap_or(0.0) / 1e9;
            // Below a round trip, they consist of processor work, which takes no time here.
            if first.max(again).max(replay) < round_trip(delay) * 0.9 {
                continue;
            }
            let error = |one: f64, other: f64| one / other - 1.0;
            let is_off = |one: f64, other: f64| error(one, other).abs() > QUANTILES;
            found.compared += 1;
            found.of_itself += usize::from(is_off(again, first));
            found.of_replay += usize::from(is_off(replay, first) && is_off(replay, again));
            let percent = |one: f64, other: f64| format!("{:+.0} %", error(one, other) * 100.0);
            // How far the program is from itself is printed beside it, as what can be expected.
            findings.check(!is_off(replay, first), || {
                format!(
                    "{delay}: {program} on {share}: {quantile} of {operation}: {}",
                    percent(replay, first)
                )
            });
            findings.row(&[
                delay,
                program,
                share,
                operation,
                quantile,
                &format!("{:.2} ms", first * 1e3),
                &percent(again, first),
                &percent(replay, first),
                &percent(replay, again),
            ]);
        }
        found
    }
}

impl Quantiles {
    fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.of_itself += other.of_itself;
        self.of_replay += other.of_replay;
    }
}

/// Returns the round trip time of a one-way delay, in seconds.
fn round_trip(delay: &str) -> f64 {
    let (number, unit) = delay.split_at(delay.find(char::is_alphabetic).expect("a delay has a unit"));
    let number: f64 = number.parse().expect("a delay is a number");
    2.0 * number * if unit == "us" { 1e-6 } else { 1e-3 }
}

/// Returns time and requests of a replay.
fn replayed(run: &Value) -> Option<Plain> {
    let phase = &run["phases"][0];
    let figures = phase["figures"].as_array()?;
    let seconds = figures.iter().find(|figure| figure["name"] == "total")?["value"].as_f64()?;
    Some(Plain { seconds, requests: phase["wire"]["requests"].as_f64()? })
}
