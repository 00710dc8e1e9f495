//! `longhaul fidelity`: checks which properties of files the targets keep.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use longhaul_measure::platform;
use longhaul_model::{Target, TargetFidelity};
use longhaul_service::checks::fidelity::FidelityCheck;
use longhaul_service::database_lock::DatabaseLockError;
use longhaul_service::target_path::SpecialFolders;
use longhaul_service::worker::{EXIT_TIMEOUT, Worker, end_workers};
use longhaul_store::{Error, Reader};
use longhaul_view::json::FidelityJson;
use longhaul_view::screens::checks;

use super::run::Session;
use crate::arguments::{FidelityArgs, GlobalArgs};
use crate::paths::TargetSources;
use crate::{errors, exit, paths, render};

/// Checks the targets, stores the findings and prints them. While another longhaul measures, prints what is stored.
pub fn run(shared: &GlobalArgs, arguments: &FidelityArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let database = paths::database(shared, &config)?;
    if arguments.targets.is_empty() && config.targets.is_empty() {
        return print_all_stored(&database, arguments);
    }
    let mounts = platform::mounts().context("read the mount table")?;
    let sources = TargetSources { config: &config, database: &database, mounts: &mounts };
    let targets = choose_targets(arguments, sources)?;
    paths::check_paths(&targets, &SpecialFolders::of(Some(&database), &mounts))?;
    let session = match Session::open(database.clone(), &mounts) {
        Ok(session) => session,
        Err(error) if is_measuring(&error) => {
            return print_stored(&Reader::open(&database)?, &targets, arguments, error);
        }
        Err(error) => return Err(error),
    };
    let (checks, code) = check_all(&session, &targets, config.settings.operations_per_second)?;
    print(&checks, arguments)?;
    Ok(code)
}

fn is_measuring(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(DatabaseLockError::AlreadyLocked { .. }))
}

/// Returns the targets from the arguments, or else from the configuration.
fn choose_targets(arguments: &FidelityArgs, sources: TargetSources<'_>) -> anyhow::Result<Vec<Target>> {
    let one = |text: &String| paths::find_target(text, sources);
    let given = arguments.targets.iter().map(one).collect::<anyhow::Result<Vec<_>>>()?;
    paths::check_managed_targets(&given, sources.config)?;
    Ok(paths::given_or_configured(given, sources.config)?)
}

/// Prints the stored findings of all targets, because there is none to check; fails if there are no findings.
fn print_all_stored(database: &Path, arguments: &FidelityArgs) -> anyhow::Result<ExitCode> {
    let stored = match Reader::open(database) {
        Err(Error::NoDatabase { .. }) => vec![],
        opened => opened?.fidelity()?,
    };
    if stored.is_empty() {
        return Err(paths::no_target().into());
    }
    crate::output::eprintln!("longhaul: these are the last results, because no target is configured");
    print(&stored, arguments)?;
    Ok(exit::OK)
}

/// Checks one target after the other. A target that cannot be used is named on standard error.
fn check_all(
    session: &Session,
    targets: &[Target],
    operations_per_second: Option<u32>,
) -> anyhow::Result<(Vec<TargetFidelity>, ExitCode)> {
    let (mut checks, mut code) = (vec![], exit::OK);
    let new_worker = |target: &Target| Worker::new(target.clone(), session.launcher.clone());
    let mut workers: Vec<Worker> = targets.iter().map(new_worker).collect();
    for index in 0..workers.len() {
        let interruption = &session.interruption;
        let check = FidelityCheck { interruption, operations_per_second, at: platform::wall_clock() };
        let (before, after) = workers.split_at_mut(index);
        let Some((worker, after)) = after.split_first_mut() else { break };
        let mut others: Vec<&mut Worker> = before.iter_mut().chain(after).collect();
        match check.run(worker, &mut others) {
            Ok(checked) => {
                session.writer.add_fidelity(worker.target(), &checked.fidelity)?;
                checks.push(checked.fidelity);
            }
            Err(failure) => {
                crate::output::eprintln!("longhaul: {}: {}", worker.target().name, failure.failure.message);
                code = ExitCode::from(exit::RUN_FAILED);
            }
        }
        if interruption.is_requested() {
            break;
        }
    }
    end_workers(&mut workers, EXIT_TIMEOUT);
    Ok((checks, code))
}

/// Prints the stored findings of the targets, with the reason why nothing is checked now; fails if there are none.
fn print_stored(
    reader: &Reader,
    targets: &[Target],
    arguments: &FidelityArgs,
    reason: anyhow::Error,
) -> anyhow::Result<ExitCode> {
    let mut checks = reader.fidelity()?;
    checks.retain(|check| targets.iter().any(|target| target.name == check.target));
    if checks.is_empty() {
        return Err(reason);
    }
    crate::output::eprintln!("longhaul: these are the last results, because {}", errors::text(&reason));
    print(&checks, arguments)?;
    Ok(exit::OK)
}

fn print(checks: &[TargetFidelity], arguments: &FidelityArgs) -> anyhow::Result<()> {
    if arguments.json {
        crate::output::println!("{}", serde_json::to_string_pretty(&FidelityJson::new(checks))?);
    } else {
        render::print(&checks::fidelity(checks, &TimeZone::system()));
    }
    Ok(())
}
