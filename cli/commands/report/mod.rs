//! `longhaul report`: the weekly report, for the terminal, a forum, a browser or a program.

mod input;
mod output;
mod pair;
mod picture;

use std::process::ExitCode;

use longhaul_analysis::summary::{ClientCaching, Week, WeeklySummary, client_caching};
use longhaul_measure::platform;
use longhaul_view::json;
use longhaul_view::redaction::with_neutral_names;
use longhaul_view::screens::brief::{before_first_week, brief};
use longhaul_view::screens::week::{WeekReport, week};
use longhaul_view::{Environment, html, markdown, negotiated_until, render};

use crate::arguments::{GlobalArgs, ReportArgs, ReportFormat};
use crate::paths;
use input::former_shares;
pub use input::{WeeklyInput, missing_shares};
use output::{decision_exit_code, exit_code, print_or_write};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prints or writes the report of a week, or of one pair.
pub fn run(shared: &GlobalArgs, arguments: &ReportArgs) -> anyhow::Result<ExitCode> {
    if arguments.pair.is_some() {
        return pair::run(shared, arguments);
    }
    let format = arguments.chosen_format();
    let mut input = WeeklyInput::load(shared, arguments)?;
    if arguments.anonymous {
        input.history = with_neutral_names(input.history);
    }
    let weekly = input.weekly();
    if arguments.from_export.is_none() && !arguments.anonymous {
        let former = former_shares(&weekly, &paths::load_config(shared)?);
        former.iter().for_each(|text| crate::output::eprintln!("longhaul: {text}"));
    }
    let text = match format {
        ReportFormat::Png => {
            picture::write(arguments.output.as_deref(), &longhaul_view::share_card(&weekly))?;
            None
        }
        ReportFormat::Text => Some(match later_first_week(&input, &weekly) {
            Some(first) => render::terminal::render(&before_first_week(&weekly, first)),
            None => text(shared, arguments, &weekly)?,
        }),
        ReportFormat::Md => Some(markdown(&weekly)),
        ReportFormat::Html => {
            let environment = environment(shared, arguments, &input)?;
            Some(html(&weekly, &environment))
        }
        ReportFormat::Json => {
            let caching = load_caching(shared, arguments)?;
            Some(serde_json::to_string_pretty(&json::week(&weekly, &caching))? + "\n")
        }
    };
    if let Some(text) = text {
        print_or_write(arguments.output.as_deref(), &text)?;
    }
    Ok(if arguments.exit_code { decision_exit_code(&weekly) } else { exit_code(&weekly) })
}

/// Returns the first week with a round if it is later than the week of the report.
fn later_first_week(input: &WeeklyInput, weekly: &WeeklySummary) -> Option<Week> {
    let first = input.history.rounds.first().map(|round| Week::of_day(round.day()));
    first.filter(|first| *first > weekly.week)
}

fn text(shared: &GlobalArgs, arguments: &ReportArgs, weekly: &WeeklySummary) -> anyhow::Result<String> {
    let document = match arguments.verbose {
        true => week(&WeekReport { caching: &load_caching(shared, arguments)?, ..WeekReport::new(weekly) }),
        false => brief(weekly),
    };
    Ok(render::terminal::render(&document))
}

/// Returns the client caching of each protocol; empty for an export, which lacks the data, and without names, because each has one.
fn load_caching(shared: &GlobalArgs, arguments: &ReportArgs) -> anyhow::Result<Vec<ClientCaching>> {
    match arguments.anonymous || arguments.from_export.is_some() {
        true => Ok(vec![]),
        false => Ok(client_caching(&paths::open_reader(shared)?.rereads()?)),
    }
}

/// Describes the machine and mounts of a history; unknown for an export.
fn environment(
    shared: &GlobalArgs,
    arguments: &ReportArgs,
    WeeklyInput { history, query }: &WeeklyInput,
) -> anyhow::Result<Environment> {
    match arguments.from_export {
        Some(_) => Ok(Environment { longhaul: VERSION.to_owned(), ..Environment::default() }),
        None => {
            let epochs = paths::open_reader(shared)?.epochs()?;
            Ok(Environment::of_this_machine(
                platform::system_version(),
                longhaul_service::processors(),
                longhaul_service::memory_total(),
                negotiated_until(query.week, history, &epochs),
            ))
        }
    }
}
