//! `longhaul init`: a guided setup that writes a configuration.

mod differences;
mod from;
mod plan;
pub mod prompt;
mod selection;
mod source;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use longhaul_measure::platform;
use longhaul_measure::private_files::Overwrite;
use longhaul_model::{Mount, Role, Run, Scale, Target};
use longhaul_service::config::{Argument, Config, ConfigLoader};
use longhaul_service::config_draft::{ConfigDraft, has_key};
use longhaul_service::cost::{RoundLoad, round_load};
use longhaul_service::database_lock::DatabaseLock;
use longhaul_service::same_folder::{SameFolder, same_folder};
use longhaul_service::target_path::{SpecialFolders, real_path};
use longhaul_store::{Reader, RunFilter};

use crate::arguments::{GlobalArgs, InitArgs, parse_gigabytes, parse_times};
use crate::commands::config::print_ignored;
use crate::config_file::write_text;
use crate::errors::{self, UsageError};
use crate::progress::{OutputStyle, ProgressUi};
use crate::{exit, paths};
use plan::Plan;
use prompt::{DefaultAnswer, Prompter, TerminalPrompter, ask_until_valid, ask_yes_no};
use selection::MountTable;

/// Number of recent runs that the estimated cost of a round is based on.
const COST_SAMPLE_RUNS: u32 = 100;
/// Proposed limit for the time spent in rounds, in percent.
const DEFAULT_DUTY_PERCENT: f64 = 20.0;

/// Asks for everything that the arguments do not specify, and writes the configuration.
pub fn run(shared: &GlobalArgs, arguments: &InitArgs) -> anyhow::Result<ExitCode> {
    if let Some(source) = &arguments.from {
        return from::run(shared, arguments, source);
    }
    let path = paths::config_file(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let mut prompter = TerminalPrompter;
    let replace = overwrite_policy(&path, arguments, &mut prompter)?;
    let Some(replace) = replace else {
        crate::output::println!("The configuration was not changed.");
        return Ok(exit::OK);
    };
    // The database path has to be the one under the new configuration, so an existing configuration is ignored.
    let database = paths::database(shared, &Config::default()).ok();
    let folders = SpecialFolders::of(database.as_deref(), &mounts);
    let mut targets =
        choose_targets(shared, arguments, MountTable { mounts: &mounts, folders: &folders }, &mut prompter)?;
    paths::check_paths(&targets, database.as_deref(), &mounts)?;
    if let Some(message) = paths::same_folder(&targets) {
        return Err(UsageError(message).into());
    }
    let missing = paths::missing_folders(&targets, &mounts)?;
    missing.iter().for_each(|missing| crate::output::eprintln!("longhaul: {}", missing.warning));
    for target in &mut targets {
        if missing.iter().any(|missing| missing.name == target.name) {
            // What is to be mounted there is a share.
            target.role = Role::Share;
        } else if target.role == Role::Baseline {
            crate::output::eprintln!(
                "longhaul: target `{}` is on a local disk: it is a baseline, measured in some rounds and never compared. If a share \
                 belongs there, mount it and run `longhaul init` again",
                target.name
            );
        }
    }
    check_managed(arguments, &targets)?;
    let chosen = ChosenTargets { targets, mounts: &mounts };
    let plan = plan(shared, arguments, chosen, &mut prompter)?;
    let draft = ConfigDraft {
        overrides: plan.0.config_values(&plan.0.cost(plan.1)),
        targets: plan.0.targets,
        scale: plan.0.scale,
        database: shared.database.as_ref().map(std::path::absolute).transpose()?,
    };
    if !arguments.yes
        && !ask_yes_no(&mut prompter, &format!("Write this to {}?", path.display()), DefaultAnswer::Yes)?
    {
        crate::output::println!("Nothing was written.");
        return Ok(exit::OK);
    }
    let text = draft.to_toml().map_err(|error| UsageError(error.to_string()))?;
    let config = ConfigLoader::system().parse(&text, &path);
    print_ignored(&config.context("the generated configuration is invalid; please report this")?);
    write_text(&path, &text, replace)?;
    crate::output::print_line(format_args!("Written: {}", path.display()));
    crate::output::println!(
        "Next: `longhaul run` runs a first round; `longhaul service install` measures for weeks."
    );
    Ok(exit::OK)
}

/// Refuses arguments that differ from what the administrator has set.
fn check_managed(arguments: &InitArgs, targets: &[Target]) -> anyhow::Result<()> {
    let config = ConfigLoader::system().read(None).unwrap_or_default();
    let argument = Argument { option: "--scale", key: "scale" };
    let checked = config.managed.check_argument(argument, arguments.scale.as_ref(), &config.scale);
    checked.map_err(|error| UsageError(error.to_string()))?;
    paths::check_managed_targets(targets, &config)
}

/// Returns whether an existing configuration may be replaced; `None` if the user declines.
fn overwrite_policy(
    path: &Path,
    arguments: &InitArgs,
    ask: &mut dyn Prompter,
) -> anyhow::Result<Option<Overwrite>> {
    match (path.exists(), arguments.force, arguments.yes) {
        (false, false, _) => Ok(Some(Overwrite::Never)),
        (_, true, _) => Ok(Some(Overwrite::Always)),
        (true, false, true) => {
            let message =
                format!("there is already a configuration at {}: --force replaces it", path.display());
            Err(UsageError(message).into())
        }
        (true, false, false) => {
            let question = format!("There is already a configuration at {}. Replace it?", path.display());
            Ok(ask_yes_no(ask, &question, DefaultAnswer::No)?.then_some(Overwrite::Always))
        }
    }
}

/// Returns the targets from the arguments, or asks for them.
fn choose_targets(
    shared: &GlobalArgs,
    arguments: &InitArgs,
    table: MountTable<'_>,
    ask: &mut dyn Prompter,
) -> anyhow::Result<Vec<Target>> {
    if !arguments.targets.is_empty() {
        return paths::parse_targets(&arguments.targets, table.mounts);
    }
    let found = selection::comparable_mounts(table.mounts, platform::user_id());
    if arguments.yes || found.is_empty() {
        let why = if arguments.yes { "with --yes nothing is asked" } else { "no network drive is mounted" };
        let message = format!(
            "{why}: give `--target NAME=PATH`, as in `--target smb=/Volumes/media`, once for each mount"
        );
        return Err(UsageError(message).into());
    }
    selection::print_mounts(ask, &found);
    let chosen = selection::ask_mounts(ask, &found)?;
    let targets = selection::ask_targets(ask, MountTable { mounts: &found, ..table }, &chosen)?;
    check_same_folder(shared, &targets, table.mounts, ask)?;
    Ok(targets)
}

/// Checks, with the user's consent, whether the first target is the same folder on the NAS as each of the others.
fn check_same_folder(
    shared: &GlobalArgs,
    targets: &[Target],
    mounts: &[Mount],
    ask: &mut dyn Prompter,
) -> anyhow::Result<()> {
    let Some((first, others)) = targets.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(());
    };
    let question = format!(
        "May longhaul create a temporary empty folder in {}, to check whether the others are the same folder on the NAS?",
        first.path.display()
    );
    if !ask_yes_no(ask, &question, DefaultAnswer::No)? {
        return Ok(());
    }
    let config = paths::load_config(shared).unwrap_or_default();
    let database = paths::database(shared, &config)?;
    let _alone = match DatabaseLock::acquire(&database, mounts) {
        Ok(lock) => lock,
        Err(error) => {
            ask.print(&format!("This cannot be checked now: {}.", errors::one_line(&error.into())));
            return Ok(());
        }
    };
    let launcher = paths::launcher(&database, "init")?;
    let mut ui = ProgressUi::new(OutputStyle::Lines, Box::new(|| Ok(())));
    for other in others {
        let found = same_folder(&first.path, &other.path, &launcher, &mut ui);
        ask.print(&match found {
            Ok(SameFolder::Same) => format!("`{}` and `{}` are the same folder.", first.name, other.name),
            Ok(SameFolder::Different) => format!(
                "`{}` and `{}` are not the same folder, or do not see each other's changes within seconds. They can \
                 still be measured: each gets its own test data.",
                first.name, other.name
            ),
            Ok(SameFolder::NotCleaned(ending)) => format!("The temporary folder could not be removed: {}.", ending.failure.message),
            Err(ending) => format!("The check failed: {}.", ending.failure.message),
        });
    }
    Ok(())
}

