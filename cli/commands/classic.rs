//! `longhaul classic`: a tool that people quote, reproduced on a target.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::model::{Mount, Run, Scale, Target, TargetName};
use longhaul_measure::platform;
use longhaul_measure::profile::Profile;
use longhaul_measure::summary::{self, Beforehand, ClassicSummary};
use longhaul_measure::workloads::classic::{AS_ORIGINAL, classics};
use longhaul_measure::workloads::{OwnProfile, Portion, Settings, classic::Manner, everything};
use longhaul_service::config::Config;
use longhaul_service::cost;
use longhaul_service::round::Tasks;
use longhaul_service::runner::{Plan, Tally};
use longhaul_service::target_path::SpecialFolders;
use longhaul_store::{Reader, RunFilter};

use super::clean;
use super::measure::{Measuring, budget_gate};
use crate::arguments::{Classic, ClassicCommand, Shared};
use crate::progress::{Stage, Style};
use crate::render;
use crate::{Usage, exit, places};

/// How many times what a run should take it may take.
const PATIENCE: f64 = 10.0;

/// What the command line means.
struct Meant {
    /// The name under which runs are kept.
    name: String,
    /// The name under which figures are published.
    base: String,
    profile: Profile,
    /// Set for a profile of one's own.
    own: Option<OwnProfile>,
    manner: Manner,
}

/// Lists the classics, or runs one.
pub fn run(shared: &Shared, arguments: &Classic) -> anyhow::Result<ExitCode> {
    if let Some(ClassicCommand::List) = arguments.command {
        anstream::print!("{}", render::classic::list(classics()));
        return Ok(exit::OK);
    }
    let meant = meant(arguments)?;
    let config = places::config(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let database = places::database(shared, &config)?;
    let plan = plan(&meant, arguments, (&config, &database, &mounts))?;
    places::check_paths(&plan.targets, &SpecialFolders::of(Some(&database), &mounts))?;
    if !arguments.json {
        anstream::println!("{}", render::classic::beforehand(&plan, &meant.profile, meant.manner));
    }
    let measuring = Measuring::open(database, &mounts)?;
    let began_us = platform::wall_clock_us();
    let gate = budget_gate(&measuring.database, &plan.targets, config.limits);
    let stage = Stage::with_phases(Style::Silent, gate, meant.profile.phases.len() as u64);
    let (tally, _workers) = measuring.measure_on(&plan, stage);
    conclude(&measuring, (&meant, &plan, began_us), arguments, tally?)
}

fn meant(arguments: &Classic) -> anyhow::Result<Meant> {
    let name = arguments.name.as_deref().unwrap_or_default();
    if name.ends_with(".toml") {
        return own(Path::new(name), arguments);
    }
    let wanted = if arguments.as_original { format!("{name}{AS_ORIGINAL}") } else { name.to_owned() };
    let found = longhaul_measure::workloads::classic::classic(&wanted)
        .ok_or_else(|| Usage(format!("there is no classic `{name}`: `longhaul classic list` shows all")))?;
    Ok(Meant {
        name: wanted,
        base: found.base().to_owned(),
        profile: found.profile.at(arguments.scale.into()),
        own: None,
        manner: found.manner(),
    })
}

/// A profile of one's own. Its runs are kept under the name of its file.
fn own(path: &Path, arguments: &Classic) -> anyhow::Result<Meant> {
    let profile = super::profile::read(path)?;
    let base = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let manner = if arguments.as_original { Manner::AsOriginal } else { Manner::Honest };
    let own = OwnProfile::new(base, profile.clone(), manner).map_err(Usage)?;
    if everything().any(|workload| workload.name() == own.name()) {
        return Err(Usage(format!("`{base}` is the name of a task already: rename the file")).into());
    }
    let profile = profile.at(arguments.scale.into());
    Ok(Meant { name: own.name().to_owned(), base: base.to_owned(), profile, own: Some(own), manner })
}

fn plan(
    meant: &Meant,
    arguments: &Classic,
    (config, database, mounts): (&Config, &Path, &[Mount]),
) -> anyhow::Result<Plan> {
    let targets = targets(arguments, (config, database, mounts))?;
    let expected = cost::of_profile(&meant.profile).seconds * PATIENCE;
    let cap =
        arguments.cap.map_or(config.limits.cap.max(Duration::from_secs_f64(expected)), Duration::from_secs);
    let tasks = Tasks {
        workloads: vec![meant.name.clone()],
        scale: Scale::from(arguments.scale),
        settings: Settings {
            own: meant.own.clone().map(Box::new),
            classics: Portion::Whole,
            ..config.settings.clone()
        },
        cap,
    };
    Ok(Plan { targets, rounds: arguments.runs, tasks })
}

fn targets(
    arguments: &Classic,
    (config, database, mounts): (&Config, &Path, &[Mount]),
) -> anyhow::Result<Vec<Target>> {
    let mut targets: Vec<Target> = vec![];
    for text in &arguments.targets {
        let target = match text.parse() {
            Ok(argument) => {
                places::targets(&[argument], mounts)?.pop().context("one argument names one target")?
            }
            Err(_) => known(text, config, database)?,
        };
        if targets.iter().any(|other| other.name == target.name) {
            return Err(Usage(format!("the target name `{}` is given twice", target.name)).into());
        }
        targets.push(target);
    }
    if targets.is_empty() {
        return Err(Usage("no target: give `--target NAME`, or `--target NAME=PATH`".to_owned()).into());
    }
    Ok(targets)
}

fn known(text: &str, config: &Config, database: &Path) -> anyhow::Result<Target> {
    match config.targets.iter().find(|target| target.name.as_str() == text) {
        Some(target) => Ok(target.clone()),
        None => clean::find(text, config, &Reader::open(database)?),
    }
}

/// Prints what came of it.
fn conclude(
    measuring: &Measuring,
    (meant, plan, began_us): (&Meant, &Plan, i64),
    arguments: &Classic,
    tally: Tally,
) -> anyhow::Result<ExitCode> {
    let filter =
        RunFilter { workload: Some(meant.name.clone()), since_us: Some(began_us), ..RunFilter::default() };
    let stored = Reader::open(&measuring.database)?.runs(&filter)?;
    let mut by_target: BTreeMap<&TargetName, Vec<&Run>> = BTreeMap::new();
    for run in &stored {
        by_target.entry(&run.run.target).or_default().push(&run.run);
    }
    let beforehand = if arguments.published { Beforehand::WithPublished } else { Beforehand::Ours };
    for target in &plan.targets {
        let runs = by_target.get(&target.name).map_or(&[][..], |runs| runs);
        let summary = summary::classic((&meant.name, &meant.base), &meant.profile, runs, beforehand);
        print(target, runs, &summary, arguments)?;
    }
    let stopped = tally.interrupted && stored.is_empty();
    Ok(if tally.failed > 0 || stopped { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

fn print(
    target: &Target,
    runs: &[&Run],
    summary: &ClassicSummary,
    arguments: &Classic,
) -> anyhow::Result<()> {
    if arguments.json {
        let mut value = serde_json::to_value(summary)?;
        value["type"] = "classic".into();
        value["target"] = target.name.as_str().into();
        anstream::println!("{value}");
        return Ok(());
    }
    anstream::print!("{}", render::classic::summary(target, runs, summary));
    Ok(())
}
