//! `longhaul config`: prints a sample, or checks a file.

use std::process::ExitCode;

use longhaul_service::config::SAMPLE;

use crate::arguments::{Config, Shared};
use crate::{exit, places};

/// Prints the sample, or says what the configuration in force means.
pub fn run(shared: &Shared, arguments: &Config) -> anyhow::Result<ExitCode> {
    if arguments.print {
        anstream::print!("{SAMPLE}");
        return Ok(exit::OK);
    }
    let config = places::config(shared)?;
    anstream::println!("database  {}", places::database(shared, &config)?.display());
    anstream::println!("scale     {}", config.scale.name());
    anstream::println!("tasks     {}", config.workloads.join(", "));
    for target in &config.targets {
        anstream::println!("target    {} = {}", target.name, target.path.display());
    }
    if config.targets.is_empty() {
        anstream::println!("target    none; `longhaul config --print` shows how to name some");
    }
    Ok(exit::OK)
}
