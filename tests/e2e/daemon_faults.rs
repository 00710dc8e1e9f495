//! Fault tests of the background service with real processes and real file systems: kills, hangs, full disks,
//! unmounts.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::daemon::{BUSY, Daemon, reset_crash_counter, target};
use crate::support::mounts::{Memory, only_in_own_mounts};
use crate::support::{Place, assert_all_ok, machine, sandbox};
#[cfg(target_os = "linux")]
use crate::{fuse::hang::Fuse, support::mounts::in_own_mounts};
use longhaul_model::Timestamp;
use longhaul_model::draw::draw;
use longhaul_store::{Reader, RoundStatus};
use rustix::process::Signal;

/// Environment variable with the number of kills in `kills_at_random_times_lose_nothing`, and its default.
const KILLS: (&str, u64) = ("LONGHAUL_TEST_KILLS", 40);

fn configure(place: &Place, configuration: &str, targets: &[(&str, &Path)]) {
    let targets: String = targets.iter().map(|(name, path)| target(name, path)).collect();
    place.configure(&(configuration.to_owned() + &targets));
}

/// Returns a configuration with rounds only on request: the one that is scheduled soon after the start is skipped in quiet hours.
fn calm() -> String {
    BUSY.replace("8640", "24") + "quiet-hours = \"00:00-23:59\"\n"
}

/// Starts a service and waits for a first round to end.
fn start_calm(place: &Place) -> Daemon<'_> {
    let daemon = Daemon::start(place);
    daemon.round();
    daemon
}

/// Returns a configuration with larger trees, so that a worker walks a tree long enough for a fault, and a cap that
/// a busy machine does not reach.
fn slow() -> String {
    calm().replace("files = 40", "files = 4000") + "[limits]\ncap-seconds = 10\n"
}

/// Requests rounds until a worker is seen in a state, which a quick machine may leave between two looks. Returns its id.
fn catch_worker(daemon: &Daemon<'_>, place: &Place, is_so: impl Fn(i32) -> bool) -> i32 {
    let mut found = None;
    machine::wait_until("a worker", || {
        if daemon.status()["state"]["name"] != "measuring" {
            daemon.send_command("round", "{}");
        }
        found = machine::workers_of(place.root()).into_iter().find(|pid| is_so(*pid));
        found.is_some()
    });
    found.unwrap()
}

fn outcomes(place: &Place, target: &str) -> Vec<String> {
    let runs = place.stored_runs().into_iter().filter(|run| run["target"] == target);
    runs.map(|run| run["outcome"].as_str().unwrap().to_owned()).collect()
}

#[cfg(target_os = "linux")]
fn state<'a>(status: &'a serde_json::Value, target: &str) -> &'a str {
    let targets = status["targets"].as_array().unwrap();
    let found = targets.iter().find(|found| found["name"] == target).unwrap();
    found["state"]["name"].as_str().unwrap()
}

#[test]
fn killed_worker_voids_its_run_and_next_round_is_ok() {
    let place = Place::new();
    let a = place.folder("a");
    configure(&place, &slow(), &[("a", &a)]);
    let daemon = start_calm(&place);
    daemon.round();
    let worker = catch_worker(&daemon, &place, |pid| machine::has_open(pid, &sandbox(&a)));
    machine::signal(worker, Signal::KILL);
    daemon.wait_for("the end of that round", |status| status["state"]["name"] != "measuring");
    daemon.round();
    daemon.stop();
    let outcomes = outcomes(&place, "a");
    assert_eq!(outcomes.last().unwrap(), "ok");
    assert!(outcomes.iter().filter(|outcome| *outcome == "void").count() <= 1, "{outcomes:?}");
}

#[test]
fn stopped_worker_is_stored_as_hung_and_replaced() {
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("b"));
    configure(&place, &slow(), &[("a", &a), ("b", &b)]);
    let daemon = start_calm(&place);
    daemon.round();
    let worker =
        catch_worker(&daemon, &place, |pid| machine::is_walking(pid, &sandbox(&a).join("folder-index")));
    machine::signal(worker, Signal::STOP);
    daemon.wait_for("the end of that round", |status| status["state"]["name"] != "measuring");
    daemon.round();
    daemon.stop();
    let found = outcomes(&place, "a");
    assert!(found.iter().filter(|outcome| *outcome == "hung").count() == 1, "{found:?}");
    assert_eq!(found.last().unwrap(), "ok", "a stopped process is killed and replaced");
    assert!(outcomes(&place, "b").iter().all(|outcome| outcome == "ok"));
}

