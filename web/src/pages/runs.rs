//! Runs: a list to search, and one run in full.

use axum::extract::{Path, Query, State};
use axum::response::Response;
use longhaul_measure::model::{CacheState, OperationStats, Outcome, Phase, TargetName};
use longhaul_measure::workloads::WORKLOADS;
use longhaul_report::charts::Table;
use longhaul_report::page::parts::{section, table_of};
use longhaul_report::runs::{calls, crossed, facts, when};
use longhaul_report::units;
use longhaul_store::{RunFilter, StoredRun};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Place, Trouble, framed};
use crate::face::Face;

/// So many are shown at once; so many are looked through for an outcome.
const SHOWN: usize = 100;
const LOOKED_THROUGH: u32 = 2_000;

/// What is searched for; an empty text is no condition.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    #[serde(default)]
    target: String,
    #[serde(default)]
    workload: String,
    #[serde(default)]
    outcome: String,
}

/// The list.
pub async fn runs(State(face): State<Face>, Query(wanted): Query<Wanted>) -> Response {
    framed(face, Place::Runs, move |book| {
        let names: Vec<TargetName> =
            book.reader.targets()?.into_iter().map(|stored| stored.target.name).collect();
        let found = found(book.reader.runs(&filter(&wanted)?)?, &wanted);
        Ok(html! {
            h1 { "Runs" }
            (search(&wanted, &names))
            (list(&found))
        })
    })
    .await
}

fn filter(wanted: &Wanted) -> Result<RunFilter, Trouble> {
    let target = match wanted.target.as_str() {
        "" => None,
        name => Some(name.parse().map_err(|_| Trouble::Question(format!("`{name}` is no target's name.")))?),
    };
    let workload = Some(wanted.workload.clone()).filter(|name| !name.is_empty());
    let limit = if wanted.outcome.is_empty() { SHOWN as u32 } else { LOOKED_THROUGH };
    Ok(RunFilter { target, workload, limit: Some(limit), ..RunFilter::default() })
}

/// The newest first.
fn found(runs: Vec<StoredRun>, wanted: &Wanted) -> Vec<StoredRun> {
    let outcome = Outcome::from_name(&wanted.outcome);
    let is_meant = |stored: &StoredRun| outcome.is_none_or(|outcome| stored.run.outcome == outcome);
    runs.into_iter().rev().filter(is_meant).take(SHOWN).collect()
}

fn search(wanted: &Wanted, names: &[TargetName]) -> Markup {
    let names: Vec<&str> = names.iter().map(TargetName::as_str).collect();
    let workloads: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name()).collect();
    let outcomes = Outcome::ALL.map(Outcome::name);
    html! {
        form class="search" role="search" {
            (choice(("target", "Target"), &names, &wanted.target))
            (choice(("workload", "Task"), &workloads, &wanted.workload))
            (choice(("outcome", "Outcome"), &outcomes, &wanted.outcome))
            button { "Search" }
        }
    }
}

/// One thing to choose, or all.
pub fn choice((key, label): (&str, &str), all: &[&str], chosen: &str) -> Markup {
    html! {
        label { (label) " "
            select name=(key) {
                option value="" { "all" }
                @for one in all { option value=(one) selected[*one == chosen] { (one) } }
            }
        }
    }
}

fn list(found: &[StoredRun]) -> Markup {
    html! {
        p class="muted" { (found.len()) " runs, the newest first" @if found.len() == SHOWN { "; there may be more" } "." }
        div class="scroll" role="region" aria-label="Runs" tabindex="0" {
            table {
                thead { tr { @for head in ["run", "when", "target", "protocol", "task", "outcome", "time", "what was found"] { th scope="col" { (head) } } } }
                tbody { @for stored in found { (line(stored)) } }
            }
        }
    }
}

