//! Everything that can happen to a service in weeks, on real processes and real file systems.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::corpus::draw::draw;
use longhaul_store::{Reader, RoundStatus};
use rustix::process::Signal;
use serde_json::Value;
use support::daemon::{BUSY, Daemon, forgive, target};
use support::mounts::{Fuse, Memory, are_our_own};
use support::{Place, arena, assert_all_ok, machine};

/// How often the service is killed in `kills_at_any_instant_lose_nothing`, unless this variable says otherwise.
const KILLS: (&str, u64) = ("LONGHAUL_TEST_KILLS", 40);

fn place_with(configuration: &str, targets: &[(&str, &Path)]) -> Place {
    let place = Place::new();
    configure(&place, configuration, targets);
    place
}

fn configure(place: &Place, configuration: &str, targets: &[(&str, &Path)]) {
    let targets: String = targets.iter().map(|(name, path)| target(name, path)).collect();
    place.configure(&(configuration.to_owned() + &targets));
}

/// One round an hour, the first ten seconds after the start: all others are those that a test asks for.
fn calm() -> String {
    BUSY.replace("8640", "24")
}

/// A service whose first scheduled round is over.
fn start_calm(place: &Place) -> Daemon<'_> {
    let daemon = Daemon::start(place);
    daemon.wait_for_rounds(1);
    daemon
}

/// Larger trees: a worker that is inside one is in the middle of a run for a while.
fn slow() -> String {
    calm().replace("files = 40", "files = 4000") + "[limits]\ncap-seconds = 3\n"
}

fn outcomes(place: &Place, target: &str) -> Vec<String> {
    let runs = place.stored_runs().into_iter().filter(|run| run["target"] == target);
    runs.map(|run| run["outcome"].as_str().unwrap().to_owned()).collect()
}

fn state<'a>(status: &'a Value, target: &str) -> &'a str {
    let targets = status["targets"].as_array().unwrap();
    let found = targets.iter().find(|found| found["name"] == target).unwrap();
    found["state"]["name"].as_str().unwrap()
}

#[test]
fn a_killed_worker_voids_its_run_and_the_next_round_is_whole() {
    let place = Place::new();
    let a = place.folder("a");
    configure(&place, &slow(), &[("a", &a)]);
    let daemon = start_calm(&place);
    daemon.round();
    daemon.order("round", "{}");
    let mut worker = None;
    machine::wait_until("a worker", || {
        worker =
            machine::workers_of(place.root()).into_iter().find(|pid| machine::has_open(*pid, &arena(&a)));
        worker.is_some()
    });
    machine::signal(worker.unwrap(), Signal::KILL);
    daemon.wait_for("the end of that round", |status| status["state"]["name"] != "measuring");
    daemon.round();
    daemon.stop();
    let outcomes = outcomes(&place, "a");
    assert_eq!(outcomes.last().unwrap(), "ok");
    assert!(outcomes.iter().filter(|outcome| *outcome == "void").count() <= 1, "{outcomes:?}");
}

#[test]
fn a_stopped_worker_is_booked_as_hung_and_never_doubled() {
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("b"));
    configure(&place, &slow(), &[("a", &a), ("b", &b)]);
    let daemon = start_calm(&place);
    daemon.round();
    daemon.order("round", "{}");
    let mut worker = None;
    machine::wait_until("a worker", || {
        worker = machine::workers_of(place.root())
            .into_iter()
            .find(|pid| machine::walks_below(*pid, &arena(&a).join("folder-index")));
        worker.is_some()
    });
    machine::signal(worker.unwrap(), Signal::STOP);
    daemon.wait_for("the end of that round", |status| status["state"]["name"] != "measuring");
    daemon.round();
    daemon.stop();
    let found = outcomes(&place, "a");
    assert!(found.iter().filter(|outcome| *outcome == "hung").count() == 1, "{found:?}");
    assert_eq!(found.last().unwrap(), "ok", "a process that can be killed is replaced");
    assert!(outcomes(&place, "b").iter().all(|outcome| outcome == "ok"));
}

