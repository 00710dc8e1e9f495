//! `longhaul selfcheck`: makes every system call once, on this machine and on each target.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_launchd::ServiceStatus;
use longhaul_measure::platform;
use longhaul_measure::selfcheck::{CheckAnswer, CheckOutcome, MachineCheck, SELFCHECK_MACHINE_ID};
use longhaul_model::{Mount, Role, Target};
use longhaul_service::config::Config;
use longhaul_service::database_lock::DatabaseLock;
use longhaul_service::selfcheck::{Section, SelfCheck, count_checks};
use longhaul_store::Reader;
use longhaul_view::render::markdown;

use super::run::listen_for_interrupt;
use super::service;
use crate::arguments::{GlobalArgs, SelfCheckArgs};
use crate::{exit, paths, render};

/// The check of the service manager, which only the command line program makes.
const SERVICE_MANAGER: MachineCheck = MachineCheck::call("service manager", service_manager)
    .linux("it answers", "systemctl(1)")
    .macos("it answers", "man launchctl(1), print");

/// Makes every call and prints the table.
pub fn run(shared: &GlobalArgs, arguments: &SelfCheckArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let database = paths::database(shared, &config)?;
    let mounts = platform::mounts().context("read the mount table")?;
    // A concurrent run would delay these calls, and be delayed by them.
    let _alone = DatabaseLock::acquire(&database, &mounts)?;
    let launcher = paths::launcher(&database, &machine_id(&database))?;
    let (targets, _folder) = choose_targets(arguments, &config, &mounts)?;
    paths::check_paths(&targets, Some(&database), &mounts)?;
    let interruption = listen_for_interrupt()?;
    let self_check = SelfCheck {
        launcher: &launcher,
        targets: &targets,
        mounts: &mounts,
        call_timeout: Duration::from_secs(arguments.limit),
        interruption: &interruption,
    };
    let sections = self_check.run(&[SERVICE_MANAGER]);
    print(&sections, arguments)?;
    let differs = count_checks(&sections, CheckOutcome::Differs) > 0;
    Ok(if differs { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

/// Returns the machine id for the sandbox name. If there is a database, its id is used, so that `longhaul targets
/// clean` finds the sandbox. No database is created for a self-check.
fn machine_id(database: &Path) -> String {
    let known = Reader::open(database).and_then(|reader| reader.own_machine_id());
    known.ok().flatten().unwrap_or_else(|| SELFCHECK_MACHINE_ID.to_owned())
}

/// Returns the targets from the arguments, from the configuration, or else a temporary folder.
fn choose_targets(
    arguments: &SelfCheckArgs,
    config: &Config,
    mounts: &[Mount],
) -> anyhow::Result<(Vec<Target>, Option<TemporaryFolder>)> {
    let given = paths::parse_targets(&arguments.targets, mounts)?;
    paths::check_managed_targets(&given, config)?;
    if !given.is_empty() || !config.targets.is_empty() {
        return Ok((if given.is_empty() { config.targets.clone() } else { given }, None));
    }
    let folder = TemporaryFolder::new()?;
    let name = "local".parse().context("name the temporary folder")?;
    Ok((vec![Target { name, path: folder.0.clone(), role: Role::Baseline }], Some(folder)))
}

/// A folder on the local disk that is removed on drop, if it is empty.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("longhaul-selfcheck-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir(&self.0) {
            crate::output::eprintln!("longhaul: left behind: {}: {error}", self.0.display());
        }
    }
}

fn service_manager() -> CheckAnswer {
    match service::service_status() {
        Ok(ServiceStatus { is_defined: false, .. }) => CheckAnswer::ok("answers: not installed"),
        Ok(ServiceStatus { run_state: activity, .. }) => CheckAnswer::ok(format!("answers: {activity}")),
        Err(_) => CheckAnswer::unknown("cannot be reached from this login session"),
    }
}

fn print(sections: &[Section], arguments: &SelfCheckArgs) -> anyhow::Result<()> {
    if arguments.json {
        crate::output::println!("{}", serde_json::to_string_pretty(&render::selfcheck::json(sections))?);
    } else {
        crate::output::print!("{}", markdown::render(&render::selfcheck::document(sections)));
    }
    Ok(())
}
