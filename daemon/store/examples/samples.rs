//! A year of samples of four targets: how large the database becomes, and how long a window of eight weeks takes to read.
//!
//! `cargo run --release -p longhaul-store --example samples -- FOLDER [DAYS]`; the folder is best one in memory, for every
//! five minutes are a transaction.

use std::path::PathBuf;
use std::time::Instant;

use longhaul_measure::corpus::draw::draw_below;
use longhaul_measure::model::{
    Beside, Covers, MachineStep, ProbeKind, ProbeStep, Role, Source, Step, Target, Traffic, TrafficStep,
};
use longhaul_measure::summary::felt;
use longhaul_store::{Reader, SampleFilter, Samples, Store, Writer};

const STEP_US: i64 = 300_000_000;
const DAY_US: i64 = 86_400_000_000;
/// 1 January 2026.
const START_US: i64 = 1_767_225_600_000_000;

fn targets() -> Vec<Target> {
    let target = |name: &str| Target {
        name: name.parse().expect("a name"),
        path: format!("/m/{name}").into(),
        role: Role::Share,
    };
    ["smb", "nfs", "afp", "local"].map(target).to_vec()
}

/// Thirty answers of each kind, as five seconds between questions give them.
fn probe(target: &Target, at_us: i64, kind: ProbeKind) -> ProbeStep {
    let mut step = ProbeStep::new(target.name.clone(), at_us, kind, Beside::Calm);
    for answer in 0..30 {
        let spread = draw_below(at_us.cast_unsigned(), kind as u64, answer, 1_000_000);
        step.latency.record(200_000 + spread * spread / 400_000);
    }
    step
}

fn traffic(target: &Target, at_us: i64, source: Source) -> TrafficStep {
    let drawn = draw_below(at_us.cast_unsigned(), 7, 0, 1 << 30);
    let traffic = Traffic {
        source,
        covers: Covers::Mount,
        seconds: 300.0,
        user_read: Some(drawn),
        user_written: Some(drawn / 3),
        own_read: Some(drawn / 5),
        own_written: Some(drawn / 7),
        requests: Some(drawn / 4096),
        retransmissions: Some(0),
        errors: None,
        reconnects: Some(0),
        round_trips: Some((drawn / 4096, drawn / 8)),
        packet_round_trip_us: Some(300),
    };
    TrafficStep::of(Some(target.name.clone()), at_us, traffic)
}

fn samples(targets: &[Target], at_us: i64) -> Samples {
    let kinds = [ProbeKind::Getattr, ProbeKind::Read];
    let sources = [Source::Mountstats, Source::Connections];
    let machine = MachineStep { at_us, looks: 30, processor_share: Some(0.1), ..MachineStep::default() };
    Samples {
        targets: targets.to_vec(),
        probes: targets.iter().flat_map(|target| kinds.map(|kind| probe(target, at_us, kind))).collect(),
        traffic: targets
            .iter()
            .flat_map(|target| sources.clone().map(|source| traffic(target, at_us, source)))
            .collect(),
        machine: vec![machine],
        stalls: vec![],
        now_us: at_us,
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("usage: samples FOLDER [DAYS]"));
    let days: i64 = arguments.next().map_or(365, |days| days.parse().expect("a number of days"));
    let path = folder.join("samples.sqlite");
    let writer = Writer::spawn(Store::open(&path, &[]).expect("a database"));
    let targets = targets();
    let began = Instant::now();
    let end_us = START_US + days * DAY_US;
    (START_US..end_us).step_by(STEP_US as usize).for_each(|at_us| {
        writer.add_samples(samples(&targets, at_us)).expect("it is stored");
    });
    println!("{days} days of {} targets in {:.0} s", targets.len(), began.elapsed().as_secs_f64());
    drop(writer);
    let reader = Reader::open(&path).expect("it can be read");
    println!("database: {:.1} MB", reader.size_bytes().expect("a size") as f64 / 1e6);
    let window = 56 * DAY_US;
    for step in [Step::for_window(window / 1_000_000), Step::FiveMinutes] {
        let filter = SampleFilter {
            target: Some(targets[0].name.clone()),
            kind: None,
            step,
            since_us: end_us - window,
            until_us: end_us,
        };
        let mut times: Vec<f64> = (0..5)
            .map(|_| {
                let began = Instant::now();
                let steps = reader.probes(&filter).expect("it can be read");
                assert!(felt(&steps).iter().all(|felt| felt.p99.is_some()));
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("eight weeks in steps of {}: {:.1} to {:.1} ms, n 5", step.name(), times[0], times[4]);
    }
}
