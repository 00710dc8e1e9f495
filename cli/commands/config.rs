//! `longhaul config`: checks the configuration, or prints a sample.

use std::path::Path;
use std::process::ExitCode;

use longhaul_model::Role;
use longhaul_service::config::{Config, ConfigLoader, FixedSetting, commented_sample};
use longhaul_service::nas::check_nas;
use longhaul_service::notifications::check_channels;
use longhaul_service::recordings::check_recording;
use longhaul_service::status::{Check, CheckStatus};
use longhaul_view::screens;

use crate::arguments::{ConfigArgs, GlobalArgs};
use crate::{exit, paths, render};

/// Printed behind a setting that users cannot change.
const MARK: &str = "  (set by the administrator)";

/// Prints the sample, or the main settings of the current configuration with the state of its notification channels and of the
/// NAS.
pub fn run(shared: &GlobalArgs, arguments: &ConfigArgs) -> anyhow::Result<ExitCode> {
    if arguments.print {
        crate::output::print!("{}", commented_sample(&ConfigLoader::system().managed_settings()?));
        return Ok(exit::OK);
    }
    let config = paths::load_config(shared)?;
    let database = paths::database(shared, &config)?;
    let mark = |key: &str| if config.managed.covering(key).is_some() { MARK } else { "" };
    print_file(shared, &config);
    crate::output::print_line(format_args!("database  {}{}", database.display(), mark("database")));
    crate::output::println!("scale     {}{}", config.scale.name(), mark("scale"));
    crate::output::print_line(format_args!("tasks     {}{}", config.workloads.join(", "), mark("workloads")));
    for target in &config.targets {
        let mark = mark(&format!("targets.{}.path", target.name));
        let role = match target.role {
            Role::Share => "",
            Role::Baseline => " (baseline: not compared)",
        };
        let (name, path) = (&target.name, target.path.display());
        crate::output::print_line(format_args!("target    {name} = {path}{mark}{role}"));
    }
    if config.targets.is_empty() {
        crate::output::println!(
            "target    none; `longhaul init` chooses what to compare, `longhaul config --print` shows all settings"
        );
    }
    print_fixed(&config);
    print_ignored(&config);
    let mut checks = checks(&config, &database);
    if database.is_dir() {
        let found = format!("{} is a folder", database.display());
        checks.push(Check::problem("database", CheckStatus::Failed, found, "name a file in it"));
    }
    if checks.is_empty() {
        return Ok(exit::OK);
    }
    render::print(&screens::doctor::checks(&checks));
    let failed = checks.iter().any(|check| check.status == CheckStatus::Failed);
    Ok(if failed { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

/// Prints the path of the user's file, if it can be known.
fn print_file(shared: &GlobalArgs, config: &Config) {
    let Ok(path) = paths::config_file(shared) else { return };
    let note = match (path.exists(), config.managed.fixed.is_empty()) {
        (true, _) => "",
        (false, true) => "  (none yet; these are the defaults)",
        (false, false) => "  (none yet)",
    };
    crate::output::print_line(format_args!("file      {}{note}", path.display()));
}

/// Returns the checks of what a configuration refers to: notification channels, the NAS and the recording.
pub fn checks(config: &Config, database: &Path) -> Vec<Check> {
    let mut checks = check_channels(&config.notify);
    let fix = "remove one of them, or correct its path";
    let same = paths::same_folder(&config.targets);
    checks.extend(same.map(|message| Check::problem("targets", CheckStatus::Failed, message, fix)));
    checks.extend(check_nas(config.nas.as_ref()));
    checks.extend(check_recording(config.replay.as_ref(), database));
    checks
}

/// Prints what the administrator has set, with its place.
fn print_fixed(config: &Config) {
    let place = |fixed: &FixedSetting| format!("{}:{}", config.managed.path.display(), fixed.line);
    for fixed in &config.managed.fixed {
        let setting = match &fixed.value {
            Some(value) => format!("{} = {}", fixed.key, value.replace('\n', " ")),
            None => format!("{} cannot be set by users", fixed.key),
        };
        crate::output::print_line(format_args!("fixed     {setting}{MARK}, {}", place(fixed)));
    }
}

/// Prints the settings of a user's configuration that are not used.
pub fn print_ignored(config: &Config) {
    for ignored in &config.managed.ignored {
        crate::output::print_line(format_args!(
            "not used  {} in line {}: the administrator has set it in {}; remove the line",
            ignored.key,
            ignored.line,
            config.managed.path.display()
        ));
    }
}
