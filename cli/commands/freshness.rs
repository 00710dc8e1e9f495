//! `longhaul freshness`: shows how long changes made elsewhere take to become visible, or measures it now.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_analysis::checks;
use longhaul_measure::platform;
use longhaul_measure::sandbox::CleanMode;
use longhaul_model::{FreshnessSample, Role, Target, TargetName, Timestamp};
use longhaul_service::checks::freshness::{FreshnessCheck, FreshnessPlan, HelperCheck, HelperPlan};
use longhaul_service::clock::SystemClock;
use longhaul_service::worker::{EXIT_TIMEOUT, Interruption, Worker, end_workers};
use longhaul_view::screens;

use super::clean::clean;
use super::run::Session;
use crate::arguments::{FreshnessArgs, FreshnessCommand, GlobalArgs, HelperArgs, MeasureArgs};
use crate::errors::UsageError;
use crate::output_format::OutputFormat;
use crate::paths::TargetSources;
use crate::{exit, paths};

/// Longest time within which the changes of a session are made.
const MAX_SPREAD: Duration = Duration::from_secs(30);
/// Time in which the user has to run the line on the NAS.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time that an operation in flight may take after Ctrl-C, before its worker is abandoned.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// Shows or measures freshness.
pub fn run(shared: &GlobalArgs, arguments: &FreshnessArgs) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Some(FreshnessCommand::Measure(measure)) => measure_now(shared, measure),
        Some(FreshnessCommand::Helper(helper)) => measure_on_nas(shared, helper),
        None => {
            let samples = paths::open_reader(shared)?.freshness(Timestamp::MIN)?;
            print(&samples, arguments.json)?;
            Ok(if samples.is_empty() { ExitCode::from(exit::NO_DATA) } else { exit::OK })
        }
    }
}

/// State of a sandbox before a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SandboxState {
    /// There was none.
    Absent,
    /// There was one, or it is not known.
    Present,
}

impl SandboxState {
    fn of(worker: &mut Worker) -> Self {
        match clean(worker, CleanMode::List, STOP_TIMEOUT, &Interruption::default()) {
            Ok(None) => Self::Absent,
            _ => Self::Present,
        }
    }

    /// Removes a sandbox that did not exist before.
    fn restore(self, worker: &mut Worker) {
        if self == Self::Present {
            return;
        }
        // Ctrl-C ends the measurement before this, and must not end this.
        if let Err(report) = clean(worker, CleanMode::Remove, STOP_TIMEOUT, &Interruption::default()) {
            let name = &worker.target().name;
            crate::output::eprintln!("longhaul: the sandbox of {name} is left: {}", report.failure.message);
        }
    }
}

fn print(samples: &[FreshnessSample], as_json: bool) -> anyhow::Result<()> {
    let cells = checks::freshness(samples);
    OutputFormat::from_json_flag(as_json).print(|| &cells, || screens::checks::freshness(&cells))
}

fn measure_now(shared: &GlobalArgs, arguments: &MeasureArgs) -> anyhow::Result<ExitCode> {
    let (targets, database) = targets(shared, arguments)?;
    let writers = writers(&targets, arguments.through.as_ref())?;
    let mounts = platform::mounts().context("read the mount table")?;
    let session = Session::open(database, &mounts)?;
    let worker = |target: &Target| Worker::new(target.clone(), session.launcher.clone());
    let mut workers: Vec<Worker> = targets.iter().map(worker).collect();
    let mut workers: Vec<&mut Worker> = workers.iter_mut().collect();
    let check = FreshnessCheck {
        plan: plan(arguments.changes, arguments.limit),
        clock: &SystemClock,
        interruption: &session.interruption,
        stop_timeout: STOP_TIMEOUT,
    };
    let (mut measured, mut failed) = (vec![], None);
    for writer in writers {
        if session.interruption.is_requested() {
            break;
        }
        match measure_through(&check, &mut workers, writer) {
            Ok(samples) => measured.extend(samples),
            Err(error) => failed = Some(error),
        }
    }
    end_workers(workers, EXIT_TIMEOUT);
    session.writer.add_freshness(measured.clone())?;
    if measured.is_empty() && !session.interruption.is_requested() {
        let message = "no two of these targets lead to one folder, so no change can be looked for";
        return Err(failed.unwrap_or_else(|| UsageError(message.to_owned()).into()));
    }
    print(&measured, arguments.json)?;
    failed.map_or(Ok(exit::OK), Err)
}

fn plan(changes: u16, limit_seconds: u64) -> FreshnessPlan {
    let limit = Duration::from_secs(limit_seconds);
    let spread = limit.min(MAX_SPREAD);
    FreshnessPlan { changes: changes.into(), spread, watch: spread + limit }
}

