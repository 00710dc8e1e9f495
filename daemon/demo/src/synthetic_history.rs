//! Generates a database with weeks of made-up results from a seed, for the demo, benchmarks and tests.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use longhaul_model::draw::{draw, draw_below, shuffled_indices};
use longhaul_model::time::{DAY, HOUR, SECOND};
use longhaul_model::{
    CacheState, ColdMethod, Conditions, CounterScope, CounterSource, DataAge, Event, Failure, Figure,
    Histogram, Operation, OperationStats, Outcome, Phase, Protocol, Role, RoundStatus, Run, Scale, TASKS,
    Target, Task, Timestamp, Unit, VerifiedData, WaitMetric, WireTraffic,
};
use longhaul_store::{Bulk, NewRound, PlannedRun, RoundEnd, Store};
use serde_json::json;

use super::network::SimulatedNetwork;

const SEED: u64 = 0x7965_6172;
/// Monday, 2025-11-03T00:00:00+01:00.
pub const BEGIN: Timestamp = Timestamp::from_us(1_762_124_400_000_000);
const UTC_OFFSET_SECONDS: i32 = 3600;
/// Hour of the first round of a day; rounds start at every hour from 7 to 23.
const FIRST_HOUR: i64 = 7;
const ROUNDS_PER_DAY: i64 = 17;
/// Number of workloads in the made-up rounds.
const TASK_COUNT: usize = 4;
/// Targets: name, role, and factor on the duration of each workload, in the order of [`TASKS`].
const TARGETS: [(&str, Role, [f64; TASK_COUNT]); 4] = [
    ("local", Role::Baseline, [0.2; TASK_COUNT]),
    ("smb", Role::Share, [1.0; TASK_COUNT]),
    ("nfs", Role::Share, [0.62, 0.85, 0.9, 1.04]),
    ("afp", Role::Share, [1.3, 1.25, 1.4, 1.5]),
];
/// Operations of every phase.
const OPERATIONS: [Operation; 3] = [Operation::Open, Operation::Getattr, Operation::Read];
/// Calls per operation and phase.
const CALLS: u64 = 60;
/// Duration of a hung run in seconds.
const CAP_SECONDS: f64 = 900.0;
/// Usual time from the start of a run to that of the next one.
const RUN_INTERVAL: Duration = Duration::from_secs(50);
/// Shortest time between two runs.
const PAUSE: Duration = Duration::from_secs(3);

/// Numbers of generated rows.
pub struct RowCounts {
    /// Number of rounds, including those without runs.
    pub rounds: u64,
    /// Number of runs.
    pub runs: u64,
}

/// Creates a database with this many days of results, starting on a Monday. Fails if the file exists.
pub fn fill_database(database: &Path, begin: Timestamp, days: u32) -> anyhow::Result<RowCounts> {
    ensure!(!database.exists(), "{} already exists: give the path of a new file", database.display());
    let mut store = Store::open(database, &[])?;
    let mut year = HistoryGenerator {
        begin,
        targets: TARGETS.iter().map(target).collect::<Result<_, _>>()?,
        counts: RowCounts { rounds: 0, runs: 0 },
    };
    store.bulk_insert(|bulk| {
        for day in 0..i64::from(days) {
            (0..ROUNDS_PER_DAY).try_for_each(|hour| year.add_round(bulk, (day, hour)))?;
            if day % 28 == 20 {
                bulk.add_event(&system_update(begin, day))?;
            }
        }
        anyhow::Ok(())
    })?;
    Ok(year.counts)
}

struct HistoryGenerator {
    begin: Timestamp,
    targets: Vec<Target>,
    counts: RowCounts,
}

/// Planned run of a round.
struct RunSlot {
    round: i64,
    slot: u32,
    target: usize,
    day: i64,
    started: Timestamp,
    /// Factor by which every run of this round is slower.
    slowdown: f64,
}

impl HistoryGenerator {
    fn add_round(&mut self, bulk: &Bulk<'_>, when: (i64, i64)) -> anyhow::Result<()> {
        let (day, hour) = when;
        let started = self.begin + (day * 24 + FIRST_HOUR + hour) as u32 * HOUR;
        let index = self.counts.rounds;
        let round = bulk.begin_round(&self.new_round(started, index))?;
        self.counts.rounds += 1;
        let (status, reason) = match draw_below(SEED, 1, index, 100) {
            0 => (RoundStatus::Skipped, Some("on battery".to_owned())),
            1 => (RoundStatus::Void, Some("the machine slept".to_owned())),
            _ => (RoundStatus::Ok, None),
        };
        let mut ended = started + HOUR / 4;
        if status != RoundStatus::Skipped {
            let evening = if hour > 10 { 0.15 } else { 0.0 };
            let weather = (evening + 0.1 * normal(2, day.unsigned_abs()) + 0.1 * normal(3, index)).exp();
            let first = RunSlot { round, slot: 0, target: 0, day, started, slowdown: weather };
            for (target, run) in runs_of_round(&first, self.counts.runs)? {
                ended = ended.max(end(&run));
                bulk.add_run(&self.targets[target], &run)?;
                self.counts.runs += 1;
            }
        }
        Ok(bulk.end_round(round, &RoundEnd { status, reason, ended })?)
    }