#[test]
fn kills_at_any_instant_lose_nothing() {
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("b"));
    let eager = BUSY.replace("files = 40", "files = 400").replace("8640", "24");
    configure(&place, &eager, &[("a", &a), ("b", &b)]);
    let kills = std::env::var(KILLS.0).ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS.1);
    let mut acknowledged = BTreeSet::new();
    for kill in 0..kills {
        forgive(&place);
        let mut daemon = Daemon::spawn(&place);
        if kill % 4 != 0 {
            daemon.wait_until_ready();
            daemon.order("round", "{}");
        }
        if kill % 2 == 1 {
            let before = run_numbers(&place).len();
            machine::wait_until("a run", || run_numbers(&place).len() > before);
        }
        let share = draw(0x6b69_6c6c, 3, kill) as f64 / u64::MAX as f64;
        std::thread::sleep(Duration::from_secs_f64(0.002 * 100f64.powf(share)));
        // What the service has shown as done is on disk, and stays there.
        acknowledged.extend(run_numbers(&place));
        daemon.kill();
        let stored = run_numbers(&place);
        assert!(acknowledged.is_subset(&stored), "lost: {:?}", acknowledged.difference(&stored));
    }
    forgive(&place);
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.stop();
    let rounds = Reader::open(&place.database()).unwrap().rounds().unwrap();
    assert!(rounds.iter().all(|round| round.end.is_some()), "no round is open");
    let scheduled: Vec<i64> = rounds.iter().filter_map(|round| round.round.scheduled_us).collect();
    let distinct: BTreeSet<i64> = scheduled.iter().map(|us| us / 60_000_000).collect();
    assert_eq!(scheduled.len(), distinct.len(), "no slot is dealt with twice");
    assert_eq!(rounds.last().unwrap().end.as_ref().unwrap().status, RoundStatus::Ok);
    assert!(acknowledged.len() as u64 >= kills / 4, "{} runs in {kills} kills", acknowledged.len());
    assert!(arena(&a).join("folder-index").exists(), "one arena, and it is reused");
    assert!(machine::workers_of(place.root()).is_empty());
}

fn run_numbers(place: &Place) -> BTreeSet<i64> {
    // Before the very first opening came to its end there is nothing to read.
    let Ok(reader) = Reader::open(&place.database()) else { return BTreeSet::new() };
    reader.runs(&Default::default()).unwrap().into_iter().map(|run| run.number).collect()
}

/// A place with a target on a file system in user space, and one that is local.
struct Hang {
    // dropped first: what is mounted below the place has to go before it
    fuse: Fuse,
    place: Place,
    stuck: PathBuf,
}

fn hang(test: &str, mount: fn(&Path, &Path) -> Fuse) -> Option<Hang> {
    if let Some(why) = machine::without_proc().or_else(Fuse::impossible) {
        machine::skip(test, why);
        return None;
    }
    let place = Place::new();
    let (source, stuck, local) = (place.folder("source"), place.folder("mount"), place.folder("local"));
    let fuse = mount(&source, &stuck);
    configure(&place, &slow(), &[("stuck", &stuck), ("local", &local)]);
    Some(Hang { fuse, place, stuck })
}

fn freeze_in_a_walk(hang: &Hang, daemon: &Daemon<'_>) {
    daemon.order("round", "{}");
    let trees = arena(&hang.stuck).join("folder-index");
    machine::wait_until("a walk", || {
        machine::workers_of(hang.place.root()).into_iter().any(|pid| machine::walks_below(pid, &trees))
    });
    hang.fuse.freeze();
}

#[test]
fn a_target_that_stops_answering_is_shown_as_hung_and_goes_on_by_itself_when_it_answers() {
    let test = "a_target_that_stops_answering_is_shown_as_hung_and_goes_on_by_itself_when_it_answers";
    let Some(hang) = hang(test, Fuse::over) else { return };
    let daemon = start_calm(&hang.place);
    freeze_in_a_walk(&hang, &daemon);
    daemon.wait_for("the hang to be booked", |_| outcomes(&hang.place, "stuck").contains(&"hung".to_owned()));
    daemon.wait_for("the end of that round", |status| status["state"]["name"] != "measuring");
    hang.fuse.thaw();
    machine::wait_for_no_worker(hang.place.root());
    daemon.round();
    assert_eq!(outcomes(&hang.place, "stuck").last().unwrap(), "ok");
    daemon.stop();
    assert!(outcomes(&hang.place, "local").iter().all(|outcome| outcome == "ok"));
}

