//! Processes that end when nobody expects it: nothing that was acknowledged is lost, and everything goes on.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use longhaul_measure::corpus::draw::draw;
use longhaul_store::RoundStatus;
use rustix::process::Signal;
use support::{Call, Place, Running, arena, assert_all_ok, assert_failure, find_arena, machine, schema};

/// Trees that take a moment to build.
const SMALL_TREES: &str = "[folder-index]\nfiles = 1200\n";
const CHEAP: [&str; 3] = ["folder-index", "incremental-backup", "time-machine"];

/// A place with two targets.
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
fn a_killed_worker_voids_its_run_and_no_other() {
    if let Some(why) = machine::without_proc() {
        return machine::skip("a_killed_worker_voids_its_run_and_no_other", why);
    }
    let pair = Pair::new(SMALL_TREES);
    let running = pair.run(&["folder-index", "incremental-backup"]).word("--rounds").word("3").start();
    let mut worker = None;
    machine::wait_until("a worker in the arena", || {
        let arena = find_arena(&pair.a);
        worker = arena.and_then(|arena| {
            machine::workers_of(pair.place.root()).into_iter().find(|pid| machine::has_open(*pid, &arena))
        });
        worker.is_some()
    });
    machine::signal(worker.unwrap(), Signal::KILL);
    let said = running.finish(3);
    schema::check_output(&said.lines());
    assert_all_ok(&said.runs_on("b"));
    let (void, ok): (Vec<_>, Vec<_>) =
        said.runs_on("a").into_iter().partition(|run| run["outcome"] == "void");
    assert_eq!((void.len(), ok.len()), (1, 5), "{said}");
    assert_failure(&void[0], "void", &["the worker of `a` ended", "signal: 9"]);
    assert_all_ok(&ok);
}

#[test]
fn ctrl_c_keeps_what_was_acknowledged_and_voids_the_run_in_flight() {
    let pair = Pair::new(SMALL_TREES);
    let mut running = pair.run(&CHEAP).word("--rounds").word("1000").start();
    running.wait_for("four runs", |said| said.runs().len() >= 4);
    running.signal(Signal::INT);
    let said = running.finish(0);
    schema::check_run(said.runs().last().unwrap());
    assert_eq!(pair.place.stored_runs(), said.runs());
    assert!(said.runs().iter().rev().skip(1).all(|run| run["outcome"] == "ok"), "{said}");
    assert_eq!(pair.place.round_ends().last().unwrap(), &Some(RoundStatus::CutShort));
    assert_all_ok(&pair.run(&CHEAP).expect(0).runs());
}

#[test]
fn ctrl_c_in_the_middle_of_a_run_books_it_as_void() {
    if let Some(why) = machine::without_proc() {
        return machine::skip("ctrl_c_in_the_middle_of_a_run_books_it_as_void", why);
    }
    let place = Place::new();
    let target = place.folder("nas");
    let running = place.run(&["photo-batch"], &[("nas", &target)]).start();
    // While photos are made nothing is read; then they are browsed on a schedule, for seconds.
    machine::wait_until("photos to be read", || {
        machine::workers_of(place.root()).into_iter().any(|pid| machine::bytes_read(pid) > 1 << 20)
    });
    running.signal(Signal::INT);
    let said = running.finish(0);
    schema::check_output_of_interrupted(&said.lines());
    assert_failure(&said.run_on("nas"), "void", &["stopped", "kept"]);
    assert!(!said.run_on("nas")["phases"].as_array().unwrap().is_empty(), "what was measured is kept");
    assert_eq!(place.stored_runs(), said.runs());
    assert_eq!(place.round_ends(), [Some(RoundStatus::CutShort)]);
}

