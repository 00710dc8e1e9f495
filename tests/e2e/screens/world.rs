//! Fixed data for the snapshots: four weeks of 2021.
//!
//! The dates are long past because some output depends on the age of the data, such as the step of samples. At this
//! age it no longer changes.

use std::path::Path;
use std::time::Duration;

use longhaul_model::draw::{draw, draw_below};
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    CacheState, Conditions, CounterScope, CounterSource, Event, Failure, Figure, Histogram, LoadContext,
    MachineStep, Operation, OperationStats, Outcome, Phase, Power, ProbeKind, ProbeStep, Protocol, Role, Run,
    STANDARD_TASKS as TASKS, Scale, Stall, Target, Timestamp, Traffic, TrafficStep, Unit,
};
use longhaul_store::{NewRound, RoundEnd, RoundStatus, Samples, Store, Writer};
use serde_json::json;

use longhaul_demo::synthetic_history;

/// Configuration with two targets and a usage profile.
pub const CONFIG: &str = "[targets.smb]\npath = \"/Volumes/smb\"\n[targets.nfs]\npath = \"/Volumes/nfs\"\n\
                          [usage-profile]\nbackups = 7\n";

/// Machine id, from which trace ids are derived.
pub const MACHINE: &str = "0123456789abcdef";

/// Monday of 2021-W09, midnight UTC.
pub const BEGIN: Timestamp = Timestamp::from_us(1_614_556_800_000_000);
const DAYS: i64 = 28;
/// Targets of the four weeks.
const TARGETS: [TargetSpec; 3] =
    [("smb", Role::Share, 1.0), ("nfs", Role::Share, 1.25), ("local", Role::Baseline, 0.1)];

