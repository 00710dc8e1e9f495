//! `longhaul` without a command: prints the state of the service, the latest answers and problems.

use std::collections::BTreeSet;
use std::iter::once;
use std::process::ExitCode;
use std::time::Duration;

use jiff::tz::TimeZone;
use longhaul_analysis::attribution::ATTRIBUTED_ROUNDS;
use longhaul_analysis::checks::integrity_lines;
use longhaul_analysis::summary::{PairSummary, WeeklySummary, date_of_day};
use longhaul_measure::platform;
use longhaul_model::time::DAY;
use longhaul_model::{History, Role, RoundRecord, RoundStatus, RunRecord, TargetName};
use longhaul_service::config::{Config, ConfigLoader};
use longhaul_service::paths::{read_attributions, read_history};
use longhaul_service::status::Status;
use longhaul_store::{Error, Reader};
use longhaul_view::document::Fact;
use longhaul_view::screens::checks::{CheckResults, in_brief};
use longhaul_view::screens::{recommendation, sentences, status, why};
use longhaul_view::units;

use super::report::{WeeklyInput, missing_shares};
use crate::arguments::GlobalArgs;
use crate::client::connect;
use crate::{exit, paths};

/// Maximum number of problems that are shown.
const MAX_PROBLEMS: usize = 3;
/// Age of the last round from which its date says more.
const MAX_AGE: Duration = DAY.saturating_mul(30);
/// Explains longhaul before anything is configured or measured.
const INTRODUCTION: [&str; 2] = [
    "longhaul measures which network-drive protocol is faster for what you do.",
    "First look: `longhaul demo`. Set up: `longhaul init`. Measure once: `longhaul try`.",
];

/// Prints the overview.
pub fn run(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    // A broken configuration must not hide the results.
    let (config, broken) = match paths::load_config(shared) {
        Ok(config) => (config, None),
        Err(error) => (ConfigLoader::system().read(None)?, Some(error)),
    };
    let is_broken = broken.is_some();
    let answers = answers(shared, &config)?;
    let is_new = config.targets.is_empty() && answers.is_empty() && !is_broken;
    let status = connect(shared).and_then(|client| Ok(client.status()?)).ok();
    let is_told = status.iter().flat_map(|status| &status.problems).any(|problem| problem.code == "config");
    let mut lines = match &status {
        Some(status) => service(status),
        None if is_new => INTRODUCTION.map(str::to_owned).to_vec(),
        None => vec![without_service(&config)],
    };
    let broken = broken.filter(|_| !is_told);
    lines.extend(broken.map(|error| format!("Problem:  {error} (`longhaul config` checks it)")));
    lines.extend(answers);
    lines.push("Commands: `longhaul --help`".to_owned());
    lines.iter().for_each(crate::output::print_line);
    Ok(if is_broken { ExitCode::from(exit::USAGE) } else { exit::OK })
}

/// Returns the next step while no service runs.
fn without_service(config: &Config) -> String {
    let next = match config.targets.is_empty() {
        false => "`longhaul service install` measures in the background",
        true => "`longhaul init` chooses what to compare, `longhaul try` shows what longhaul does",
    };
    format!("Service:  not running; {next}")
}

/// Returns the state of the service and its problems.
fn service(status: &Status) -> Vec<String> {
    let zone = TimeZone::system();
    let fact = |fact: &Fact| format!("{:<9} {}", format!("{}:", fact.name), fact.value.content());
    let mut lines: Vec<String> = status::in_short(status, &zone).iter().map(fact).collect();
    let problems = status.problems.iter().map(|problem| problem.text.clone());
    let of_targets = status::target_problems(status, &zone);
    let problems = problems.chain(of_targets.iter().map(|text| text.content()));
    lines.extend(problems.take(MAX_PROBLEMS).map(|problem| format!("Problem:  {problem}")));
    lines
}

