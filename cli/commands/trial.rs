//! `longhaul try`: two short rounds on the local disk and on each given target.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::sandbox::CleanMode;
use longhaul_measure::workloads::Settings;
use longhaul_measure::{platform, private_files};
use longhaul_model::{
    Mount, Outcome, ProtocolFamily, Role, Run, STANDARD_TASKS, Scale, Target, TargetName, Timestamp,
};
use longhaul_service::config::Config;
use longhaul_service::foreground::{ForegroundPlan, RunTotals};
use longhaul_service::round::RoundTasks;
use longhaul_service::worker::{EXIT_TIMEOUT, Interruption, Worker, end_workers};
use longhaul_store::{Reader, RunFilter};
use longhaul_view::screens::trial::trial;

use super::clean::clean;
use super::run::{Session, budget_check, run_counts};
use super::runs::print_summary;
use crate::arguments::{GlobalArgs, TryArgs};
use crate::output_format::OutputFormat;
use crate::progress::{OutputStyle, ProgressUi};
use crate::{exit, paths, render};

/// Number of rounds in a trial.
const ROUNDS: u32 = 2;
/// Time after which a run of a trial is stored as hung.
const RUN_CAP: Duration = Duration::from_secs(120);
/// Name of the local target, if no other target has it.
const LOCAL_TARGET: &str = "local";

