//! A run in one line.

use anstyle::{AnsiColor, Style};
use longhaul_measure::model::{CacheState, Outcome, Phase};
use longhaul_store::StoredRun;

use super::units;

/// Number, target, protocol, task, outcome, time, and the first figure of each phase.
pub fn run(stored: &StoredRun) -> String {
    let run = &stored.run;
    let protocol = run.protocol.as_ref().map_or("?".to_owned(), ToString::to_string);
    let style = outcome_style(run.outcome);
    let head = format!(
        "{:>5}  {:<10} {protocol:<10} {:<22} {style}{:<11}{style:#} {:>9}",
        stored.number,
        run.target,
        run.workload,
        run.outcome,
        units::seconds(run.seconds)
    );
    match &run.failure {
        Some(failure) => format!("{head}  {}", failure.message),
        None => format!("{head}  {}", run.phases.iter().filter_map(figure).collect::<Vec<_>>().join(", ")),
    }
}

fn figure(phase: &Phase) -> Option<String> {
    let figure = phase.figures.first()?;
    let cache = match phase.cache {
        CacheState::None => "",
        CacheState::Cold => " cold",
        CacheState::Warm => " warm",
    };
    Some(format!("{}{cache} {}", figure.name, units::value(figure.value, figure.unit)))
}

/// Green for what is well, red for what failed, yellow for what says nothing.
pub fn outcome_style(outcome: Outcome) -> Style {
    let colour = match outcome {
        Outcome::Ok => AnsiColor::Green,
        Outcome::Error | Outcome::Hung => AnsiColor::Red,
        Outcome::Unavailable | Outcome::Void => AnsiColor::Yellow,
    };
    colour.on_default()
}
