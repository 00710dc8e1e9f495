//! `longhaul preset`: runs a reproduction of a well-known benchmark tool, or a custom profile, on a target.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::workloads::{Settings, SliceSelection, Workload};
use longhaul_measure::{platform, private_files};
use longhaul_model::{Run, Target, TargetName};
use longhaul_presets::profile::{Profile, ProfileError};
use longhaul_presets::{
    AS_ORIGINAL_SUFFIX, ContentMode, Preset, PresetSummary, PublishedMode, catalog, preset, preset_summary,
    presets, profile_source,
};
use longhaul_service::cost;
use longhaul_service::foreground::ForegroundPlan;
use longhaul_service::round::RoundTasks;
use longhaul_store::{Reader, RunFilter, StoredRun};
use serde_json::Value;

use super::run::{Session, budget_check, check_managed_cap};
use crate::arguments::{GlobalArgs, PresetArgs, PresetCommand};
use crate::errors::UsageError;
use crate::paths::TargetSources;
use crate::progress::{OutputStyle, ProgressUi};
use crate::{exit, paths, render};

/// Default cap of a run, as a multiple of its expected duration.
const CAP_FACTOR: f64 = 10.0;

/// A validated command line of `preset`.
struct PresetRun {
    /// The preset, with its profile at the scale of the runs.
    preset: Preset,
    /// The custom profile as the worker gets it, which scales it itself; `None` for a built-in preset.
    custom_profile: Option<Value>,
}

