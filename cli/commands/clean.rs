//! `longhaul clean TARGET`: gives back what longhaul holds on a target.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::arena::{CleanReport, Mode};
use longhaul_measure::model::Target;
use longhaul_measure::platform;
use longhaul_service::config::Config;
use longhaul_service::worker::{Watch, Worker};
use longhaul_store::Reader;

use super::measure::Measuring;
use crate::arguments::{Clean, Shared};
use crate::progress::{Stage, Style};
use crate::render::units;
use crate::{Usage, exit, places};

/// How long one operation of cleaning may take.
const CAP: Duration = Duration::from_secs(60);
/// How long the operation in flight may take after Ctrl-C or SIGTERM before its worker is left behind.
const PATIENCE: Duration = Duration::from_secs(2);

/// Lists what would be removed, asks, and removes it.
pub fn run(shared: &Shared, arguments: &Clean) -> anyhow::Result<ExitCode> {
    let config = places::config(shared)?;
    let database = places::database(shared, &config)?;
    let target = find(&arguments.target, &config, &Reader::open(&database)?)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let measuring = Measuring::open(database, &mounts)?;
    let mut worker = Worker::new(target.clone(), measuring.launcher.clone());
    let interrupted = || measuring.interrupted.load(Ordering::Relaxed);
    let Some(report) = clean(&mut worker, Mode::List, &interrupted)? else {
        anstream::println!(
            "There is nothing of longhaul for `{}` in {}.",
            target.name,
            target.path.display()
        );
        return Ok(exit::OK);
    };
    print_report(&report, &target, "would remove");
    if !arguments.yes && !confirmed("Remove it?")? {
        anstream::println!("Nothing was removed.");
        return Ok(exit::OK);
    }
    let removed = clean(&mut worker, Mode::Remove, &interrupted)?;
    removed.iter().for_each(|report| print_report(report, &target, "removed"));
    Ok(exit::OK)
}

/// Lists or removes what longhaul holds on a target; `None` if there is nothing. Ends soon after a call of it that does not
/// return is interrupted.
pub fn clean(
    worker: &mut Worker,
    mode: Mode,
    interrupted: &dyn Fn() -> bool,
) -> anyhow::Result<Option<CleanReport>> {
    let mut stage = Stage::new(Style::Lines, Box::new(|| Ok(())));
    let mut watch = Watch { cap: CAP, patience: PATIENCE, interrupted, observer: &mut stage };
    worker.clean(mode, &mut watch).map_err(|ending| anyhow::anyhow!(ending.failure.message))
}

/// The target that is meant: NAME=PATH, a name of the configuration, or a name of the database.
pub fn find(text: &str, config: &Config, reader: &Reader) -> anyhow::Result<Target> {
    if let Ok(argument) = text.parse() {
        return places::targets(&[argument], &[])?.pop().context("one argument names one target");
    }
    let stored: Vec<Target> = reader.targets()?.into_iter().map(|stored| stored.target).collect();
    let known = || config.targets.iter().chain(&stored);
    let found = known().find(|target| target.name.as_str() == text).cloned();
    found.ok_or_else(|| {
        let names: Vec<&str> = known().map(|target| target.name.as_str()).collect();
        Usage(format!("there is no target `{text}`; known are: {}", names.join(", "))).into()
    })
}

/// Says what was removed, or would be, and what stays.
pub fn print_report(report: &CleanReport, target: &Target, verb: &str) {
    for (name, files, bytes) in &report.holdings {
        anstream::println!("{verb} {name}: {files} files, {}", units::bytes(*bytes as f64));
    }
    for path in &report.foreign {
        anstream::println!("stays: {} (longhaul did not make it)", path.display());
    }
    match report.arena_removed {
        true => anstream::println!("{verb} the arena in {}", target.path.display()),
        false => {
            anstream::println!("the arena in {} stays, for what is not longhaul's", target.path.display())
        }
    }
}

/// Asks the person, who has to be there.
pub fn confirmed(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Usage("nobody is there to ask: give --yes".to_owned()).into());
    }
    anstream::print!("{question} [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
