//! Latency of the probe's requests, and the traffic of targets.

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{LatencyRow, WindowSummary};
use longhaul_model::{CounterScope, LoadContext, MachineStep, Resolution, Timestamp, TrafficStep};

use super::stalls;
use crate::document::Document;
use crate::screens::{bytes, or_no_value, words};
use crate::table::Table;
use crate::text::Text;
use crate::{time, units};

/// Explains how the latency is measured.
pub const EXPLANATION: &str = "Latency of the probe's small requests, measured from their scheduled time, so that a stall counts for \
     every request it delayed. Unless the configuration says otherwise, the probe sends requests only while a user or a round uses a share, \
     and never wakes a share.";

/// Returns the summary of a whole window: latency, traffic, machine load and stalls.
pub fn window(sampled: &WindowSummary, step: Resolution) -> Document {
    let mut document = Document::new();
    let length = units::window(sampled.span_us.1.seconds_since(sampled.span_us.0));
    document.paragraph(format!("The last {length}, from samples of {} each.", words::step(step)));
    document.section("latency", "Latency").note(EXPLANATION);
    match sampled.rows.as_slice() {
        [] => document.paragraph(
            Text::from("No responses in this period. ")
                .code("longhaul status")
                .plain(" shows the state of the probe."),
        ),
        rows => document.table(table(rows)),
    };
    document.section("traffic", "Traffic");
    match sampled.traffic.as_slice() {
        [] => document.paragraph("No traffic was counted."),
        traffic => document.table(traffic_table(traffic)),
    };
    if let Some(machine) = &sampled.machine {
        document.section("machine", "This computer").paragraph(machine_text(machine));
    }
    if !sampled.stalls.is_empty() {
        document.section("stalls", "Stalls").facts(stalls::totals(&sampled.stalls));
    }
    document
}

fn machine_text(machine: &MachineStep) -> String {
    let share = |share: Option<f64>| or_no_value(share.map(|share| format!("{:.1} %", share * 100.0)));
    format!(
        "Processors {} busy (at most {}), load at most {}, at least {} of memory free, in {} samples. The probes used {} of \
         processor time.",
        share(machine.processor_share),
        share(machine.processor_share_max),
        or_no_value(machine.load_average_max.map(|load| units::decimal(load, 2))),
        bytes(machine.memory_available_min),
        machine.observations,
        units::seconds(machine.probe_cpu_ns as f64 / 1e9),
    )
}

/// Returns the latency step by step.
pub fn series(steps: &[(Timestamp, Vec<LatencyRow>)], zone: &TimeZone) -> Document {
    let mut document = Document::new();
    if steps.is_empty() {
        document.paragraph("No responses in this period.");
    }
    let mut table = with_latency_columns(Table::new("Latency by step").words(["start"]));
    for (at, rows) in steps {
        let start = time::timestamp(*at, zone);
        rows.iter().for_each(|row| _ = table.row(std::iter::once(start.clone()).chain(cells(row))));
    }
    document.table(table);
    document
}

/// Returns the latency of each target, operation and load.
pub fn table(rows: &[LatencyRow]) -> Table {
    let mut table = with_latency_columns(Table::new("Latency"));
    rows.iter().for_each(|row| _ = table.row(cells(row)));
    table
}

fn with_latency_columns(table: Table) -> Table {
    table.words(["target", "operation", "during"]).figures([
        "responses",
        "p50",
        "p95",
        "p99",
        "max",
        ">0.1 s",
        ">1 s",
        ">10 s",
        "timeouts",
        "errors",
    ])
}

fn cells(latency: &LatencyRow) -> Vec<String> {
    let during = match latency.during {
        LoadContext::Idle => "idle",
        LoadContext::Round => "a round",
    };
    let mut row = vec![latency.target.to_string(), latency.kind.name().to_owned(), during.to_owned()];
    row.push(latency.count.to_string());
    row.extend([latency.p50, latency.p95, latency.p99, latency.max].map(units::seconds_or_none));
    row.extend(latency.slower_than.iter().chain([&latency.timeouts, &latency.errors]).map(u64::to_string));
    row
}

fn traffic_table(traffic: &[TrafficStep]) -> Table {
    let mut table =
        Table::new("Traffic, as the system counts it").words(["target", "source", "scope"]).figures([
            "observed",
            "others read",
            "others wrote",
            "longhaul read",
            "longhaul wrote",
            "requests",
            "mean response",
            "retransmits",
            "reconnects",
            "peak",
            "used by others",
        ]);
    traffic.iter().for_each(|step| _ = table.row(traffic_cells(step)));
    table
}

fn traffic_cells(step: &TrafficStep) -> [String; 14] {
    let sum = &step.traffic;
    let count = |count: Option<u64>| or_no_value(count.map(|count| count.to_string()));
    let scope = match sum.scope {
        CounterScope::Mount => "this mount",
        CounterScope::Server => "the server",
        CounterScope::Interface => "the interface",
        CounterScope::Process => "longhaul",
        CounterScope::Protocol => "the protocol",
    };
    let answer = sum.round_trips.filter(|(count, _)| *count > 0);
    let peak = step.peak_bytes_per_second.map(|peak| format!("{}/s", units::bytes(peak)));
    [
        step.target.as_ref().map_or("machine".to_owned(), ToString::to_string),
        sum.source.name().into_owned(),
        scope.to_owned(),
        units::duration(sum.seconds),
        bytes(sum.user_read),
        bytes(sum.user_written),
        bytes(sum.longhaul_read),
        bytes(sum.longhaul_written),
        count(sum.requests),
        units::seconds_or_none(answer.map(|(count, time)| time as f64 / count as f64 / 1e6)),
        count(sum.retransmits),
        count(sum.reconnects),
        or_no_value(peak),
        units::duration(step.busy_seconds),
    ]
}
