//! `longhaul service uninstall`: removes the service; with `--purge` also all data.

use std::process::ExitCode;

use longhaul_launchd::{Manager, Step, SystemRunner};
use longhaul_model::Hint;

use super::{is_not_installed, purge, run_steps, service_definition};
use crate::arguments::{DryRunArgs, GlobalArgs, UninstallArgs};
use crate::exit;

/// Removes the service. Its results are kept unless `--purge` is given.
pub fn run(shared: &GlobalArgs, arguments: &UninstallArgs) -> anyhow::Result<ExitCode> {
    // The plan needs the database and the configuration, so it is made before anything is removed.
    let purge = if arguments.purge { Some(purge::plan(shared)?) } else { None };
    if let Some(purge) = &purge
        && !arguments.dry_run
        && !purge.confirm(arguments)?
    {
        crate::output::println!("Nothing was removed.");
        return Ok(exit::OK);
    }
    remove_service(&DryRunArgs { dry_run: arguments.dry_run })?;
    match purge {
        None => {
            crate::output::println!(
                "Results and configuration are kept; `longhaul service uninstall --purge` also removes them."
            );
            Ok(exit::OK)
        }
        Some(purge) if arguments.dry_run => {
            purge.print();
            Ok(exit::OK)
        }
        Some(purge) => purge.execute(),
    }
}

fn remove_service(options: &DryRunArgs) -> anyhow::Result<()> {
    let (manager, service) = (Manager::current(), service_definition()?);
    let mut steps = match manager.status(&service, &SystemRunner) {
        Ok(status) if is_not_installed(&status) => Vec::new(),
        Ok(status) => manager.remove(&service, Some(&status)),
        Err(error) => {
            if service.definition_path.exists() {
                crate::output::eprintln!(
                    "longhaul: only the files of the service are removed, as {} cannot be reached: {}",
                    manager.name(),
                    error.one_line()
                );
            }
            manager.remove(&service, None)
        }
    };
    steps.retain(|step| !matches!(step, Step::Remove(path) if path.symlink_metadata().is_err()));
    if steps.is_empty() {
        crate::output::println!("The service is not installed.");
        return Ok(());
    }
    run_steps(&steps, options)
}