/// Returns the latest answer, what it rests on, what each share waits for, and the results of the checks; empty if there is no
/// database.
fn answers(shared: &GlobalArgs, config: &Config) -> anyhow::Result<Vec<String>> {
    let reader = match Reader::open(&paths::database(shared, config)?) {
        Err(Error::NoDatabase { .. }) => return Ok(vec![]),
        opened => opened?,
    };
    let input = WeeklyInput::new(read_history(&reader, config)?, None);
    let weekly = input.weekly();
    let checks = in_brief(&CheckResults {
        freshness: &weekly.freshness,
        integrity: &integrity_lines(&reader.verified_totals()?, &reader.mismatches(None)?),
        fidelity: &reader.fidelity()?,
    });
    let attributions = read_attributions(&reader, ATTRIBUTED_ROUNDS, weekly.scale)?;
    let counted = why::counted_round_trips(&weekly, &attributions).map(|text| format!("Counted:  {text}"));
    let bottlenecks = why::bottlenecks(&weekly, &attributions);
    let bottlenecks = bottlenecks.iter().map(|text| format!("Why:      {}", text.content()));
    let missing = missing_shares(&weekly, config).into_iter().map(|text| format!("Note:     {text}"));
    let rest = missing.chain(counted).chain(bottlenecks);
    let rest = rest.chain(checks.iter().map(|check| format!("Check:    {check}")));
    let shares = config.targets.iter().filter(|target| target.role == Role::Share).count();
    if weekly.pairs.is_empty() && shares < 2 {
        let none = "Answer:   none yet; a comparison needs two shares".to_owned();
        return Ok(once(none).chain(rest).collect());
    }
    let answer = format!("Answer:   {}", recommendation::heading(&weekly));
    let data = data_line(&weekly, &input.history);
    let report = data.as_ref().map(|_| report_line(&weekly));
    let pair =
        recommendation::main_pair(&weekly).map(|pair| format!("Speed:    {}", sentences::headline(pair)));
    Ok(once(answer).chain(data).chain(pair).chain(report).chain(rest).collect())
}

/// Returns the data that the answer rests on, and how old it is; `None` before the first complete round of both shares.
fn data_line(weekly: &WeeklySummary, history: &History) -> Option<String> {
    let pair = recommendation::main_pair(weekly)?;
    let rounds = rounds_of(pair, history);
    let is_counted = |round: &&RoundRecord| {
        round.status == Some(RoundStatus::Ok)
            && Some(round.scale) == weekly.scale
            && rounds.contains(&round.number)
    };
    let last = history.rounds.iter().rev().find(is_counted)?;
    let data = match &pair.headline {
        Some(counted) if !counted.days.is_empty() => {
            let days = units::count(counted.days.len(), "day");
            let rounds = units::count(counted.rounds.planned, "round");
            format!("{days} and {} of {rounds}", counted.rounds.complete)
        }
        Some(early) => units::count(early.so_far.rounds, "complete round"),
        None => {
            let rounds = units::count(history.rounds.iter().filter(is_counted).count(), "round");
            format!("{rounds} with runs on both shares")
        }
    };
    let seconds = platform::wall_clock().seconds_since(last.started_us);
    let last = match (0.0..MAX_AGE.as_secs_f64()).contains(&seconds) {
        true => format!("{} ago", units::estimated_duration(seconds)),
        false => format!("on {}", date_of_day(last.day())),
    };
    Some(format!("Data:     {data}; the last round was {last}"))
}

/// Returns the rounds in which both shares of a pair have runs.
fn rounds_of(pair: &PairSummary, history: &History) -> BTreeSet<i64> {
    let with_run = |name: &TargetName| -> BTreeSet<i64> {
        let is_of = |run: &&RunRecord| history.targets[run.target].name == *name;
        history.runs.iter().filter(is_of).map(|run| run.round).collect()
    };
    &with_run(&pair.a) & &with_run(&pair.b)
}

/// Returns where the rest of the answer is.
fn report_line(weekly: &WeeklySummary) -> String {
    let more = match weekly.pairs.len().saturating_sub(1) {
        0 => String::new(),
        pairs => format!("{} and ", units::count(pairs, "more pair")),
    };
    format!("Report:   `longhaul report` shows {more}all tasks")
}