    fn new_round(&self, started: Timestamp, index: u64) -> NewRound {
        let tasks = TASKS.iter().take(TASK_COUNT).map(|task| task.name());
        NewRound {
            utc_offset_seconds: UTC_OFFSET_SECONDS,
            planned: PlannedRun::each(tasks, self.targets.iter().map(|target| &target.name)),
            scheduled: Some(started),
            ..NewRound::new(started, draw(SEED, 0, index), Scale::Standard)
        }
    }
}

/// Returns the runs of a round with the positions of their targets, one run after the other. `before`: the number of runs in earlier
/// rounds.
fn runs_of_round(first: &RunSlot, before: u64) -> anyhow::Result<Vec<(usize, Run)>> {
    let (mut runs, mut free) = (vec![], first.started);
    for (workload, number) in TASKS.iter().take(TASK_COUNT).zip(0_u32..) {
        for (target, place) in target_order(first.round, number, before).into_iter().zip(0_u32..) {
            let slot = number * TARGETS.len() as u32 + place;
            let started = free.max(first.started + slot * RUN_INTERVAL);
            let cell = RunSlot { slot, target: target as usize, started, ..*first };
            let run = run(workload, &cell, before + u64::from(slot))?;
            free = end(&run) + PAUSE;
            runs.push((cell.target, run));
        }
    }
    Ok(runs)
}

/// Returns the positions of the targets in the order in which a task runs on them.
fn target_order(round: i64, task: u32, before: u64) -> Vec<u64> {
    let targets = TARGETS.len() as u64;
    // The first runs are in the order of the targets, which is the order in which pages list them.
    if before == 0 && task == 0 {
        return (0..targets).collect();
    }
    shuffled_indices(SEED, (round.unsigned_abs() << 8) | (u64::from(task) * targets), targets)
}

fn end(run: &Run) -> Timestamp {
    run.started_us + Duration::from_secs_f64(run.seconds)
}

fn target((name, role, _): &(&str, Role, [f64; TASK_COUNT])) -> anyhow::Result<Target> {
    Ok(Target { name: name.parse()?, path: format!("/Volumes/{name}").into(), role: *role })
}

fn run(workload: &Task, cell: &RunSlot, index: u64) -> anyhow::Result<Run> {
    let (name, _, slowness) = TARGETS[cell.target];
    let task = TASKS.iter().position(|task| task.name() == workload.name()).unwrap_or_default();
    let outcome = match draw_below(SEED, 4, index, 1000) {
        0..4 if name == "afp" => Outcome::Hung,
        4 => Outcome::Error,
        _ => Outcome::Ok,
    };
    let pace = slowness[task] * cell.slowdown * (0.12 * normal(5, index)).exp();
    let network = SimulatedNetwork::at(normal(6, cell.day.unsigned_abs()));
    let mut phases = match outcome {
        Outcome::Ok => phases(workload, pace * network.slowdown(workload, name), index),
        _ => vec![],
    };
    if TARGETS[cell.target].1 == Role::Share && name != "afp" {
        phases.iter_mut().for_each(|phase| network.add_requests(phase, workload, name));
    }
    assign_start_times(&mut phases, cell.started);
    if workload.name() == "photo-batch" {
        phases
            .iter_mut()
            .filter(|phase| phase.cache == CacheState::Cold)
            .for_each(|phase| verify(phase, cell));
    }
    Ok(Run {
        round: cell.round,
        slot: cell.slot,
        target: name.parse()?,
        protocol: Some(protocol(cell)),
        workload: workload.name().to_owned(),
        scale: Scale::Standard,
        outcome,
        started_us: cell.started,
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
            system: Some(system_version(cell.day)),
            load_average: Some(1.5),
            round_trip_us: (TARGETS[cell.target].1 == Role::Share).then_some(network.round_trip_us),
            ..Conditions::default()
        },
    })
}

/// Returns the protocol of a run's target. From the twentieth week on the server uses a newer SMB dialect.
fn protocol(cell: &RunSlot) -> Protocol {
    match TARGETS[cell.target].0 {
        "smb" if cell.day >= 20 * 7 => Protocol::Smb(Some("3.1.1".to_owned())),
        target => crate::protocol(target),
    }
}

fn failure() -> Failure {
    let message = "the server did not answer".to_owned();
    Failure { operation: Some(Operation::Open), path: None, error: None, message }
}

