//! `longhaul usage`: shows the usage profile and what is counted, or corrects it in the configuration.

use std::process::ExitCode;

use longhaul_analysis::usage::{CountedUsage, LineSource, UsageLine, usage_profile};
use longhaul_model::TargetName;
use longhaul_service::config_edit::{UsageValue, with_usage, without_usage};
use longhaul_service::paths::read_usage;
use longhaul_store::Reader;
use longhaul_view::screens;
use serde_json::json;

use crate::arguments::{GlobalArgs, UsageArgs, UsageCommand};
use crate::config_file::{read_text, replace_text};
use crate::output_format::OutputFormat;
use crate::{exit, paths};

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
    let value = || json!({ "schema": 1, "profile": profile, "counted": counted, "uncounted": uncounted });
    let screen = || screens::usage::usage(&counted, &profile, &uncounted);
    OutputFormat::from_json_flag(arguments.json).print(value, screen)?;
    Ok(exit::OK)
}

fn set(shared: &GlobalArgs, values: &[UsageValue]) -> anyhow::Result<ExitCode> {
    let path = paths::config_file(shared)?;
    let text = read_text(&path)?;
    let kept = ordinary_lines(shared, values)?;
    replace_text(&path, &with_usage(&text, &[&kept, values].concat())?)?;
    crate::output::print_line(format_args!("Written: {}", path.display()));
    for UsageValue { key, times } in kept {
        crate::output::println!("Also written: {key}={times}, the default used until now");
    }
    Ok(exit::OK)
}

/// Returns the lines that are those of an ordinary week and not set now: a configuration with other lines would drop them.
fn ordinary_lines(shared: &GlobalArgs, set: &[UsageValue]) -> anyhow::Result<Vec<UsageValue>> {
    let config = paths::load_config(shared)?;
    let profile = match Reader::open(&paths::database(shared, &config)?) {
        Ok(reader) => read_usage(&reader, &config)?.1,
        Err(_) => usage_profile(&config.analysis.usage_profile, &CountedUsage::default()),
    };
    let is_kept = |line: &UsageLine| {
        line.source == LineSource::OrdinaryWeek
            && line.per_week > 0.0
            && set.iter().all(|value| value.key != line.key)
    };
    let kept = profile.lines.iter().filter(|line| is_kept(line));
    Ok(kept.map(|line| UsageValue { key: line.key, times: line.per_week }).collect())
}

fn reset(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    let path = paths::config_file(shared)?;
    match without_usage(&read_text(&path)?)? {
        Some(text) => {
            replace_text(&path, &text)?;
            crate::output::print_line(format_args!("Written: {}", path.display()));
        }
        None => crate::output::print_line(format_args!(
            "The configuration has no usage profile: {}",
            path.display()
        )),
    }
    Ok(exit::OK)
}
