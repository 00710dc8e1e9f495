//! `longhaul run`: runs rounds in the foreground.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::platform;
use longhaul_model::time::DAY;
use longhaul_model::{Hint, Mount, TASKS, Target};
use longhaul_presets::catalog;
use longhaul_service::config::{Argument, Config, FixedSettingError, Limits};
use longhaul_service::database_lock::DatabaseLock;
use longhaul_service::foreground::{ForegroundPlan, ForegroundRunner, RunTotals};
use longhaul_service::own_files;
use longhaul_service::round::{RoundTasks, close_open_rounds};
use longhaul_service::service::machine_seed;
use longhaul_service::worker::{EXIT_TIMEOUT, Interruption, Launcher, Worker, end_workers};
use longhaul_store::{Reader, Store, Writer};
use longhaul_view::screens::trial::{PlanEnd, RunCounts, counts};
use serde_json::json;

use crate::arguments::{GlobalArgs, RunArgs};
use crate::errors::UsageError;
use crate::progress::{BudgetCheck, OutputStyle, ProgressUi, budget_exceeded_text};
use crate::{exit, paths};

/// Everything that a measurement needs: database, worker settings and the interrupt flag.
pub struct Session {
    /// Writer of the database.
    pub writer: Writer,
    /// Settings for starting workers.
    pub launcher: Launcher,
    /// Path of the database.
    pub database: PathBuf,
    machine_seed: u64,
    /// Requested by Ctrl-C, SIGTERM or the end of the terminal.
    pub interruption: Interruption,
    _database_lock: DatabaseLock,
}

impl Session {
    /// Locks the database, opens it for writing, and starts to listen for Ctrl-C.
    pub fn open(database: PathBuf, mounts: &[Mount]) -> anyhow::Result<Self> {
        // Before the database is opened: a newer version would change the tables under a service that still runs.
        let exclusive = DatabaseLock::acquire(&database, mounts)?;
        for path in own_files::restrict_to_user(&database, platform::log_directory().as_deref()) {
            crate::output::eprintln!("longhaul: other users could read {}; now only you can", path.display());
        }
        let store = Store::open(&database, mounts)?;
        let launcher = paths::launcher(&database, store.machine_id())?;
        let reader = Reader::open(&database)?;
        let machine_seed = machine_seed(&reader, store.machine_id())?;
        let writer = Writer::spawn(store);
        // Rounds that a killed process left open would be shown as in progress for ever.
        let reason = "longhaul exited during the round";
        close_open_rounds(&reader, &writer, reason)?;
        let interruption = listen_for_interrupt()?;
        Ok(Self { writer, launcher, database, machine_seed, interruption, _database_lock: exclusive })
    }

    /// Runs the rounds of a plan. Returns the workers as well, because a hung worker must remain the only one on
    /// its target.
    pub fn run_rounds(
        &self,
        plan: &ForegroundPlan,
        mut ui: ProgressUi<'_>,
    ) -> (anyhow::Result<RunTotals>, Vec<Worker>) {
        let mut runner = ForegroundRunner::new(plan, &self.launcher, &self.writer, &self.interruption);
        let totals = self
            .count_started_rounds()
            .and_then(|started_rounds| Ok(runner.run(self.machine_seed, started_rounds, &mut ui)?));
        ui.clear();
        end_workers(&mut runner.workers, EXIT_TIMEOUT);
        (totals, runner.workers)
    }

    fn count_started_rounds(&self) -> anyhow::Result<u64> {
        Ok(Reader::open(&self.database)?.count_started_rounds()?)
    }
}

/// Requests an interruption on the first Ctrl-C or SIGTERM; a second one exits at once. The end of the terminal requests one too. Data
/// on disk is consistent either way.
pub fn listen_for_interrupt() -> anyhow::Result<Interruption> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let was_interrupted = Arc::new(AtomicBool::new(false));
    let (mut signals, sender) = UnixStream::pair().context("create a channel for signals")?;
    for signal in [SIGINT, SIGTERM] {
        let flag = || Arc::clone(&was_interrupted);
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, flag())
            .and_then(|_| signal_hook::flag::register(signal, flag()))
            .and_then(|_| signal_hook::low_level::pipe::register(signal, sender.try_clone()?))
            .context("listen for Ctrl-C")?;
    }
    // The shell and the kernel may each send one when a terminal is closed, so a second one does not exit at once. What `nohup` started
    // ignores it.
    if !platform::ignores_signal(SIGHUP) {
        sender
            .try_clone()
            .and_then(|sender| signal_hook::low_level::pipe::register(SIGHUP, sender))
            .context("listen for the end of the terminal")?;
    }
    let interruption = Interruption::default();
    let requester = interruption.clone();
    // A signal handler may do little more than write a byte, so a thread makes the request.
    std::thread::spawn(move || {
        if signals.read_exact(&mut [0]).is_ok() {
            requester.request();
        }
    });
    Ok(interruption)
}

