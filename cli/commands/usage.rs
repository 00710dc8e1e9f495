//! `longhaul usage`: shows the usage profile and what is counted, or corrects it in the configuration.

use std::process::ExitCode;

use longhaul_model::TargetName;
use longhaul_service::config_edit::{UsageValue, with_usage, without_usage};
use longhaul_service::paths::read_usage;
use longhaul_view::screens;
use serde_json::json;

use crate::arguments::{GlobalArgs, UsageArgs, UsageCommand};
use crate::config_file::{read_text, replace_text};
use crate::{exit, paths, render};

/// Shows or corrects the usage profile.
pub fn run(shared: &GlobalArgs, arguments: &UsageArgs) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Some(UsageCommand::Set { values }) => set(shared, values),
        Some(UsageCommand::Reset) => reset(shared),
        None => show(shared, arguments),
    }
}

fn show(shared: &GlobalArgs, arguments: &UsageArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let (counted, profile) = read_usage(&paths::open_reader(shared)?, &config)?;
    let is_counted = |name: &TargetName| counted.targets.iter().any(|target| target.target == *name);
    let targets = config.targets.iter().map(|target| &target.name);
    let uncounted: Vec<&TargetName> = targets.filter(|name| !is_counted(name)).collect();
    if arguments.json {
        let value = json!({ "schema": 1, "profile": profile, "counted": counted, "uncounted": uncounted });
        anstream::println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        render::print(&screens::usage::usage(&counted, &profile, &uncounted));
    }
    Ok(exit::OK)
}

fn set(shared: &GlobalArgs, values: &[UsageValue]) -> anyhow::Result<ExitCode> {
    let path = paths::config_file(shared)?;
    let text = read_text(&path)?;
    replace_text(&path, &with_usage(&text, values)?)?;
    anstream::println!("Written: {}", path.display());
    Ok(exit::OK)
}

fn reset(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    let path = paths::config_file(shared)?;
    match without_usage(&read_text(&path)?)? {
        Some(text) => {
            replace_text(&path, &text)?;
            anstream::println!("Written: {}", path.display());
        }
        None => anstream::println!("The configuration has no usage profile: {}", path.display()),
    }
    Ok(exit::OK)
}