#[test]
fn kills_at_random_times_lose_nothing() {
    let kills = std::env::var(KILLS.0).ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS.1);
    // Two services side by side, each with half of the kills: they wait most of the time.
    std::thread::scope(|scope| {
        for half in [0..kills / 2, kills / 2..kills] {
            scope.spawn(move || kill_a_service(half));
        }
    });
}

/// Kills a service with each of these numbers, and checks that it loses nothing.
fn kill_a_service(kills: Range<u64>) {
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("b"));
    let eager = BUSY.replace("files = 40", "files = 400").replace("8640", "24");
    configure(&place, &eager, &[("a", &a), ("b", &b)]);
    let count = kills.end - kills.start;
    let mut acknowledged = BTreeSet::new();
    for kill in kills {
        reset_crash_counter(&place);
        let mut daemon = Daemon::spawn(&place);
        if kill % 4 != 0 {
            daemon.wait_until_ready();
            daemon.send_command("round", "{}");
        }
        if kill % 2 == 1 {
            let before = run_count(&place);
            machine::wait_until("a run", || run_count(&place) > before);
        }
        let share = draw(0x6b69_6c6c, 3, kill) as f64 / u64::MAX as f64;
        std::thread::sleep(Duration::from_secs_f64(0.002 * 100f64.powf(share)));
        // Runs that a reader can see are committed, and must survive the kill.
        acknowledged.extend(run_numbers(&place));
        daemon.kill();
        let stored = run_numbers(&place);
        assert!(acknowledged.is_subset(&stored), "lost: {:?}", acknowledged.difference(&stored));
    }
    reset_crash_counter(&place);
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.stop();
    let rounds = Reader::open(&place.database()).unwrap().rounds().unwrap();
    assert!(rounds.iter().all(|round| round.end.is_some()), "no round is open");
    let scheduled: Vec<Timestamp> = rounds.iter().filter_map(|round| round.round.scheduled).collect();
    let distinct: BTreeSet<Timestamp> = scheduled.iter().map(|at| at.floor(Duration::from_mins(1))).collect();
    assert_eq!(scheduled.len(), distinct.len(), "no slot is handled twice");
    assert_eq!(rounds.last().unwrap().end.as_ref().unwrap().status, RoundStatus::Ok);
    assert!(acknowledged.len() as u64 >= count / 4, "{} runs in {count} kills", acknowledged.len());
    assert!(sandbox(&a).join("folder-index").exists(), "the sandbox is reused");
    assert!(machine::workers_of(place.root()).is_empty());
}

fn run_numbers(place: &Place) -> BTreeSet<i64> {
    // A kill during the very first start may leave no database.
    let Ok(reader) = Reader::open(&place.database()) else { return BTreeSet::new() };
    reader.runs(&Default::default()).unwrap().into_iter().map(|run| run.number).collect()
}

/// Returns the number of stored runs, without reading them.
fn run_count(place: &Place) -> u64 {
    Reader::open(&place.database()).map_or(0, |reader| reader.run_count(&Default::default()).unwrap())
}

#[cfg(target_os = "linux")]
/// Test environment with a target on FUSE that can hang, and a local target.
struct Hang {
    // Dropped first: the mount must be gone before the folder that contains it is removed.
    fuse: Fuse,
    place: Place,
    stuck: PathBuf,
}

/// Creates the environment in the test's own mount namespace. `None` if the test ran in another process.
#[cfg(target_os = "linux")]
fn hang(test: impl Fn(), mount: fn(&Path) -> Fuse) -> Option<Hang> {
    if !in_own_mounts(test) {
        return None;
    }
    let place = Place::new();
    let (stuck, local) = (place.folder("mount"), place.folder("local"));
    let fuse = mount(&stuck);
    configure(&place, &slow(), &[("stuck", &stuck), ("local", &local)]);
    Some(Hang { fuse, place, stuck })
}

#[cfg(target_os = "linux")]
fn freeze_in_a_walk(hang: &Hang, daemon: &Daemon<'_>) {
    let trees = sandbox(&hang.stuck).join("folder-index");
    catch_worker(daemon, &hang.place, |pid| machine::is_walking(pid, &trees));
    hang.fuse.freeze();
}

