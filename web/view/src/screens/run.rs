//! One run in full.

use jiff::tz::TimeZone;
use longhaul_model::stored::StoredRun;
use longhaul_model::{
    Conditions, CounterScope, CounterSource, OperationStats, Phase, Power, Run, ServedFrom, WaitMetric,
    WireTraffic,
};

use super::runs::metric_times;
use super::words::with_cache;
use super::{NO_VALUE, outcome, protocol, your_day};
use crate::document::{Document, Fact};
use crate::table::Table;
use crate::text::Text;
use crate::{time, units};

/// Returns the screen of a run: outcome, failure, phases with their operations, and conditions. Its start is local time in a time
/// zone.
pub fn run(stored: &StoredRun, zone: &TimeZone) -> Document {
    let run = &stored.run;
    let started = time::timestamp(run.started_us, zone);
    let mut document = Document::titled(format!("Run {}: {} on {}", stored.number, run.workload, run.target));
    let head = format!("{}, {} scale: ", protocol(run.protocol.as_ref()), run.scale.name());
    let after = format!(" after {}.", units::seconds(run.seconds));
    document.paragraph(Text::from(head).then(outcome(run.outcome)).plain(after));
    document.note(format!(
        "{started}, round {}, position {} in the round, epoch {}, trace {}",
        run.round,
        run.slot + 1,
        stored.epoch,
        stored.trace_id
    ));
    document.list(your_day::recorded(run));
    let fact = |(metric, seconds): &(&WaitMetric, f64)| {
        Fact::new(with_cache(metric.activity, metric.cache), units::seconds(*seconds))
    };
    document.facts(metric_times(run).iter().map(fact).collect());
    if let Some(failure) = &run.failure {
        document.warning(failure.message.as_str());
    }
    for (place, phase) in run.phases.iter().enumerate() {
        document.section(
            format!("phase-{place}"),
            format!("{}. {}", place + 1, with_cache(&phase.name, phase.cache)),
        );
        add_phase(&mut document, phase);
    }
    document.section("conditions", "Conditions").facts(conditions(run));
    document
}

fn add_phase(document: &mut Document, phase: &Phase) {
    let cold_by = phase.cold_by.map_or(String::new(), |way| format!(" ({})", way.name()));
    let cut = if phase.complete { "" } else { "; interrupted" };
    document.paragraph(format!(
        "Cache: {}{cold_by}; {}; read {}, written {}{cut}.",
        phase.cache.name(),
        units::seconds(phase.seconds),
        units::bytes(phase.bytes_read as f64),
        units::bytes(phase.bytes_written as f64)
    ));
    if let Some(wire) = &phase.wire {
        let medium = if wire.source == CounterSource::Disk { "Disk" } else { "Network" };
        document.paragraph(format!("{medium} traffic: {}.", wire_text(phase, wire)));
    }
    let figures = phase.figures.iter();
    document.facts(
        figures.map(|figure| Fact::new(&figure.name, units::value(figure.value, figure.unit))).collect(),
    );
    document.table(operations(phase));
}

fn operations(phase: &Phase) -> Table {
    let mut table = Table::new(format!("Operations of {}", with_cache(&phase.name, phase.cache)))
        .words(["operation"])
        .figures(["count", "errors", "p50", "p95", "p99", "max"]);
    phase.operations.iter().for_each(|stats| {
        table.row(operation_row(stats));
    });
    table
}

/// Returns the row of one kind of file operation. Quantiles with too few operations (p95 below 20, p99 below 100) are shown
/// as `–`.
fn operation_row(stats: &OperationStats) -> [String; 7] {
    let quantile = |q: f64, needs: u64| match stats.latency.quantile_ns(q) {
        Some(value) if stats.latency.count() >= needs => units::seconds(value / 1e9),
        _ => NO_VALUE.to_owned(),
    };
    [
        stats.operation.to_string(),
        stats.latency.count().to_string(),
        stats.errors.to_string(),
        quantile(0.5, 1),
        quantile(0.95, 20),
        quantile(0.99, 100),
        units::seconds_or_none(stats.latency.max_ns().map(|ns| ns as f64 / 1e9)),
    ]
}

