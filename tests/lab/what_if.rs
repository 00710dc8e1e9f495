//! Checks predictions against the truth: fitted to rounds on short, fast networks, tried on long, slow and faster ones.
//!
//! In simulated time (tests/lab/simulated.sh) delays and rates are exact and processor work takes almost no time, so that a
//! time consists of round trips and bytes alone.
//!
//! `LAB_WHAT_IF_SHARES` is the list of shares (by default `smb3 nfs3 nfs4`). The databases are left in the target folder, as
//! `tmp/what-if`; with `LAB_WHAT_IF_AGAIN=1` they are judged again, without machines.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::machines::simulated::Simulation;
use crate::machines::{Findings, note, text};
use longhaul_store::Reader;
use serde_json::Value;

/// Network conditions, each a one-way delay in milliseconds and a rate in megabits per second.
type Network = (f64, u32);
/// Number of rounds under each condition.
const REPETITIONS: usize = 3;
/// Conditions of the rounds that are fitted.
const FITTED: [Network; 10] = [
    (0.25, 1000),
    (0.5, 1000),
    (1.0, 1000),
    (2.5, 1000),
    (0.25, 300),
    (1.0, 300),
    (2.5, 300),
    (0.25, 100),
    (1.0, 100),
    (2.5, 100),
];
/// Conditions that are predicted.
const TRIED: [Network; 17] = [
    (10.0, 1000),
    (25.0, 1000),
    (10.0, 100),
    (25.0, 100),
    (0.25, 20),
    (10.0, 20),
    (25.0, 20),
    (0.25, 5000),
    (10.0, 5000),
    (4.0, 500),
    (7.5, 1000),
    (15.0, 200),
    (20.0, 50),
    (0.25, 50),
    (40.0, 300),
    (1.0, 5000),
    (5.0, 2500),
];
/// Shortest time that is compared, in seconds: below it a user does not wait.
const MIN_SECONDS: f64 = 0.1;
/// Largest relative error of half of the predictions.
const MEDIAN_ERROR: f64 = 0.05;
/// Smallest share of the intervals that contain the measured time.
const COVERAGE: f64 = 0.9;
/// Difference from which the predicted winner must be the measured one.
const CLEAR: f64 = 1.1;

/// Prediction of a metric under one condition, with the measured time.
struct Cell {
    seconds: f64,
    low: f64,
    high: f64,
    measured: f64,
}

impl Cell {
    fn error(&self) -> f64 {
        self.seconds / self.measured - 1.0
    }

    fn is_covered(&self) -> bool {
        (self.low..=self.high).contains(&self.measured)
    }
}

/// Cells by metric and network.
type Cells = BTreeMap<(String, usize), Cell>;

#[test]
#[ignore = "boots a virtual machine for each share; run with --ignored"]
fn predictions_hold_on_long_slow_and_fast_networks() {
    let names = std::env::var("LAB_WHAT_IF_SHARES").unwrap_or_else(|_| "smb3 nfs3 nfs4".to_owned());
    let names: Vec<&str> = names.split_whitespace().collect();
    let export = &Path::new(env!("CARGO_TARGET_TMPDIR")).join("what-if");
    if std::env::var_os("LAB_WHAT_IF_AGAIN").is_none() {
        std::fs::create_dir_all(export).expect("the target folder is writable");
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                names.iter().map(|share| scope.spawn(move || measure(share, export))).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
    let shares: Vec<Cells> = names.iter().map(|share| cells(share, export)).collect();
    let mut findings = Findings::default();
    for (share, cells) in names.iter().zip(&shares) {
        rows(share, cells, &mut findings);
    }
    findings.print(&["share", "metric", "network (one way)", "measured", "predicted", "range", "error"]);
    judge("all networks", &shares, &mut findings);
    let shares: Vec<Cells> = names.iter().map(|share| cells_from_short_networks(share, export)).collect();
    judge("round trips of 0.5 ms only", &shares, &mut findings);
    assert!(findings.wrong.is_empty(), "{}", findings.wrong.join("\n"));
}

fn name((delay, megabits): Network) -> String {
    format!("{}us,{megabits}mbit", (delay * 1e3).round())
}

fn measure(share: &str, export: &Path) {
    let list =
        |networks: &[Network]| networks.iter().map(|network| name(*network)).collect::<Vec<_>>().join("+");
    let arguments = [share, &list(&FITTED.repeat(REPETITIONS)), &list(&TRIED.repeat(REPETITIONS))];
    let script = "what_if.sh";
    let output =
        Simulation { script, arguments: &arguments, mounts: share, export, limit_seconds: 7200 }.run();
    assert!(output.status.success(), "{share}: {}", text(&output));
}

/// Returns the predictions from the fitted rounds, with the times of the tried ones.
fn cells(share: &str, export: &Path) -> Cells {
    let measured = measured(&export.join(format!("{share}-tried.sqlite")));
    cells_from(&export.join(format!("{share}-fitted.sqlite")), &measured)
}

/// Returns the predictions from the rounds on the shortest networks alone, as if the round trip time had never varied. It does below
/// 100 Mbit/s, where the time of a packet is longer.
fn cells_from_short_networks(share: &str, export: &Path) -> Cells {
    let tried = export.join(format!("{share}-tried.sqlite"));
    let short = export.join(format!("{share}-short.sqlite"));
    std::fs::copy(&tried, &short).expect("the folder is writable");
    let networks = FITTED.repeat(REPETITIONS).into_iter().chain(TRIED.repeat(REPETITIONS));
    let long = (1..).zip(networks).filter(|(_, (delay, rate))| *delay > FITTED[0].0 || *rate < 100);
    let long: Vec<String> = long.map(|(round, _): (usize, Network)| round.to_string()).collect();
    let database = rusqlite::Connection::open(&short).expect("it is a database");
    let statement = format!("UPDATE run SET outcome = 'error' WHERE round IN ({})", long.join(", "));
    database.execute(&statement, []).expect("runs have rounds");
    let mut cells = cells_from(&short, &measured(&tried));
    cells.retain(|(_, place), _| TRIED[*place].0 > FITTED[0].0);
    cells
}

fn cells_from(database: &Path, measured: &BTreeMap<(String, usize), f64>) -> Cells {
    let mut cells = Cells::new();
    for (index, network) in TRIED.iter().enumerate() {
        for answer in predictions(database, *network) {
            let metric = format!("{}/{}", word(&answer, "task"), word(&answer, "metric"));
            let time = measured.get(&(metric.clone(), index)).copied().filter(|time| *time >= MIN_SECONDS);
            let value = |key: &str| answer[key].as_f64();
            if let (Some(measured), Some(seconds), Some(low), Some(high)) =
                (time, value("seconds"), value("low"), value("high"))
            {
                cells.insert((metric, index), Cell { seconds, low, high, measured });
            }
        }
    }
    cells
}

fn word(answer: &Value, key: &str) -> String {
    answer[key].as_str().unwrap().to_owned()
}

fn predictions(database: &Path, (delay, megabits): Network) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .arg("--database")
        .arg(database)
        .args(["what-if", "--json", "--rtt", &format!("{}ms", delay * 2.0)])
        .args(["--bandwidth", &format!("{megabits}mbit")])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
}

