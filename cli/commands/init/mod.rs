//! `longhaul init`: a guided first run that ends in a configuration.

mod ask;
mod choose;
mod plan;

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use longhaul_measure::model::{Mount, Run, Scale, Target};
use longhaul_measure::platform;
use longhaul_service::config::Config;
use longhaul_service::cost::{Load, round_load};
use longhaul_service::draft::{Draft, knows};
use longhaul_service::exclusive::Exclusive;
use longhaul_service::same::{Sameness, sameness};
use longhaul_service::target_path::SpecialFolders;
use longhaul_store::{Reader, RunFilter};

use crate::arguments::{ScaleArgument, Shared, TargetArgument};
use crate::progress::{Stage, Style};
use crate::{Usage, exit, places};
use ask::{Answer, Ask, Person, until, yes};
use plan::Plan;

/// As many of the last runs say what a round costs.
const LAST_RUNS: u32 = 100;
/// The share of time that is proposed, in percent.
const DUTY_PERCENT: f64 = 20.0;

/// Arguments of `init`.
#[derive(Args)]
pub struct Init {
    /// A folder to measure, as NAME=PATH; may be given several times [default: asked].
    #[arg(long = "target", value_name = "NAME=PATH")]
    pub targets: Vec<TargetArgument>,
    /// How large the test data is [default: asked; with --yes standard].
    #[arg(long, value_enum)]
    pub scale: Option<ScaleArgument>,
    /// Gigabytes that may be read and written on each target in 24 hours; 0 for any [default: asked; with --yes any].
    #[arg(long, value_name = "GB", value_parser = gigabytes)]
    pub gigabytes_per_day: Option<f64>,
    /// Ask nothing: the targets have to be given.
    #[arg(long)]
    pub yes: bool,
    /// Write over a configuration that is there.
    #[arg(long)]
    pub force: bool,
}

fn gigabytes(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches("GB").trim().parse::<f64>().ok();
    // below, a budget would be no whole megabyte
    number
        .filter(|number| (0.001..=1e9).contains(number) || *number == 0.0)
        .ok_or_else(|| format!("`{text}` is no number of gigabytes: 0, or 0.001 and more"))
}

/// Asks what is not given, and writes the configuration.
pub fn run(shared: &Shared, arguments: &Init) -> anyhow::Result<ExitCode> {
    let path = places::config_file(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let mut person = Person;
    let replace = may_write(&path, arguments, &mut person)?;
    let Some(replace) = replace else {
        anstream::println!("The configuration stays as it is.");
        return Ok(exit::OK);
    };
    // of the configuration that will be, not of one that is there
    let database = places::database(shared, &Config::default()).ok();
    let folders = SpecialFolders::of(database.as_deref(), &mounts);
    let targets = targets(shared, arguments, (&mounts, &folders), &mut person)?;
    places::check_paths(&targets, &folders)?;
    let plan = plan(shared, arguments, targets, &mut person)?;
    let draft = Draft {
        values: plan.0.values(&plan.0.cost(plan.1)),
        targets: plan.0.targets,
        scale: plan.0.scale,
        database: shared.database.as_ref().map(std::path::absolute).transpose()?,
    };
    if !arguments.yes && !yes(&mut person, &format!("Write this to {}?", path.display()), Answer::Yes)? {
        anstream::println!("Nothing was written.");
        return Ok(exit::OK);
    }
    let text = draft.text().map_err(|error| Usage(error.to_string()))?;
    Config::parse(&text, &path)
        .context("what was about to be written is not a configuration; please report this")?;
    write(&path, &text, replace).with_context(|| format!("write {}", path.display()))?;
    anstream::println!(
        "Written: {}\nNow: `longhaul run` for a first round, `longhaul install` for the weeks to come.",
        path.display()
    );
    Ok(exit::OK)
}

/// Whether a file that is there is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replace {
    Never,
    Whatever,
}

