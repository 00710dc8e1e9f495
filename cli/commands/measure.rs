//! `longhaul run`: rounds in the foreground.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::model::{Mount, Scale, Target};
use longhaul_measure::platform;
use longhaul_measure::workloads::{WORKLOADS, workload};
use longhaul_service::config::{Config, Limits};
use longhaul_service::exclusive::Exclusive;
use longhaul_service::round::Tasks;
use longhaul_service::runner::{Plan, Runner, Tally};
use longhaul_service::service::seed_of;
use longhaul_service::target_path::SpecialFolders;
use longhaul_service::worker::{Launcher, Worker};
use longhaul_store::{Reader, RoundEnd, RoundStatus, RunFilter, Store, Writer};
use serde_json::json;

use crate::arguments::{Run, Shared};
use crate::progress::{Gate, Stage, Style, over_budget};
use crate::{Usage, exit, places};

const DAY_US: i64 = 24 * 3600 * 1_000_000;

/// Everything that measuring needs, open.
pub struct Measuring {
    /// Where runs are kept.
    pub writer: Writer,
    /// How workers are started.
    pub launcher: Launcher,
    /// The database's file.
    pub database: PathBuf,
    machine_seed: u64,
    /// Whether Ctrl-C or SIGTERM has come.
    pub interrupted: Arc<AtomicBool>,
    _exclusive: Exclusive,
}

impl Measuring {
    /// Opens the database for writing, alone on this machine, and listens for Ctrl-C.
    pub fn open(database: PathBuf, mounts: &[Mount]) -> anyhow::Result<Self> {
        let store = Store::open(&database, mounts)?;
        let exclusive = Exclusive::take(&database)?;
        let launcher = places::launcher(&database, store.machine_id())?;
        let machine_seed = seed_of(store.machine_id());
        let writer = Writer::spawn(store);
        close_open_rounds(&database, &writer)?;
        let interrupted = listen_for_interrupt()?;
        Ok(Self { writer, launcher, database, machine_seed, interrupted, _exclusive: exclusive })
    }

    /// Runs the rounds of a plan. The workers are given back: one that is stuck has to stay the only one on its target.
    pub fn measure(&self, plan: &Plan, style: Style, gate: Gate<'_>) -> (anyhow::Result<Tally>, Vec<Worker>) {
        self.measure_on(plan, Stage::new(style, gate))
    }

    /// The same, shown on this stage.
    pub fn measure_on(&self, plan: &Plan, mut stage: Stage<'_>) -> (anyhow::Result<Tally>, Vec<Worker>) {
        let interrupted = || self.interrupted.load(Ordering::Relaxed);
        let mut runner = Runner::new(plan, &self.launcher, &self.writer, &interrupted);
        let tally =
            self.rounds_begun().and_then(|turn| Ok(runner.run(self.machine_seed, turn, &mut stage)?));
        stage.clear();
        (tally, runner.workers)
    }

    fn rounds_begun(&self) -> anyhow::Result<u64> {
        Ok(Reader::open(&self.database)?.rounds_begun()?)
    }
}

/// Rounds that a killed process left open end here, so that nothing waits for them.
fn close_open_rounds(database: &Path, writer: &Writer) -> anyhow::Result<()> {
    for round in Reader::open(database)?.open_rounds()? {
        let reason = Some("longhaul ended in the middle of it".to_owned());
        let ended_us = platform::wall_clock_us();
        writer.end_round(
            round.number,
            RoundEnd { status: RoundStatus::CutShort, reason, ended_us, after: None },
        )?;
    }
    Ok(())
}

/// The first Ctrl-C or SIGTERM asks to stop, the second ends at once; what is on disk is safe either way.
pub fn listen_for_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&interrupted))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
            .context("listen for Ctrl-C")?;
    }
    Ok(interrupted)
}

/// Runs what the command line and the configuration say.
pub fn run(shared: &Shared, arguments: &Run) -> anyhow::Result<ExitCode> {
    let config = places::config(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let plan = plan(arguments, &config, &mounts)?;
    let database = places::database(shared, &config)?;
    places::check_paths(&plan.targets, &SpecialFolders::of(Some(&database), &mounts))?;
    let measuring = Measuring::open(database, &mounts)?;
    measuring.writer.settle_threshold(config.premises.threshold)?;
    let style = if arguments.json { Style::Json } else { Style::Lines };
    let gate = budget_gate(&measuring.database, &plan.targets, config.limits);
    let (tally, _workers) = measuring.measure(&plan, style, gate);
    let tally = tally?;
    match style {
        Style::Json => {
            anstream::println!("{}", json!({"type": "end", "runs": tally.runs, "failed": tally.failed}));
        }
        Style::Lines | Style::Silent => print_end(tally, &measuring.database),
    }
    Ok(if tally.failed > 0 { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

fn print_end(tally: Tally, database: &Path) {
    let stopped = if tally.interrupted { ", stopped by you" } else { "" };
    anstream::println!(
        "\n{} runs, {} failed{stopped}; kept in {}. `longhaul summary` compares them, `longhaul show RUN` tells all of one.",
        tally.runs,
        tally.failed,
        database.display()
    );
}

fn plan(arguments: &Run, config: &Config, mounts: &[Mount]) -> anyhow::Result<Plan> {
    let given = places::targets(&arguments.targets, mounts)?;
    let targets = if given.is_empty() { config.targets.clone() } else { given };
    if targets.is_empty() {
        let message = "no target: give `--target NAME=PATH`, or name some in the configuration (`longhaul config --print`)";
        return Err(Usage(message.to_owned()).into());
    }
    let workloads = if arguments.workloads.is_empty() { &config.workloads } else { &arguments.workloads };
    if let Some(unknown) = workloads.iter().find(|name| workload(name).is_none()) {
        let known: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name()).collect();
        return Err(Usage(format!("there is no task `{unknown}`; there are {}", known.join(", "))).into());
    }
    Ok(Plan {
        targets,
        rounds: arguments.rounds,
        tasks: Tasks {
            workloads: without_repetition(workloads),
            scale: arguments.scale.map_or(config.scale, Scale::from),
            settings: config.settings.clone(),
            cap: arguments.cap.map_or(config.limits.cap, Duration::from_secs),
        },
    })
}

fn without_repetition(names: &[String]) -> Vec<String> {
    let mut unique: Vec<String> = vec![];
    for name in names {
        if !unique.contains(name) {
            unique.push(name.clone());
        }
    }
    unique
}

/// Lets no round begin when a target has used up what the configuration allows in 24 hours.
pub fn budget_gate<'a>(database: &'a Path, targets: &'a [Target], limits: Limits) -> Gate<'a> {
    Box::new(move || {
        let Some(budget) = limits.bytes_per_day else { return Ok(()) };
        let since_us = Some(platform::wall_clock_us() - DAY_US);
        for target in targets {
            let filter = RunFilter { target: Some(target.name.clone()), since_us, ..RunFilter::default() };
            let runs = Reader::open(database)
                .and_then(|reader| reader.runs(&filter))
                .map_err(|error| format!("what was used of the budget cannot be read: {error}"))?;
            let phases = runs.iter().flat_map(|stored| &stored.run.phases);
            let used: u64 = phases.map(|phase| phase.bytes_read + phase.bytes_written).sum();
            if used >= budget {
                return Err(over_budget(&target.name, used, budget));
            }
        }
        Ok(())
    })
}