#[test]
fn a_target_that_never_answers_is_told_of_and_the_service_stops_in_time_all_the_same() {
    let test = "a_target_that_never_answers_is_told_of_and_the_service_stops_in_time_all_the_same";
    let Some(hang) = hang(test, Fuse::writing_for_ever) else { return };
    let daemon = Daemon::start(&hang.place);
    let status = daemon.wait_for("the hang", |status| state(status, "stuck") == "hung");
    let targets = status["targets"].as_array().unwrap();
    let stuck = targets.iter().find(|target| target["name"] == "stuck").unwrap();
    assert_eq!(stuck["state"]["operation"], "write", "{stuck}");
    daemon.wait_for("the end of that round", |status| status["state"]["name"] != "measuring");
    daemon.round();
    assert_eq!(outcomes(&hang.place, "local"), ["ok", "ok"], "the other target goes on");
    machine::wait_until("all workers but the stuck one to end", || {
        machine::workers_of(hang.place.root()).len() == 1
    });
    let said = hang.place.longhaul("status").expect(3);
    assert!(said.out.contains("hung: `write` has not returned since"), "{said}");
    daemon.stop();
    hang.fuse.end();
    machine::wait_for_no_worker(hang.place.root());
}

#[test]
fn a_worker_that_outlives_a_killed_service_is_known_to_the_next_and_never_doubled() {
    let test = "a_worker_that_outlives_a_killed_service_is_known_to_the_next_and_never_doubled";
    let Some(hang) = hang(test, Fuse::writing_for_ever) else { return };
    let daemon = Daemon::start(&hang.place);
    daemon.wait_for("the hang", |status| state(status, "stuck") == "hung");
    daemon.signal(Signal::KILL);
    daemon.ended();
    let workers = || machine::workers_of(hang.place.root());
    machine::wait_until("all workers but the stuck one to end", || workers().len() == 1);
    let left = workers();
    let daemon = Daemon::start(&hang.place);
    daemon.round();
    assert_eq!(state(&daemon.status(), "stuck"), "hung");
    assert_eq!(outcomes(&hang.place, "stuck").last().unwrap(), "hung");
    assert_eq!(outcomes(&hang.place, "local").last().unwrap(), "ok", "the other target goes on");
    machine::wait_until("the workers of that round to end", || workers() == left);
    hang.fuse.end();
    machine::wait_for_no_worker(hang.place.root());
    daemon.wait_for("the target to be free", |status| state(status, "stuck") != "hung");
    daemon.stop();
}

#[test]
fn a_target_that_is_unmounted_in_the_middle_is_noticed_and_not_measured_in_its_place() {
    let test = "a_target_that_is_unmounted_in_the_middle_is_noticed_and_not_measured_in_its_place";
    let Some(Hang { fuse, place, stuck }) = hang(test, Fuse::over) else { return };
    let daemon = start_calm(&place);
    daemon.round();
    drop(fuse);
    daemon.wait_for("the event", |_| kinds(&place).contains(&"unmount".to_owned()));
    daemon.round();
    let status = daemon.status();
    assert_eq!(state(&status, "stuck"), "unavailable", "{status}");
    daemon.stop();
    assert_eq!(outcomes(&place, "stuck").last().unwrap(), "unavailable");
    assert_eq!(fs::read_dir(&stuck).unwrap().count(), 0, "nothing was written to the folder below");
}

fn kinds(place: &Place) -> Vec<String> {
    let events = Reader::open(&place.database()).unwrap().events(None).unwrap();
    events.into_iter().map(|event| event.event.kind).collect()
}