fn line(stored: &StoredRun) -> Markup {
    let run = &stored.run;
    html! {
        tr {
            th scope="row" { a href={ "/runs/" (stored.number) } { (stored.number) } }
            td { (when(run)) }
            td { (run.target) }
            td { (run.protocol.as_ref().map_or("not known".to_owned(), ToString::to_string)) }
            td { (run.workload) }
            td class=[run.outcome.is_failure().then_some("serious")] { (run.outcome) }
            td class="figure" { (units::seconds(run.seconds)) }
            td { (result(stored)) }
        }
    }
}

fn result(stored: &StoredRun) -> String {
    if let Some(failure) = &stored.run.failure {
        return failure.message.clone();
    }
    let figure = |phase: &Phase| {
        let figure = phase.figures.first()?;
        Some(format!("{} {}", figure.name, units::value(figure.value, figure.unit)))
    };
    stored.run.phases.iter().filter_map(figure).collect::<Vec<_>>().join(", ")
}

/// One run in full.
pub async fn run(State(face): State<Face>, Path(number): Path<String>) -> Response {
    framed(face, Place::Runs, move |book| {
        let unknown = || Trouble::Unknown(format!("run `{number}`"));
        let stored = book.reader.run(number.parse().map_err(|_| unknown())?)?.ok_or_else(unknown)?;
        Ok(in_full(&stored))
    })
    .await
}

fn in_full(stored: &StoredRun) -> Markup {
    let run = &stored.run;
    let protocol = run.protocol.as_ref().map_or("protocol not known".to_owned(), ToString::to_string);
    let mut table = Table::new(["condition", "value"]);
    table.rows.extend(facts(run).into_iter().map(|(name, value)| vec![name, value]));
    html! {
        h1 { "Run " (stored.number) ": " (run.workload) " on " (run.target) }
        p { (protocol) ", " (run.scale.name()) " scale: " strong { (run.outcome) } " after " (units::seconds(run.seconds)) "." }
        p class="muted" { (when(run)) ", round " (run.round) ", place " (run.slot + 1) " in it, epoch " (stored.epoch)
            ", trace " code { (stored.trace_id) } ". " a href={ "/api/v1/runs/" (stored.number) } { "As JSON" } }
        @if let Some(failure) = &run.failure { p class="warning" { (failure.message) } }
        @for (place, phase) in run.phases.iter().enumerate() {
            (section(&format!("phase-{place}"), &heading(place, phase), &phase_of(phase)))
        }
        (section("conditions", "What else was true", &table_of("Conditions of the run", &table)))
    }
}

/// `2. open, warm`.
fn heading(place: usize, phase: &Phase) -> String {
    let cache = match phase.cache {
        CacheState::Cold => ", cold",
        CacheState::Warm => ", warm",
        CacheState::None => "",
    };
    format!("{}. {}{cache}", place + 1, phase.name)
}

fn phase_of(phase: &Phase) -> Markup {
    let cold_by = phase.cold_by.map_or(String::new(), |way| format!(" ({})", way.name()));
    html! {
        p {
            "Cache: " (phase.cache.name()) (cold_by) "; " (units::seconds(phase.seconds))
            "; read " (units::bytes(phase.bytes_read as f64)) ", written " (units::bytes(phase.bytes_written as f64))
            @if !phase.complete { "; cut short" } "."
        }
        @if let Some(wire) = &phase.wire { p { "Crossed the wire: " (crossed(phase, wire)) "." } }
        ul { @for figure in &phase.figures { li { (figure.name) ": " (units::value(figure.value, figure.unit)) } } }
        @if !phase.operations.is_empty() { (table_of(&format!("Calls of {} ({})", phase.name, phase.cache.name()), &operations(&phase.operations))) }
    }
}

fn operations(all: &[OperationStats]) -> Table {
    let mut table = Table::new(["call", "n", "failed", "p50", "p95", "p99", "longest"]);
    table.rows.extend(all.iter().map(|stats| calls(stats).into()));
    table
}
