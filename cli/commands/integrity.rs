//! `longhaul integrity`: shows what was verified and what differed; with `--check`, reads everything back first.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use jiff::tz::TimeZone;
use longhaul_analysis::checks::integrity_lines;
use longhaul_measure::platform;
use longhaul_measure::workloads::{READ_BACK, Workload as _};
use longhaul_model::time::HOUR;
use longhaul_model::{Mount, Timestamp, VerifiedData};
use longhaul_service::config::Config;
use longhaul_service::foreground::ForegroundPlan;
use longhaul_service::round::RoundTasks;
use longhaul_store::{Reader, RunFilter};
use longhaul_view::screens::checks;

use super::run::{Session, budget_check};
use crate::arguments::{GlobalArgs, IntegrityArgs};
use crate::progress::{OutputStyle, ProgressUi};
use crate::{exit, paths, render};

/// Minimum time that reading everything back may take.
const MIN_CAP: Duration = HOUR.saturating_mul(6);

/// Shows what was verified.
pub fn run(shared: &GlobalArgs, arguments: &IntegrityArgs) -> anyhow::Result<ExitCode> {
    let began = platform::wall_clock();
    let code = if arguments.check { check(shared, arguments)? } else { exit::OK };
    let reader = paths::open_reader(shared)?;
    if arguments.check && !arguments.json {
        print_read_back(&reader, began)?;
    }
    let lines = integrity_lines(&reader.verified_totals()?, &reader.mismatches(None)?);
    if arguments.json {
        crate::output::println!("{}", serde_json::to_string_pretty(&lines)?);
    } else if !arguments.check || !lines.is_empty() {
        // Without results, the screen would recommend the check that has just failed, whose reason was printed.
        render::print(&checks::integrity(&lines, &TimeZone::system()));
    }
    Ok(code)
}

/// Prints what the check that began at a time has read back.
fn print_read_back(reader: &Reader, began: Timestamp) -> anyhow::Result<()> {
    let workload = Some(READ_BACK.name().to_owned());
    let runs = reader.runs(&RunFilter { workload, since: Some(began), ..RunFilter::default() })?;
    let phases = runs.into_iter().flat_map(|stored| stored.run.phases);
    let verified: Vec<VerifiedData> = phases.flat_map(|phase| phase.verified).collect();
    let found = checks::read_back_now(&verified, reader.mismatches(Some(began))?.len());
    found.into_iter().for_each(|text| crate::output::println!("{text}\n"));
    Ok(())
}

/// Reads everything back that longhaul keeps on the targets.
fn check(shared: &GlobalArgs, arguments: &IntegrityArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let mounts = platform::mounts().context("read the mount table")?;
    let plan = plan(arguments, &config, &mounts)?;
    let database = paths::database(shared, &config)?;
    paths::check_paths(&plan.targets, Some(&database), &mounts)?;
    if !arguments.targets.is_empty() {
        paths::check_folders(&plan.targets, &mounts)?;
    }
    paths::check_known_paths(&plan.targets, &config, &database)?;
    let session = Session::open(database, &mounts)?;
    let budget = budget_check(&session.database, &plan.targets, config.limits);
    let (totals, _workers) = session.run_rounds(&plan, ProgressUi::new(OutputStyle::Failures, budget));
    let totals = totals?;
    Ok(if totals.failed_runs > 0 { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

fn plan(arguments: &IntegrityArgs, config: &Config, mounts: &[Mount]) -> anyhow::Result<ForegroundPlan> {
    let given = paths::parse_targets(&arguments.targets, mounts)?;
    paths::check_managed_targets(&given, config)?;
    let targets = paths::given_or_configured(given, config)?;
    let tasks = RoundTasks {
        workloads: vec![READ_BACK.name().to_owned()],
        scale: config.scale,
        settings: config.settings.clone(),
        cap: config.limits.cap.max(MIN_CAP),
    };
    Ok(ForegroundPlan { targets, tasks, rounds: 1, nas: None })
}