/// Whether a configuration may be written, and over one that is there; `None`: the person does not want it.
fn may_write(path: &Path, arguments: &Init, ask: &mut dyn Ask) -> anyhow::Result<Option<Replace>> {
    match (path.exists(), arguments.force, arguments.yes) {
        (false, false, _) => Ok(Some(Replace::Never)),
        (_, true, _) => Ok(Some(Replace::Whatever)),
        (true, false, true) => {
            let message = format!("there is a configuration at {}: --force writes over it", path.display());
            Err(Usage(message).into())
        }
        (true, false, false) => {
            let question =
                format!("There is a configuration at {}. Make a new one in its place?", path.display());
            Ok(yes(ask, &question, Answer::No)?.then_some(Replace::Whatever))
        }
    }
}

/// The targets that are given, or those that are chosen in the dialogue.
fn targets(
    shared: &Shared,
    arguments: &Init,
    (mounts, folders): (&[Mount], &SpecialFolders),
    ask: &mut dyn Ask,
) -> anyhow::Result<Vec<Target>> {
    if !arguments.targets.is_empty() {
        return places::targets(&arguments.targets, mounts);
    }
    let found = choose::comparable(mounts);
    if arguments.yes || found.is_empty() {
        let why = if arguments.yes { "with --yes nothing is asked" } else { "no network drive is mounted" };
        let message = format!(
            "{why}: give `--target NAME=PATH`, as in `--target smb=/Volumes/media`, once for each way"
        );
        return Err(Usage(message).into());
    }
    choose::list(ask, &found);
    let chosen = choose::which(ask, &found)?;
    let targets = choose::targets(ask, (&found, folders), &chosen)?;
    check_sameness(shared, &targets, ask)?;
    Ok(targets)
}

/// Finds out, if the person allows it, whether the first target and each other are one folder of the NAS.
fn check_sameness(shared: &Shared, targets: &[Target], ask: &mut dyn Ask) -> anyhow::Result<()> {
    let Some((first, others)) = targets.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(());
    };
    let question = format!(
        "May longhaul make an empty folder in {} for a moment, to see whether the others are the same place on the NAS?",
        first.path.display()
    );
    if !yes(ask, &question, Answer::No)? {
        return Ok(());
    }
    let config = places::config(shared).unwrap_or_default();
    let database = places::database(shared, &config)?;
    let alone = Exclusive::take(&database);
    if let Err(error) = &alone {
        ask.tell(&format!("That cannot be found out now: {error}."));
        return Ok(());
    }
    let launcher = places::launcher(&database, "init")?;
    let mut stage = Stage::new(Style::Lines, Box::new(|| Ok(())));
    for other in others {
        let found = sameness(&first.path, &other.path, &launcher, &mut stage);
        ask.tell(&match found {
            Ok(Sameness::Same) => format!("`{}` and `{}` are the same folder.", first.name, other.name),
            Ok(Sameness::Different) => format!(
                "`{}` and `{}` are not the same folder, or do not see each other's changes within seconds. They can be \
                 measured all the same: each gets test data of its own.",
                first.name, other.name
            ),
            Ok(Sameness::LeftBehind(ending)) => format!("What was made could not be removed: {}.", ending.failure.message),
            Err(ending) => format!("That could not be found out: {}.", ending.failure.message),
        });
    }
    Ok(())
}

/// The rest of the plan, with its cost told; and what a round asks of a target.
fn plan(
    shared: &Shared,
    arguments: &Init,
    targets: Vec<Target>,
    ask: &mut dyn Ask,
) -> anyhow::Result<(Plan, Load)> {
    let runs = last_runs(shared);
    let workloads = Config::default().workloads;
    let scale = match (arguments.scale, arguments.yes) {
        (Some(scale), _) => scale.into(),
        (None, true) => Scale::Standard,
        (None, false) => ask_scale(ask)?,
    };
    let load = round_load(scale, &workloads, &runs);
    let mut plan = Plan { targets, scale, bytes_per_day: None, duty_percent: None };
    plan.bytes_per_day = match (arguments.gigabytes_per_day, arguments.yes) {
        (Some(gigabytes), _) => bytes(gigabytes),
        (None, true) => None,
        (None, false) => ask_bytes(ask, plan::rounds_per_day() * load.0.bytes)?,
    };
    if !arguments.yes && knows("schedule", "duty-percent") {
        plan.duty_percent = Some(ask_duty(ask)?);
    }
    ask.tell(&plan.text(load));
    Ok((plan, load.0))
}

