//! `longhaul try`: two short rounds on the local disk and on each target given.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::arena::Mode;
use longhaul_measure::model::{Family, Mount, Role, Scale, Target};
use longhaul_measure::platform;
use longhaul_measure::workloads::{Settings, WORKLOADS};
use longhaul_service::round::Tasks;
use longhaul_service::runner::{PATIENCE, Plan, Tally};
use longhaul_service::target_path::SpecialFolders;
use longhaul_service::worker::{Watch, Worker};
use longhaul_store::{Reader, RunFilter};

use super::list::{Form, print_summary};
use super::measure::Measuring;
use crate::arguments::{Shared, Try};
use crate::progress::{Stage, Style};
use crate::{exit, places};

/// Rounds of a trial.
const ROUNDS: u32 = 2;
/// After this a run of a trial is booked as hung.
const CAP: Duration = Duration::from_secs(120);
/// So long a worker that has nothing to do any more may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// The name of the local target.
const LOCAL: &str = "local";

/// Measures, prints the summary, and gives back what was written to the targets.
pub fn run(shared: &Shared, arguments: &Try) -> anyhow::Result<ExitCode> {
    let config = places::config(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let database = places::database(shared, &config)?;
    let folder = database.parent().unwrap_or(Path::new("/")).join("try");
    let mut targets = places::targets(&arguments.targets, &mounts)?;
    places::check_paths(&targets, &SpecialFolders::of(Some(&database), &mounts))?;
    if !targets.iter().any(|target| target.name.as_str() == LOCAL) {
        std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let name = LOCAL.parse().context("name the local target")?;
        targets.insert(0, Target { name, path: folder.clone(), role: Role::Baseline });
    }
    let measuring = Measuring::open(database, &mounts)?;
    introduce(&targets, &mounts);
    let plan = Plan {
        targets,
        rounds: ROUNDS,
        tasks: Tasks {
            workloads: WORKLOADS.iter().map(|workload| workload.name().to_owned()).collect(),
            scale: Scale::Quick,
            settings: Settings::default(),
            cap: CAP,
        },
    };
    let began_us = platform::wall_clock_us();
    let (tally, workers) = measuring.measure(&plan, Style::Lines, Box::new(|| Ok(())));
    let left = if arguments.keep { vec![] } else { clean_up(&measuring, workers, &folder) };
    let code = conclude(&measuring, tally?, began_us)?;
    left.iter().for_each(|what| anstream::eprintln!("longhaul: left behind: {what}"));
    Ok(if left.is_empty() { code } else { ExitCode::from(exit::ERROR) })
}

fn introduce(targets: &[Target], mounts: &[Mount]) {
    for target in targets {
        anstream::println!("target {:<10} {}", target.name, target.path.display());
    }
    let given = |mount: &Mount| targets.iter().any(|target| target.path.starts_with(&mount.point));
    for mount in mounts.iter().filter(|mount| mount.protocol.family() == Family::Network && !given(mount)) {
        anstream::println!(
            "found  {:<10} {}: measure it too with --target NAME={}",
            mount.protocol,
            mount.point.display(),
            mount.point.display()
        );
    }
    anstream::println!("A trial shows that it works and what it says; two rounds decide nothing.\n");
}

/// Prints the summary of this trial's runs.
fn conclude(measuring: &Measuring, tally: Tally, began_us: i64) -> anyhow::Result<ExitCode> {
    let filter = RunFilter { since_us: Some(began_us), ..RunFilter::default() };
    anstream::println!();
    let code = print_summary(&Reader::open(&measuring.database)?, &filter, Some(Scale::Quick), Form::Tables)?;
    anstream::println!(
        "\n{} runs, {} failed; kept in {}. `longhaul runs` lists them, `longhaul show RUN` tells all of one.",
        tally.runs,
        tally.failed,
        measuring.database.display()
    );
    Ok(if tally.failed > 0 { ExitCode::from(exit::RUN_FAILED) } else { code })
}

/// Removes the arenas and the local folder; says what it could not remove.
/// The workers are those of the rounds: none is started beside one that is stuck.
fn clean_up(measuring: &Measuring, workers: Vec<Worker>, folder: &Path) -> Vec<String> {
    let mut left: Vec<String> = workers.into_iter().filter_map(clean_target).collect();
    match std::fs::remove_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            left.push(format!("{}: {error}", folder.display()));
        }
        _ => {}
    }
    // Each target's own folder went with its arena; what holds them goes when it is empty.
    let _ = std::fs::remove_dir(&measuring.launcher.local);
    left
}

fn clean_target(mut worker: Worker) -> Option<String> {
    let mut stage = Stage::new(Style::Lines, Box::new(|| Ok(())));
    let mut watch = Watch { cap: CAP, patience: PATIENCE, interrupted: &|| false, observer: &mut stage };
    let cleaned = worker.clean(Mode::Remove, &mut watch);
    // What it holds beside the database goes with it.
    worker.dismiss();
    worker.await_end(ENDS_WITHIN);
    match cleaned {
        Ok(Some(report)) if !report.foreign.is_empty() => {
            let paths: Vec<String> = report.foreign.iter().map(|path| path.display().to_string()).collect();
            Some(format!("what longhaul did not make: {}", paths.join(", ")))
        }
        Ok(_) => None,
        Err(ending) => Some(ending.failure.message),
    }
}