#[test]
fn a_hundred_kills_of_the_runner_lose_nothing() {
    if let Some(why) = machine::without_proc() {
        return machine::skip("a_hundred_kills_of_the_runner_lose_nothing", why);
    }
    let pair = Pair::new(SMALL_TREES);
    let mut acknowledged = BTreeSet::new();
    for kill in 0..50 {
        acknowledged.extend(kill_soon_after_the_start(&pair, kill));
        acknowledged.extend(kill_soon_after_a_run(&pair, kill));
        assert_stored(&pair, &acknowledged);
        if kill % 20 == 19 {
            clean(&pair);
        }
    }
    assert_all_ok(&pair.run(&CHEAP).expect(0).runs());
    assert!(acknowledged.len() >= 50, "every second kill came after a run: {}", acknowledged.len());
    clean(&pair);
}

/// A share of one, the same in every execution of the test.
fn random_share(stream: u64, kill: u64) -> f64 {
    draw(0x6b69_6c6c, stream, kill) as f64 / u64::MAX as f64
}

/// From 10 ms to 1 s after the start, as many below 100 ms as above: opening, starting workers, building.
fn kill_soon_after_the_start(pair: &Pair, kill: u64) -> Vec<u64> {
    let delay = Duration::from_secs_f64(0.01 * 100f64.powf(random_share(0, kill)));
    kill_after(pair.run(&CHEAP).start(), delay)
}

/// Up to 150 ms after the first runs were printed: running and booking.
fn kill_soon_after_a_run(pair: &Pair, kill: u64) -> Vec<u64> {
    let runs = 1 + (random_share(1, kill) * 4.0) as usize;
    let call = pair.run(&["folder-index", "incremental-backup"]).word("--rounds").word("100");
    let mut running = call.start();
    running.wait_for("the first runs", |said| said.runs().len() >= runs);
    kill_after(running, Duration::from_secs_f64(0.15 * random_share(2, kill)))
}

/// Kills, and returns the numbers of the runs that were printed.
fn kill_after(mut running: Running, delay: Duration) -> Vec<u64> {
    let began = Instant::now();
    machine::wait_until("the instant of the kill", || began.elapsed() >= delay);
    running.signal(Signal::KILL);
    running.ended();
    machine::wait_for_no_worker(running.root());
    assert_eq!(machine::recorders_of(running.pid()), [""; 0], "a flight recorder was left behind");
    running.so_far().runs().iter().map(|run| run["run"].as_u64().unwrap()).collect()
}

/// Everything that was printed is there. Before the very first opening came to its end there is no database.
fn assert_stored(pair: &Pair, acknowledged: &BTreeSet<u64>) {
    if acknowledged.is_empty() && !pair.place.database().exists() {
        return;
    }
    let stored = pair.place.longhaul("runs --json --last 0").expect(0).runs();
    stored.iter().for_each(schema::check_run);
    let stored: BTreeSet<u64> = stored.iter().map(|run| run["run"].as_u64().unwrap()).collect();
    assert!(acknowledged.is_subset(&stored), "lost: {:?}", acknowledged.difference(&stored));
}

/// Whatever the kills left on the targets, cleaning knows it as its own.
fn clean(pair: &Pair) {
    for (name, target) in [("a", &pair.a), ("b", &pair.b)] {
        let said = pair.place.longhaul("clean --yes").word(format!("{name}={}", target.display())).expect(0);
        assert_eq!(fs::read_dir(target).unwrap().count(), 0, "{said}");
    }
}

#[test]
fn a_round_that_a_kill_left_open_is_closed_by_the_next() {
    let pair = Pair::new(SMALL_TREES);
    let mut running = pair.run(&CHEAP).word("--rounds").word("1000").start();
    running.wait_for("a run", |said| !said.runs().is_empty());
    running.signal(Signal::KILL);
    running.ended();
    assert_eq!(pair.place.round_ends(), [None]);
    assert_all_ok(&pair.run(&["folder-index"]).expect(0).runs());
    assert_eq!(pair.place.round_ends(), [Some(RoundStatus::CutShort), Some(RoundStatus::Ok)]);
    assert!(arena(&pair.a).join("folder-index").exists());
}
