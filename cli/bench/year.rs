//! A database as it is after weeks of measuring, drawn from a seed: for benchmarks of what reads it.

use std::path::Path;

use anyhow::ensure;
use longhaul_measure::corpus::draw::{draw, draw_below, shuffled};
use longhaul_measure::model::{
    CacheState, ColdBy, Conditions, Event, Failure, Figure, Operation, OperationStats, Outcome, Phase,
    Protocol, Role, RoundStatus, Run, Scale, Target, Unit,
};
use longhaul_measure::stats::Histogram;
use longhaul_measure::workloads::{WORKLOADS, Workload};
use longhaul_store::{Bulk, NewRound, Planned, RoundEnd, Store};
use serde_json::json;

const SEED: u64 = 0x7965_6172;
/// Monday, 2025-11-03T00:00:00+01:00.
const BEGIN_US: i64 = 1_762_124_400_000_000;
const SECOND_US: i64 = 1_000_000;
const HOUR_US: i64 = 3600 * SECOND_US;
const UTC_OFFSET_SECONDS: i32 = 3600;
/// Rounds begin at every hour from 7 to 23.
const FIRST_HOUR: i64 = 7;
const ROUNDS_A_DAY: i64 = 17;
/// The tasks that take part in verdicts.
const TASKS: usize = 4;
/// Name, role and how long a task takes there, as a multiple.
const TARGETS: [(&str, Role, f64); 4] = [
    ("local", Role::Baseline, 0.2),
    ("smb", Role::Share, 1.0),
    ("nfs", Role::Share, 1.12),
    ("afp", Role::Share, 1.35),
];
/// The operations of every phase.
const OPERATIONS: [Operation; 3] = [Operation::Open, Operation::Getattr, Operation::Read];
const CALLS: u64 = 60;
const CAP_SECONDS: f64 = 900.0;

/// What was made.
pub struct Filled {
    /// Rounds, also those without runs.
    pub rounds: u64,
    /// Runs.
    pub runs: u64,
}

/// Makes a database of so many weeks where there is none yet.
pub fn fill(database: &Path, weeks: u32) -> anyhow::Result<Filled> {
    ensure!(!database.exists(), "{} is there already: give a path where nothing is", database.display());
    let mut store = Store::open(database, &[])?;
    let mut year = Year {
        targets: TARGETS.iter().map(target).collect::<Result<_, _>>()?,
        filled: Filled { rounds: 0, runs: 0 },
    };
    store.in_bulk(|bulk| {
        for day in 0..i64::from(weeks) * 7 {
            (0..ROUNDS_A_DAY).try_for_each(|hour| year.round(bulk, (day, hour)))?;
            if day % 28 == 20 {
                bulk.add_event(&system_update(day))?;
            }
        }
        anyhow::Ok(())
    })?;
    Ok(year.filled)
}

struct Year {
    targets: Vec<Target>,
    filled: Filled,
}

/// One cell of a round.
struct Cell {
    round: i64,
    slot: u32,
    target: usize,
    day: i64,
    started_us: i64,
    /// How slow everything is in this hour.
    weather: f64,
}

impl Year {
    fn round(&mut self, bulk: &Bulk<'_>, when: (i64, i64)) -> anyhow::Result<()> {
        let (day, hour) = when;
        let started_us = BEGIN_US + (day * 24 + FIRST_HOUR + hour) * HOUR_US;
        let index = self.filled.rounds;
        let round = bulk.begin_round(&self.plan(started_us, index))?;
        self.filled.rounds += 1;
        let (status, reason) = match draw_below(SEED, 1, index, 100) {
            0 => (RoundStatus::Skipped, Some("on battery".to_owned())),
            1 => (RoundStatus::Void, Some("the machine slept".to_owned())),
            _ => (RoundStatus::Ok, None),
        };
        if status != RoundStatus::Skipped {
            let evening = if hour > 10 { 0.15 } else { 0.0 };
            let weather = (evening + 0.1 * normal(2, day.unsigned_abs()) + 0.1 * normal(3, index)).exp();
            self.runs(bulk, &Cell { round, slot: 0, target: 0, day, started_us, weather })?;
        }
        let ended_us = started_us + HOUR_US / 4;
        Ok(bulk.end_round(round, &RoundEnd { status, reason, ended_us, after: None })?)
    }

    fn plan(&self, started_us: i64, index: u64) -> NewRound {
        let cells = WORKLOADS.iter().take(TASKS).flat_map(|workload| {
            let planned = |target: &Target| Planned {
                target: target.name.clone(),
                workload: workload.name().to_owned(),
            };
            self.targets.iter().map(planned)
        });
        NewRound {
            started_us,
            utc_offset_seconds: UTC_OFFSET_SECONDS,
            seed: draw(SEED, 0, index),
            scale: Scale::Standard,
            planned: cells.collect(),
            scheduled_us: Some(started_us),
            before: None,
        }
    }

    fn runs(&mut self, bulk: &Bulk<'_>, first: &Cell) -> anyhow::Result<()> {
        let mut slot = 0;
        for workload in WORKLOADS.iter().take(TASKS) {
            for target in
                shuffled(SEED, first.round.unsigned_abs() << 8 | u64::from(slot), TARGETS.len() as u64)
            {
                let started_us = first.started_us + i64::from(slot) * 40 * SECOND_US;
                let cell = Cell { slot, target: target as usize, started_us, ..*first };
                bulk.add_run(&self.targets[cell.target], &run(*workload, &cell, self.filled.runs)?)?;
                self.filled.runs += 1;
                slot += 1;
            }
        }
        Ok(())
    }
}

