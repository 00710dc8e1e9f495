//! `longhaul` without a command: prints the state of the service, the latest answers and problems.

use std::iter::once;
use std::process::ExitCode;

use jiff::tz::TimeZone;
use longhaul_analysis::attribution::ATTRIBUTED_ROUNDS;
use longhaul_analysis::checks::integrity_ledger;
use longhaul_service::paths::{read_attributions, read_history};
use longhaul_view::document::Fact;
use longhaul_view::screens::checks::{CheckResults, in_brief};
use longhaul_view::screens::{brief, status, why};

use super::report::WeeklyInput;
use crate::arguments::GlobalArgs;
use crate::client::connect;
use crate::{exit, paths};

/// Maximum number of answers and of problems that are shown.
const MAX_LINES: usize = 3;

/// Prints the overview.
pub fn run(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    let mut lines = service(shared);
    lines.extend(answers(shared));
    lines.push("Commands: `longhaul --help`".to_owned());
    lines.iter().for_each(|line| anstream::println!("{line}"));
    Ok(exit::OK)
}

/// Returns the state of the service and its problems; without a service, the next step.
fn service(shared: &GlobalArgs) -> Vec<String> {
    let Ok(status) = connect(shared).and_then(|client| Ok(client.status()?)) else {
        let has_targets = paths::load_config(shared).is_ok_and(|config| !config.targets.is_empty());
        let next = match has_targets {
            true => "`longhaul service install` measures in the background",
            false => "`longhaul init` chooses what to compare, `longhaul try` shows what longhaul does",
        };
        return vec![format!("Service:  not running; {next}")];
    };
    let zone = TimeZone::system();
    let fact = |fact: &Fact| format!("{:<9} {}", format!("{}:", fact.name), fact.value.content());
    let mut lines: Vec<String> = status::in_short(&status, &zone).iter().map(fact).collect();
    lines.extend(status.problems.iter().take(MAX_LINES).map(|problem| format!("Problem:  {}", problem.text)));
    lines
}

/// Returns the latest answer of each pair, what each share waits for, and the results of the checks; empty if there is no
/// database.
fn answers(shared: &GlobalArgs) -> Vec<String> {
    let read = || {
        let reader = paths::open_reader(shared)?;
        let stored = read_history(&reader, &paths::load_config(shared)?)?;
        let weekly = WeeklyInput::new(stored, None).weekly();
        let checks = in_brief(&CheckResults {
            freshness: &weekly.freshness,
            integrity: &integrity_ledger(&reader.verified_totals()?, &reader.mismatches(None)?),
            fidelity: &reader.fidelity()?,
        });
        let bottlenecks = why::bottlenecks(&read_attributions(&reader, ATTRIBUTED_ROUNDS)?);
        anyhow::Ok((brief::answers(&weekly), bottlenecks, checks))
    };
    let Ok((answers, bottlenecks, checks)) = read() else { return vec![] };
    let bottlenecks = bottlenecks.iter().map(|text| format!("Why:      {}", text.content()));
    let rest = bottlenecks.chain(checks.iter().map(|check| format!("Check:    {check}")));
    if answers.is_empty() {
        return once("Answer:   none yet; a comparison needs two shares".to_owned()).chain(rest).collect();
    }
    answers.iter().take(MAX_LINES).map(|answer| format!("Answer:   {answer}")).chain(rest).collect()
}