/// Runs the trial, prints its result, and deletes the test data from the targets.
pub fn run(shared: &GlobalArgs, arguments: &TryArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let database = paths::database(shared, &config)?;
    let folder = folder(&database);
    let mut targets = paths::parse_targets(&arguments.targets, &mounts)?;
    paths::check_managed_targets(&targets, &config)?;
    paths::check_paths(&targets, Some(&database), &mounts)?;
    paths::check_folders(&targets, &mounts)?;
    paths::check_known_paths(&targets, &config, &database)?;
    if !targets.iter().any(|target| target.name.as_str() == LOCAL_TARGET) {
        targets.insert(0, local_target(&folder, &targets, &config, &database)?);
    }
    let session = Session::open(database, &mounts)?;
    if targets.iter().any(|target| target.path == folder) {
        private_files::create_folder(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    print_targets(&targets, &mounts);
    let plan = ForegroundPlan {
        targets,
        rounds: ROUNDS,
        tasks: RoundTasks {
            workloads: STANDARD_TASKS.iter().map(|workload| workload.name().to_owned()).collect(),
            scale: Scale::Quick,
            settings: limited(&config.settings),
            cap: RUN_CAP.min(config.limits.cap),
        },
        nas: None,
    };
    let started = platform::wall_clock();
    let style = if arguments.verbose { OutputStyle::Lines } else { OutputStyle::ShortLines };
    let check = budget_check(&session.database, &plan.targets, config.limits);
    let (totals, workers) = session.run_rounds(&plan, ProgressUi::new(style, check));
    let (kept, trial): (Vec<Worker>, Vec<Worker>) = workers
        .into_iter()
        .partition(|worker| config.targets.iter().any(|target| is_same(target, worker.target())));
    for worker in kept.iter().filter(|_| !arguments.keep) {
        crate::output::println!(
            "The test data on `{}` stays: it is a target of the configuration.",
            worker.target().name
        );
    }
    let left = if arguments.keep { vec![] } else { clean_up(&session, trial, &folder, started) };
    let code = print_result(&session, totals?, started, arguments)?;
    left.iter().for_each(|what| crate::output::print_error(format_args!("longhaul: left behind: {what}")));
    Ok(if left.is_empty() { code } else { ExitCode::from(exit::RUN_FAILED) })
}

/// Returns the settings of a trial: the same for all users, within the limits of the configuration.
fn limited(configured: &Settings) -> Settings {
    Settings {
        reserve: configured.reserve,
        operations_per_second: configured.operations_per_second,
        ..Settings::default()
    }
}

/// Returns whether both are one target: another name has test data of its own in the same folder.
fn is_same(one: &Target, other: &Target) -> bool {
    one.name == other.name && one.path == other.path
}

/// Returns the local target, with the first name that no target elsewhere has: that one keeps its results.
fn local_target(folder: &Path, given: &[Target], config: &Config, database: &Path) -> anyhow::Result<Target> {
    for number in 1.. {
        let name = if number == 1 { LOCAL_TARGET.to_owned() } else { format!("{LOCAL_TARGET}-{number}") };
        let name = name.parse().context("name the local target")?;
        let target = Target { name, path: folder.to_owned(), role: Role::Baseline };
        let is_given = given.iter().any(|other| other.name == target.name);
        if !is_given && paths::known_elsewhere(&target, config, database)?.is_none() {
            return Ok(target);
        }
    }
    unreachable!("there are more numbers than targets")
}

/// Returns the folder of the local target of a trial, next to the database.
pub fn folder(database: &Path) -> PathBuf {
    database.parent().unwrap_or(Path::new("/")).join("try")
}

fn print_targets(targets: &[Target], mounts: &[Mount]) {
    for target in targets {
        crate::output::print_line(format_args!("target {:<10} {}", target.name, target.path.display()));
    }
    let given = |mount: &Mount| targets.iter().any(|target| target.path.starts_with(&mount.point));
    for mount in
        mounts.iter().filter(|mount| mount.protocol.family() == ProtocolFamily::Network && !given(mount))
    {
        let path = mount.point.display();
        crate::output::print_line(format_args!(
            "found  {:<10} {path}: add it with --target NAME={path}",
            mount.protocol
        ));
    }
    crate::output::println!("Two short rounds of all tasks follow.\n");
}

/// Prints the result of the trial, in short or with all figures, and the next step.
fn print_result(
    session: &Session,
    totals: RunTotals,
    started: Timestamp,
    arguments: &TryArgs,
) -> anyhow::Result<ExitCode> {
    let reader = Reader::open(&session.database)?;
    let filter = RunFilter { since: Some(started), ..RunFilter::default() };
    crate::output::println!();
    if arguments.verbose {
        print_summary(&reader, &filter, Some(Scale::Quick), OutputFormat::Text)?;
        crate::output::println!();
    }
    let runs: Vec<Run> = reader.runs(&filter)?.into_iter().map(|stored| stored.run).collect();
    render::print(&trial(&runs, run_counts(totals)));
    let code = match (totals.failed_runs, runs.is_empty()) {
        (0, false) => return Ok(exit::OK),
        (0, true) => exit::NO_DATA,
        _ => exit::RUN_FAILED,
    };
    Ok(ExitCode::from(code))
}

/// Returns the targets that no run of the trial could use.
fn unused_targets(session: &Session, started: Timestamp) -> anyhow::Result<BTreeSet<TargetName>> {
    let filter = RunFilter { since: Some(started), ..RunFilter::default() };
    let runs = Reader::open(&session.database)?.runs_without_phases(&filter)?;
    let (unusable, usable): (Vec<Run>, Vec<Run>) =
        runs.into_iter().map(|stored| stored.run).partition(|run| run.outcome == Outcome::Unavailable);
    let mut unused: BTreeSet<TargetName> = unusable.into_iter().map(|run| run.target).collect();
    unused.retain(|name| usable.iter().all(|run| run.target != *name));
    Ok(unused)
}

/// Deletes the sandboxes and the local folder, and returns what could not be deleted. It uses the workers of the
/// rounds, so that no second worker starts next to a hung one.
fn clean_up(session: &Session, workers: Vec<Worker>, folder: &Path, started: Timestamp) -> Vec<String> {
    // If the runs cannot be read, each folder that cannot be opened is named.
    let unused = unused_targets(session, started).unwrap_or_default();
    let remaining = |worker: Worker| clean_target(worker, &unused);
    let mut left: Vec<String> = workers.into_iter().filter_map(remaining).collect();
    match std::fs::remove_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            left.push(format!("{}: {error}", folder.display()));
        }
        _ => {}
    }
    // The local folder of each target was deleted with its sandbox. Their parent is removed if it is empty now.
    let _ = std::fs::remove_dir(&session.launcher.local_folder);
    left
}

/// Returns what is left on a target. Nothing is left on one whose folder could not even be opened.
fn clean_target(mut worker: Worker, unused: &BTreeSet<TargetName>) -> Option<String> {
    // Ctrl-C ends the rounds before this, and must not end this.
    let cleaned = clean(&mut worker, CleanMode::Remove, RUN_CAP, &Interruption::default());
    // The worker deletes its local folder, which is next to the database, when it exits.
    end_workers([&mut worker], EXIT_TIMEOUT);
    match cleaned {
        Ok(Some(report)) if !report.foreign.is_empty() => {
            let paths: Vec<String> = report.foreign.iter().map(|path| path.display().to_string()).collect();
            Some(format!("files not created by longhaul: {}", paths.join(", ")))
        }
        Ok(_) => None,
        Err(ending) => {
            let Target { name, path, .. } = worker.target();
            let is_folder = ending.failure.path == Some(path.display().to_string());
            (!is_folder || !unused.contains(name)).then_some(ending.failure.message)
        }
    }
}