/// What was measured before, if anything was.
fn last_runs(shared: &Shared) -> Vec<Run> {
    let config = places::config(shared).unwrap_or_default();
    let filter = RunFilter { limit: Some(LAST_RUNS), ..RunFilter::default() };
    let runs =
        places::database(shared, &config).ok().and_then(|path| Reader::open(&path).ok()?.runs(&filter).ok());
    runs.unwrap_or_default().into_iter().map(|stored| stored.run).collect()
}

fn ask_scale(ask: &mut dyn Ask) -> io::Result<Scale> {
    let question = "How large is the test data to be: quick (0.4 GB), standard (2.3 GB) or large (12 GB)?";
    until(ask, (question, Scale::Standard.name()), |answer| {
        Scale::from_name(answer).ok_or_else(|| "Answer quick, standard or large".to_owned())
    })
}

/// Proposed is what all rounds of a day need, on a machine that never sleeps.
fn ask_bytes(ask: &mut dyn Ask, needed: f64) -> io::Result<Option<u64>> {
    let proposal = (needed / 1e9).ceil().to_string();
    let question = "How many gigabytes may be read and written on each target in a day? 0 for any:";
    until(ask, (question, &proposal), gigabytes).map(bytes)
}

fn bytes(gigabytes: f64) -> Option<u64> {
    (gigabytes > 0.0).then_some((gigabytes * 1e9) as u64)
}

fn ask_duty(ask: &mut dyn Ask) -> io::Result<f64> {
    let question = "What share of the time may rounds take, in percent?";
    until(ask, (question, &DUTY_PERCENT.to_string()), |answer| {
        let number = answer.trim_end_matches('%').trim().parse::<f64>().ok();
        number
            .filter(|percent| (0.1..=100.0).contains(percent))
            .ok_or_else(|| "Answer a number from 0.1 to 100".to_owned())
    })
}

/// Writes a file whole or not at all: beside its place, then into it.
fn write(path: &Path, text: &str, replace: Replace) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let beside = PathBuf::from(name);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written =
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| match replace {
            Replace::Whatever => fs::rename(&beside, path),
            // unlike renaming, this fails where somebody has made one meanwhile
            Replace::Never => fs::hard_link(&beside, path),
        });
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => written.and(Err(error)),
        _ => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_written_whole_and_never_over_another_by_chance() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/config.toml");
        write(&path, "one", Replace::Never).unwrap();
        assert_eq!(write(&path, "two", Replace::Never).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        write(&path, "three", Replace::Whatever).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn gigabytes_are_read_with_and_without_their_unit() {
        assert_eq!((gigabytes("12.5"), gigabytes("3 GB"), gigabytes("0")), (Ok(12.5), Ok(3.0), Ok(0.0)));
        for bad in ["-1", "x", "", "NaN", "inf", "0.0001", "1e12"] {
            assert!(gigabytes(bad).is_err(), "{bad}");
        }
        assert_eq!((bytes(0.0), bytes(12.5)), (None, Some(12_500_000_000)));
    }

    #[test]
    fn a_configuration_that_is_there_is_asked_about_and_never_lost_in_a_script() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let arguments =
            |yes, force| Init { targets: vec![], scale: None, gigabytes_per_day: None, yes, force };
        let mut script = ask::tests::Script::new(&["", "yes"]);
        assert_eq!(may_write(&path, &arguments(true, false), &mut script).unwrap(), Some(Replace::Never));
        fs::write(&path, "").unwrap();
        assert_eq!(may_write(&path, &arguments(false, false), &mut script).unwrap(), None);
        assert_eq!(may_write(&path, &arguments(false, false), &mut script).unwrap(), Some(Replace::Whatever));
        assert!(
            may_write(&path, &arguments(true, false), &mut script)
                .unwrap_err()
                .to_string()
                .contains("--force")
        );
        assert_eq!(may_write(&path, &arguments(true, true), &mut script).unwrap(), Some(Replace::Whatever));
    }
}
