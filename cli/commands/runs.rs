//! `longhaul runs`: lists the runs in the database, shows one of them, or summarizes all.

use std::collections::BTreeSet;
use std::process::ExitCode;

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{EpochRun, KnownWorkload, summarize};
use longhaul_model::{Scale, TASKS};
use longhaul_presets::catalog;
use longhaul_store::{Reader, RoundStatus, RunFilter, StoredRound};
use longhaul_view::json;
use longhaul_view::screens;

use crate::arguments::{GlobalArgs, RunsArgs};
use crate::errors::UsageError;
use crate::output_format::OutputFormat;
use crate::{exit, paths, render};

/// Lists runs, shows one, or summarizes all.
pub fn run(shared: &GlobalArgs, arguments: &RunsArgs) -> anyhow::Result<ExitCode> {
    match arguments.run {
        Some(number) => show(shared, number, OutputFormat::from_json_flag(arguments.json)),
        None if arguments.summary => {
            let reader = paths::open_reader(shared)?;
            let format = OutputFormat::from_json_flag(arguments.json);
            print_summary(&reader, &RunFilter::default(), arguments.scale, format)
        }
        None => list(shared, arguments),
    }
}

/// Prints a summary of the runs that match a filter.
pub fn print_summary(
    reader: &Reader,
    filter: &RunFilter,
    scale: Option<Scale>,
    form: OutputFormat,
) -> anyhow::Result<ExitCode> {
    let runs = reader.runs(filter)?;
    let is_void = |round: &StoredRound| round.end.as_ref().is_some_and(|end| end.status == RoundStatus::Void);
    let void: BTreeSet<i64> =
        reader.rounds()?.iter().filter(|round| is_void(round)).map(|round| round.number).collect();
    let samples: Vec<EpochRun<'_>> = runs
        .iter()
        .map(|stored| EpochRun {
            epoch: stored.epoch,
            is_void: void.contains(&stored.run.round),
            run: &stored.run,
        })
        .collect();
    let summary = summarize(&samples, scale, &known_workloads());
    if let (Some(scale), true) = (scale, summary.workloads.is_empty() && !runs.is_empty()) {
        crate::output::eprintln!(
            "longhaul: there is no run at the {} scale; leave out --scale",
            scale.name()
        );
    }
    form.print(|| json::summary(&summary), || screens::summary::summary(&summary))?;
    Ok(if summary.workloads.is_empty() { ExitCode::from(exit::NO_DATA) } else { exit::OK })
}

/// Prints the runs that match the arguments, oldest first.
fn list(shared: &GlobalArgs, arguments: &RunsArgs) -> anyhow::Result<ExitCode> {
    let filter = RunFilter {
        target: arguments.target.clone(),
        workload: arguments.workload.clone(),
        limit: (arguments.last > 0).then_some(arguments.last),
        ..RunFilter::default()
    };
    if arguments.scale.is_some() {
        return Err(UsageError("--scale goes with --summary".to_owned()).into());
    }
    let reader = paths::open_reader(shared)?;
    paths::check_known(shared, filter.target.as_ref())?;
    let runs = reader.runs(&filter)?;
    if let Some(name) = filter.workload.filter(|name| runs.is_empty() && catalog().find(name).is_none()) {
        let known: Vec<&str> = TASKS.iter().map(|task| task.name()).collect();
        return Err(UsageError(format!(
            "there is no task `{name}`; tasks: {}; `longhaul preset list` lists presets",
            known.join(", ")
        ))
        .into());
    }
    if arguments.json {
        runs.iter().for_each(|stored| crate::output::println!("{}", json::run(stored)));
    } else {
        render::print(&screens::runs::runs(&runs, &TimeZone::system()));
    }
    Ok(exit::OK)
}

/// Prints one run in full.
fn show(shared: &GlobalArgs, number: i64, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let Some(stored) = paths::open_reader(shared)?.run(number)? else {
        return Err(
            UsageError(format!("there is no run {number}: `longhaul runs --last 0` lists all runs")).into()
        );
    };
    format.print(|| json::run(&stored), || screens::run::run(&stored, &TimeZone::system()))?;
    Ok(exit::OK)
}

/// Returns the workloads and presets in the order in which they are listed.
fn known_workloads() -> Vec<KnownWorkload> {
    catalog()
        .workloads
        .iter()
        .map(|workload| KnownWorkload { name: workload.name(), is_paced: workload.is_paced() })
        .collect()
}
