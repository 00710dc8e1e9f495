//! `longhaul fidelity`: checks which properties of files the targets keep.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use longhaul_measure::platform;
use longhaul_model::{Target, TargetFidelity};
use longhaul_service::checks::fidelity::FidelityCheck;
use longhaul_service::database_lock::DatabaseLockError;
use longhaul_service::worker::{EXIT_TIMEOUT, Worker, end_workers};
use longhaul_store::{Error, Reader};
use longhaul_view::json::FidelityJson;
use longhaul_view::screens::checks;

use super::run::Session;
use crate::arguments::{FidelityArgs, GlobalArgs};
use crate::output_format::OutputFormat;
use crate::paths::TargetSources;
use crate::{exit, paths};

/// Checks the targets, stores the findings and prints them. Prints what is stored while another longhaul measures, or if no target can
/// be checked.
pub fn run(shared: &GlobalArgs, arguments: &FidelityArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let database = paths::database(shared, &config)?;
    if arguments.targets.is_empty() && config.targets.is_empty() {
        return print_all_stored(&database, arguments);
    }
    let mounts = platform::mounts().context("read the mount table")?;
    let sources = TargetSources { config: &config, database: &database, mounts: &mounts };
    let targets = choose_targets(arguments, sources)?;
    paths::check_paths(&targets, Some(&database), &mounts)?;
    paths::check_given_folders(&arguments.targets, &targets, &mounts)?;
    let session = match Session::open(database.clone(), &mounts) {
        Ok(session) => session,
        Err(error) => {
            let Some(next_step) = next_step_if_locked(&error) else { return Err(error) };
            let stored = stored_of(&database, &targets)?;
            if stored.is_empty() {
                return Err(error);
            }
            crate::output::eprintln!("longhaul: these are stored results; {next_step}");
            print(&stored, arguments)?;
            return Ok(exit::OK);
        }
    };
    let (checks, code) = check_all(&session, &targets, config.settings.operations_per_second)?;
    if checks.is_empty() {
        print_unchecked(&database, &targets, arguments)?;
    } else {
        print(&checks, arguments)?;
    }
    Ok(code)
}

/// Returns what to do if another process holds the lock of the database; `None` for another error.
fn next_step_if_locked(error: &anyhow::Error) -> Option<String> {
    let Some(DatabaseLockError::AlreadyLocked { holder, .. }) = error.downcast_ref() else { return None };
    Some(match holder {
        Some(holder) if holder.starts_with("longhauld") => {
            "to check again now, first stop the service: `longhaul service stop`".to_owned()
        }
        Some(holder) => {
            format!("another longhaul ({holder}) is measuring: to check again, wait until it ends")
        }
        None => "another longhaul is measuring: to check again, wait until it ends".to_owned(),
    })
}

/// Returns the stored findings of targets.
fn stored_of(database: &Path, targets: &[Target]) -> anyhow::Result<Vec<TargetFidelity>> {
    let mut stored = Reader::open(database)?.fidelity()?;
    stored.retain(|check| targets.iter().any(|target| target.name == check.target));
    Ok(stored)
}

/// Prints the stored findings if no target could be checked, whose reasons were printed: of the targets that were asked for, or else of
/// all, also of those that were removed or moved.
fn print_unchecked(database: &Path, targets: &[Target], arguments: &FidelityArgs) -> anyhow::Result<()> {
    let stored = match arguments.targets.is_empty() {
        true => Reader::open(database)?.fidelity()?,
        false => stored_of(database, targets)?,
    };
    if !stored.is_empty() {
        crate::output::eprintln!("longhaul: these are stored results, because no target could be checked");
    }
    if arguments.json || !stored.is_empty() {
        print(&stored, arguments)?;
    }
    Ok(())
}

/// Returns the targets from the arguments, or else from the configuration.
fn choose_targets(arguments: &FidelityArgs, sources: TargetSources<'_>) -> anyhow::Result<Vec<Target>> {
    let given = paths::find_targets(&arguments.targets, sources)?;
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
    crate::output::eprintln!("longhaul: these are stored results, because no target is configured");
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

fn print(checks: &[TargetFidelity], arguments: &FidelityArgs) -> anyhow::Result<()> {
    let screen = || checks::fidelity(checks, &TimeZone::system());
    OutputFormat::from_json_flag(arguments.json).print(|| FidelityJson::new(checks), screen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_step_depends_on_the_holder_of_the_lock() {
        let locked = |holder: Option<&str>| {
            let holder = holder.map(str::to_owned);
            next_step_if_locked(&DatabaseLockError::AlreadyLocked { path: "/d.lock".into(), holder }.into())
        };
        let of_service = locked(Some("longhauld, process 7")).unwrap();
        assert!(of_service.contains("`longhaul service stop`"), "{of_service}");
        for other in [locked(Some("longhaul, process 8")), locked(None)] {
            assert!(other.as_ref().unwrap().contains("wait until it ends"), "{other:?}");
        }
        assert_eq!(next_step_if_locked(&anyhow::anyhow!("another error")), None);
    }
}