/// Lists the presets, or runs one.
pub fn run(shared: &GlobalArgs, arguments: &PresetArgs) -> anyhow::Result<ExitCode> {
    if let Some(command) = &arguments.command {
        return without_run(command);
    }
    let preset_run = resolve(arguments)?;
    let preset = &preset_run.preset;
    let config = paths::load_config(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let database = paths::database(shared, &config)?;
    let plan = plan(
        &preset_run,
        arguments,
        TargetSources { config: &config, database: &database, mounts: &mounts },
    )?;
    paths::check_paths(&plan.targets, Some(&database), &mounts)?;
    paths::check_given_folders(&arguments.targets, &plan.targets, &mounts)?;
    paths::check_known_paths(&plan.targets, &config, &database)?;
    if !arguments.json {
        render::print(&render::preset::plan(&plan, &preset.profile, preset.content_mode()));
        crate::output::println!();
    }
    let session = Session::open(database, &mounts)?;
    let began = platform::wall_clock();
    let budget = budget_check(&session.database, &plan.targets, config.limits);
    let ui = ProgressUi::with_phases(OutputStyle::Silent, budget, preset.profile.phases.len() as u64);
    let (totals, _workers) = session.run_rounds(&plan, ui);
    let totals = totals?;
    let filter =
        RunFilter { workload: Some(preset.name().to_owned()), since: Some(began), ..RunFilter::default() };
    let stored = Reader::open(&session.database)?.runs(&filter)?;
    print_results(preset, &plan.targets, arguments, &stored)?;
    let stopped = totals.interrupted && stored.is_empty();
    Ok(if totals.failed_runs > 0 || stopped { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

/// Runs a subcommand that measures nothing.
fn without_run(command: &PresetCommand) -> anyhow::Result<ExitCode> {
    match command {
        PresetCommand::List(arguments) if arguments.json => {
            let names: Vec<&str> = presets().iter().map(Workload::name).collect();
            crate::output::println!("{}", serde_json::to_string_pretty(&names)?);
        }
        PresetCommand::List(_) => render::print(&render::preset::list(presets())),
        PresetCommand::Check { file } => return check(file),
        PresetCommand::Print { name } => {
            let text = profile_source(name).ok_or_else(|| unknown_preset(name))?;
            crate::output::print!("{text}");
        }
    }
    Ok(exit::OK)
}

/// Returns the error for an unknown preset, or for `--as-original` with a preset that does not support it.
fn unknown_preset(name: &str) -> UsageError {
    match preset(name) {
        Some(_) => UsageError(format!("`{name}` does not support --as-original: only dd and blogbench do")),
        None => UsageError(format!("there is no preset `{name}`: `longhaul preset list` shows all")),
    }
}

fn resolve(arguments: &PresetArgs) -> anyhow::Result<PresetRun> {
    let name = arguments.name.as_deref().unwrap_or_default();
    if name.ends_with(".toml") {
        return load_custom_profile(Path::new(name), arguments);
    }
    let wanted = if arguments.as_original { format!("{name}{AS_ORIGINAL_SUFFIX}") } else { name.to_owned() };
    let found = preset(&wanted).ok_or_else(|| unknown_preset(name))?;
    Ok(PresetRun { preset: found.scaled_to(arguments.scale), custom_profile: None })
}

/// Loads a custom profile. Its runs are stored under the name of its file.
fn load_custom_profile(path: &Path, arguments: &PresetArgs) -> anyhow::Result<PresetRun> {
    let base = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let content_mode =
        if arguments.as_original { ContentMode::AsOriginal } else { ContentMode::Incompressible };
    let own = Preset::custom(base, read(path)?, content_mode).map_err(UsageError)?;
    if catalog().find(own.name()).is_some() {
        return Err(UsageError(format!("`{base}` is already the name of a task: rename the file")).into());
    }
    Ok(PresetRun { custom_profile: Some(own.to_value()), preset: own.scaled_to(arguments.scale) })
}

fn plan(
    preset_run: &PresetRun,
    arguments: &PresetArgs,
    sources: TargetSources<'_>,
) -> anyhow::Result<ForegroundPlan> {
    let targets = paths::find_targets(&arguments.targets, sources)?;
    if targets.is_empty() {
        return Err(UsageError("no target: give `--target NAME`, or `--target NAME=PATH`".to_owned()).into());
    }
    let config = sources.config;
    paths::check_managed_targets(&targets, config)?;
    check_managed_cap(arguments.cap, config).map_err(|error| UsageError(error.to_string()))?;
    let expected = cost::profile_load(&preset_run.preset.profile).seconds * CAP_FACTOR;
    let cap =
        arguments.cap.map_or(config.limits.cap.max(Duration::from_secs_f64(expected)), Duration::from_secs);
    let tasks = RoundTasks {
        workloads: vec![preset_run.preset.name().to_owned()],
        scale: arguments.scale,
        settings: Settings {
            custom_profile: preset_run.custom_profile.clone(),
            preset_slices: SliceSelection::All,
            ..config.settings.clone()
        },
        cap,
    };
    Ok(ForegroundPlan { targets, rounds: arguments.runs, tasks, nas: config.nas.clone() })
}

/// Prints the results of each target.
fn print_results(
    preset: &Preset,
    targets: &[Target],
    arguments: &PresetArgs,
    stored: &[StoredRun],
) -> anyhow::Result<()> {
    let mut by_target: BTreeMap<&TargetName, Vec<&Run>> = BTreeMap::new();
    for run in stored {
        by_target.entry(&run.run.target).or_default().push(&run.run);
    }
    let published_mode = if arguments.published { PublishedMode::Show } else { PublishedMode::Hide };
    for (index, target) in targets.iter().enumerate() {
        let runs = by_target.get(&target.name).map_or(&[][..], |runs| runs);
        let summary = preset_summary(preset, runs, published_mode);
        if index > 0 && !arguments.json {
            crate::output::println!();
        }
        print(target, runs, &summary, arguments)?;
    }
    Ok(())
}

fn print(
    target: &Target,
    runs: &[&Run],
    summary: &PresetSummary,
    arguments: &PresetArgs,
) -> anyhow::Result<()> {
    if arguments.json {
        let mut value = serde_json::to_value(summary)?;
        value["type"] = "preset".into();
        value["target"] = target.name.as_str().into();
        crate::output::println!("{value}");
        return Ok(());
    }
    render::print(&render::preset::summary(target, runs, summary));
    Ok(())
}

fn check(file: &Path) -> anyhow::Result<ExitCode> {
    let profile = read(file)?;
    let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    Preset::custom(name, profile.clone(), ContentMode::Incompressible).map_err(UsageError)?;
    render::print(&render::preset::profile(file, &profile));
    Ok(exit::OK)
}

/// Reads and parses a profile. Errors name the file and line.
pub fn read(file: &Path) -> anyhow::Result<Profile> {
    let text = private_files::read_text(file)
        .map_err(|error| UsageError(format!("cannot read {}: {error}", file.display())))?;
    let wrong = |error: ProfileError| match error.line {
        Some(line) => UsageError(format!("{}:{line}: {}", file.display(), error.message)),
        None => UsageError(format!("{}: {}", file.display(), error.message)),
    };
    Ok(Profile::parse(&text).map_err(wrong)?)
}