/// Returns the median time of each metric in the tried rounds, by the place of their network.
fn measured(database: &Path) -> BTreeMap<(String, usize), f64> {
    let first = FITTED.len() * REPETITIONS + 1;
    let rounds = TRIED.len() * REPETITIONS;
    let phases = Reader::open(database).unwrap().phase_times(rounds as u32, None).unwrap();
    let place = |round: i64| (usize::try_from(round).unwrap() - first) % TRIED.len();
    let mut times: BTreeMap<(String, usize), BTreeMap<i64, f64>> = BTreeMap::new();
    for phase in &phases {
        for found in &phase.metrics {
            let key = (format!("{}/{}", phase.workload, found.metric), place(phase.round));
            times.entry(key).or_default().insert(phase.run, found.seconds);
        }
    }
    let median = |runs: BTreeMap<i64, f64>| longhaul_model::median(&runs.into_values().collect::<Vec<_>>());
    times.into_iter().filter_map(|(key, runs)| Some((key, median(runs)?))).collect()
}

fn rows(share: &str, cells: &Cells, findings: &mut Findings) {
    for ((metric, place), cell) in cells {
        let (delay, megabits) = TRIED[*place];
        findings.row(&[
            share,
            metric,
            &format!("{delay} ms, {megabits} Mbit/s"),
            &format!("{:.2} s", cell.measured),
            &format!("{:.2} s", cell.seconds),
            &format!("{:.2} to {:.2} s", cell.low, cell.high),
            &format!("{:+.0} %", cell.error() * 100.0),
        ]);
    }
}

/// Checks errors and intervals over all cells, and the predicted winners.
fn judge(fitted: &str, shares: &[Cells], findings: &mut Findings) {
    let all: Vec<&Cell> = shares.iter().flat_map(BTreeMap::values).collect();
    if all.is_empty() {
        return note(&format!("fitted to {fitted}: nothing is predicted"));
    }
    let mut errors: Vec<f64> = all.iter().map(|cell| cell.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let share_of = |is: &dyn Fn(&&&Cell) -> bool| all.iter().filter(is).count() as f64 / all.len() as f64;
    let median = errors[errors.len() / 2];
    let (near, covered) = (share_of(&|cell| cell.error().abs() <= 0.15), share_of(&|cell| cell.is_covered()));
    let winners = winners(shares);
    note(&format!(
        "fitted to {fitted}: {} cells: median error {:.1} %, within 15 % {:.1} %, covered {:.1} %; {} of {} clear winners right",
        all.len(),
        median * 100.0,
        near * 100.0,
        covered * 100.0,
        winners.right,
        winners.clear
    ));
    findings.check(median <= MEDIAN_ERROR, || format!("{fitted}: the median error is {median}"));
    findings.check(covered >= COVERAGE, || format!("{fitted}: {covered} of the intervals contain the time"));
}

/// Numbers of pairs of shares that differ clearly, and of those whose winner was predicted.
struct Winners {
    clear: usize,
    right: usize,
}

fn winners(shares: &[Cells]) -> Winners {
    let mut winners = Winners { clear: 0, right: 0 };
    for (index, one) in shares.iter().enumerate() {
        for other in &shares[index + 1..] {
            let pairs = one.iter().filter_map(|(key, cell)| Some((cell, other.get(key)?)));
            for (one, other) in pairs {
                let ratio = one.measured / other.measured;
                if ratio.max(1.0 / ratio) > CLEAR {
                    winners.clear += 1;
                    winners.right += usize::from((ratio < 1.0) == (one.seconds < other.seconds));
                }
            }
        }
    }
    winners
}
