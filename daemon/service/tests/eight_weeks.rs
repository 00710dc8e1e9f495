//! Eight weeks in a minute: sleep every night, a wall clock that steps, daylight saving, a week on battery. Every planned
//! round is accounted for, and nothing grows that should not.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use longhaul_measure::model::{Power, Surroundings};
use longhaul_service::desk::Desk;
use longhaul_store::{Reader, RoundStatus, StoredRound};
use world::{DAY, HOUR, Happening, Life, WEEK, calm, folder, rounds};

/// Memory, threads and files of this process, each time somebody looked.
static LOOKS: Mutex<Vec<Look>> = Mutex::new(vec![]);

type Look = BTreeMap<&'static str, u64>;

fn look(_: &Desk, _: &Path) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().split(' ').next()?.parse::<u64>().ok()
    };
    let files = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let look = [("kilobytes", field("VmRSS:")), ("threads", field("Threads:")), ("files", Some(files))];
    LOOKS.lock().unwrap().push(look.into_iter().filter_map(|(name, value)| Some((name, value?))).collect());
}

#[test]
fn eight_weeks_account_for_every_planned_round_and_grow_in_nothing() {
    let folder = folder();
    let battery = Surroundings { power: Some(Power::Battery), battery_percent: Some(12.0), ..calm() };
    let mut life = Life::new(folder.path()).lasting(8 * WEEK);
    for day in 0..56 {
        life = life.then(day * DAY + 12 * HOUR, Happening::Do(look));
    }
    for night in 0..55 {
        life = life.then(night * DAY + 22 * HOUR, Happening::Sleep(8 * HOUR));
    }
    life = life
        .then(9 * DAY + HOUR / 3, Happening::Step(-3_600_000_000))
        .then(10 * DAY, Happening::Step(86_400_000_000))
        .then(20 * DAY, Happening::Zone(7200))
        .then(21 * DAY, Happening::Around(Box::new(battery)))
        .then(28 * DAY, Happening::Around(Box::new(calm())));
    let (database, interval_us) = (life.database.clone(), 3_600_000_000i64);
    let end = life.live();

    let all = rounds(&database);
    every_planned_round_is_accounted_for(&all, (end.continuous_ns - HOUR) / HOUR);
    slots_follow_each_other(&all, interval_us);
    the_journal_is_complete_and_the_database_small(&database);
    nothing_grew();
}

fn every_planned_round_is_accounted_for(all: &[StoredRound], planned: i64) {
    let mut counts: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for round in all {
        let end = round.end.as_ref().expect("no round is open");
        let word = end.reason.as_deref().unwrap_or("ok").split(':').next().unwrap().to_owned();
        *counts.entry((end.status.name(), word)).or_default() += 1;
    }
    eprintln!("eight weeks: {counts:?}");
    assert!((all.len() as i64 - planned).abs() <= 1, "{} rows for {planned} hours", all.len());
    let with = |status, word: &str| counts.get(&(status, word.to_owned())).copied().unwrap_or(0);
    assert!(with(RoundStatus::Ok.name(), "ok") > 700, "{counts:?}");
    assert_eq!(counts.keys().filter(|(_, word)| word == "late").count(), 0, "{counts:?}");
    assert!((380..=450).contains(&with(RoundStatus::Skipped.name(), "asleep")), "{counts:?}");
    assert!((90..=120).contains(&with(RoundStatus::Skipped.name(), "battery")), "{counts:?}");
}

fn slots_follow_each_other(all: &[StoredRound], interval_us: i64) {
    // Slot follows slot, an interval apart, except where the wall clock stepped.
    let scheduled: Vec<i64> = all.iter().map(|round| round.round.scheduled_us.unwrap()).collect();
    let odd: Vec<i64> = scheduled
        .windows(2)
        .map(|pair| pair[1] - pair[0] - interval_us)
        .filter(|odd| odd.abs() > 5)
        .collect();
    assert_eq!(odd.len(), 2, "a clock that went back an hour and one that went on a day: {odd:?}");
}

fn the_journal_is_complete_and_the_database_small(database: &Path) {
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

fn nothing_grew() {
    let looks = LOOKS.lock().unwrap();
    let (early, late) = (&looks[7], &looks[55]);
    eprintln!("eight weeks: on day 8 {early:?}, on day 56 {late:?}");
    if let (Some(early_kilobytes), Some(late_kilobytes)) = (early.get("kilobytes"), late.get("kilobytes")) {
        assert!(*late_kilobytes < early_kilobytes + 2048, "memory grew: {early:?} {late:?}");
        // A worker that has just been told to end is still being waited for at some looks: what leaks is there at all.
        let least = |looks: &[Look], what: &str| looks.iter().map(|look| look[what]).min();
        for what in ["threads", "files"] {
            assert_eq!(least(&looks[..8], what), least(&looks[48..], what), "{what}");
        }
    }
}
