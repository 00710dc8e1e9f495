//! `longhaul uninstall`: takes the service away, and with `--purge` everything else.

use std::process::ExitCode;

use clap::Args;
use longhaul_launchd::{Manager, System};

use super::{Mode, go_through, is_absent, purge, service};
use crate::arguments::Shared;
use crate::exit;

/// Arguments of `uninstall`.
#[derive(Args)]
pub struct Uninstall {
    /// Also remove the results, the configuration, the logs, and the test data on every target that can be reached.
    #[arg(long)]
    pub purge: bool,
    /// Do not ask before a purge.
    #[arg(long)]
    pub yes: bool,
    /// Only print what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// Removes the service; what it has measured stays, unless a purge is wanted.
pub fn run(shared: &Shared, arguments: &Uninstall) -> anyhow::Result<ExitCode> {
    let mode = if arguments.dry_run { Mode::Show } else { Mode::Do };
    let purge = if arguments.purge { Some(purge::plan(shared)?) } else { None };
    if let (Some(purge), Mode::Do) = (&purge, mode)
        && !purge.is_wanted(arguments)?
    {
        anstream::println!("Nothing was removed.");
        return Ok(exit::OK);
    }
    remove_service(mode)?;
    match (purge, mode) {
        (None, _) => {
            anstream::println!(
                "Results and configuration stay; `longhaul uninstall --purge` removes them too."
            );
            Ok(exit::OK)
        }
        (Some(purge), Mode::Show) => {
            purge.show();
            Ok(exit::OK)
        }
        (Some(purge), Mode::Do) => purge.carry_out(),
    }
}

fn remove_service(mode: Mode) -> anyhow::Result<()> {
    let (manager, service) = (Manager::here(), service()?);
    match manager.standing(&service, &System) {
        Ok(standing) if is_absent(&standing) => anstream::println!("The service is not installed."),
        Ok(standing) => go_through(&manager.remove(&service, Some(&standing)), mode)?,
        Err(error) => {
            if service.definition.exists() {
                anstream::eprintln!(
                    "longhaul: only the files of the service are removed, as {} cannot be asked: {error}",
                    manager.name()
                );
            }
            go_through(&manager.remove(&service, None), mode)?;
        }
    }
    Ok(())
}
