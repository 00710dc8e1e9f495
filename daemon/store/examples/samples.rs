//! Measures the size of a database with a year of samples of four targets, and the time to read a window of
//! eight weeks.
//!
//! `cargo run --release -p longhaul-store --example samples -- FOLDER [DAYS]`. Use a folder in memory (tmpfs),
//! because every five-minute step is one transaction.

use std::path::PathBuf;
use std::time::Instant;

use longhaul_analysis::summary::latency_rows;
use longhaul_model::draw::draw_below;
use longhaul_model::time::DAY;
use longhaul_model::{
    CounterScope, CounterSource, LoadContext, MachineStep, ProbeKind, ProbeStep, Resolution, Role, Target,
    Timestamp, Traffic, TrafficStep,
};
use longhaul_store::{Reader, SampleFilter, Samples, Store, Writer};

/// Start of the samples: 1 January 2026, 00:00 UTC.
const START: Timestamp = Timestamp::from_us(1_767_225_600_000_000);

fn targets() -> Vec<Target> {
    let target = |name: &str| Target {
        name: name.parse().expect("a name"),
        path: format!("/m/{name}").into(),
        role: Role::Share,
    };
    ["smb", "nfs", "afp", "local"].map(target).to_vec()
}

/// Returns one step with thirty probe latencies.
fn probe(target: &Target, at: Timestamp, kind: ProbeKind) -> ProbeStep {
    let mut step = ProbeStep::new(target.name.clone(), at, kind, LoadContext::Idle);
    for answer in 0..30 {
        let spread = draw_below(at.as_us().cast_unsigned(), kind as u64, answer, 1_000_000);
        step.latency.record(200_000 + spread * spread / 400_000);
    }
    step
}

fn traffic(target: &Target, at: Timestamp, source: CounterSource) -> TrafficStep {
    let drawn = draw_below(at.as_us().cast_unsigned(), 7, 0, 1 << 30);
    let traffic = Traffic {
        source,
        scope: CounterScope::Mount,
        seconds: 300.0,
        user_read: Some(drawn),
        user_written: Some(drawn / 3),
        longhaul_read: Some(drawn / 5),
        longhaul_written: Some(drawn / 7),
        requests: Some(drawn / 4096),
        retransmits: Some(0),
        errors: None,
        reconnects: Some(0),
        round_trips: Some((drawn / 4096, drawn / 8)),
        tcp_rtt_us: Some(300),
    };
    TrafficStep::new(Some(target.name.clone()), at, traffic)
}

fn samples(targets: &[Target], at: Timestamp) -> Samples {
    let kinds = [ProbeKind::Getattr, ProbeKind::Read];
    let sources = [CounterSource::Mountstats, CounterSource::Connections];
    let machine =
        MachineStep { at_us: at, observations: 30, processor_share: Some(0.1), ..MachineStep::default() };
    Samples {
        targets: targets.to_vec(),
        probes: targets.iter().flat_map(|target| kinds.map(|kind| probe(target, at, kind))).collect(),
        traffic: targets
            .iter()
            .flat_map(|target| sources.clone().map(|source| traffic(target, at, source)))
            .collect(),
        machine: vec![machine],
        usage: vec![],
        stalls: vec![],
        now: at,
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("usage: samples FOLDER [DAYS]"));
    let days: u32 = arguments.next().map_or(365, |days| days.parse().expect("a number of days"));
    let path = folder.join("samples.sqlite");
    let writer = Writer::spawn(Store::open(&path, &[]).expect("a database"));
    let targets = targets();
    let start = Instant::now();
    let step = Resolution::FiveMinutes.length();
    let end = START + days * DAY;
    for index in 0..end.since(START).div_duration_f64(step) as u32 {
        writer.add_samples(samples(&targets, START + index * step)).expect("the samples are stored");
    }
    println!("{days} days of {} targets in {:.0} s", targets.len(), start.elapsed().as_secs_f64());
    drop(writer);
    let reader = Reader::open(&path).expect("the database can be read");
    println!("database: {:.1} MB", reader.size_bytes().expect("a size") as f64 / 1e6);
    let window = 56 * DAY;
    for step in [Resolution::for_window(window), Resolution::FiveMinutes] {
        let filter = SampleFilter {
            target: Some(targets[0].name.clone()),
            kind: None,
            step,
            since: end - window,
            until: end,
        };
        let mut times: Vec<f64> = (0..5)
            .map(|_| {
                let start = Instant::now();
                let steps = reader.probe_steps(&filter).expect("the samples can be read");
                assert!(latency_rows(&steps).iter().all(|row| row.p99.is_some()));
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("eight weeks in steps of {}: {:.1} to {:.1} ms, n 5", step.name(), times[0], times[4]);
    }
}