#[test]
fn a_full_disk_under_the_database_delays_and_loses_nothing() {
    let test = "a_full_disk_under_the_database_delays_and_loses_nothing";
    if !are_our_own(test) {
        return;
    }
    let place = Place::new();
    let disk = Memory::mount(&place.folder("home/data"), 4096);
    configure(&place, BUSY, &[("a", &place.folder("a"))]);
    let daemon = Daemon::start(&place);
    daemon.wait_for_rounds(1);
    let ballast = disk.fill();
    daemon.order("round", "{}");
    let status = daemon.wait_for("the complaint", |status| status["problems"][0]["word"] == "not-kept");
    assert!(status["problems"][0]["text"].as_str().unwrap().contains("full"), "{status}");
    let before = place.stored_runs().len();
    fs::remove_file(ballast).unwrap();
    daemon.wait_for("the complaint to be over", |status| status["problems"].as_array().unwrap().is_empty());
    machine::wait_until("further runs", || place.stored_runs().len() > before);
    daemon.stop();
    assert_all_ok(&place.stored_runs());
    assert!(place.round_ends().iter().all(Option::is_some));
}

#[test]
fn a_database_that_is_removed_while_it_runs_is_written_again() {
    let place = place_with(BUSY, &[]);
    configure(&place, &calm(), &[("a", &place.folder("a"))]);
    let daemon = Daemon::start(&place);
    daemon.round();
    let before = place.stored_runs();
    fs::remove_file(place.database()).unwrap();
    daemon.round();
    let status = daemon.wait_for("the complaint", |status| status["problems"][0]["word"] == "database");
    assert!(status["problems"][0]["text"].as_str().unwrap().contains("written again"), "{status}");
    daemon.stop();
    let after = place.stored_runs();
    assert_eq!(after[..before.len()], before[..], "nothing is lost");
    assert!(after.len() > before.len());
}

#[test]
fn a_database_that_is_ruined_while_it_runs_is_moved_aside() {
    let place = place_with(BUSY, &[]);
    configure(&place, &calm(), &[("a", &place.folder("a"))]);
    let daemon = Daemon::start(&place);
    daemon.round();
    fs::write(place.database(), vec![7; 50_000]).unwrap();
    daemon.order("round", "{}");
    let status = daemon.wait_for("the complaint", |status| status["problems"][0]["word"] == "database");
    let text = status["problems"][0]["text"].as_str().unwrap();
    assert!(text.contains("moved to") && text.contains(".recover"), "{status}");
    daemon.round();
    daemon.stop();
    assert_all_ok(&place.stored_runs());
    let arenas = fs::read_dir(place.path("a")).unwrap().count();
    assert_eq!(arenas, 1, "the machine keeps its id, and so the arena is found again");
}

#[test]
fn a_hundred_targets_are_measured_one_after_the_other() {
    let place = Place::new();
    let paths: Vec<(String, PathBuf)> =
        (0..100).map(|number| (format!("t{number}"), place.folder(&format!("t/{number}")))).collect();
    let targets: Vec<(&str, &Path)> =
        paths.iter().map(|(name, path)| (name.as_str(), path.as_path())).collect();
    configure(&place, &calm(), &targets);
    let daemon = Daemon::start(&place);
    daemon.order("round", "{}");
    daemon.wait_for("a round of a hundred", |status| status["last"]["status"] == "ok");
    let status = daemon.status();
    assert!(
        status["targets"]
            .as_array()
            .unwrap()
            .iter()
            .all(|target| target["last_runs"] == serde_json::json!([1, 1]))
    );
    daemon.stop();
    assert_eq!(place.stored_runs().len() % 100, 0);
    assert_all_ok(&place.stored_runs());
}

#[test]
fn a_path_may_hold_anything_that_a_configuration_can_say() {
    let place = Place::new();
    let odd = ["with space", "quo\"te'd", "line\nbreak", "émoji 🐚", "back\\slash", "-dash", "tab\there"];
    let paths: Vec<(String, PathBuf)> =
        odd.iter().enumerate().map(|(number, name)| (format!("t{number}"), place.folder(name))).collect();
    let targets: Vec<(&str, &Path)> =
        paths.iter().map(|(name, path)| (name.as_str(), path.as_path())).collect();
    configure(&place, &calm(), &targets);
    let daemon = Daemon::start(&place);
    daemon.round();
    place.longhaul("status").expect(0);
    daemon.stop();
    assert_all_ok(&place.stored_runs());
    paths.iter().for_each(|(_, path)| drop(arena(path)));
}