/// Returns conditions, negotiated options and facts from the workload.
fn conditions(run: &Run) -> Vec<Fact> {
    // Destructured without `..`, so that the compiler reports a new condition that is missing here.
    let Conditions {
        system,
        load_average,
        processors,
        memory_available,
        power,
        io_policy,
        free_bytes,
        total_bytes,
        timing_overhead_ns,
        worker_peak_bytes,
        slept_seconds,
        kept_awake,
        round_trip_us,
        send_rate,
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
        ("timing overhead", timing_overhead_ns.map(|ns| format!("{ns:.0} ns per operation, not subtracted"))),
        ("worker's peak memory", bytes(worker_peak_bytes)),
        ("kept awake", kept_awake.then(|| "by caffeinate".to_owned())),
        ("round trip before the run", round_trip_us.map(|us| units::seconds(us as f64 / 1e6))),
        ("send rate before the run", send_rate.map(|rate| format!("{}/s", units::bytes(rate as f64)))),
        ("slept", slept_seconds.filter(|slept| *slept > 0.0).map(units::duration)),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some(Fact::new(name, value?)));
    let fact = |(name, value): (&String, &String)| Fact::new(name, value.as_str());
    let facts = run.facts.iter().map(|(name, value)| Fact::new(name, fact_text(name, value)));
    known.chain(negotiated.iter().map(fact)).chain(facts).collect()
}

/// Returns the value of a fact with its unit: the times of a recording are stored in seconds.
fn fact_text(name: &str, value: &str) -> String {
    let seconds = || value.parse().ok().map(units::seconds);
    let known = matches!(name, "recorded-total" | "recorded-waiting").then(seconds).flatten();
    known.unwrap_or_else(|| value.to_owned())
}

fn power_text(power: Power) -> String {
    match power {
        Power::Mains => "mains".to_owned(),
        Power::Battery => "battery".to_owned(),
    }
}

/// Returns a description of a phase's network traffic: bytes, requests, the counter that measured them, and the
/// consequence for the claim about caches.
fn wire_text(phase: &Phase, wire: &WireTraffic) -> String {
    let bytes = |count: Option<u64>| count.map_or("not known".to_owned(), |bytes| units::bytes(bytes as f64));
    let requests = wire.requests.map_or(String::new(), |requests| format!(", {requests} requests"));
    let share = phase.client_cache_share();
    let share = share.map_or(String::new(), |share| {
        format!(", {:.0} % of what was read came from the cache", share * 100.0)
    });
    let claim = if phase.cold_claim_violated() { ", although it claims to be cold" } else { "" };
    format!(
        "read {}, written {}{requests} ({}, {}){share}: {}{claim}",
        bytes(wire.read),
        bytes(wire.written),
        source_text(&wire.source),
        scope_text(wire.scope),
        served_text(phase.served_from()),
    )
}

fn served_text(served: ServedFrom) -> &'static str {
    match served {
        ServedFrom::Cold => "cold",
        ServedFrom::Warm => "warm",
        ServedFrom::Mixed => "partly from the cache",
        ServedFrom::Unknown => "whether a cache served it is not known",
    }
}

fn source_text(source: &CounterSource) -> String {
    match source {
        CounterSource::Mountstats => "mountstats".to_owned(),
        CounterSource::CifsStats => "cifs statistics".to_owned(),
        CounterSource::Connections => "TCP connections".to_owned(),
        CounterSource::Smbutil => "smbutil".to_owned(),
        CounterSource::Interface(name) => name.clone(),
        CounterSource::Disk => "disk".to_owned(),
    }
}

fn scope_text(scope: CounterScope) -> &'static str {
    match scope {
        CounterScope::Mount => "this mount",
        CounterScope::Server => "all traffic with this server",
        CounterScope::Interface => "all traffic of the interface",
        CounterScope::Process => "longhaul alone",
        CounterScope::Protocol => "all mounts of this protocol",
    }
}