/// Returns the phases from which the workload's metrics are computed.
fn phases(workload: &Task, pace: f64, index: u64) -> Vec<Phase> {
    let figures = workload
        .metrics()
        .iter()
        .flat_map(|endpoint| endpoint.figures.iter().map(move |(phase, figure)| (*phase, *figure, endpoint)));
    let phase = |(place, (name, figure, metric)): (usize, (&str, &str, &WaitMetric))| {
        // The scan phase of a backup runs with a cold cache.
        let cache = if name == "scan" { CacheState::Cold } else { metric.cache };
        let noise = (0.08 * normal(16 + place as u64, index)).exp();
        let seconds = pace * noise * typical_seconds(metric.name) / metric.figures.len() as f64;
        let operations = OPERATIONS.iter().map(|operation| stats(*operation, seconds, index)).collect();
        Phase { operations, ..self::phase(name, cache, Figure::new(figure, Unit::Seconds, seconds)) }
    };
    figures.enumerate().map(phase).collect()
}

/// Returns the time of a metric on a share over SMB.
fn typical_seconds(metric: &str) -> f64 {
    match metric {
        "folder-cold" => 6.4,
        "folder-warm" => 0.052,
        "walk-cold" => 17.0,
        "walk-warm" => 1.9,
        "photos-cold" => 23.0,
        "photos-warm" => 1.3,
        "switch-cold" => 0.71,
        "switch-warm" => 0.064,
        "backup" => 15.0,
        _ => 26.0,
    }
}

/// Returns a complete phase without operations. Its duration in seconds is the value of its figure.
pub fn phase(name: &str, cache: CacheState, figure: Figure) -> Phase {
    Phase {
        cold_by: (cache == CacheState::Cold).then_some(ColdMethod::RotatedSlice),
        seconds: figure.value,
        bytes_read: 150_000_000,
        figures: vec![figure],
        ..Phase::new(name, cache)
    }
}

/// Sets what a phase compared with what was written: all that it read, which was written when the weeks began.
fn verify(phase: &mut Phase, cell: &RunSlot) {
    let age = DataAge::between(Some(cell.started - cell.day as u32 * DAY), cell.started);
    phase.verified = vec![VerifiedData { age, bytes: phase.bytes_read, files: CALLS }];
    phase.wire = (TARGETS[cell.target].1 == Role::Share).then(|| WireTraffic {
        read: Some(phase.bytes_read + phase.bytes_read / 64),
        written: Some(0),
        requests: None,
        listings: None,
        source: CounterSource::Interface("en0".to_owned()),
        scope: CounterScope::Interface,
    });
}

/// Sets the start times of phases: the first starts half a second after the run, each other at the end of the
/// previous one.
fn assign_start_times(phases: &mut [Phase], started: Timestamp) {
    let mut at = started + SECOND / 2;
    for phase in phases {
        phase.began_us = Some(at);
        at = at + Duration::from_micros((phase.seconds * 1e6) as u64);
    }
}

fn stats(operation: Operation, seconds: f64, index: u64) -> OperationStats {
    let mut latency = Histogram::new();
    let middle_ns = seconds / CALLS as f64 * 1e9;
    for call in 0..CALLS {
        let call = draw(SEED, 64 + operation as u64, index * CALLS + call);
        // Log-uniform between a quarter of the middle value and four times the middle value.
        latency.record((middle_ns * uniform(call).mul_add(4.0, -2.0).exp2()) as u64);
    }
    OperationStats { operation, latency, errors: 0 }
}

fn uniform(drawn: u64) -> f64 {
    (drawn >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns an approximately normal number with mean 0 and standard deviation 1: the sum of twelve uniform numbers,
/// minus 6.
fn normal(stream: u64, index: u64) -> f64 {
    (0..12).map(|part| uniform(draw(SEED, stream << 8 | part, index))).sum::<f64>() - 6.0
}

/// Returns the system on a day: every four weeks it is updated, first on day 20.
fn system_version(day: i64) -> String {
    format!("macOS 26.{}", (day + 8) / 28)
}

fn system_update(begin: Timestamp, day: i64) -> Event {
    let detail = json!({ "system": { "before": system_version(day - 1), "after": system_version(day) } });
    Event { target: None, kind: "facts-changed".to_owned(), detail, at_us: begin + day as u32 * DAY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_machine_follow_each_other() {
        let (mut before, mut free, mut longest) = (0, BEGIN, 0.0_f64);
        for round in 1..=200 {
            let started = BEGIN + round as u32 * HOUR;
            let first = RunSlot { round, slot: 0, target: 0, day: round / 24, started, slowdown: 1.5 };
            for (_, run) in runs_of_round(&first, before).unwrap() {
                assert!(run.started_us >= free, "run {before} of round {round}");
                (before, free, longest) = (before + 1, end(&run), longest.max(run.seconds));
            }
        }
        assert_eq!(longest, CAP_SECONDS, "one of them hung");
    }

    #[test]
    fn update_changes_the_system_of_its_day() {
        for (day, before, after) in [(20, "macOS 26.0", "macOS 26.1"), (48, "macOS 26.1", "macOS 26.2")] {
            let event = system_update(Timestamp::UNIX_EPOCH, day);
            assert_eq!(event.detail["system"], json!({ "before": before, "after": after }));
            assert_eq!(system_version(day), after);
        }
    }
}