#[cfg(target_os = "linux")]
#[test]
fn hung_target_recovers_when_it_answers_again() {
    let Some(hang) = hang(hung_target_recovers_when_it_answers_again, Fuse::mount) else { return };
    let daemon = start_calm(&hang.place);
    freeze_in_a_walk(&hang, &daemon);
    daemon.wait_for("the hung run to be stored", |_| {
        outcomes(&hang.place, "stuck").contains(&"hung".to_owned())
    });
    daemon.wait_for("the end of that round", |status| status["state"]["name"] != "measuring");
    hang.fuse.thaw();
    // A killed worker loses its command line before its files are closed, and is hung until then.
    daemon.wait_for("the share to answer", |status| state(status, "stuck") != "hung");
    daemon.round();
    assert_eq!(outcomes(&hang.place, "stuck").last().unwrap(), "ok");
    daemon.stop();
    assert!(outcomes(&hang.place, "local").iter().all(|outcome| outcome == "ok"));
}

#[cfg(target_os = "linux")]
#[test]
fn hung_target_is_reported_and_does_not_block_stop() {
    let Some(hang) = hang(hung_target_is_reported_and_does_not_block_stop, Fuse::with_stuck_writes) else {
        return;
    };
    let daemon = Daemon::start(&hang.place);
    daemon.send_command("round", "{}");
    let status = daemon.wait_for("the hang", |status| state(status, "stuck") == "hung");
    for path in ["/", "/targets", "/latency", "/runs", "/events", "/method"] {
        let (text, took) = daemon.page(path);
        // The limit is generous: it only shows that no page waits for the hung target.
        assert!(took < Duration::from_secs(2), "{path} took {took:?}");
        let shows_hang = text.contains("hung: `write` has not returned since");
        assert_eq!(shows_hang, matches!(path, "/" | "/targets"), "{path}: {text}");
    }
    let targets = status["targets"].as_array().unwrap();
    let stuck = targets.iter().find(|target| target["name"] == "stuck").unwrap();
    assert_eq!(stuck["state"]["operation"], "write", "{stuck}");
    daemon.wait_for("the end of that round", |status| status["state"]["name"] != "measuring");
    daemon.round();
    assert_eq!(outcomes(&hang.place, "local"), ["ok", "ok"], "the other target is still measured");
    machine::wait_until("all workers but the stuck one to end", || {
        machine::workers_of(hang.place.root()).len() == 1
    });
    let output = hang.place.longhaul("status").expect(3);
    assert!(output.out.contains("hung: `write` has not returned since"), "{output}");
    daemon.stop();
    hang.fuse.end();
    machine::wait_for_no_worker(hang.place.root());
}