/// Targets that were chosen, and the mount table.
struct ChosenTargets<'a> {
    targets: Vec<Target>,
    mounts: &'a [Mount],
}

/// Completes the plan, prints its cost, and returns it with the load of one round on a target.
fn plan(
    shared: &GlobalArgs,
    arguments: &InitArgs,
    chosen: ChosenTargets<'_>,
    ask: &mut dyn Prompter,
) -> anyhow::Result<(Plan, RoundLoad)> {
    let ChosenTargets { targets, mounts } = chosen;
    let runs = recent_runs(shared);
    let workloads = Config::default().workloads;
    let scale = match (arguments.scale, arguments.yes) {
        (Some(scale), _) => scale,
        (None, true) => Scale::Standard,
        (None, false) => ask_scale(ask)?,
    };
    let load = round_load(scale, &workloads, &runs);
    let mut plan = Plan { targets, scale, bytes_per_day: None, duty_percent: None, folder_openings: None };
    plan.bytes_per_day = match (arguments.gigabytes_per_day, arguments.yes) {
        (Some(gigabytes), _) => gigabytes_to_bytes(gigabytes),
        (None, true) => None,
        (None, false) => ask_daily_bytes(ask, plan::rounds_per_day() * load.0.bytes)?,
    };
    if !arguments.yes && has_key("schedule", "max-time-percent") {
        plan.duty_percent = Some(ask_duty(ask)?);
    }
    plan.folder_openings = match arguments.folder_openings {
        None if !arguments.yes && is_use_uncounted(&plan.targets, mounts) => ask_folder_openings(ask)?,
        given => given,
    };
    plan.cost_text(load.0, load.1).lines().for_each(|line| ask.print(line));
    if plan.cost(load.0).rounds_per_day < 1.0 {
        let message = "these limits allow less than one round a day: allow more bytes a day or more time, or choose a smaller scale";
        if arguments.yes {
            return Err(UsageError(message.to_owned()).into());
        }
        ask.print(&format!("Careful: {message}."));
    }
    Ok((plan, load.0))
}

