//! `longhaul config`: checks the configuration, or prints a sample.

use std::process::ExitCode;

use longhaul_service::config::SAMPLE_CONFIG;
use longhaul_service::nas::check_nas;
use longhaul_service::notifications::check_channels;
use longhaul_service::recordings::check_recording;
use longhaul_service::status::CheckStatus;
use longhaul_view::screens;

use crate::arguments::{ConfigArgs, GlobalArgs};
use crate::{exit, paths, render};

/// Prints the sample, or the main settings of the current configuration with the state of its notification channels and of the
/// NAS.
pub fn run(shared: &GlobalArgs, arguments: &ConfigArgs) -> anyhow::Result<ExitCode> {
    if arguments.print {
        anstream::print!("{SAMPLE_CONFIG}");
        return Ok(exit::OK);
    }
    let config = paths::load_config(shared)?;
    anstream::println!("database  {}", paths::database(shared, &config)?.display());
    anstream::println!("scale     {}", config.scale.name());
    anstream::println!("tasks     {}", config.workloads.join(", "));
    for target in &config.targets {
        anstream::println!("target    {} = {}", target.name, target.path.display());
    }
    if config.targets.is_empty() {
        anstream::println!("target    none; `longhaul config --print` shows how to add some");
    }
    let mut checks = check_channels(&config.notify);
    checks.extend(check_nas(config.nas.as_ref()));
    checks.extend(check_recording(config.replay.as_ref(), &paths::database(shared, &config)?));
    if checks.is_empty() {
        return Ok(exit::OK);
    }
    render::print(&screens::doctor::checks(&checks));
    let failed = checks.iter().any(|check| check.status == CheckStatus::Failed);
    Ok(if failed { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}
