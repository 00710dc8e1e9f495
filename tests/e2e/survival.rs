//! Tests of killed and interrupted processes: no printed run is lost, and the next run works.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{
    Call, Place, Running, assert_all_ok, assert_failure, find_sandbox, machine, sandbox, schema,
};
use longhaul_model::draw::draw;
use longhaul_store::{Reader, RoundStatus};
use rustix::process::Signal;

/// Configuration with trees that take a moment to create.
const SMALL_TREES: &str = "[folder-index]\nfiles = 1200\n";
const CHEAP: [&str; 3] = ["folder-index", "incremental-backup", "time-machine"];

/// Test environment with two targets.
struct Pair {
    place: Place,
    a: PathBuf,
    b: PathBuf,
}

impl Pair {
    fn new(configuration: &str) -> Self {
        let place = Place::new();
        place.configure(configuration);
        let (a, b) = (place.folder("a"), place.folder("b"));
        Self { place, a, b }
    }

    fn run(&self, workloads: &[&str]) -> Call<'_> {
        self.place.run(workloads, &[("a", &self.a), ("b", &self.b)])
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn killed_worker_voids_only_its_own_run() {
    let pair = Pair::new(SMALL_TREES);
    let running = pair.run(&["folder-index", "incremental-backup"]).arg("--rounds").arg("3").start();
    let mut worker = None;
    machine::wait_until("a worker in the sandbox", || {
        let sandbox = find_sandbox(&pair.a);
        worker = sandbox.and_then(|sandbox| {
            machine::workers_of(pair.place.root()).into_iter().find(|pid| machine::has_open(*pid, &sandbox))
        });
        worker.is_some()
    });
    machine::signal(worker.unwrap(), Signal::KILL);
    let output = running.finish(3);
    schema::check_output(&output.lines());
    assert_all_ok(&output.runs_on("b"));
    let (void, ok): (Vec<_>, Vec<_>) =
        output.runs_on("a").into_iter().partition(|run| run["outcome"] == "void");
    assert_eq!((void.len(), ok.len()), (1, 5), "{output}");
    assert_failure(&void[0], "void", &["the worker of `a` ended", "signal: 9"]);
    assert_all_ok(&ok);
}

#[test]
fn ctrl_c_keeps_all_printed_runs() {
    let pair = Pair::new(SMALL_TREES);
    let mut running = pair.run(&CHEAP).arg("--rounds").arg("1000").start();
    running.wait_for("four runs", |output| output.runs().len() >= 4);
    running.signal(Signal::INT);
    let output = running.finish(0);
    schema::check_run(output.runs().last().unwrap());
    assert_eq!(pair.place.stored_runs(), output.runs());
    assert!(output.runs().iter().rev().skip(1).all(|run| run["outcome"] == "ok"), "{output}");
    assert_eq!(pair.place.round_ends().last().unwrap(), &Some(RoundStatus::CutShort));
    assert_all_ok(&pair.run(&CHEAP).expect(0).runs());
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn ctrl_c_during_a_run_stores_it_as_void() {
    let place = Place::new();
    let target = place.folder("nas");
    let running = place.run(&["photo-batch"], &[("nas", &target)]).start();
    // Creating the photos reads nothing. Reading starts with the measurement, which takes seconds.
    machine::wait_until("photos to be read", || {
        machine::workers_of(place.root()).into_iter().any(|pid| machine::bytes_read(pid) > 1 << 20)
    });
    running.signal(Signal::INT);
    let output = running.finish(0);
    schema::check_output_of_interrupted(&output.lines());
    assert_failure(&output.run_on("nas"), "void", &["stopped", "kept"]);
    assert!(!output.run_on("nas")["phases"].as_array().unwrap().is_empty(), "partial results are stored");
    assert_eq!(place.stored_runs(), output.runs());
    assert_eq!(place.round_ends(), [Some(RoundStatus::CutShort)]);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn hundred_kills_of_the_runner_lose_nothing() {
    // Two runners side by side, each with half of the kills: they wait most of the time.
    std::thread::scope(|scope| {
        for half in [0..25, 25..50] {
            scope.spawn(move || kill_a_runner(half));
        }
    });
}

/// Kills a runner twice with each of these numbers, and checks that it loses nothing.
fn kill_a_runner(kills: Range<u64>) {
    let pair = Pair::new(SMALL_TREES);
    let count = kills.end - kills.start;
    let mut acknowledged = BTreeSet::new();
    for kill in kills {
        let mut printed = kill_soon_after_the_start(&pair, kill);
        printed.extend(kill_soon_after_a_run(&pair, kill));
        assert_stored(&pair, &printed);
        acknowledged.extend(printed);
        if kill % 20 == 19 {
            clean(&pair);
        }
    }
    assert_all_ok(&pair.run(&CHEAP).expect(0).runs());
    assert_listed(&pair, &acknowledged);
    assert!(acknowledged.len() as u64 >= count, "a run before every second kill: {}", acknowledged.len());
    clean(&pair);
}

/// Returns a number between 0 and 1 that is the same in every execution of the test.
fn random_share(stream: u64, kill: u64) -> f64 {
    draw(0x6b69_6c6c, stream, kill) as f64 / u64::MAX as f64
}

/// Kills the program 10 ms to 1 s after its start, with a logarithmic distribution: while it opens the database,
/// starts workers or creates files.
fn kill_soon_after_the_start(pair: &Pair, kill: u64) -> Vec<u64> {
    let delay = Duration::from_secs_f64(0.01 * 100f64.powf(random_share(0, kill)));
    kill_after(pair.run(&CHEAP).start(), delay)
}

/// Kills the program up to 150 ms after the first runs were printed: while it measures or stores runs.
fn kill_soon_after_a_run(pair: &Pair, kill: u64) -> Vec<u64> {
    let runs = 1 + (random_share(1, kill) * 4.0) as usize;
    let call = pair.run(&["folder-index", "incremental-backup"]).arg("--rounds").arg("100");
    let mut running = call.start();
    running.wait_for("the first runs", |output| output.runs().len() >= runs);
    kill_after(running, Duration::from_secs_f64(0.15 * random_share(2, kill)))
}

/// Kills the program after a delay, and returns the numbers of the runs that it had printed.
fn kill_after(mut running: Running, delay: Duration) -> Vec<u64> {
    let began = Instant::now();
    machine::wait_until("the time of the kill", || began.elapsed() >= delay);
    running.signal(Signal::KILL);
    running.wait_for_exit();
    machine::wait_for_no_worker(running.root());
    assert_eq!(machine::recorders_of(running.pid()), [""; 0], "a flight recorder was left behind");
    running.output_so_far().runs().iter().map(|run| run["run"].as_u64().unwrap()).collect()
}

/// Checks that these printed runs are stored.
fn assert_stored(pair: &Pair, printed: &[u64]) {
    let reader = Reader::open(&pair.place.database()).unwrap();
    for number in printed {
        assert!(reader.run(number.cast_signed()).unwrap().is_some(), "lost: {number}");
    }
}

/// Checks that every printed run is in the list of all runs.
fn assert_listed(pair: &Pair, acknowledged: &BTreeSet<u64>) {
    let stored = pair.place.stored_runs();
    stored.iter().for_each(schema::check_run);
    let stored: BTreeSet<u64> = stored.iter().map(|run| run["run"].as_u64().unwrap()).collect();
    assert!(acknowledged.is_subset(&stored), "lost: {:?}", acknowledged.difference(&stored));
}

/// Checks that cleaning removes everything that the kills left on the targets.
fn clean(pair: &Pair) {
    for (name, target) in [("a", &pair.a), ("b", &pair.b)] {
        let output =
            pair.place.longhaul("targets clean --yes").arg(format!("{name}={}", target.display())).expect(0);
        assert_eq!(fs::read_dir(target).unwrap().count(), 0, "{output}");
    }
}

#[test]
fn round_left_open_by_a_kill_is_closed_by_the_next() {
    let pair = Pair::new(SMALL_TREES);
    let mut running = pair.run(&CHEAP).arg("--rounds").arg("1000").start();
    running.wait_for("a run", |output| !output.runs().is_empty());
    running.signal(Signal::KILL);
    running.wait_for_exit();
    assert_eq!(pair.place.round_ends(), [None]);
    assert_all_ok(&pair.run(&["folder-index"]).expect(0).runs());
    assert_eq!(pair.place.round_ends(), [Some(RoundStatus::CutShort), Some(RoundStatus::Ok)]);
    assert!(sandbox(&pair.a).join("folder-index").exists());
}
