//! Fills a database with weeks of runs as the daemon would store them, with durations chosen by the test.

use std::path::Path;
use std::time::Duration;

use longhaul_model::STANDARD_TASKS as TASKS;
use longhaul_model::draw::draw;
use longhaul_model::time::HOUR;
use longhaul_model::{
    CacheState, Figure, Outcome, Phase, Protocol, Role, Run, Scale, Target, Timestamp, Unit,
};
use longhaul_store::{Bulk, NewRound, RoundEnd, RoundStatus, Store};

use longhaul_demo::synthetic_history;

/// Local midnight of the first day: 2026-09-28T00:00+02:00.
const BEGIN: Timestamp = Timestamp::from_us(1_790_546_400_000_000);
const UTC_OFFSET_SECONDS: i32 = 7200;
/// Number of rounds of a day.
const ROUNDS_PER_DAY: i64 = 4;

/// Database to which a test adds days of rounds.
pub struct Weeks {
    store: Store,
    shares: [(Target, Protocol); 2],
}

/// Function from target index, day and round of the day to the run time in seconds, or to the outcome of a failed
/// run.
pub type RunTimes<'s> = &'s dyn Fn(usize, i64, i64) -> Result<f64, Outcome>;

impl Weeks {
    /// Creates a database with two shares. Day 0 is the Monday of 2026-W40, in a time zone two hours ahead of UTC.
    pub fn of_two_shares(database: &Path) -> Self {
        let share = |name: &str, protocol| {
            let path = Path::new("/Volumes").join(name);
            (Target { name: name.parse().unwrap(), path, role: Role::Share }, protocol)
        };
        let shares = [
            share("smb", Protocol::Smb(Some("3.1.1".into()))),
            share("nfs", Protocol::Nfs(Some("4.2".into()))),
        ];
        Self { store: Store::open(database, &[]).unwrap(), shares }
    }

    /// Adds four rounds for each of these days.
    pub fn add_days(&mut self, days: std::ops::Range<i64>, run_times: RunTimes<'_>) {
        let Self { store, shares } = self;
        let mut rounds = days.start * ROUNDS_PER_DAY..days.end * ROUNDS_PER_DAY;
        store
            .bulk_insert(|bulk| rounds.try_for_each(|index| add_round(bulk, shares, index, run_times)))
            .unwrap();
    }
}

/// Adds the round with this number, counted from the first day.
fn add_round(
    bulk: &Bulk<'_>,
    shares: &[(Target, Protocol)],
    index: i64,
    run_times: RunTimes<'_>,
) -> longhaul_store::Result<()> {
    let (day, turn) = (index / ROUNDS_PER_DAY, index % ROUNDS_PER_DAY);
    let started = BEGIN + (24 * day + 8 + 3 * turn) as u32 * HOUR;
    let round = bulk.begin_round(&NewRound {
        utc_offset_seconds: UTC_OFFSET_SECONDS,
        scheduled: Some(started),
        ..NewRound::new(started, 1, Scale::Standard)
    })?;
    for (slot, workload) in TASKS.iter().enumerate() {
        for (place, (target, protocol)) in shares.iter().enumerate() {
            let run = Run {
                round,
                slot: slot as u32,
                target: target.name.clone(),
                protocol: Some(protocol.clone()),
                started_us: started + Duration::from_micros(slot as u64),
                ..run(workload.name(), run_times(place, day, turn))
            };
            bulk.add_run(target, &run)?;
        }
    }
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended: started + HOUR };
    bulk.end_round(round, &end)
}

/// Returns a run that took this time, or failed.
fn run(workload: &str, took: Result<f64, Outcome>) -> Run {
    let seconds = took.unwrap_or(900.0);
    Run {
        scale: Scale::Standard,
        outcome: took.err().unwrap_or(Outcome::Ok),
        utc_offset_seconds: UTC_OFFSET_SECONDS,
        seconds,
        phases: if took.is_ok() { phases(workload, seconds) } else { vec![] },
        ..Run::new(0, "x".parse().unwrap(), workload, Timestamp::UNIX_EPOCH)
    }
}

/// Returns the phases from which the workload's metrics are computed, all with this duration.
fn phases(workload: &str, seconds: f64) -> Vec<Phase> {
    let endpoints = TASKS.iter().find(|task| task.name() == workload).unwrap().metrics();
    let parts =
        endpoints.iter().flat_map(|endpoint| endpoint.figures.iter().map(move |part| (part, endpoint.cache)));
    let phase = |((name, figure), cache): (&(&str, &str), CacheState)| Phase {
        cold_by: None,
        bytes_read: 1,
        bytes_written: 1,
        ..synthetic_history::phase(name, cache, Figure::new(figure, Unit::Seconds, seconds))
    };
    parts.map(phase).collect()
}

/// Returns a time with deterministic noise of up to 10 % in either direction.
pub fn around(seconds: f64, target: usize, day: i64, turn: i64) -> Result<f64, Outcome> {
    let noise = draw(target as u64, day as u64, turn as u64) as f64 / u64::MAX as f64 - 0.5;
    Ok(seconds * (1.0 + 0.2 * noise))
}