/// Returns the most recent runs in the database; empty if there are none.
fn recent_runs(shared: &GlobalArgs) -> Vec<Run> {
    let config = paths::load_config(shared).unwrap_or_default();
    let filter = RunFilter { limit: Some(COST_SAMPLE_RUNS), ..RunFilter::default() };
    let runs =
        paths::database(shared, &config).ok().and_then(|path| Reader::open(&path).ok()?.runs(&filter).ok());
    runs.unwrap_or_default().into_iter().map(|stored| stored.run).collect()
}

fn ask_scale(ask: &mut dyn Prompter) -> io::Result<Scale> {
    let question =
        "Size of the test data: quick (0.4 to 2.6 GB), standard (2.3 to 16 GB) or large (12 to 78 GB)?";
    ask_until_valid(ask, question, Scale::Standard.name(), |answer| {
        Scale::from_name(answer).ok_or_else(|| "Answer quick, standard or large".to_owned())
    })
}

/// Asks for the daily byte budget. The proposal is what all rounds of a day need on a machine that never sleeps.
fn ask_daily_bytes(ask: &mut dyn Prompter, needed: f64) -> io::Result<Option<u64>> {
    let proposal = (needed / 1e9).ceil().to_string();
    let question = "How many gigabytes may be read and written on each target in a day? 0 for no limit:";
    ask_until_valid(ask, question, &proposal, parse_gigabytes).map(gigabytes_to_bytes)
}

fn gigabytes_to_bytes(gigabytes: f64) -> Option<u64> {
    (gigabytes > 0.0).then_some((gigabytes * 1e9) as u64)
}

/// Returns whether there are shares and the use of none of them can be counted.
fn is_use_uncounted(targets: &[Target], mounts: &[Mount]) -> bool {
    let mut shares = targets.iter().filter(|target| target.role == Role::Share).peekable();
    let is_counted = |target: &Target| {
        let mount = Mount::for_path(mounts, &real_path(&target.path, mounts));
        mount.is_some_and(|mount| platform::counts_requests(&mount.protocol))
    };
    shares.peek().is_some() && !shares.any(is_counted)
}

fn ask_folder_openings(ask: &mut dyn Prompter) -> io::Result<Option<f64>> {
    let question = "How many large folders do you open a week? It cannot be counted here.";
    ask_until_valid(ask, question, "ordinary", |answer| match answer {
        "ordinary" => Ok(None),
        times => parse_times(times).map(Some),
    })
}

fn ask_duty(ask: &mut dyn Prompter) -> io::Result<f64> {
    let question = "Maximum time for rounds, in percent of the day:";
    ask_until_valid(ask, question, &DEFAULT_DUTY_PERCENT.to_string(), |answer| {
        let number = answer.trim_end_matches('%').trim().parse::<f64>().ok();
        number
            .filter(|percent| (0.1..=100.0).contains(percent))
            .ok_or_else(|| "Answer a number from 0.1 to 100".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn gigabytes_may_have_a_unit() {
        assert_eq!(
            (parse_gigabytes("12.5"), parse_gigabytes("3 GB"), parse_gigabytes("0")),
            (Ok(12.5), Ok(3.0), Ok(0.0))
        );
        for bad in ["-1", "x", "", "NaN", "inf", "0.0001", "1e12"] {
            assert!(parse_gigabytes(bad).is_err(), "{bad}");
        }
        assert_eq!((gigabytes_to_bytes(0.0), gigabytes_to_bytes(12.5)), (None, Some(12_500_000_000)));
    }

    #[test]
    fn existing_config_is_replaced_only_with_consent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let arguments = |yes, force| InitArgs {
            targets: vec![],
            scale: None,
            gigabytes_per_day: None,
            folder_openings: None,
            from: None,
            yes,
            force,
        };
        let mut script = prompt::tests::Script::new(&["", "yes"]);
        assert_eq!(
            overwrite_policy(&path, &arguments(true, false), &mut script).unwrap(),
            Some(Overwrite::Never)
        );
        fs::write(&path, "").unwrap();
        assert_eq!(overwrite_policy(&path, &arguments(false, false), &mut script).unwrap(), None);
        assert_eq!(
            overwrite_policy(&path, &arguments(false, false), &mut script).unwrap(),
            Some(Overwrite::Always)
        );
        assert!(
            overwrite_policy(&path, &arguments(true, false), &mut script)
                .unwrap_err()
                .to_string()
                .contains("--force")
        );
        assert_eq!(
            overwrite_policy(&path, &arguments(true, true), &mut script).unwrap(),
            Some(Overwrite::Always)
        );
    }
}
