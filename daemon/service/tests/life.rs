//! Days in the life of the service, each in a moment: what happens around it, and what the database says afterwards.

#![allow(clippy::unwrap_used)]

mod world;

use std::fs;
use std::path::Path;

use longhaul_measure::model::{Link, LinkKind, Surroundings};
use longhaul_service::config::{Config, Design};
use longhaul_service::desk::{Desk, Pause};
use longhaul_service::program::{ProgramFile, ServiceManager};
use longhaul_store::{Reader, RoundStatus, StoredRound};
use world::{DAY, HOUR, Happening, Life, SECOND, WEEK, calm, folder, rounds, shares};

fn made(rounds: &[StoredRound]) -> usize {
    rounds.iter().filter(|round| round.end.as_ref().unwrap().status == RoundStatus::Ok).count()
}

fn words(rounds: &[StoredRound]) -> Vec<String> {
    let reasons = rounds.iter().filter_map(|round| round.end.as_ref().unwrap().reason.clone());
    reasons.map(|reason| reason.split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn a_restart_neither_doubles_nor_loses_a_round() {
    let folder = folder();
    let life = || Life::new(folder.path()).lasting(6 * HOUR);
    let end = life().live();
    let before = rounds(&life().database).len();
    let mut second = life();
    second.start = end;
    second.live();
    let all = rounds(&life().database);
    assert!(
        (11..=13).contains(&all.len()) && made(&all) == all.len(),
        "{} rounds, {before} before: {:?}",
        all.len(),
        words(&all)
    );
    let scheduled: Vec<i64> = all.iter().map(|round| round.round.scheduled_us.unwrap()).collect();
    assert!(
        scheduled.windows(2).all(|pair| (pair[1] - pair[0] - 3_600_000_000).abs() < 10_000_000),
        "{scheduled:?}"
    );
}

#[test]
fn what_passed_while_nobody_ran_is_missed_and_said_to_be() {
    let folder = folder();
    let life = || Life::new(folder.path()).lasting(3 * HOUR);
    let mut later = life();
    later.start = life().live();
    later.start.wall_us += 5 * 3_600_000_000;
    later.start.continuous_ns = HOUR;
    later.start.awake_ns = HOUR;
    later.live();
    let missed = words(&rounds(&life().database));
    // Five hours hold five instants; at either end the jitter of ten minutes can bring one in or leave one out.
    assert!((4..=6).contains(&missed.len()) && missed.iter().all(|word| word == "not-running"), "{missed:?}");
}

#[test]
fn a_round_that_the_machine_slept_in_is_void() {
    let folder = folder();
    // The first round begins ten seconds after the start.
    let life = Life::new(folder.path()).lasting(HOUR / 2).then(20 * SECOND, Happening::Sleep(HOUR / 6));
    let database = life.database.clone();
    life.live();
    let all = rounds(&database);
    assert_eq!(all[0].end.as_ref().unwrap().status, RoundStatus::Void);
    assert!(words(&all)[0].starts_with("slept"));
}

#[test]
fn a_round_with_a_worker_of_another_version_is_void() {
    let folder = folder();
    let life = Life { worker_version: "0.0.1", ..Life::new(folder.path()) }.lasting(HOUR / 2);
    let database = life.database.clone();
    life.live();
    let all = rounds(&database);
    let end = all[0].end.as_ref().unwrap();
    let reason = end.reason.as_deref().unwrap();
    assert_eq!(end.status, RoundStatus::Void, "{reason}");
    assert!(reason.starts_with("replaced: ") && reason.contains("0.0.1"), "{reason}");
}

/// A life in which the program file is replaced half an hour after the start.
fn upgraded(folder: &Path, manager: Option<ServiceManager>) -> Life {
    let program = folder.join("longhauld");
    fs::write(&program, "old").unwrap();
    let replace = |_: &Desk, database: &Path| {
        fs::write(database.with_file_name("new"), "new").unwrap();
        fs::rename(database.with_file_name("new"), database.with_file_name("longhauld")).unwrap();
    };
    let program_file = Some(ProgramFile::new(program, manager));
    Life { program_file, ..Life::new(folder) }.lasting(6 * HOUR).then(HOUR / 2, Happening::Do(replace))
}

#[test]
fn a_replaced_program_ends_the_service_before_a_round() {
    let folder = folder();
    let life = upgraded(folder.path(), Some(ServiceManager::Launchd));
    let (database, begin_ns) = (life.database.clone(), life.start.continuous_ns);
    let lived_ns = life.live().continuous_ns - begin_ns;
    assert!((HOUR / 2..HOUR / 2 + 240 * SECOND).contains(&lived_ns), "{} s", lived_ns / SECOND);
    let all = rounds(&database);
    assert_eq!((made(&all), all.len()), (1, 1), "{:?}", words(&all));
}

#[test]
fn a_replaced_program_without_a_manager_goes_on() {
    let folder = folder();
    let life = upgraded(folder.path(), None);
    let problem = |desk: &Desk, _: &Path| {
        let problems = desk.status().unwrap().problems;
        let words: Vec<&str> = problems.iter().map(|problem| problem.word.as_str()).collect();
        assert_eq!(words, ["replaced"], "{problems:?}");
    };
    let life = life.then(5 * HOUR, Happening::Do(problem));
    let database = life.database.clone();
    life.live();
    assert!(made(&rounds(&database)) >= 5);
}

#[test]
fn a_pause_skips_and_outlives_a_restart() {
    let folder = folder();
    let pause = |desk: &Desk, _: &Path| desk.order(|orders| orders.pause = Some(Pause::On));
    let life = || Life::new(folder.path()).lasting(3 * HOUR);
    let mut later = life();
    later.start = life().then(HOUR / 2, Happening::Do(pause)).live();
    later
        .then(HOUR + HOUR / 2, Happening::Do(|desk, _| desk.order(|orders| orders.pause = Some(Pause::Off))))
        .live();
    let all = rounds(&life().database);
    let paused = words(&all);
    assert!((3..=5).contains(&paused.len()) && paused.iter().all(|word| word == "paused"), "{paused:?}");
    assert!(made(&all) >= 2);
}

#[test]
fn the_budget_is_counted_over_restarts() {
    let folder = folder();
    // A round reads 3 phases of 1 MB for each of 5 workloads: 15 MB.
    let life = || {
        let mut life = Life::new(folder.path()).lasting(3 * HOUR);
        life.config.limits.bytes_per_day = Some(64_000_000);
        life
    };
    let mut later = life();
    later.start = life().live();
    later.live();
    let all = rounds(&life().database);
    let runs = Reader::open(&life().database).unwrap().runs(&Default::default()).unwrap();
    assert!(runs.iter().all(|run| run.run.outcome.name() == "ok"), "{:?}", runs[0].run.failure);
    assert_eq!(made(&all), 4, "four rounds take 60 MB, a fifth would go beyond 64");
    assert!(words(&all).iter().all(|word| word == "budget") && all.len() >= 6);
}

#[test]
fn a_target_that_is_too_full_skips_and_is_asked_again_four_times_a_day() {
    let folder = folder();
    let mut life = Life::new(folder.path()).lasting(DAY);
    // Its workers find half of it free.
    life.config.settings.free_floor = 0.6;
    let database = life.database.clone();
    life.live();
    let all = rounds(&database);
    assert!((4..=5).contains(&made(&all)), "{} of {}", made(&all), all.len());
    assert!(words(&all).iter().all(|word| word == "free-space") && all.len() >= 23, "{:?}", words(&all));
}

#[test]
fn who_orders_a_round_has_a_target_that_was_too_full_asked_again() {
    let made_with = |orders: &[i64]| {
        let folder = folder();
        let mut life = Life::new(folder.path()).lasting(5 * HOUR);
        life.config.settings.free_floor = 0.6;
        let database = life.database.clone();
        let order = || Happening::Do(|desk, _| desk.order(|orders| orders.round = true));
        orders.iter().fold(life, |life, at| life.then(*at, order())).live();
        made(&rounds(&database))
    };
    assert_eq!((made_with(&[]), made_with(&[2 * HOUR + HOUR / 2, 3 * HOUR + HOUR / 2])), (1, 3));
}

#[test]
fn another_link_skips_for_a_day_and_is_then_taken_for_the_usual_one() {
    let folder = folder();
    let on = |name: &str| {
        let link = Link { name: name.to_owned(), kind: LinkKind::Wired, mtu: None, megabits: None };
        Happening::Around(Box::new(Surroundings { link: Some(link), ..calm() }))
    };
    let life = Life::new(folder.path()).lasting(3 * DAY).then(0, on("en0")).then(DAY, on("en5"));
    let database = life.database.clone();
    life.live();
    let all = rounds(&database);
    assert_eq!(words(&all), vec!["link"; 24]);
    assert!(made(&all) >= 46);
}

#[test]
fn a_target_whose_mount_is_gone_is_booked_as_unavailable_and_not_measured_in_its_place() {
    let folder = folder();
    let mut without_smb = shares();
    without_smb.remove(1);
    let life = Life::new(folder.path())
        .lasting(4 * HOUR)
        .then(HOUR + HOUR / 2, Happening::Mounts(without_smb))
        .then(2 * HOUR + HOUR / 2, Happening::Mounts(shares()));
    let database = life.database.clone();
    life.live();
    let reader = Reader::open(&database).unwrap();
    let runs = reader.runs(&Default::default()).unwrap();
    let of = |target: &str, outcome: &str| {
        let fits = |run: &&longhaul_store::StoredRun| {
            run.run.target.as_str() == target && run.run.outcome.name() == outcome
        };
        runs.iter().filter(fits).count()
    };
    assert_eq!((of("smb", "unavailable"), of("nfs", "unavailable")), (5, 0));
    assert!(of("smb", "ok") >= 10);
    let kinds: Vec<String> = reader.events(None).unwrap().into_iter().map(|event| event.event.kind).collect();
    assert!(
        kinds.iter().any(|kind| kind == "unmount") && kinds.iter().any(|kind| kind == "mount"),
        "{kinds:?}"
    );
}

#[test]
fn weeks_measure_one_share_a_week_in_the_order_abba() {
    let folder = folder();
    let mut life = Life::new(folder.path()).lasting(4 * WEEK - DAY);
    life.config.schedule.design = Design::Weeks;
    life.config.schedule.rounds_per_day = 4;
    life.config.workloads.truncate(1);
    let database = life.database.clone();
    life.live();
    let planned: Vec<(i64, String)> = rounds(&database)
        .into_iter()
        .flat_map(|round| {
            let day = round.round.started_us / 86_400_000_000;
            round.round.planned.into_iter().map(move |planned| (day, planned.target.to_string()))
        })
        .filter(|(_, target)| target != "local")
        .collect();
    let mut order: Vec<&str> = planned.iter().map(|(_, target)| target.as_str()).collect();
    order.dedup();
    assert_eq!(order, ["smb", "nfs", "smb"]);
}

#[test]
fn a_database_that_is_removed_or_ruined_in_the_middle_is_mended_and_goes_on() {
    let folder = folder();
    let remove = |_: &Desk, database: &Path| std::fs::remove_file(database).unwrap();
    let ruin = |_: &Desk, database: &Path| std::fs::write(database, vec![9; 20_000]).unwrap();
    let life = Life::new(folder.path())
        .lasting(9 * HOUR)
        .then(3 * HOUR + HOUR / 2, Happening::Do(remove))
        .then(6 * HOUR + HOUR / 2, Happening::Do(ruin));
    let database = life.database.clone();
    life.live();
    let aside: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .filter(|entry| {
            entry.file_name().to_string_lossy().contains("damaged")
                && entry.path().extension().unwrap() == "sqlite"
        })
        .collect();
    assert_eq!(aside.len(), 1, "moved aside, not overwritten");
    assert!(made(&rounds(&database)) >= 2, "and gone on with");
    let events = Reader::open(&database).unwrap().events(None).unwrap();
    assert!(events.iter().any(|event| event.event.kind == "database"));
}

#[test]
fn a_configuration_without_targets_waits_and_one_with_targets_goes_on() {
    let folder = folder();
    let give = |desk: &Desk, _: &Path| {
        let config = Life::new(Path::new("/")).config;
        desk.order(|orders| orders.config = Some(config));
    };
    let mut life = Life::new(folder.path()).lasting(5 * HOUR).then(2 * HOUR, Happening::Do(give));
    life.config = Config::default();
    let database = life.database.clone();
    life.live();
    let all = rounds(&database);
    assert!((1..=3).contains(&all.len()) && made(&all) == all.len(), "{}", all.len());
}
