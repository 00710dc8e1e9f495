//! One run in words, the same in the terminal and on the page.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use longhaul_measure::model::{Conditions, Covers, OperationStats, Phase, Power, Run, Source, Wire};

use crate::units;

/// Local time of the run, as it was where it was made.
pub fn when(run: &Run) -> String {
    let zone = Offset::from_seconds(run.utc_offset_seconds).map_or(TimeZone::UTC, TimeZone::fixed);
    match Timestamp::from_microsecond(run.started_us) {
        Ok(time) => time.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
        Err(_) => "time not known".to_owned(),
    }
}

/// A kind of call as a row: its name, how many there were and failed, p50, p95, p99, the longest. A quantile that rests on too few
/// calls is left out.
pub fn calls(stats: &OperationStats) -> [String; 7] {
    let quantile = |q: f64, needs: u64| match stats.latency.quantile_ns(q) {
        Some(value) if stats.latency.count() >= needs => units::seconds(value / 1e9),
        _ => "–".to_owned(),
    };
    [
        stats.operation.to_string(),
        stats.latency.count().to_string(),
        stats.errors.to_string(),
        quantile(0.5, 1),
        quantile(0.95, 20),
        quantile(0.99, 100),
        stats.latency.max_ns().map_or("–".to_owned(), |ns| units::seconds(ns as f64 / 1e9)),
    ]
}

/// What was true beside it: conditions, what was negotiated, what the workload found.
pub fn facts(run: &Run) -> Vec<(String, String)> {
    let Conditions {
        system,
        load_average,
        processors,
        memory_available,
        power,
        io_policy,
        free_bytes,
        total_bytes,
        instrument_ns,
        worker_peak_bytes,
        slept_seconds,
        negotiated,
    } = &run.conditions;
    let bytes = |value: &Option<u64>| value.map(|bytes| units::bytes(bytes as f64));
    let known = [
        ("system", system.clone()),
        ("load average", load_average.map(|load| format!("{load:.2} over one minute"))),
        ("processors", processors.map(|count| count.to_string())),
        ("memory available", bytes(memory_available)),
        ("power", power.map(power_text)),
        ("I/O policy", io_policy.clone()),
        ("free on the target", bytes(free_bytes)),
        ("size of the target", bytes(total_bytes)),
        ("instrument", instrument_ns.map(|ns| format!("{ns:.0} ns added to each operation, not subtracted"))),
        ("worker's peak memory", bytes(worker_peak_bytes)),
        ("slept", slept_seconds.filter(|slept| *slept > 0.0).map(units::seconds)),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let text = |(name, value): (&String, &String)| (name.clone(), value.clone());
    known.chain(negotiated.iter().map(text)).chain(run.facts.iter().map(text)).collect()
}

fn power_text(power: Power) -> String {
    match power {
        Power::Mains => "mains".to_owned(),
        Power::Battery => "battery".to_owned(),
    }
}

/// What crossed, from where that is known, and what it means for the claim about caches.
pub fn crossed(phase: &Phase, wire: &Wire) -> String {
    let bytes = |count: Option<u64>| count.map_or("not known".to_owned(), |bytes| units::bytes(bytes as f64));
    let requests = wire.requests.map_or(String::new(), |requests| format!(", {requests} requests"));
    let share = phase.served_by_client();
    let share = share.map_or(String::new(), |share| {
        format!(", {:.0} % of what was read came from the cache", share * 100.0)
    });
    let claim = if phase.belies_its_claim() { ", although it claims to be cold" } else { "" };
    format!(
        "read {}, written {}{requests} ({}, {}){share}: {}{claim}",
        bytes(wire.read),
        bytes(wire.written),
        source(&wire.source),
        covered(wire.covers),
        phase.served_from().name(),
    )
}

fn source(source: &Source) -> String {
    match source {
        Source::Mountstats => "mountstats".to_owned(),
        Source::CifsStats => "cifs statistics".to_owned(),
        Source::Connections => "TCP connections".to_owned(),
        Source::Nfsstat => "nfsstat".to_owned(),
        Source::Smbutil => "smbutil".to_owned(),
        Source::Interface(name) => name.clone(),
        Source::Disk => "disk".to_owned(),
    }
}

fn covered(covers: Covers) -> &'static str {
    match covers {
        Covers::Mount => "this mount",
        Covers::Server => "all of this server",
        Covers::Interface => "everything on it",
        Covers::Process => "longhaul alone",
        Covers::Protocol => "all mounts of this protocol",
    }
}
