//! Generates the results of one synthetic machine for tests of shared files. Its runs have the order that its seed gives, and its
//! times obey the network.

use std::path::Path;
use std::time::Duration;

use longhaul_model::design::run_order;
use longhaul_model::draw::draw;
use longhaul_model::stored::{PlannedRun, StoredEpoch, StoredRound, StoredRun};
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    CacheState, ColdMethod, Conditions, CounterScope, CounterSource, Figure, Histogram, LinkKind,
    MachineSnapshot, NetworkLink, Operation, OperationStats, Outcome, Phase, Protocol, Role, RoundStatus,
    Run, Scale, Target, Timestamp, Unit, WireTraffic,
};
use longhaul_store::{NewRound, RoundEnd, Store};

use crate::synthetic_history::BEGIN;

/// Tasks of each round.
const TASKS: [&str; 2] = ["folder-index", "photo-batch"];
/// Time on the client and the server for each request, in microseconds.
const REQUEST_US: f64 = 150.0;
/// Bytes of a batch of photos.
const PHOTO_BYTES: u64 = 40_000_000;

/// Properties of a synthetic machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineSpec {
    /// Seed of the machine.
    pub seed: u64,
    /// Number of days with rounds.
    pub days: u32,
    /// Number of rounds a day.
    pub rounds_per_day: u32,
    /// Logarithm of the time over NFS divided by that over SMB.
    pub ln_ratio: f64,
    /// Usual round trip time in microseconds.
    pub round_trip_us: f64,
}

impl MachineSpec {
    /// Returns a machine that differs from others by its seed: three weeks of seven rounds a day.
    pub const fn small(seed: u64, ln_ratio: f64) -> Self {
        Self { seed, days: 21, rounds_per_day: 7, ln_ratio, round_trip_us: 400.0 }
    }
}

/// Stored records of a synthetic machine.
#[derive(Debug, Clone, PartialEq)]
pub struct SyntheticMachine {
    /// Its targets: one over SMB, one over NFS.
    pub targets: Vec<Target>,
    /// One epoch of each target.
    pub epochs: Vec<StoredEpoch>,
    /// Its rounds.
    pub rounds: Vec<StoredRound>,
    /// Its runs.
    pub runs: Vec<StoredRun>,
}

/// Generates the records of a synthetic machine.
pub fn synthetic_machine(spec: &MachineSpec) -> SyntheticMachine {
    let targets = ["smb", "nfs"].map(|name| Target {
        name: name.parse().expect("a word is a name"),
        path: format!("/Volumes/{name}").into(),
        role: Role::Share,
    });
    let epochs = targets.iter().zip(1..).map(|(target, number)| epoch(target, number));
    let mut machine = SyntheticMachine {
        epochs: epochs.collect(),
        targets: targets.to_vec(),
        rounds: vec![],
        runs: vec![],
    };
    for index in 0..u64::from(spec.days * spec.rounds_per_day) {
        machine.add_round(spec, index);
    }
    machine
}

/// Creates a database with the records of a synthetic machine.
///
/// # Errors
///
/// If the database cannot be written.
pub fn fill_machine(database: &Path, spec: &MachineSpec) -> anyhow::Result<()> {
    let machine = synthetic_machine(spec);
    let mut runs = machine.runs.iter().peekable();
    let mut store = Store::open(database, &[])?;
    store.bulk_insert(|bulk| {
        for round in &machine.rounds {
            let number = bulk.begin_round(&round.round)?;
            while let Some(stored) = runs.next_if(|stored| stored.run.round == round.number) {
                let target = machine.targets.iter().find(|target| target.name == stored.run.target);
                let run = Run { round: number, ..stored.run.clone() };
                target.map(|target| bulk.add_run(target, &run)).transpose()?;
            }
            round.end.as_ref().map(|end| bulk.end_round(number, end)).transpose()?;
        }
        anyhow::Ok(())
    })
}

fn epoch(target: &Target, number: i64) -> StoredEpoch {
    StoredEpoch {
        number,
        target: target.name.clone(),
        opened: BEGIN,
        path: target.path.clone(),
        protocol: Some(protocol(number as usize - 1)),
        negotiated: Default::default(),
    }
}

fn protocol(target: usize) -> Protocol {
    match target {
        0 => Protocol::Smb(Some("3.1.1".to_owned())),
        _ => Protocol::Nfs(Some("4.1".to_owned())),
    }
}

