//! One run in full.

use longhaul_measure::model::{OperationStats, Phase};
use longhaul_report::runs::{calls, crossed, facts, when};
use longhaul_store::StoredRun;

use super::table::{align_right_from, table};
use super::units;

/// Head, failure, phases with their operations, facts, conditions.
pub fn run(stored: &StoredRun) -> String {
    let run = &stored.run;
    let mut out = format!("{}\n", head(stored));
    if let Some(failure) = &run.failure {
        out += &format!("\n{}\n", failure.message);
    }
    for phase in &run.phases {
        out += &format!("\n{}\n", phase_text(phase));
    }
    out += "\nconditions\n";
    for (name, value) in facts(run) {
        out += &format!("  {name:<24}{value}\n");
    }
    out
}

fn head(stored: &StoredRun) -> String {
    let run = &stored.run;
    let protocol = run.protocol.as_ref().map_or("protocol not known".to_owned(), ToString::to_string);
    format!(
        "run {}  {} on {} ({protocol}), {} scale: {} after {}\n{}, round {}, place {} in it, epoch {}, trace {}",
        stored.number,
        run.workload,
        run.target,
        run.scale.name(),
        run.outcome,
        units::seconds(run.seconds),
        when(run),
        run.round,
        run.slot + 1,
        stored.epoch,
        stored.trace_id
    )
}

fn phase_text(phase: &Phase) -> String {
    let cold_by = phase.cold_by.map_or(String::new(), |way| format!(" ({})", way.name()));
    let cut = if phase.complete { "" } else { ", cut short" };
    let mut out = format!(
        "{}  cache: {}{cold_by}, {}, read {}, written {}{cut}\n",
        phase.name,
        phase.cache.name(),
        units::seconds(phase.seconds),
        units::bytes(phase.bytes_read as f64),
        units::bytes(phase.bytes_written as f64)
    );
    if let Some(wire) = &phase.wire {
        out += &format!("  {:<24}{}\n", "crossed the wire", crossed(phase, wire));
    }
    for figure in &phase.figures {
        out += &format!("  {:<24}{}\n", figure.name, units::value(figure.value, figure.unit));
    }
    out + &operations(&phase.operations)
}

fn operations(all: &[OperationStats]) -> String {
    let mut table = table(&["operation", "count", "errors", "p50", "p95", "p99", "max"]);
    for stats in all {
        table.add_row(calls(stats));
    }
    align_right_from(&mut table, 1);
    table.to_string()
}