#[cfg(target_os = "linux")]
#[test]
fn stuck_worker_of_a_killed_service_is_not_duplicated() {
    let Some(hang) = hang(stuck_worker_of_a_killed_service_is_not_duplicated, Fuse::with_stuck_writes) else {
        return;
    };
    let daemon = Daemon::start(&hang.place);
    daemon.send_command("round", "{}");
    daemon.wait_for("the hang", |status| state(status, "stuck") == "hung");
    daemon.signal(Signal::KILL);
    daemon.wait_for_exit();
    let workers = || machine::workers_of(hang.place.root());
    machine::wait_until("all workers but the stuck one to end", || workers().len() == 1);
    let left = workers();
    let daemon = Daemon::start(&hang.place);
    daemon.round();
    assert_eq!(state(&daemon.status(), "stuck"), "hung");
    assert_eq!(outcomes(&hang.place, "stuck").last().unwrap(), "hung");
    assert_eq!(outcomes(&hang.place, "local").last().unwrap(), "ok", "the other target is still measured");
    machine::wait_until("the workers of that round to end", || workers() == left);
    hang.fuse.end();
    machine::wait_for_no_worker(hang.place.root());
    daemon.wait_for("the target to recover", |status| state(status, "stuck") != "hung");
    daemon.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn unmounted_target_is_unavailable_and_not_written_to() {
    let Some(Hang { fuse, place, stuck }) =
        hang(unmounted_target_is_unavailable_and_not_written_to, Fuse::mount)
    else {
        return;
    };
    let daemon = start_calm(&place);
    daemon.round();
    drop(fuse);
    daemon.wait_for("the event", |_| kinds(&place).contains(&"unmount".to_owned()));
    daemon.round();
    let status = daemon.status();
    assert_eq!(state(&status, "stuck"), "unavailable", "{status}");
    daemon.stop();
    assert_eq!(outcomes(&place, "stuck").last().unwrap(), "unavailable");
    assert_eq!(fs::read_dir(&stuck).unwrap().count(), 0, "nothing was written to the empty mount point");
}

fn kinds(place: &Place) -> Vec<String> {
    let events = Reader::open(&place.database()).unwrap().events(None).unwrap();
    events.into_iter().map(|event| event.event.kind).collect()
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn full_database_disk_delays_runs_and_loses_none() {
    only_in_own_mounts!(full_database_disk_delays_runs_and_loses_none);
    let place = Place::new();
    let disk = Memory::mount(&place.folder("home/data"), 4096);
    configure(&place, BUSY, &[("a", &place.folder("a"))]);
    let daemon = Daemon::start(&place);
    daemon.round();
    let ballast = disk.fill();
    daemon.send_command("round", "{}");
    let status = daemon.wait_for("the problem", |status| status["problems"][0]["code"] == "not-stored");
    assert!(status["problems"][0]["text"].as_str().unwrap().contains("full"), "{status}");
    let before = place.stored_runs().len();
    fs::remove_file(ballast).unwrap();
    daemon.wait_for("the problem to be cleared", |status| status["problems"].as_array().unwrap().is_empty());
    machine::wait_until("further runs", || place.stored_runs().len() > before);
    daemon.stop();
    assert_all_ok(&place.stored_runs());
    assert!(place.round_ends().iter().all(Option::is_some));
}

#[test]
fn removed_database_is_recreated_while_running() {
    let place = Place::new();
    configure(&place, &calm(), &[("a", &place.folder("a"))]);
    let daemon = Daemon::start(&place);
    daemon.round();
    let before = place.stored_runs();
    fs::remove_file(place.database()).unwrap();
    daemon.round();
    let status = daemon.wait_for("the problem", |status| status["problems"][0]["code"] == "database");
    assert!(status["problems"][0]["text"].as_str().unwrap().contains("wrote it again"), "{status}");
    daemon.stop();
    let after = place.stored_runs();
    assert_eq!(after[..before.len()], before[..], "nothing is lost");
    assert!(after.len() > before.len());
}

#[test]
fn removed_folder_of_the_database_is_made_again_with_its_lock() {
    let place = Place::new();
    configure(&place, &calm(), &[("a", &place.folder("a"))]);
    let daemon = Daemon::start(&place);
    daemon.round();
    fs::remove_dir_all(place.data()).unwrap();
    machine::wait_until("the address file", || daemon.address().is_some());
    assert_eq!(Daemon::spawn(&place).wait_for_exit().code(), Some(4), "only one longhaul measures");
    daemon.round();
    daemon.stop();
    assert_all_ok(&place.stored_runs());
}

#[test]
fn damaged_database_is_quarantined_while_running() {
    let place = Place::new();
    configure(&place, &calm(), &[("a", &place.folder("a"))]);
    let daemon = Daemon::start(&place);
    daemon.round();
    fs::write(place.database(), vec![7; 50_000]).unwrap();
    daemon.send_command("round", "{}");
    let status = daemon.wait_for("the problem", |status| status["problems"][0]["code"] == "database");
    let text = status["problems"][0]["text"].as_str().unwrap();
    assert!(text.contains("moved to") && text.contains(".recover"), "{status}");
    daemon.round();
    daemon.stop();
    assert_all_ok(&place.stored_runs());
    let sandboxes = fs::read_dir(place.path("a")).unwrap().count();
    assert_eq!(sandboxes, 1, "the machine id is kept, so the sandbox is found again");
    assert!(kinds(&place).contains(&"database".to_owned()), "{:?}", kinds(&place));
}

#[test]
fn hundred_targets_are_measured_in_one_round() {
    let place = Place::new();
    let paths: Vec<(String, PathBuf)> =
        (0..100).map(|number| (format!("t{number}"), place.folder(&format!("t/{number}")))).collect();
    let targets: Vec<(&str, &Path)> =
        paths.iter().map(|(name, path)| (name.as_str(), path.as_path())).collect();
    configure(&place, &calm(), &targets);
    let daemon = Daemon::start(&place);
    daemon.send_command("round", "{}");
    // The status of a hundred targets is large: asking for it all the time would take the processors from the round.
    for done in [25, 50, 75, 100] {
        machine::wait_until(&format!("{done} runs"), || {
            std::thread::sleep(Duration::from_millis(200));
            run_count(&place) >= done
        });
    }
    machine::wait_until("the end of the round", || place.round_ends().contains(&Some(RoundStatus::Ok)));
    // The checks that follow would take a second or two for each target: the tests of the service have them in simulated time.
    place.longhaul("pause").expect(0);
    let status = daemon.wait_for("the end of the checks", |status| status["state"]["name"] == "paused");
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
fn target_paths_may_contain_any_character() {
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
    paths.iter().for_each(|(_, path)| drop(sandbox(path)));
}