impl SyntheticMachine {
    fn add_round(&mut self, spec: &MachineSpec, index: u64) {
        let noise = Noise { seed: spec.seed, index };
        let (day, slot) = (index / u64::from(spec.rounds_per_day), index % u64::from(spec.rounds_per_day));
        let minutes = 60 * slot as u32 + (10.0 * noise.uniform(1)) as u32;
        let started = BEGIN + day as u32 * DAY + 8 * HOUR + minutes * Duration::from_secs(60);
        let status = match noise.uniform(2) {
            0.0..0.01 => RoundStatus::Skipped,
            0.01..0.02 => RoundStatus::Void,
            _ => RoundStatus::Ok,
        };
        let number = index as i64 + 1;
        if status != RoundStatus::Skipped {
            self.add_runs(spec, number, started, noise);
        }
        let end = RoundEnd { status, reason: None, ended: started + HOUR / 4 };
        let round = NewRound { started, ..self.new_round(spec) };
        self.rounds.push(StoredRound { number, round, end: Some(end) });
    }

    fn new_round(&self, spec: &MachineSpec) -> NewRound {
        let link = NetworkLink { kind: LinkKind::Wired, megabits: Some(1000), ..NetworkLink::default() };
        NewRound {
            utc_offset_seconds: 3600,
            planned: PlannedRun::each(TASKS, self.targets.iter().map(|target| &target.name)),
            before: Some(MachineSnapshot { link: Some(link), ..MachineSnapshot::default() }),
            ..NewRound::new(BEGIN, spec.seed, Scale::Standard)
        }
    }

    fn add_runs(&mut self, spec: &MachineSpec, round: i64, started: Timestamp, noise: Noise) {
        let rounds_before = self.rounds.iter().filter(|round| !is_skipped(round)).count() as u64;
        let order = run_order(spec.seed, rounds_before, TASKS.len(), self.targets.len());
        let load = 0.12 * noise.normal(3);
        let mut at = started + Duration::from_secs(2);
        let cells =
            order.into_iter().flat_map(|(task, order)| order.into_iter().map(move |target| (task, target)));
        for (slot, (task, target)) in (0..).zip(cells) {
            let noise = Noise { seed: draw(spec.seed, 7, 2 * task as u64 + target as u64), ..noise };
            let run = Run {
                round,
                slot,
                target: self.targets[target].name.clone(),
                protocol: Some(protocol(target)),
                started_us: at,
                ..run(spec, &noise, RunKind { task: TASKS[task], target, load })
            };
            at = at + Duration::from_secs_f64(run.seconds + 3.0);
            let number = self.runs.len() as i64 + 1;
            let trace_id = format!("{number:032x}");
            self.runs.push(StoredRun { number, trace_id, epoch: target as i64 + 1, run });
        }
    }
}

fn is_skipped(round: &StoredRound) -> bool {
    round.end.as_ref().is_some_and(|end| end.status == RoundStatus::Skipped)
}

/// Kind of a run, and the load of the machine in its round.
#[derive(Clone, Copy)]
struct RunKind {
    task: &'static str,
    target: usize,
    load: f64,
}

fn run(spec: &MachineSpec, noise: &Noise, kind: RunKind) -> Run {
    let round_trip_us = spec.round_trip_us * (0.05 * noise.normal(4)).exp();
    let ratio = if kind.target == 0 { -spec.ln_ratio / 2.0 } else { spec.ln_ratio / 2.0 };
    let pace = Pace { factor: (ratio + kind.load + 0.08 * noise.normal(5)).exp(), round_trip_us };
    let is_hung = noise.uniform(6) < 0.003;
    let phases = match kind.task {
        _ if is_hung => vec![],
        "folder-index" => folder_phases(pace, noise),
        _ => photo_phases(pace, noise),
    };
    let seconds: f64 = phases.iter().map(|phase| phase.seconds).sum();
    Run {
        scale: Scale::Standard,
        outcome: if is_hung { Outcome::Hung } else { Outcome::Ok },
        utc_offset_seconds: 3600,
        seconds: if is_hung { 300.0 } else { seconds + 0.02 },
        phases,
        conditions: Conditions {
            system: Some("macOS 26.1".to_owned()),
            round_trip_us: Some(round_trip_us as u64),
            ..Conditions::default()
        },
        ..Run::new(0, "a".parse().expect("a letter is a name"), kind.task, BEGIN)
    }
}

