//! The slowest of a task: whole runs, and single calls.

use std::collections::BTreeMap;

use longhaul_measure::model::{CacheState, Call, Kept, Scale, TargetName};
use longhaul_measure::summary::{History, KeptRun};
use longhaul_measure::workloads::{WORKLOADS, Workload};
use longhaul_report::page::parts::section;
use longhaul_report::units;
use longhaul_service::words::time;
use longhaul_store::{CALLS_KEPT_DAYS, StoredCalls};
use maud::{Markup, html};

/// So many of the slowest runs are shown.
const RUNS: usize = 10;
/// So many calls of each target are shown. All of them are known: none of them can be missing among those of its phase.
const CALLS: usize = Kept::EACH;

/// The runs that took longest, each to be looked at in full; hung ones took their cap.
pub fn slowest_runs(history: &History, workload: &dyn Workload, scale: Option<Scale>) -> Markup {
    let is_it =
        |run: &&KeptRun| WORKLOADS[run.workload].name() == workload.name() && Some(run.scale) == scale;
    let mut runs: Vec<&KeptRun> = history.runs.iter().filter(is_it).collect();
    runs.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    runs.truncate(RUNS);
    section(
        "slowest",
        "The slowest runs",
        &html! {
            p class="muted" { "Of all runs of this task at the same scale, void rounds included. A run in full has every call of it." }
            ul { @for run in runs {
                li { a href={ "/runs/" (run.number) } { "Run " (run.number) } ", " (history.targets[run.target].name) ", "
                    (time(run.started_us)) ": " (units::seconds(run.seconds)) ", " (run.outcome) }
            } }
        },
    )
}

/// The calls that took longest on each target, over each protocol that it had.
pub fn slowest_calls(phases: &[StoredCalls], scale: Option<Scale>) -> Markup {
    let mut all: BTreeMap<(&TargetName, String), Vec<Slow<'_>>> = BTreeMap::new();
    let phases: Vec<&StoredCalls> = phases.iter().filter(|phase| Some(phase.scale) == scale).collect();
    for phase in &phases {
        let protocol = phase.protocol.as_ref().map_or("not known".to_owned(), ToString::to_string);
        let of_phase = phase.calls.iter().map(|call| Slow { phase, call });
        all.entry((&phase.target, protocol)).or_default().extend(of_phase);
    }
    for calls in all.values_mut() {
        calls.sort_by_key(|slow| std::cmp::Reverse(slow.call.nanoseconds));
        calls.truncate(CALLS);
    }
    section(
        "calls",
        "The slowest calls",
        &html! {
            p class="muted" {
                "The " (CALLS) " slowest on each target in the last " (CALLS_KEPT_DAYS) " days, of " (phases.len()) " phases, void rounds \
                 and failed calls included. Left out: all that were quicker, which are in the histograms of their runs alone, and calls \
                 that never came back, which their runs tell of."
            }
            @if all.is_empty() { p { "No single call is kept from these days." } } @else { (table(&all)) }
        },
    )
}

/// A call, and where it was made.
struct Slow<'p> {
    phase: &'p StoredCalls,
    call: &'p Call,
}

fn table(all: &BTreeMap<(&TargetName, String), Vec<Slow<'_>>>) -> Markup {
    html! {
        div class="scroll" role="region" aria-label="Table: the slowest calls" tabindex="0" {
            table {
                thead { tr { @for head in ["target", "protocol", "call", "took", "phase", "when", "run"] { th scope="col" { (head) } } } }
                @for ((target, protocol), calls) in all {
                    tbody { @for (place, slow) in calls.iter().enumerate() {
                        tr {
                            @if place == 0 { th scope="rowgroup" rowspan=(calls.len()) { (target) } }
                            td { (protocol) }
                            (line(slow))
                        }
                    } }
                }
            }
        }
    }
}

fn line(Slow { phase, call }: &Slow<'_>) -> Markup {
    let cache = match phase.cache {
        CacheState::Cold => ", cold",
        CacheState::Warm => ", warm",
        CacheState::None => "",
    };
    let began_us = phase.began_us.saturating_add((call.after_ns / 1_000).cast_signed());
    html! {
        td { (call.operation) }
        td class="figure" { (units::seconds(call.nanoseconds as f64 / 1e9)) @if call.is_error { ", failed" } }
        td { (phase.phase) (cache) }
        td { (time(began_us)) }
        td { a href={ "/runs/" (phase.run) } { (phase.run) } }
    }
}
