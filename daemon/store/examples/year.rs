//! Fills a database with a year of hourly rounds on so many targets, for benchmarks:
//! `cargo run --release -p longhaul-store --example year -- PATH TARGET...`

use std::path::Path;

use longhaul_measure::model::{
    CacheState, Conditions, Figure, Operation, OperationStats, Outcome, Phase, Role, Run, Scale, Target, Unit,
};
use longhaul_measure::platform::wall_clock_us;
use longhaul_measure::stats::Histogram;
use longhaul_store::{NewRound, Planned, Result, RoundEnd, RoundStatus, Store, Writer};

const HOUR_US: i64 = 3_600_000_000;
const ROUNDS: i64 = 365 * 24;
const WORKLOADS: [&str; 5] =
    ["folder-index", "photo-batch", "incremental-backup", "time-machine", "time-machine-throttled"];

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, targets @ ..] = &words[..] else { panic!("year PATH TARGET...") };
    let writer = Writer::spawn(Store::open(Path::new(path), &[])?);
    let begin_us = wall_clock_us() - ROUNDS * HOUR_US;
    for number in 0..ROUNDS {
        round(&writer, begin_us + number * HOUR_US, targets)?;
    }
    Ok(())
}

fn round(writer: &Writer, started_us: i64, targets: &[String]) -> Result<()> {
    let planned = WORKLOADS.iter().flat_map(|workload| {
        let planned = |name: &String| Planned { target: target(name).name, workload: (*workload).to_owned() };
        targets.iter().map(planned)
    });
    let number = writer.begin_round(NewRound {
        started_us,
        utc_offset_seconds: 0,
        seed: 1,
        scale: Scale::Standard,
        planned: planned.collect(),
        scheduled_us: Some(started_us),
        before: None,
    })?;
    let cells = WORKLOADS.iter().flat_map(|workload| targets.iter().map(move |target| (workload, target)));
    for (slot, (workload, name)) in cells.enumerate() {
        writer.add_run(&target(name), &run(number, slot as u32, (workload, name, started_us)))?;
    }
    let ended_us = started_us + HOUR_US / 10;
    writer.end_round(number, RoundEnd { status: RoundStatus::Ok, reason: None, ended_us, after: None })
}

fn target(name: &str) -> Target {
    let name: longhaul_measure::model::TargetName = name.parse().expect("a target's name");
    Target { path: format!("/tmp/{name}").into(), name, role: Role::Share }
}

fn run(round: i64, slot: u32, (workload, name, started_us): (&str, &str, i64)) -> Run {
    Run {
        round,
        slot,
        target: target(name).name,
        protocol: None,
        workload: workload.to_owned(),
        scale: Scale::Standard,
        outcome: Outcome::Ok,
        started_us: started_us + i64::from(slot) * 30_000_000,
        utc_offset_seconds: 0,
        seconds: 3.0,
        phases: (0..3).map(phase).collect(),
        failure: None,
        facts: Default::default(),
        conditions: Conditions { free_bytes: Some(1 << 40), ..Conditions::default() },
    }
}

fn phase(number: u64) -> Phase {
    let stats = |operation| {
        let mut latency = Histogram::new();
        (0..300u64).for_each(|call| latency.record(400_000 + (call * call * (number + 7)) % 900_000));
        OperationStats { operation, latency, errors: 0 }
    };
    Phase {
        name: format!("phase-{number}"),
        cache: CacheState::None,
        cold_by: None,
        seconds: 1.0,
        bytes_read: 1_000_000,
        bytes_written: 1_000_000,
        complete: true,
        figures: vec![Figure::new("walk", Unit::Seconds, 1.0)],
        operations: [Operation::Open, Operation::Read, Operation::Getattr, Operation::Readdir]
            .map(stats)
            .into(),
    }
}
