//! `longhaul preset`: runs a reproduction of a well-known benchmark tool, or a custom profile, on a target.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::workloads::{Settings, SliceSelection, Workload};
use longhaul_measure::{platform, private_files};
use longhaul_model::{Run, Scale, Target, TargetName};
use longhaul_presets::profile::{Profile, ProfileError};
use longhaul_presets::{
    AS_ORIGINAL_SUFFIX, ContentMode, CustomProfile, PresetSummary, PublishedMode, SummarizedPreset, catalog,
    preset, preset_summary, presets, profile_source,
};
use longhaul_service::cost;
use longhaul_service::foreground::ForegroundPlan;
use longhaul_service::round::RoundTasks;
use longhaul_service::target_path::SpecialFolders;
use longhaul_store::{Reader, RunFilter, StoredRun};

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
    /// Name under which the runs are stored.
    name: String,
    /// Name under which published figures are looked up.
    published_name: String,
    profile: Profile,
    /// The custom profile; `None` for a built-in preset.
    custom_profile: Option<CustomProfile>,
    content: ContentMode,
}

/// Lists the presets, or runs one.
pub fn run(shared: &GlobalArgs, arguments: &PresetArgs) -> anyhow::Result<ExitCode> {
    if let Some(command) = &arguments.command {
        return without_run(command);
    }
    let preset_run = resolve(arguments)?;
    let config = paths::load_config(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let database = paths::database(shared, &config)?;
    let plan = plan(
        &preset_run,
        arguments,
        TargetSources { config: &config, database: &database, mounts: &mounts },
    )?;
    paths::check_paths(&plan.targets, &SpecialFolders::of(Some(&database), &mounts))?;
    paths::check_given_folders(&arguments.targets, &plan.targets, &mounts)?;
    paths::check_known_paths(&plan.targets, &config, &database)?;
    if !arguments.json {
        render::print(&render::preset::plan(&plan, &preset_run.profile, preset_run.content));
        crate::output::println!();
    }
    let session = Session::open(database, &mounts)?;
    let began = platform::wall_clock();
    let budget = budget_check(&session.database, &plan.targets, config.limits);
    let ui = ProgressUi::with_phases(OutputStyle::Silent, budget, preset_run.profile.phases.len() as u64);
    let (totals, _workers) = session.run_rounds_with_ui(&plan, ui);
    let totals = totals?;
    let filter =
        RunFilter { workload: Some(preset_run.name.clone()), since: Some(began), ..RunFilter::default() };
    let stored = Reader::open(&session.database)?.runs(&filter)?;
    print_results(&preset_run, &plan.targets, arguments, &stored)?;
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
    Ok(PresetRun {
        name: wanted,
        published_name: found.profile_name().to_owned(),
        profile: found.profile.scaled_to(arguments.scale.into()),
        custom_profile: None,
        content: found.content_mode(),
    })
}

/// Loads a custom profile. Its runs are stored under the name of its file.
fn load_custom_profile(path: &Path, arguments: &PresetArgs) -> anyhow::Result<PresetRun> {
    let profile = read(path)?;
    let base = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let content_mode =
        if arguments.as_original { ContentMode::AsOriginal } else { ContentMode::Incompressible };
    let own = CustomProfile::new(base, profile.clone(), content_mode).map_err(UsageError)?;
    if catalog().find(own.name()).is_some() {
        return Err(UsageError(format!("`{base}` is already the name of a task: rename the file")).into());
    }
    let profile = profile.scaled_to(arguments.scale.into());
    Ok(PresetRun {
        name: own.name().to_owned(),
        published_name: base.to_owned(),
        profile,
        custom_profile: Some(own),
        content: content_mode,
    })
}

fn plan(
    preset_run: &PresetRun,
    arguments: &PresetArgs,
    sources: TargetSources<'_>,
) -> anyhow::Result<ForegroundPlan> {
    let targets = targets(arguments, sources)?;
    let config = sources.config;
    paths::check_managed_targets(&targets, config)?;
    check_managed_cap(arguments.cap, config).map_err(|error| UsageError(error.to_string()))?;
    let expected = cost::profile_load(&preset_run.profile).seconds * CAP_FACTOR;
    let cap =
        arguments.cap.map_or(config.limits.cap.max(Duration::from_secs_f64(expected)), Duration::from_secs);
    let tasks = RoundTasks {
        workloads: vec![preset_run.name.clone()],
        scale: Scale::from(arguments.scale),
        settings: Settings {
            custom_profile: preset_run.custom_profile.as_ref().map(CustomProfile::to_value),
            preset_slices: SliceSelection::All,
            ..config.settings.clone()
        },
        cap,
    };
    Ok(ForegroundPlan { targets, rounds: arguments.runs, tasks, nas: config.nas.clone() })
}

fn targets(arguments: &PresetArgs, sources: TargetSources<'_>) -> anyhow::Result<Vec<Target>> {
    let mut targets: Vec<Target> = vec![];
    for text in &arguments.targets {
        let target = paths::find_target(text, sources)?;
        if targets.iter().any(|other| other.name == target.name) {
            return Err(UsageError(format!("the target name `{}` is used twice", target.name)).into());
        }
        targets.push(target);
    }
    if targets.is_empty() {
        return Err(UsageError("no target: give `--target NAME`, or `--target NAME=PATH`".to_owned()).into());
    }
    Ok(targets)
}

/// Prints the results of each target.
fn print_results(
    preset_run: &PresetRun,
    targets: &[Target],
    arguments: &PresetArgs,
    stored: &[StoredRun],
) -> anyhow::Result<()> {
    let mut by_target: BTreeMap<&TargetName, Vec<&Run>> = BTreeMap::new();
    for run in stored {
        by_target.entry(&run.run.target).or_default().push(&run.run);
    }
    let published_mode = if arguments.published { PublishedMode::Show } else { PublishedMode::Hide };
    let summarized = SummarizedPreset {
        name: &preset_run.name,
        profile_name: &preset_run.published_name,
        profile: &preset_run.profile,
    };
    for (index, target) in targets.iter().enumerate() {
        let runs = by_target.get(&target.name).map_or(&[][..], |runs| runs);
        let summary = preset_summary(summarized, runs, published_mode);
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
    CustomProfile::new(name, profile.clone(), ContentMode::Incompressible).map_err(UsageError)?;
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