fn measure_on_nas(shared: &GlobalArgs, arguments: &HelperArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let database = paths::database(shared, &config)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let sources = TargetSources { config: &config, database: &database, mounts: &mounts };
    let target = paths::find_target(&arguments.target, sources)?;
    paths::check_managed_targets(std::slice::from_ref(&target), &config)?;
    paths::check_paths(std::slice::from_ref(&target), Some(&database), &mounts)?;
    let given = std::slice::from_ref(&arguments.target);
    paths::check_given_folders(given, std::slice::from_ref(&target), &mounts)?;
    let session = Session::open(database, &mounts)?;
    let mut worker = Worker::new(target, session.launcher.clone());
    let helper = HelperPlan {
        plan: plan(arguments.changes, arguments.limit),
        patience: PATIENCE,
        folder: arguments.folder.clone(),
    };
    let check = HelperCheck {
        plan: &helper,
        clock: &SystemClock,
        interruption: &session.interruption,
        stop_timeout: STOP_TIMEOUT,
    };
    let mut show_line = |line: &str| show_line(line, arguments);
    let sandbox = SandboxState::of(&mut worker);
    let measured = check.run(&mut worker, &mut show_line);
    sandbox.restore(&mut worker);
    end_workers([&mut worker], EXIT_TIMEOUT);
    let measured = measured.map_err(|report| anyhow::anyhow!("{}", report.failure.message))?;
    session.writer.add_freshness(measured.clone())?;
    print(&measured, arguments.json)?;
    Ok(exit::OK)
}

fn show_line(line: &str, arguments: &HelperArgs) {
    let seconds = PATIENCE.as_secs();
    crate::output::eprintln!(
        "Run this line on the NAS within {seconds} s, for example by ssh, as a user who may write to the folder. {}",
        if arguments.folder == "FOLDER" { "Replace FOLDER with the folder of the target there." } else { "" }
    );
    match arguments.json {
        true => crate::output::eprintln!("{line}"),
        false => crate::output::println!("{line}"),
    }
}

/// Measures through one target. Its sandbox is removed if it did not exist before.
fn measure_through(
    check: &FreshnessCheck<'_>,
    workers: &mut [&mut Worker],
    writer: usize,
) -> anyhow::Result<Vec<FreshnessSample>> {
    let name = workers[writer].target().name.clone();
    crate::output::eprintln!("Changing files through {name}; {} ...", search_time(&check.plan));
    let sandbox = SandboxState::of(workers[writer]);
    let measured = check.run(workers, writer);
    sandbox.restore(workers[writer]);
    measured.map_err(|report| anyhow::anyhow!("{name}: {}", report.failure.message))
}

/// Returns for how long changes are looked for: each for the limit, and all together longer, because they are made at random times.
fn search_time(plan: &FreshnessPlan) -> String {
    let limit = plan.watch.saturating_sub(plan.spread);
    format!("looking for each change for at most {} s ({} s in all)", limit.as_secs(), plan.watch.as_secs())
}

/// Returns the targets to measure, all of them as shares, and the path of the database.
fn targets(shared: &GlobalArgs, arguments: &MeasureArgs) -> anyhow::Result<(Vec<Target>, PathBuf)> {
    let config = paths::load_config(shared)?;
    let database = paths::database(shared, &config)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let given = paths::parse_targets(&arguments.targets, &mounts)?;
    paths::check_managed_targets(&given, &config)?;
    let targets: Vec<Target> = match given.is_empty() {
        true => config.targets.into_iter().filter(|target| target.role == Role::Share).collect(),
        false => given.into_iter().map(|target| Target { role: Role::Share, ..target }).collect(),
    };
    if targets.len() < 2 {
        let message = "freshness needs two targets that lead to one folder: give `--target NAME=PATH` twice, or add \
                       them to the configuration (`longhaul init`)";
        return Err(UsageError(message.to_owned()).into());
    }
    paths::check_paths(&targets, Some(&database), &mounts)?;
    if !arguments.targets.is_empty() {
        paths::check_folders(&targets, &mounts)?;
    }
    Ok((targets, database))
}

/// Returns the indices of the targets through which changes are made.
fn writers(targets: &[Target], through: Option<&TargetName>) -> anyhow::Result<Vec<usize>> {
    let Some(name) = through else { return Ok((0..targets.len()).collect()) };
    let names = || targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = targets.iter().position(|target| target.name == *name);
    let found = found.ok_or_else(|| UsageError(format!("there is no target `{name}`; known: {}", names())));
    Ok(vec![found?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_each_change_is_the_limit_that_was_given() {
        let (short, long) = (search_time(&plan(3, 5)), search_time(&plan(3, 60)));
        assert_eq!(short, "looking for each change for at most 5 s (10 s in all)");
        assert_eq!(long, "looking for each change for at most 60 s (90 s in all)");
    }
}
