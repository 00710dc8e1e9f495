//! `longhaul summary`, `runs` and `show`: what is in the database.

use std::collections::BTreeSet;
use std::process::ExitCode;

use longhaul_measure::model::Scale;
use longhaul_measure::summary::{Sample, summarise};
use longhaul_store::{Reader, RoundStatus, RunFilter, StoredRound};
use longhaul_web::json;

use crate::arguments::{Runs, Shared, Show, Summary};
use crate::render::{self, line};
use crate::{Usage, exit, places};

/// How something is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Tables,
    /// For programs.
    Json,
}

impl Form {
    /// JSON, or tables.
    pub fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Tables }
    }
}

/// Prints the summary of all runs.
pub fn summary(shared: &Shared, arguments: &Summary) -> anyhow::Result<ExitCode> {
    let reader = places::reader(shared)?;
    let scale = arguments.scale.map(Into::into);
    print_summary(&reader, &RunFilter::default(), scale, Form::of(arguments.json))
}

/// Prints the summary of some runs.
pub fn print_summary(
    reader: &Reader,
    filter: &RunFilter,
    scale: Option<Scale>,
    form: Form,
) -> anyhow::Result<ExitCode> {
    let runs = reader.runs(filter)?;
    let is_void = |round: &StoredRound| round.end.as_ref().is_some_and(|end| end.status == RoundStatus::Void);
    let void: BTreeSet<i64> =
        reader.rounds()?.iter().filter(|round| is_void(round)).map(|round| round.number).collect();
    let samples: Vec<Sample<'_>> = runs
        .iter()
        .map(|stored| Sample {
            epoch: stored.epoch,
            is_void: void.contains(&stored.run.round),
            run: &stored.run,
        })
        .collect();
    let summary = summarise(&samples, scale);
    if form == Form::Json {
        anstream::println!("{}", serde_json::to_string_pretty(&summary)?);
    } else if summary.workloads.is_empty() {
        anstream::println!("No run to summarise yet: `longhaul try` or `longhaul run` makes some.");
    } else {
        anstream::print!("{}", render::summary::summary(&summary));
    }
    Ok(if summary.workloads.is_empty() { ExitCode::from(exit::NO_DATA) } else { exit::OK })
}

/// Prints the runs, oldest first.
pub fn runs(shared: &Shared, arguments: &Runs) -> anyhow::Result<ExitCode> {
    let filter = RunFilter {
        target: arguments.target.clone(),
        workload: arguments.workload.clone(),
        limit: (arguments.last > 0).then_some(arguments.last),
        ..RunFilter::default()
    };
    for stored in places::reader(shared)?.runs(&filter)? {
        if arguments.json {
            anstream::println!("{}", json::run(&stored));
        } else {
            anstream::println!("{}  {}", longhaul_report::runs::when(&stored.run), line::run(&stored));
        }
    }
    Ok(exit::OK)
}

/// Prints one run in full.
pub fn show(shared: &Shared, arguments: &Show) -> anyhow::Result<ExitCode> {
    let Some(stored) = places::reader(shared)?.run(arguments.run)? else {
        return Err(Usage(format!("there is no run {}: `longhaul runs` lists them", arguments.run)).into());
    };
    if arguments.json {
        anstream::println!("{}", serde_json::to_string_pretty(&json::run(&stored))?);
    } else {
        anstream::print!("{}", render::show::run(&stored));
    }
    Ok(exit::OK)
}