/// Name, role, and factor on the duration of a task.
type TargetSpec = (&'static str, Role, f64);

/// Parameters of synthetic results.
#[derive(Clone, Copy)]
pub struct World {
    days: i64,
    rounds_a_day: i64,
    targets: &'static [TargetSpec],
    /// Half of the duration in seconds of the shortest task on a target with factor 1.0.
    pace: f64,
    /// Difference between the longest and shortest time of a task, as a fraction of its mean.
    spread: f64,
    has_failures: bool,
}

/// Four weeks in which NFS is slower and sometimes fails.
pub const FOUR_WEEKS: World =
    World { days: DAYS, rounds_a_day: 4, targets: &TARGETS, pace: 1.0, spread: 0.2, has_failures: true };

/// The four weeks of the two shares in the recorded database, which is smaller.
pub const RECORDED: World = World { rounds_a_day: 1, targets: &[TARGETS[0], TARGETS[1]], ..FOUR_WEEKS };

/// Data sets that produce the other verdicts.
pub const OTHERS: [(&str, World); 9] = {
    const CALM: World = World { has_failures: false, ..FOUR_WEEKS };
    const SMB: TargetSpec = TARGETS[0];
    [
        ("first-day", World { days: 1, ..CALM }),
        ("few-days", World { days: 6, ..CALM }),
        ("early", World { days: 8, targets: &[SMB, ("nfs", Role::Share, 1.6)], ..CALM }),
        ("undecided", World { days: 16, spread: 1.8, ..CALM }),
        ("small", World { days: 24, targets: &[SMB, ("nfs", Role::Share, 1.09)], ..CALM }),
        ("equal", World { targets: &[SMB, ("nfs", Role::Share, 1.0)], ..CALM }),
        ("instant", World { pace: 0.002, ..CALM }),
        ("one-share", World { targets: &[SMB], ..CALM }),
        ("three-shares", World { targets: &[SMB, TARGETS[1], ("afp", Role::Share, 1.26)], ..CALM }),
    ]
};

/// Returns the targets of the four weeks.
pub fn targets() -> Vec<Target> {
    TARGETS.iter().map(target).collect()
}

fn target((name, role, _): &TargetSpec) -> Target {
    Target { name: name.parse().unwrap(), path: Path::new("/Volumes").join(name), role: *role }
}

/// Fills a database with rounds and, if the data set has failures, with events, samples and stalls.
pub fn fill(database: &Path, world: World) {
    let mut store = Store::open(database, &[]).unwrap();
    store
        .bulk_insert(|bulk| {
            for round in 0..world.days * world.rounds_a_day {
                let (day, turn) = (round / world.rounds_a_day, round % world.rounds_a_day);
                let started = BEGIN + day as u32 * DAY + (8 + 3 * turn) as u32 * HOUR;
                let number = bulk.begin_round(&plan(started))?;
                let (status, reason) = match round % 37 {
                    11 => (RoundStatus::Skipped, Some("on battery".to_owned())),
                    23 => (RoundStatus::Void, Some("the machine slept during it".to_owned())),
                    _ => (RoundStatus::Ok, None),
                };
                for (slot, cell) in cells(world).enumerate().filter(|_| status != RoundStatus::Skipped) {
                    let run = run(world, cell, (number, slot as u32, started));
                    bulk.add_run(&target(&world.targets[cell.1]), &run)?;
                }
                let ended = started + HOUR / 4;
                bulk.end_round(number, &RoundEnd { status, reason, ended })?;
            }
            let events = if world.has_failures { events() } else { vec![] };
            events.iter().try_for_each(|event| bulk.add_event(event).map(drop))
        })
        .unwrap();
    drop(store);
    if world.has_failures {
        add_samples(&Writer::spawn(Store::open(database, &[]).unwrap()));
    }
}

fn plan(started: Timestamp) -> NewRound {
    NewRound { scheduled: Some(started), ..NewRound::new(started, 1, Scale::Standard) }
}

/// Returns every pair of workload and target, by index.
fn cells(world: World) -> impl Iterator<Item = (usize, usize)> {
    (0..TASKS.len()).flat_map(move |workload| (0..world.targets.len()).map(move |target| (workload, target)))
}

fn run(
    world: World,
    (workload, target): (usize, usize),
    (round, slot, started): (i64, u32, Timestamp),
) -> Run {
    let (name, _, slowness) = world.targets[target];
    let drawn = draw(round.unsigned_abs(), workload as u64, target as u64) as f64 / u64::MAX as f64;
    let seconds = world.pace * (workload + 2) as f64 * slowness * (1.0 + world.spread * (drawn - 0.5));
    let outcome = match (name, workload, round % 29) {
        ("nfs", 1, 7) if world.has_failures => Outcome::Hung,
        ("nfs", 0, 19) if world.has_failures => Outcome::Error,
        _ => Outcome::Ok,
    };
    Run {
        round,
        slot,
        target: name.parse().unwrap(),
        protocol: Some(protocol(name)),
        workload: TASKS[workload].name().to_owned(),
        scale: Scale::Standard,
        outcome,
        started_us: started + slot * Duration::from_secs(10),
        utc_offset_seconds: 0,
        seconds: if outcome == Outcome::Hung { 900.0 } else { seconds },
        phases: if outcome == Outcome::Ok { phases(workload, seconds) } else { vec![] },
        failure: (outcome != Outcome::Ok).then(failure),
        facts: [("sync".to_owned(), "full-fsync".to_owned())].into(),
        conditions: Conditions {
            system: Some("macOS 26.1".to_owned()),
            load_average: Some(1.5),
            processors: Some(8),
            memory_available: Some(9_000_000_000),
            power: Some(Power::Mains),
            io_policy: Some("default".to_owned()),
            free_bytes: Some(48_600_000_000),
            timing_overhead_ns: Some(120.0),
            worker_peak_bytes: Some(21_000_000),
            negotiated: [("signing".to_owned(), "on".to_owned())].into(),
            ..Conditions::default()
        },
    }
}

fn protocol(name: &str) -> Protocol {
    match name {
        "smb" => Protocol::Smb(Some("3.1.1".to_owned())),
        "nfs" => Protocol::Nfs(Some("4.1".to_owned())),
        "afp" => Protocol::Afp,
        _ => Protocol::Local("apfs".to_owned()),
    }
}

fn failure() -> Failure {
    let message = "the server did not answer".to_owned();
    let (path, error) = (Some("Inbox/1.txt".to_owned()), Some("ETIMEDOUT".to_owned()));
    Failure { operation: Some(Operation::Open), path, error, message }
}

/// Returns the phases from which the workload's metrics are computed.
fn phases(workload: usize, seconds: f64) -> Vec<Phase> {
    let metrics = TASKS[workload].metrics();
    let parts = metrics.iter().flat_map(|metric| metric.figures.iter().map(move |part| (part, metric.cache)));
    let phase = |((name, figure), cache): (&(&str, &str), CacheState)| {
        let seconds = if cache == CacheState::Warm { seconds * 0.3 } else { seconds };
        let operations = [Operation::Open, Operation::Read].map(|call| calls(call, seconds)).to_vec();
        Phase {
            operations,
            ..synthetic_history::phase(name, cache, Figure::new(figure, Unit::Seconds, seconds))
        }
    };
    parts.map(phase).collect()
}

fn calls(operation: Operation, seconds: f64) -> OperationStats {
    let mut latency = Histogram::new();
    for call in 0..200 {
        let share = draw_below(7, operation as u64, call, 1_000) as f64 / 500.0;
        latency.record((seconds / 400.0 * share * 1e9) as u64);
    }
    OperationStats { operation, latency, errors: u64::from(operation == Operation::Read) }
}

fn events() -> Vec<Event> {
    let event = |day: u32, target: Option<&str>, kind: &str, detail| Event {
        target: target.map(|name| name.parse().unwrap()),
        kind: kind.to_owned(),
        detail,
        at_us: BEGIN + day * DAY + 9 * HOUR,
    };
    vec![
        event(16, None, "os-update", json!({"before": "26.0", "after": "26.1"})),
        event(23, None, "mtu", json!({"before": 1500, "after": 9000})),
        event(24, Some("nfs"), "hang", json!({"seconds": 900, "operation": "open"})),
        event(25, Some("nfs"), "options", json!({"before": {"vers": "4.1"}, "after": {"vers": "4.2"}})),
    ]
}

/// Adds hourly samples for the last three days of the four weeks.
fn add_samples(writer: &Writer) {
    let begin = BEGIN + (DAYS - 3) as u32 * DAY;
    let hours = (0..72).map(|hour| begin + hour * HOUR);
    let shares = ["smb", "nfs"].into_iter().enumerate();
    let steps = hours.flat_map(|at| shares.clone().map(move |share| step(share, at)));
    let new = Samples {
        targets: targets(),
        probes: steps.collect(),
        traffic: vec![traffic(Some("smb"), begin), traffic(None, begin)],
        machine: vec![machine(begin)],
        usage: vec![],
        stalls: vec![stall(begin + 20 * HOUR)],
        now: BEGIN + DAYS as u32 * DAY,
    };
    writer.add_samples(new).unwrap();
}

fn step((place, name): (usize, &str), at: Timestamp) -> ProbeStep {
    let mut step = ProbeStep::new(name.parse().unwrap(), at, ProbeKind::Read, LoadContext::Idle);
    for answer in 0..60 {
        let drawn = draw_below(at.as_us().unsigned_abs(), place as u64, answer, 1_000);
        step.latency.record(1_000 * (300 + 200 * place as u64 + drawn) * if drawn > 990 { 2_000 } else { 1 });
    }
    step.errors = u64::from(name == "nfs");
    step
}

fn traffic(target: Option<&str>, at: Timestamp) -> TrafficStep {
    let (source, covers) = match target {
        Some(_) => (CounterSource::Connections, CounterScope::Server),
        None => (CounterSource::Interface("en0".to_owned()), CounterScope::Interface),
    };
    let traffic = Traffic {
        source,
        scope: covers,
        seconds: 7200.0,
        user_read: Some(48_000_000),
        user_written: Some(1_200_000),
        longhaul_read: target.map(|_| 3_000_000_000),
        longhaul_written: target.map(|_| 900_000_000),
        requests: target.map(|_| 12_345),
        retransmits: Some(7),
        errors: Some(0),
        reconnects: Some(1),
        round_trips: target.map(|_| (12_345, 9_876_543)),
        tcp_rtt_us: target.map(|_| 420),
    };
    TrafficStep::new(target.map(|name| name.parse().unwrap()), at, traffic)
}

fn machine(at: Timestamp) -> MachineStep {
    MachineStep {
        at_us: at,
        observations: 720,
        processor_share: Some(0.12),
        processor_share_max: Some(0.93),
        memory_available_min: Some(2_000_000_000),
        load_average_max: Some(3.5),
        signal_dbm_min: Some(-67.0),
        probe_cpu_ns: 41_000_000,
    }
}

/// Returns a stall of 42 seconds that the probe and a run noticed.
pub fn stall(started: Timestamp) -> Stall {
    Stall {
        sources: vec!["probe".to_owned(), "photo-batch".to_owned()],
        ..longhaul_demo::stall("nfs".parse().unwrap(), started)
    }
}
