//! `longhaul doctor`: prints one line for each check, with a fix for each problem.

use std::process::ExitCode;

use longhaul_analysis::summary::MIN_ROUNDS_PER_DAY;
use longhaul_measure::platform;
use longhaul_model::{Hint, Target};
use longhaul_service::config::Config;
use longhaul_service::nas::check_nas;
use longhaul_service::notifications::check_channels;
use longhaul_service::status::{Check, CheckStatus};
use longhaul_service::target_path::SpecialFolders;
use longhaul_store::{Error, Reader};
use longhaul_view::{screens, units};

use super::service;
use crate::arguments::{GlobalArgs, JsonArgs};
use crate::client::{ClientError, connect};
use crate::errors::{one_line, text};
use crate::output_format::OutputFormat;
use crate::{exit, paths};

/// Runs the checks in the service. Without a service, runs the checks that are possible from here and says so.
pub fn run(shared: &GlobalArgs, arguments: &JsonArgs) -> anyhow::Result<ExitCode> {
    let mut checks = vec![check_config(shared)];
    checks.extend(check_managed_settings(shared));
    match connect(shared).and_then(|client| Ok(client.doctor()?)) {
        Ok(service_checks) => {
            checks.push(Check::ok("service", "running; it ran the checks below"));
            checks.extend(service_checks);
        }
        Err(error) => checks.extend(local_checks(shared, &error)),
    }
    OutputFormat::from_json_flag(arguments.json).print(|| &checks, || screens::doctor::checks(&checks))?;
    let failed = checks.iter().any(|check| check.status == CheckStatus::Failed);
    Ok(if failed { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

fn check_config(shared: &GlobalArgs) -> Check {
    match paths::load_config(shared) {
        Ok(config) if config.targets.is_empty() => Check::problem(
            "configuration",
            CheckStatus::Failed,
            "it contains no target",
            "`longhaul init` asks what to compare and writes it",
        ),
        Ok(config) if config.schedule.rounds_per_day < MIN_ROUNDS_PER_DAY as u64 => Check::problem(
            "configuration",
            CheckStatus::Warning,
            format!(
                "a day counts only with {MIN_ROUNDS_PER_DAY} rounds or more, so there will never be a verdict"
            ),
            "set a larger `rounds-per-day`",
        ),
        Ok(config) => match (paths::same_folder(&config.targets), config.targets.len()) {
            (Some(found), _) => Check::problem(
                "configuration",
                CheckStatus::Failed,
                found,
                "give each target a folder of its own: a comparison of a folder with itself says nothing",
            ),
            (None, 1) => Check::ok("configuration", "1 target"),
            (None, number) => Check::ok("configuration", format!("{number} targets")),
        },
        Err(error) => {
            Check::problem("configuration", CheckStatus::Failed, one_line(&error), "correct that line")
        }
    }
}

/// Returns a check of the administrator's settings, if there are any: a user's file should not set them differently.
fn check_managed_settings(shared: &GlobalArgs) -> Option<Check> {
    let managed = paths::load_config(shared).ok()?.managed;
    if managed.fixed.is_empty() {
        return None;
    }
    let path = managed.path.display();
    if managed.ignored.is_empty() {
        return Some(Check::ok(
            "administrator",
            format!("{} in {path}", units::count(managed.fixed.len(), "setting")),
        ));
    }
    let keys = managed.ignored.iter().map(|found| format!("{} (line {})", found.key, found.line));
    let keys = keys.collect::<Vec<_>>().join(", ");
    Some(Check::problem(
        "administrator",
        CheckStatus::Warning,
        format!("not used, because the administrator has set it in {path}: {keys}"),
        "remove these lines from your configuration",
    ))
}

fn check_database(shared: &GlobalArgs, config: &Config) -> Check {
    let size = paths::database(shared, config).and_then(|path| Ok(Reader::open(&path)?.size_bytes()?));
    let error = match size {
        Ok(bytes) => return Check::ok("database", units::bytes(bytes as f64)),
        Err(error) => error,
    };
    let known = error.downcast_ref::<Error>();
    if matches!(known, Some(Error::NoDatabase { .. })) {
        let fix = "this is normal if nothing has been measured yet";
        return Check::problem("database", CheckStatus::Unknown, one_line(&error), fix);
    }
    let fix = || {
        "try again; if the error persists, move the file aside: longhaul then creates a new one".to_owned()
    };
    let fix = known.and_then(Hint::hint).unwrap_or_else(fix);
    Check::problem("database", CheckStatus::Failed, text(&error), &fix)
}

/// Returns the checks that are possible without the service. Targets are not accessed from here, because a
/// terminal may have other permissions than the service.
fn local_checks(shared: &GlobalArgs, error: &anyhow::Error) -> Vec<Check> {
    let mut checks = vec![match error.downcast_ref::<ClientError>() {
        Some(ClientError::NotRunning(_)) => service::manager_check(),
        // It tells what to do: a service that measures is not restarted, because that would end the round.
        _ => Check::problem("service", CheckStatus::Unknown, one_line(error), "do what the message says"),
    }];
    let config = paths::load_config(shared).unwrap_or_default();
    checks.push(check_database(shared, &config));
    checks.extend(check_target_paths(shared, &config));
    checks.extend(check_channels(&config.notify));
    checks.extend(check_nas(config.nas.as_ref()));
    checks.push(Check::problem(
        "targets",
        CheckStatus::Unknown,
        "not checked: only the service can check its own access",
        "start the service, then run `longhaul doctor` again",
    ));
    checks
}

/// Returns warnings about targets in unsuitable folders, judged by their paths alone.
fn check_target_paths(shared: &GlobalArgs, config: &Config) -> Vec<Check> {
    let mounts = platform::mounts().unwrap_or_default();
    let folders = SpecialFolders::of(paths::database(shared, config).ok().as_deref(), &mounts);
    let check = |target: &Target| {
        let concern = folders.concern(&target.path)?;
        let verdict = if concern.is_refused() { CheckStatus::Failed } else { CheckStatus::Warning };
        let found = format!("{} {concern}", target.path.display());
        Some(Check::problem(format!("target {}", target.name), verdict, found, concern.advice()))
    };
    config.targets.iter().filter_map(check).collect()
}