fn target(line: &(&str, Role, f64)) -> anyhow::Result<Target> {
    let (name, role, _) = *line;
    Ok(Target { name: name.parse()?, path: format!("/Volumes/{name}").into(), role })
}

fn run(workload: &dyn Workload, cell: &Cell, index: u64) -> anyhow::Result<Run> {
    let (name, _, slowness) = TARGETS[cell.target];
    let outcome = match draw_below(SEED, 4, index, 1000) {
        0..4 if name == "afp" => Outcome::Hung,
        4 => Outcome::Error,
        _ => Outcome::Ok,
    };
    let pace = slowness * cell.weather * (0.12 * normal(5, index)).exp();
    let mut phases = if outcome == Outcome::Ok { phases(workload, pace, index) } else { vec![] };
    follow_each_other(&mut phases, cell.started_us);
    Ok(Run {
        round: cell.round,
        slot: cell.slot,
        target: name.parse()?,
        protocol: Some(protocol(cell)),
        workload: workload.name().to_owned(),
        scale: Scale::Standard,
        outcome,
        started_us: cell.started_us,
        utc_offset_seconds: UTC_OFFSET_SECONDS,
        seconds: if outcome == Outcome::Hung {
            CAP_SECONDS
        } else {
            0.5 + phases.iter().map(|phase| phase.seconds).sum::<f64>()
        },
        phases,
        failure: (outcome != Outcome::Ok).then(failure),
        facts: [("sync".to_owned(), "full-fsync".to_owned())].into(),
        conditions: Conditions {
            system: Some("macOS 26.1".to_owned()),
            load_average: Some(1.5),
            ..Conditions::default()
        },
    })
}

/// The server speaks a newer SMB from the twentieth week on.
fn protocol(cell: &Cell) -> Protocol {
    let smb = if cell.day < 20 * 7 { "3.0.2" } else { "3.1.1" };
    match TARGETS[cell.target].0 {
        "local" => Protocol::Local("apfs".to_owned()),
        "smb" => Protocol::Smb(Some(smb.to_owned())),
        "nfs" => Protocol::Nfs(Some("4.1".to_owned())),
        _ => Protocol::Afp,
    }
}

fn failure() -> Failure {
    let message = "the server did not answer".to_owned();
    Failure { operation: Some(Operation::Open), path: None, error: None, message }
}

/// The phases that the workload's endpoints are made of.
fn phases(workload: &dyn Workload, pace: f64, index: u64) -> Vec<Phase> {
    let figures = workload.endpoints().iter().flat_map(|endpoint| {
        endpoint.figures.iter().map(|(phase, figure)| (*phase, *figure, endpoint.cache))
    });
    let phase = |(place, (name, figure, cache)): (usize, (&str, &str, CacheState))| {
        // The folders of a backup are looked at cold.
        let cache = if name == "scan" { CacheState::Cold } else { cache };
        let warmth = if cache == CacheState::Warm { 0.3 } else { 1.0 };
        let noise = (0.08 * normal(16 + place as u64, index)).exp();
        let seconds = pace * warmth * noise * (place + 1) as f64;
        Phase {
            name: name.to_owned(),
            cache,
            cold_by: (cache == CacheState::Cold).then_some(ColdBy::RotatedSlice),
            began_us: None,
            seconds,
            bytes_read: 150_000_000,
            bytes_written: 0,
            complete: true,
            figures: vec![Figure::new(figure, Unit::Seconds, seconds)],
            operations: OPERATIONS.iter().map(|operation| stats(*operation, seconds, index)).collect(),
            calls: vec![],
            wire: None,
        }
    };
    figures.enumerate().map(phase).collect()
}

/// Half a second after the run's begin the first phase begins, and each other one where the one before ended.
fn follow_each_other(phases: &mut [Phase], started_us: i64) {
    let mut at_us = started_us + SECOND_US / 2;
    for phase in phases {
        phase.began_us = Some(at_us);
        at_us += (phase.seconds * 1e6) as i64;
    }
}

fn stats(operation: Operation, seconds: f64, index: u64) -> OperationStats {
    let mut latency = Histogram::new();
    let middle_ns = seconds / CALLS as f64 * 1e9;
    for call in 0..CALLS {
        let call = draw(SEED, 64 + operation as u64, index * CALLS + call);
        // Lognormal enough: a sixth of the calls take twice as long, a sixth half as long.
        latency.record((middle_ns * uniform(call).mul_add(4.0, -2.0).exp2()) as u64);
    }
    OperationStats { operation, latency, errors: 0 }
}

fn uniform(drawn: u64) -> f64 {
    (drawn >> 11) as f64 / (1u64 << 53) as f64
}

/// The sum of twelve uniform numbers: mean 0, standard deviation 1, normal as far as a benchmark can tell.
fn normal(stream: u64, index: u64) -> f64 {
    (0..12).map(|part| uniform(draw(SEED, stream << 8 | part, index))).sum::<f64>() - 6.0
}

fn system_update(day: i64) -> Event {
    let detail = json!({ "before": format!("26.{}", day / 28), "after": format!("26.{}", day / 28 + 1) });
    Event { target: None, kind: "system".to_owned(), detail, at_us: BEGIN_US + day * 24 * HOUR_US }
}
