//! The slowest runs and the slowest single calls of a task.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use longhaul_model::stored::StoredCalls;
use longhaul_model::{Call, History, KeepReason, RunRecord, Scale, TASKS, TargetName};

use super::protocol;
use super::words::with_cache;
use crate::document::Document;
use crate::table::Table;
use crate::text::Text;
use crate::{time, units};

/// Number of the slowest runs that are shown.
const MAX_RUNS: usize = 10;
/// Number of calls shown for each target. Every phase stores this many of its slowest calls, so the slowest of all
/// phases are certainly among them.
const MAX_CALLS: usize = KeepReason::CALLS_PER_REASON;

/// Returns the runs of a task with the longest duration, with links to their pages. A hung run counts with its cap.
pub fn runs(history: &History, task: &str, scale: Option<Scale>, zone: &TimeZone) -> Document {
    let is_it = |run: &&RunRecord| TASKS[run.workload].name() == task && Some(run.scale) == scale;
    let mut runs: Vec<&RunRecord> = history.runs.iter().filter(is_it).collect();
    runs.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    runs.truncate(MAX_RUNS);
    let mut table =
        Table::new("Slowest runs").words(["run", "target", "start"]).figures(["time"]).words(["outcome"]);
    for run in runs {
        table.row([
            run_link(run.number),
            (&history.targets[run.target].name).into(),
            time::timestamp(run.started, zone).into(),
            units::seconds(run.seconds).into(),
            super::outcome(run.outcome),
        ]);
    }
    let mut document = Document::new();
    document
        .section("slowest", "The slowest runs")
        .note("All runs of this task at the same scale, including void rounds. The page of a run has statistics of all its calls.")
        .table(table);
    document
}

/// A slow call and the phase that made it.
struct SlowestCall<'p> {
    phase: &'p StoredCalls,
    call: &'p Call,
}

/// The slowest calls of each target, by its protocol.
type SlowestCalls<'p> = BTreeMap<(&'p TargetName, String), Vec<SlowestCall<'p>>>;

/// Returns the slowest calls on each target, separately for each protocol that the target had. `days` is how long calls
/// are stored.
pub fn calls(phases: &[StoredCalls], scale: Option<Scale>, days: u32, zone: &TimeZone) -> Document {
    let phases: Vec<&StoredCalls> = phases.iter().filter(|phase| Some(phase.scale) == scale).collect();
    let mut document = Document::new();
    document.section("calls", "The slowest calls").note(format!(
        "The {MAX_CALLS} slowest calls on each target in the last {days} days, from {} phases, including void rounds and failed \
         calls. Not listed: faster calls, which appear only in the histograms of their runs, and calls that never returned, which \
         their runs report.",
        phases.len()
    ));
    let slowest = slowest_calls(&phases);
    if slowest.is_empty() {
        document.paragraph("No single calls are stored for these days.");
    }
    document.table(call_table(&slowest, zone));
    document
}

fn slowest_calls<'p>(phases: &[&'p StoredCalls]) -> SlowestCalls<'p> {
    let mut all = SlowestCalls::new();
    for phase in phases {
        let of_phase = phase.calls.iter().map(|call| SlowestCall { phase, call });
        all.entry((&phase.target, protocol(phase.protocol.as_ref()))).or_default().extend(of_phase);
    }
    for calls in all.values_mut() {
        calls.sort_by_key(|slow| std::cmp::Reverse(slow.call.duration_ns));
        calls.truncate(MAX_CALLS);
    }
    all
}

fn call_table(all: &SlowestCalls<'_>, zone: &TimeZone) -> Table {
    let mut table = Table::new("The slowest calls")
        .words(["target", "protocol", "operation"])
        .figures(["duration"])
        .words(["phase", "start", "run"]);
    for ((target, protocol), calls) in all {
        for SlowestCall { phase, call } in calls {
            let began = phase.began + Duration::from_nanos(call.offset_ns);
            let failed = if call.is_error { ", failed" } else { "" };
            table.row([
                Text::from(*target),
                protocol.as_str().into(),
                call.operation.to_string().into(),
                format!("{}{failed}", units::seconds(call.duration_ns as f64 / 1e9)).into(),
                with_cache(&phase.phase, phase.cache).into(),
                time::timestamp(began, zone).into(),
                run_link(phase.run),
            ]);
        }
    }
    table
}

fn run_link(number: i64) -> Text {
    Text::new().link(number.to_string(), format!("/runs/{number}"))
}
