//! `longhaul config`: checks the configuration, or prints a sample.

use std::process::ExitCode;

use longhaul_service::config::SAMPLE_CONFIG;

use crate::arguments::{ConfigArgs, GlobalArgs};
use crate::{exit, paths};

/// Prints the sample, or the main settings of the current configuration.
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
    Ok(exit::OK)
}
