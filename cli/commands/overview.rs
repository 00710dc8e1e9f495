//! `longhaul` without a command: prints the state of the service, the latest answers and problems.

use std::iter::once;
use std::process::ExitCode;

use jiff::tz::TimeZone;
use longhaul_analysis::attribution::ATTRIBUTED_ROUNDS;
use longhaul_analysis::checks::integrity_ledger;
use longhaul_analysis::summary::date_of_day;
use longhaul_model::{History, Role, RoundStatus};
use longhaul_service::config::{Config, ConfigLoader};
use longhaul_service::paths::{read_attributions, read_history};
use longhaul_store::{Error, Reader};
use longhaul_view::document::Fact;
use longhaul_view::screens::checks::{CheckResults, in_brief};
use longhaul_view::screens::{brief, recommendation, status, why};
use longhaul_view::units;

use super::report::{WeeklyInput, former_shares};
use crate::arguments::GlobalArgs;
use crate::client::connect;
use crate::{exit, paths};

/// Maximum number of answers and of problems that are shown.
const MAX_LINES: usize = 3;

/// Prints the overview.
pub fn run(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    // A broken configuration must not hide the results.
    let (config, broken) = match paths::load_config(shared) {
        Ok(config) => (config, None),
        Err(error) => (ConfigLoader::system().read(None)?, Some(error)),
    };
    let is_broken = broken.is_some();
    let mut lines = service(shared, &config);
    lines.extend(broken.map(|error| format!("Problem:  {error}. `longhaul config` checks it")));
    lines.extend(answers(shared, &config)?);
    lines.push("Commands: `longhaul --help`".to_owned());
    lines.iter().for_each(|line| crate::output::println!("{line}"));
    Ok(if is_broken { ExitCode::from(exit::USAGE) } else { exit::OK })
}

/// Returns the state of the service and its problems; without a service, the next step.
fn service(shared: &GlobalArgs, config: &Config) -> Vec<String> {
    let Ok(status) = connect(shared).and_then(|client| Ok(client.status()?)) else {
        let next = match config.targets.is_empty() {
            false => "`longhaul service install` measures in the background",
            true => "`longhaul init` chooses what to compare, `longhaul try` shows what longhaul does",
        };
        return vec![format!("Service:  not running; {next}")];
    };
    let zone = TimeZone::system();
    let fact = |fact: &Fact| format!("{:<9} {}", format!("{}:", fact.name), fact.value.content());
    let mut lines: Vec<String> = status::in_short(&status, &zone).iter().map(fact).collect();
    let problems = status.problems.iter().map(|problem| problem.text.clone());
    let of_targets = status::target_problems(&status, &zone);
    let problems = problems.chain(of_targets.iter().map(|text| text.content()));
    lines.extend(problems.take(MAX_LINES).map(|problem| format!("Problem:  {problem}")));
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
        integrity: &integrity_ledger(&reader.verified_totals()?, &reader.mismatches(None)?),
        fidelity: &reader.fidelity()?,
    });
    let bottlenecks = why::bottlenecks(&read_attributions(&reader, ATTRIBUTED_ROUNDS)?);
    let bottlenecks = bottlenecks.iter().map(|text| format!("Why:      {}", text.content()));
    let former = former_shares(&weekly, config).into_iter().map(|text| format!("Note:     {text}"));
    let rest = former.chain(bottlenecks).chain(checks.iter().map(|check| format!("Check:    {check}")));
    let shares = config.targets.iter().filter(|target| target.role == Role::Share).count();
    if weekly.pairs.is_empty() && shares < 2 {
        let none = "Answer:   none yet; a comparison needs two shares".to_owned();
        return Ok(once(none).chain(rest).collect());
    }
    let answer = format!("Answer:   {}", recommendation::heading(&weekly));
    let pairs = brief::answers(&weekly);
    let more = pairs.len().saturating_sub(MAX_LINES);
    let pairs = pairs.iter().take(MAX_LINES).map(|pair| format!("Speed:    {pair}"));
    let report = report_line(&input.history, more);
    Ok(once(answer).chain(pairs).chain(report).chain(rest).collect())
}

/// Returns where the rest of the answer is, and how old it is; `None` before the first round.
fn report_line(history: &History, more_pairs: usize) -> Option<String> {
    let last = history.rounds.iter().rev().find(|round| round.status == Some(RoundStatus::Ok))?;
    let more = if more_pairs > 0 {
        format!("{} more, and ", units::count(more_pairs, "pair"))
    } else {
        String::new()
    };
    let date = date_of_day(last.day());
    Some(format!("Report:   `longhaul report` has {more}all tasks; the last complete round was on {date}"))
}