/// Runs the rounds that the command line and the configuration define.
pub fn run(shared: &GlobalArgs, arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let database = paths::database(shared, &config)?;
    let plan = run_plan(arguments, &config, &mounts, &database)?;
    paths::check_paths(&plan.targets, Some(&database), &mounts)?;
    if !arguments.targets.is_empty() {
        // A share of the configuration may be away for a while: its rounds are stored without it.
        paths::check_folders(&plan.targets, &mounts)?;
    }
    paths::check_known_paths(&plan.targets, &config, &database)?;
    let session = Session::open(database, &mounts)?;
    session.writer.set_threshold_once(config.analysis.threshold)?;
    let style = if arguments.json { OutputStyle::Json } else { OutputStyle::Lines };
    let check = budget_check(&session.database, &plan.targets, config.limits);
    let (totals, _workers) = session.run_rounds(&plan, ProgressUi::new(style, check));
    let totals = totals?;
    match style {
        OutputStyle::Json => {
            crate::output::println!(
                "{}",
                json!({"type": "end", "runs": totals.runs, "failed": totals.failed_runs})
            );
        }
        OutputStyle::ShortLines | OutputStyle::Lines | OutputStyle::Failures | OutputStyle::Silent => {
            print_totals(totals, &session.database)
        }
    }
    Ok(if totals.failed_runs > 0 { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

fn print_totals(totals: RunTotals, database: &Path) {
    crate::output::println!();
    crate::output::print_line(format_args!(
        "{}; stored in {}. `longhaul runs --summary` compares them, `longhaul runs ID` shows one run in full.",
        counts(run_counts(totals)),
        database.display()
    ));
}

/// Returns how the runs of a plan ended, as screens show it.
pub fn run_counts(totals: RunTotals) -> RunCounts {
    let ended_by = if totals.interrupted { PlanEnd::User } else { PlanEnd::LastRound };
    RunCounts { runs: totals.runs, failed: totals.failed_runs, ended_by }
}

fn run_plan(
    arguments: &RunArgs,
    config: &Config,
    mounts: &[Mount],
    database: &Path,
) -> anyhow::Result<ForegroundPlan> {
    let given = paths::parse_targets(&arguments.targets, mounts)?;
    check_managed(arguments, &given, config)?;
    let targets = paths::given_or_configured(given, config)?;
    let workloads = if arguments.workloads.is_empty() { &config.workloads } else { &arguments.workloads };
    if let Some(unknown) = workloads.iter().find(|name| catalog().find(name).is_none()) {
        let known: Vec<&str> = TASKS.iter().map(|workload| workload.name()).collect();
        return Err(
            UsageError(format!("there is no task `{unknown}`; known tasks: {}", known.join(", "))).into()
        );
    }
    Ok(ForegroundPlan {
        targets,
        rounds: arguments.rounds,
        nas: config.nas.clone(),
        tasks: RoundTasks {
            workloads: deduplicated(workloads),
            scale: arguments.scale.unwrap_or(config.scale),
            settings: config.workload_settings(database),
            cap: arguments.cap.map_or(config.limits.cap, Duration::from_secs),
        },
    })
}

/// Refuses arguments that differ from what the administrator has set.
fn check_managed(arguments: &RunArgs, targets: &[Target], config: &Config) -> anyhow::Result<()> {
    let managed = &config.managed;
    let workloads = Some(&arguments.workloads).filter(|names| !names.is_empty());
    managed
        .check_argument(Argument { option: "--scale", key: "scale" }, arguments.scale.as_ref(), &config.scale)
        .and_then(|()| {
            let argument = Argument { option: "--workload", key: "workloads" };
            managed.check_argument(argument, workloads, &config.workloads)
        })
        .and_then(|()| check_managed_cap(arguments.cap, config))
        .map_err(|error| UsageError(error.to_string()))?;
    paths::check_managed_targets(targets, config)
}

/// Refuses a longest duration of a run that differs from what the administrator has set.
pub fn check_managed_cap(seconds: Option<u64>, config: &Config) -> Result<(), FixedSettingError> {
    let argument = Argument { option: "--cap", key: "limits.cap-seconds" };
    config.managed.check_argument(argument, seconds.map(Duration::from_secs).as_ref(), &config.limits.cap)
}

fn deduplicated(names: &[String]) -> Vec<String> {
    let mut unique: Vec<String> = vec![];
    for name in names {
        if !unique.contains(name) {
            unique.push(name.clone());
        }
    }
    unique
}

/// Returns a check that fails when a target has used up its byte budget of the last 24 hours.
pub fn budget_check<'a>(database: &'a Path, targets: &'a [Target], limits: Limits) -> BudgetCheck<'a> {
    Box::new(move || {
        let Some(budget) = limits.bytes_per_day else { return Ok(()) };
        let used = Reader::open(database)
            .and_then(|reader| reader.bytes_since(platform::wall_clock() - DAY))
            .map_err(|error| format!("the budget used so far cannot be read: {}", error.one_line()))?;
        let used = |target: &Target| used.get(&target.name).copied().unwrap_or(0);
        match targets.iter().find(|target| used(target) >= budget) {
            Some(target) => Err(budget_exceeded_text(&target.name, used(target), budget)),
            None => Ok(()),
        }
    })
}