/// Speed of a run.
#[derive(Clone, Copy)]
struct Pace {
    factor: f64,
    round_trip_us: f64,
}

impl Pace {
    /// Returns the number of requests that take this many seconds on average: where a protocol needs less time, it needs fewer.
    fn requests(self, seconds: f64) -> u64 {
        (seconds * 1e6 / (self.round_trip_us + REQUEST_US)) as u64
    }
}

fn folder_phases(pace: Pace, noise: &Noise) -> Vec<Phase> {
    let listing = |name: &'static str, cache, typical: f64, stream: u64| {
        let seconds = typical * pace.factor * (0.05 * noise.normal(stream)).exp();
        let requests = if cache == CacheState::Cold { pace.requests(seconds * 0.98) } else { 3 };
        let figure = if name == "walk" { "walk" } else { "folder-shown" };
        let phase = phase(name, cache, Figure::new(figure, Unit::Seconds, seconds * 0.999));
        let operations = vec![stats(Operation::Getattr, seconds * 0.98, noise, stream)];
        Phase { seconds, operations, wire: Some(wire(Some(requests), 0)), ..phase }
    };
    vec![
        listing("open-folder", CacheState::Cold, 1.2, 16),
        listing("open-folder", CacheState::Warm, 0.2, 17),
        listing("walk", CacheState::Cold, 2.5, 18),
        listing("walk", CacheState::Warm, 0.4, 19),
    ]
}

fn photo_phases(pace: Pace, noise: &Noise) -> Vec<Phase> {
    let reading = |name: &'static str, cache, typical: f64, stream: u64| {
        let seconds = typical * pace.factor * (0.05 * noise.normal(stream)).exp();
        let (figure, duration) =
            if name == "browse" { ("switch-median", seconds + 20.0) } else { ("all-thumbnails", seconds) };
        let crossed = if cache == CacheState::Cold { PHOTO_BYTES + PHOTO_BYTES / 64 } else { 0 };
        let phase = phase(name, cache, Figure::new(figure, Unit::Seconds, seconds * 0.999));
        Phase {
            seconds: duration,
            bytes_read: PHOTO_BYTES,
            operations: vec![stats(Operation::Read, seconds * 0.9, noise, stream)],
            wire: Some(wire(None, crossed)),
            ..phase
        }
    };
    vec![
        reading("open", CacheState::Cold, 4.0, 20),
        reading("browse", CacheState::Cold, 0.4, 21),
        reading("open", CacheState::Warm, 0.8, 22),
        reading("browse", CacheState::Warm, 0.15, 23),
    ]
}

fn phase(name: &str, cache: CacheState, figure: Figure) -> Phase {
    let cold_by = (cache == CacheState::Cold).then_some(ColdMethod::Evicted);
    Phase { bytes_read: 0, cold_by, ..crate::synthetic_history::phase(name, cache, figure) }
}

fn wire(requests: Option<u64>, read: u64) -> WireTraffic {
    WireTraffic {
        read: Some(read),
        written: Some(0),
        requests,
        listings: None,
        source: CounterSource::Mountstats,
        scope: CounterScope::Mount,
    }
}

/// Returns 24 calls that take this many seconds in total.
fn stats(operation: Operation, seconds: f64, noise: &Noise, stream: u64) -> OperationStats {
    const CALLS: u64 = 24;
    let weights: Vec<f64> = (0..CALLS).map(|call| 0.2 + noise.uniform(stream << 8 | call)).collect();
    let sum: f64 = weights.iter().sum();
    let mut latency = Histogram::new();
    weights.iter().for_each(|weight| latency.record((seconds * 1e9 * weight / sum) as u64));
    OperationStats { operation, latency, errors: 0 }
}

/// Random numbers of a round.
#[derive(Clone, Copy)]
struct Noise {
    seed: u64,
    index: u64,
}

impl Noise {
    fn uniform(&self, stream: u64) -> f64 {
        (draw(self.seed, stream, self.index) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an approximately normal number: the sum of twelve uniform numbers, minus 6.
    fn normal(&self, stream: u64) -> f64 {
        (0..12).map(|part| self.uniform(stream << 16 | part << 4 | 1)).sum::<f64>() - 6.0
    }
}
