//! Simulates eight weeks in a minute: sleep every night, wall-clock steps, daylight saving, a week on battery.
//! Checks that every planned round is accounted for, and that memory, threads and files do not grow.

use std::collections::BTreeMap;
use std::path::Path;

use longhaul_model::{MachineSnapshot, Power, Timestamp};
use longhaul_service::handle::ServiceHandle;
use longhaul_store::{Reader, RoundStatus, StoredRound};
use parking_lot::Mutex;

use crate::own_process::in_own_process;
use crate::world::{DAY, HOUR, SimulatedEvent, Simulation, WEEK, folder, normal_machine, rounds};

/// Memory, threads and open files of this process, once a simulated day.
static DAILY_COUNTS: Mutex<Vec<DayCounts>> = Mutex::new(vec![]);

type DayCounts = BTreeMap<&'static str, u64>;

fn record_counts(_: &ServiceHandle, _: &Path) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().split(' ').next()?.parse::<u64>().ok()
    };
    let files = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let counts = [("kilobytes", field("VmRSS:")), ("threads", field("Threads:")), ("files", Some(files))];
    DAILY_COUNTS.lock().push(counts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect());
}

#[test]
#[ignore = "takes half a minute: .ci/run runs it by name"]
fn eight_weeks_account_for_every_round_without_growth() {
    if !in_own_process(eight_weeks_account_for_every_round_without_growth, &[]) {
        return;
    }
    let folder = folder();
    let battery =
        MachineSnapshot { power: Some(Power::Battery), battery_percent: Some(12.0), ..normal_machine() };
    let mut simulation = Simulation::new(folder.path()).lasting(8 * WEEK);
    for day in 0..56 {
        // Half an hour from the rounds, which have a thread of their own and begin at the full hour, ten minutes more or less.
        simulation = simulation.then(day * DAY + 12 * HOUR + HOUR / 2, SimulatedEvent::Call(record_counts));
    }
    for night in 0..55 {
        simulation = simulation.then(night * DAY + 22 * HOUR, SimulatedEvent::Sleep(8 * HOUR));
    }
    simulation = simulation
        .then(9 * DAY + HOUR / 3, SimulatedEvent::ClockStep(-3_600_000_000))
        .then(10 * DAY, SimulatedEvent::ClockStep(86_400_000_000))
        .then(20 * DAY, SimulatedEvent::UtcOffset(7200))
        .then(21 * DAY, SimulatedEvent::Machine(Box::new(battery)))
        .then(28 * DAY, SimulatedEvent::Machine(Box::new(normal_machine())));
    let database = simulation.database.clone();
    let end = simulation.run();

    let all = rounds(&database);
    check_every_planned_round(&all, (end.continuous_ns - HOUR) / HOUR);
    check_slot_distances(&all);
    check_events_and_database_size(&database);
    check_no_growth();
}

fn check_every_planned_round(all: &[StoredRound], planned: i64) {
    let mut counts: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for round in all {
        let end = round.end.as_ref().expect("no round is open");
        let code = end.reason.as_deref().unwrap_or("ok").split(':').next().unwrap().to_owned();
        *counts.entry((end.status.name(), code)).or_default() += 1;
    }
    eprintln!("eight weeks: {counts:?}");
    assert!((all.len() as i64 - planned).abs() <= 1, "{} rows for {planned} hours", all.len());
    let with = |status, code: &str| counts.get(&(status, code.to_owned())).copied().unwrap_or(0);
    assert!(with(RoundStatus::Ok.name(), "ok") > 700, "{counts:?}");
    assert_eq!(counts.keys().filter(|(_, code)| code == "late").count(), 0, "{counts:?}");
    assert!((380..=450).contains(&with(RoundStatus::Skipped.name(), "asleep")), "{counts:?}");
    assert!((90..=120).contains(&with(RoundStatus::Skipped.name(), "battery")), "{counts:?}");
}

fn check_slot_distances(all: &[StoredRound]) {
    // Slots are one interval apart, except where the wall clock stepped.
    let scheduled: Vec<Timestamp> = all.iter().map(|round| round.round.scheduled.unwrap()).collect();
    let deviations: Vec<f64> = scheduled
        .windows(2)
        .map(|pair| pair[1].seconds_since(pair[0]) - 3600.0)
        .filter(|deviation| deviation.abs() > 5.5e-6)
        .collect();
    assert_eq!(deviations.len(), 2, "one step back by an hour and one forward by a day: {deviations:?}");
}

fn check_events_and_database_size(database: &Path) {
    let reader = Reader::open(database).unwrap();
    let kinds: Vec<String> = reader.events(None).unwrap().into_iter().map(|event| event.event.kind).collect();
    let times = |kind: &str| kinds.iter().filter(|found| *found == kind).count();
    assert_eq!((times("clock-step"), times("utc-offset"), times("wake")), (2, 1, 55));
    let megabytes = reader.size_bytes().unwrap() / 1_000_000;
    eprintln!(
        "eight weeks: {megabytes} MB, {} runs",
        reader.targets().unwrap().iter().map(|target| target.runs).sum::<u64>()
    );
    assert!(megabytes < 60, "{megabytes} MB");
}

fn check_no_growth() {
    let days = DAILY_COUNTS.lock();
    let (early, late) = (&days[7], &days[55]);
    let threads: Vec<Option<&u64>> = days.iter().map(|day| day.get("threads")).collect();
    eprintln!("eight weeks: on day 8 {early:?}, on day 56 {late:?}; threads {threads:?}");
    if let (Some(early_kilobytes), Some(late_kilobytes)) = (early.get("kilobytes"), late.get("kilobytes")) {
        assert!(*late_kilobytes < early_kilobytes + 2048, "memory grew: {early:?} {late:?}");
        // A worker that was just asked to exit still exists on some days, and has a thread: a leak exceeds the most of the first days.
        for name in ["threads", "files"] {
            let most = days[..8].iter().map(|day| day[name]).max();
            let least = days[48..].iter().map(|day| day[name]).min();
            assert!(least <= most, "{name} grew: {most:?} {least:?}");
        }
    }
}
