//! Simulates hours to weeks of the service with events around it, and checks what the
//! database contains afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use longhaul_model::{
    CounterReading, CounterScope, CounterSource, Counters, FreeSpaceReserve, LinkKind, MachineSnapshot,
    MachineStep, Mount, NetworkLink, RequestCounts, RequestKind, TargetFidelity, TargetName, Timestamp,
};
use longhaul_service::clock::ClockReading;
use longhaul_service::command::{Command, Pause};
use longhaul_service::config::{Config, Design};
use longhaul_service::handle::ServiceHandle;
use longhaul_service::program_file::{ProgramFile, ServiceManager};
use longhaul_service::sampling::Sensors;
use longhaul_store::{Reader, RoundStatus, StoredRound};

use crate::world::{
    DAY, HOUR, SECOND, SimulatedEvent, Simulation, WEEK, both_shares, folder, normal_machine,
    refused_fidelity, rounds,
};

fn completed_rounds(rounds: &[StoredRound]) -> usize {
    rounds.iter().filter(|round| round.end.as_ref().unwrap().status == RoundStatus::Ok).count()
}

fn reason_codes(rounds: &[StoredRound]) -> Vec<String> {
    let reasons = rounds.iter().filter_map(|round| round.end.as_ref().unwrap().reason.clone());
    reasons.map(|reason| reason.split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn restart_neither_doubles_nor_loses_a_round() {
    let folder = folder();
    let simulation = || Simulation::new(folder.path()).lasting(6 * HOUR);
    let end = simulation().run();
    let before = rounds(&simulation().database).len();
    let mut second = simulation();
    second.start = end;
    second.run();
    let all = rounds(&simulation().database);
    assert!(
        (11..=13).contains(&all.len()) && completed_rounds(&all) == all.len(),
        "{} rounds, {before} before: {:?}",
        all.len(),
        reason_codes(&all)
    );
    let scheduled: Vec<Timestamp> = all.iter().map(|round| round.round.scheduled.unwrap()).collect();
    assert!(
        scheduled.windows(2).all(|pair| (pair[1].seconds_since(pair[0]) - 3600.0).abs() < 10.0),
        "{scheduled:?}"
    );
}

#[test]
fn slots_while_the_service_was_off_are_missed() {
    let folder = folder();
    let simulation = || Simulation::new(folder.path()).lasting(3 * HOUR);
    let mut later = simulation();
    later.start = simulation().run();
    later.start.wall = later.start.wall + 5 * longhaul_model::time::HOUR;
    later.start.continuous_ns = HOUR;
    later.start.awake_ns = HOUR;
    later.run();
    let missed = reason_codes(&rounds(&simulation().database));
    // Five hours contain five slots; the jitter of ten minutes can add or remove one at either end.
    assert!((4..=6).contains(&missed.len()) && missed.iter().all(|code| code == "not-running"), "{missed:?}");
}

#[test]
fn round_during_which_the_machine_slept_is_void() {
    let folder = folder();
    // The first round starts ten seconds after the service.
    let simulation =
        Simulation::new(folder.path()).lasting(30 * HOUR).then(20 * SECOND, SimulatedEvent::Sleep(9 * HOUR));
    let database = simulation.database.clone();
    simulation.run();
    let all = rounds(&database);
    assert_eq!(all[0].end.as_ref().unwrap().status, RoundStatus::Void);
    let codes = reason_codes(&all);
    assert!(codes[0].starts_with("slept"));
    assert!(!codes.iter().any(|code| code == "time-budget"), "the night is no time of rounds: {codes:?}");
    let slept = Reader::open(&database).unwrap().void_rounds_since(Timestamp::UNIX_EPOCH, "slept").unwrap();
    assert_eq!(slept, 1, "`longhaul doctor` counts these rounds");
}

#[test]
fn round_with_a_worker_of_another_version_is_void() {
    let folder = folder();
    let simulation =
        Simulation { worker_version: "0.0.1", ..Simulation::new(folder.path()) }.lasting(HOUR / 2);
    let database = simulation.database.clone();
    simulation.run();
    let all = rounds(&database);
    let end = all[0].end.as_ref().unwrap();
    let reason = end.reason.as_deref().unwrap();
    assert_eq!(end.status, RoundStatus::Void, "{reason}");
    assert!(reason.starts_with("program-replaced: ") && reason.contains("0.0.1"), "{reason}");
}

#[test]
fn failed_fidelity_check_is_repeated_after_a_day() {
    let folder = folder();
    let simulation =
        || Simulation { fidelity: refused_fidelity(), ..Simulation::new(folder.path()) }.lasting(20 * HOUR);
    let database = simulation().database;
    // A share: the baseline takes part in every fourth round only.
    let of_share = |checked: &TargetFidelity| checked.target.as_str() == "smb";
    let checks = || Reader::open(&database).unwrap().fidelity().unwrap();
    let last_check = || checks().into_iter().find(of_share).unwrap().at;
    let end = simulation().run();
    let first = last_check();
    assert!(first < rounds(&database)[1].round.started, "checked after the first round, and not again");
    let mut later = simulation();
    later.start = end;
    later.run();
    let hours = last_check().seconds_since(first) / 3600.0;
    assert!((24.0..26.0).contains(&hours), "{hours} hours");
}

#[test]
fn time_of_checks_counts_in_the_time_budget() {
    let folder = folder();
    let simulation = Simulation::new(folder.path()).lasting(HOUR / 2);
    let database = simulation.database.clone();
    simulation.run();
    let all = rounds(&database);
    let runs = all[0].end.as_ref().unwrap().ended.since(all[0].round.started);
    let busy = Reader::open(&database).unwrap().busy_since(Timestamp::UNIX_EPOCH).unwrap();
    // The simulated clock advances by a second whenever it is read: at least once for each of three targets.
    assert!(all.len() == 1 && busy >= runs + Duration::from_secs(3), "{busy:?}, runs {runs:?}");
}

/// Returns a simulation under a service manager in which the program file is replaced half an hour after the start.
fn upgraded(folder: &Path) -> Simulation {
    let program = folder.join("longhauld");
    fs::write(&program, "old").unwrap();
    let replace = |_: &ServiceHandle, database: &Path| {
        fs::write(database.with_file_name("new"), "new").unwrap();
        fs::rename(database.with_file_name("new"), database.with_file_name("longhauld")).unwrap();
    };
    let program_file = Some(ProgramFile::new(program, Some(ServiceManager::Launchd)));
    Simulation { program_file, ..Simulation::new(folder) }
        .lasting(6 * HOUR)
        .then(HOUR / 2, SimulatedEvent::Call(replace))
}

#[test]
fn replaced_program_stops_the_service_before_a_round() {
    let folder = folder();
    let simulation = upgraded(folder.path());
    let (database, start_ns) = (simulation.database.clone(), simulation.start.continuous_ns);
    let duration_ns = simulation.run().continuous_ns - start_ns;
    assert!((HOUR / 2..HOUR / 2 + 240 * SECOND).contains(&duration_ns), "{} s", duration_ns / SECOND);
    let all = rounds(&database);
    assert_eq!((completed_rounds(&all), all.len()), (1, 1), "{:?}", reason_codes(&all));
}

#[test]
fn pause_skips_rounds_and_survives_a_restart() {
    let folder = folder();
    let pause = |handle: &ServiceHandle, _: &Path| handle.send(Command::SetPause(Pause::On));
    let simulation = || Simulation::new(folder.path()).lasting(3 * HOUR);
    let mut later = simulation();
    later.start = simulation().then(HOUR / 2, SimulatedEvent::Call(pause)).run();
    later
        .then(HOUR + HOUR / 2, SimulatedEvent::Call(|handle, _| handle.send(Command::SetPause(Pause::Off))))
        .run();
    let all = rounds(&simulation().database);
    let paused = reason_codes(&all);
    assert!((3..=5).contains(&paused.len()) && paused.iter().all(|code| code == "paused"), "{paused:?}");
    assert!(completed_rounds(&all) >= 2);
}

#[test]
fn pause_during_a_round_outlasts_a_stop_in_that_round() {
    let folder = folder();
    let pause_and_stop = |handle: &ServiceHandle, _: &Path| {
        handle.send(Command::SetPause(Pause::On));
        handle.send(Command::Stop);
    };
    let simulation =
        Simulation::new(folder.path()).lasting(HOUR).then(20 * SECOND, SimulatedEvent::Call(pause_and_stop));
    let database = simulation.database.clone();
    simulation.run();
    let last = Reader::open(&database).unwrap().last_event(["pause", "resume"]).unwrap();
    assert_eq!(last.unwrap().event.kind, "pause");
}

#[test]
fn byte_budget_is_counted_across_restarts() {
    let folder = folder();
    // A round reads 3 phases of 1 MB for each of 5 workloads: 15 MB.
    let simulation = || {
        let mut simulation = Simulation::new(folder.path()).lasting(3 * HOUR);
        simulation.config.limits.bytes_per_day = Some(64_000_000);
        simulation
    };
    let mut later = simulation();
    later.start = simulation().run();
    later.run();
    let all = rounds(&simulation().database);
    let runs = Reader::open(&simulation().database).unwrap().runs(&Default::default()).unwrap();
    assert!(runs.iter().all(|run| run.run.outcome.name() == "ok"), "{:?}", runs[0].run.failure);
    assert_eq!(completed_rounds(&all), 4, "four rounds read 60 MB; a fifth would exceed 64 MB");
    assert!(reason_codes(&all).iter().all(|code| code == "byte-budget") && all.len() >= 6);
}

#[test]
fn full_target_is_skipped_and_tried_four_times_a_day() {
    let folder = folder();
    let mut simulation = Simulation::new(folder.path()).lasting(DAY);
    // The workers report that half of the disk is free.
    simulation.config.settings.reserve = FreeSpaceReserve::share(0.6);
    let database = simulation.database.clone();
    simulation.run();
    let all = rounds(&database);
    assert!((4..=5).contains(&completed_rounds(&all)), "{} of {}", completed_rounds(&all), all.len());
    assert!(
        reason_codes(&all).iter().all(|code| code == "free-space") && all.len() >= 23,
        "{:?}",
        reason_codes(&all)
    );
}

#[test]
fn requested_round_reads_the_free_space_of_a_full_target() {
    let completed_with = |request_times: &[i64]| {
        let folder = folder();
        let mut simulation = Simulation::new(folder.path()).lasting(5 * HOUR);
        simulation.config.settings.reserve = FreeSpaceReserve::share(0.6);
        let database = simulation.database.clone();
        let request = || SimulatedEvent::Call(|handle, _| handle.send(Command::RunRound));
        request_times.iter().fold(simulation, |simulation, at| simulation.then(*at, request())).run();
        completed_rounds(&rounds(&database))
    };
    assert_eq!((completed_with(&[]), completed_with(&[2 * HOUR + HOUR / 2, 3 * HOUR + HOUR / 2])), (1, 3));
}

fn use_interface(name: &str) -> SimulatedEvent {
    let link = NetworkLink { name: name.to_owned(), kind: LinkKind::Wired, mtu: None, megabits: None };
    SimulatedEvent::Machine(Box::new(MachineSnapshot { link: Some(link), ..normal_machine() }))
}

#[test]
fn other_interface_skips_a_day_and_then_becomes_usual() {
    let folder = folder();
    let simulation = Simulation::new(folder.path())
        .lasting(3 * DAY)
        .then(0, use_interface("en0"))
        .then(DAY, use_interface("en5"));
    let database = simulation.database.clone();
    simulation.run();
    let all = rounds(&database);
    assert_eq!(reason_codes(&all), vec!["other-link"; 24]);
    assert!(completed_rounds(&all) >= 46);
}

/// A computer that is switched off every evening.
#[test]
fn other_interface_becomes_usual_also_with_a_restart_each_half_day() {
    let folder = folder();
    let half_day = |name: &str, now: Option<ClockReading>| {
        let mut simulation = Simulation::new(folder.path()).lasting(DAY / 2);
        simulation.start = now.unwrap_or(simulation.start);
        let database = simulation.database.clone();
        (simulation.then(0, use_interface(name)).run(), database)
    };
    let (mut now, database) = half_day("en0", None);
    for _ in 0..4 {
        now = half_day("en5", Some(now)).0;
    }
    let all = rounds(&database);
    assert_eq!(reason_codes(&all), vec!["other-link"; 24]);
    assert!(completed_rounds(&all) >= 30, "{}", completed_rounds(&all));
}

#[test]
fn target_without_its_mount_is_unavailable_and_not_measured() {
    let folder = folder();
    let mut without_smb = both_shares();
    without_smb.remove(1);
    let simulation = Simulation::new(folder.path())
        .lasting(4 * HOUR)
        .then(HOUR + HOUR / 2, SimulatedEvent::Mounts(without_smb))
        .then(2 * HOUR + HOUR / 2, SimulatedEvent::Mounts(both_shares()));
    let database = simulation.database.clone();
    simulation.run();
    let reader = Reader::open(&database).unwrap();
    let runs = reader.runs(&Default::default()).unwrap();
    let count = |target: &str, outcome: &str| {
        let matches = |run: &&longhaul_store::StoredRun| {
            run.run.target.as_str() == target && run.run.outcome.name() == outcome
        };
        runs.iter().filter(matches).count()
    };
    assert_eq!((count("smb", "unavailable"), count("nfs", "unavailable")), (5, 0));
    assert!(count("smb", "ok") >= 10);
    let kinds: Vec<String> = reader.events(None).unwrap().into_iter().map(|event| event.event.kind).collect();
    assert!(
        kinds.iter().any(|kind| kind == "unmount") && kinds.iter().any(|kind| kind == "mount"),
        "{kinds:?}"
    );
}

#[test]
fn weeks_measure_one_share_a_week_in_the_order_abba() {
    let folder = folder();
    // From a Thursday to the Sunday of the fourth week.
    let mut simulation = Simulation::new(folder.path()).lasting(3 * WEEK + 3 * DAY);
    simulation.config.schedule.design = Design::Weeks;
    simulation.config.schedule.rounds_per_day = 4;
    simulation.config.workloads.truncate(1);
    let database = simulation.database.clone();
    simulation.run();
    let planned: Vec<(i64, String)> = rounds(&database)
        .into_iter()
        .flat_map(|round| {
            let day = round.round.started.local_day(0);
            round.round.planned.into_iter().map(move |planned| (day, planned.target.to_string()))
        })
        .filter(|(_, target)| target != "local")
        .collect();
    let mut order: Vec<&str> = planned.iter().map(|(_, target)| target.as_str()).collect();
    order.dedup();
    assert_eq!(order, ["smb", "nfs", "smb"]);
}

#[test]
fn new_database_does_not_show_what_the_damaged_one_had() {
    let folder = folder();
    // The end of a round would read the database again.
    let pause = |handle: &ServiceHandle, _: &Path| handle.send(Command::SetPause(Pause::On));
    let damage = |handle: &ServiceHandle, database: &Path| {
        assert!(handle.status().unwrap().targets.iter().any(|target| target.last_runs.is_some()));
        handle.raise_problem("damaged-data", "1 range of a file on smb differs", Timestamp::UNIX_EPOCH);
        fs::write(database, vec![9; 20_000]).unwrap();
    };
    let look = |handle: &ServiceHandle, _: &Path| {
        let status = handle.status().unwrap();
        assert!(status.problems.iter().all(|problem| problem.code != "damaged-data"));
        assert!(status.targets.iter().all(|target| target.last_runs.is_none()));
        assert_eq!(status.rounds.ok, 0, "the pause skips all rounds since");
    };
    let simulation = Simulation::new(folder.path())
        .lasting(5 * HOUR)
        .then(3 * HOUR, SimulatedEvent::Call(pause))
        .then(3 * HOUR + HOUR / 2, SimulatedEvent::Call(damage))
        .then(4 * HOUR, SimulatedEvent::Call(look));
    simulation.run();
}

#[test]
fn service_without_targets_waits_until_it_gets_some() {
    let folder = folder();
    let configure = |handle: &ServiceHandle, _: &Path| {
        let config = Simulation::new(Path::new("/")).config;
        handle.send(Command::Configure(Box::new(config)));
    };
    let mut simulation =
        Simulation::new(folder.path()).lasting(5 * HOUR).then(2 * HOUR, SimulatedEvent::Call(configure));
    simulation.config = Config::default();
    let database = simulation.database.clone();
    simulation.run();
    let all = rounds(&database);
    assert!((1..=3).contains(&all.len()) && completed_rounds(&all) == all.len(), "{}", all.len());
}

/// Sensors of a mount on which a program lists a folder ten times between two readings. The counters are reset with
/// the 50th reading, and the mount is replaced with the 100th.
struct Counting(u64);

impl Sensors for Counting {
    fn counter_readings(&mut self, mounts: &[(TargetName, Mount)]) -> Option<Vec<CounterReading>> {
        self.0 += 1;
        let (instance, since) = match self.0 {
            ..50 => ("0:51", 0),
            50..100 => ("0:51", 50),
            _ => ("0:52", 0),
        };
        let listings = Some(10 * (self.0 - since));
        let counters = Counters {
            requests_by_kind: RequestCounts::default().with(RequestKind::List, listings),
            ..Counters::new(CounterSource::Mountstats, CounterScope::Mount, instance.to_owned())
        };
        let reading = |(target, _): &(TargetName, Mount)| CounterReading {
            target: Some(target.clone()),
            counters: vec![Ok(counters.clone())],
        };
        Some(mounts.iter().filter(|(target, _)| target.as_str() == "nfs").map(reading).collect())
    }

    fn machine_sample(&mut self) -> MachineStep {
        MachineStep::default()
    }

    fn machine_facts(&mut self) -> Option<BTreeMap<String, String>> {
        Some(BTreeMap::new())
    }
}

#[test]
fn usage_is_counted_through_resets_remounts_and_sleep() {
    let folder = folder();
    let mut simulation = Simulation::new(folder.path())
        .lasting(DAY)
        .then(5 * HOUR, SimulatedEvent::Sleep(2 * HOUR))
        .then(10 * HOUR, SimulatedEvent::ClockStep(-1_800_000_000))
        .then(14 * HOUR, SimulatedEvent::Mounts(vec![]))
        .then(15 * HOUR, SimulatedEvent::Mounts(both_shares()))
        .then(20 * HOUR, SimulatedEvent::ClockStep(3_600_000_000));
    simulation.sensors = Box::new(Counting(0));
    let database = simulation.database.clone();
    simulation.run();
    let usage = Reader::open(&database).unwrap().usage_by_day(Timestamp::MIN..Timestamp::MAX).unwrap();
    let listings: u64 = usage.iter().filter_map(|step| step.requests.get(RequestKind::List)).sum();
    let counted: f64 = usage.iter().map(|step| step.counted_seconds).sum();
    let left_out: f64 = usage.iter().map(|step| step.left_out_seconds).sum();
    // Readings are five minutes apart: at most 12 in each of the 22 hours in which the machine is awake.
    assert!(listings.is_multiple_of(10) && (1000..=2640).contains(&listings), "{listings}");
    let readings = listings as f64 / 10.0;
    // The simulated clock advances with each look at it, so an interval is a little longer than configured.
    assert!((300.0..330.0).contains(&(counted / readings)), "{counted} s in {readings} intervals");
    assert!(left_out > 0.0 && counted + left_out <= 22.0 * 3600.0, "{counted} s, {left_out} s left out");
}
