//! `longhaul report --pair A,B`: reports two shares in depth.

use std::process::ExitCode;

use jiff::civil::Date;
use longhaul_analysis::summary::{PairSummary, WeeklySummary, before_after, date_of_day, event_day};
use longhaul_model::{History, Role, RoundRecord};
use longhaul_view::json::PairJson;
use longhaul_view::render;
use longhaul_view::screens::before_after::Around;
use longhaul_view::screens::pair::{PairReport, pair as pair_screen};

use super::input::{WeeklyInput, days_since_epoch};
use super::output::{decision_exit_code, print_or_write};
use crate::arguments::{GlobalArgs, PairArg, ReportArgs, ReportFormat};
use crate::errors::UsageError;
use crate::exit;

/// Prints the report of one pair in depth.
pub fn run(shared: &GlobalArgs, arguments: &ReportArgs) -> anyhow::Result<ExitCode> {
    let input = WeeklyInput::load(shared, arguments)?.since(arguments.since);
    let weekly = input.weekly();
    let pair = selected_pair(&weekly, arguments)?;
    let around = match &arguments.at {
        Some(at) => Some(parse_moment(&input.history, at)?),
        None => None,
    };
    let around =
        around.and_then(|(day, what)| Some((what, before_after(&input.history, &input.query, &pair, day)?)));
    let text = match arguments.chosen_format() {
        ReportFormat::Json => {
            let value = serde_json::json!({ "schema": 1, "pair": PairJson::from(&pair), "around": around });
            serde_json::to_string_pretty(&value)? + "\n"
        }
        ReportFormat::Text => {
            let around = around.as_ref().map(|(what, rows)| Around { what, rows });
            let report = PairReport { weekly: &weekly, pair: &pair, since: arguments.since, around };
            render::terminal::render(&pair_screen(&report))
        }
        ReportFormat::Md | ReportFormat::Html | ReportFormat::Png => {
            return Err(UsageError("--pair prints text or JSON only".to_owned()).into());
        }
    };
    print_or_write(arguments.output.as_deref(), &text)?;
    if arguments.exit_code {
        return Ok(decision_exit_code(&WeeklySummary { pairs: vec![pair], ..weekly }));
    }
    let has_data = pair.headline.is_some() || !pair.tasks.is_empty();
    Ok(if has_data { exit::OK } else { ExitCode::from(exit::NO_DATA) })
}

fn selected_pair(weekly: &WeeklySummary, arguments: &ReportArgs) -> anyhow::Result<PairSummary> {
    let wanted = arguments.pair.as_ref().ok_or_else(|| UsageError("--pair needs A,B".to_owned()))?;
    let mut pair = find_pair(weekly, wanted)?.clone();
    if let Some(workload) = &arguments.workload {
        pair.tasks.retain(|task| task.subject.workload == Some(workload.as_str()));
        if pair.tasks.is_empty() {
            let message =
                format!("`{workload}` was not run on both: `longhaul runs --summary` lists the tasks");
            return Err(UsageError(message).into());
        }
    }
    Ok(pair)
}

/// Returns the stored pair of two targets. The order of their names does not matter.
fn find_pair<'w>(weekly: &'w WeeklySummary, wanted: &PairArg) -> anyhow::Result<&'w PairSummary> {
    let (a, b) = (&wanted.a, &wanted.b);
    let is_meant = |pair: &&PairSummary| (&pair.a, &pair.b) == (a, b) || (&pair.a, &pair.b) == (b, a);
    weekly.pairs.iter().find(is_meant).ok_or_else(|| {
        let shares = weekly.targets.iter().filter(|target| target.role == Role::Share);
        let known: Vec<&str> = shares.map(|target| target.name.as_str()).collect();
        let known = if known.is_empty() { "none in this time".to_owned() } else { known.join(", ") };
        UsageError(format!(
            "`{a}` and `{b}` are not two shares with runs (a folder on a local disk is not a share); shares with runs: {known}"
        ))
        .into()
    })
}

/// Parses the argument of `--at`, a date or a kind of event, and returns the day of the date or of the latest such
/// event.
fn parse_moment(history: &History, at: &str) -> anyhow::Result<(i64, String)> {
    let (day, what) = match at.parse::<Date>() {
        Ok(date) => (days_since_epoch(date), date.to_string()),
        Err(_) => latest_event(history, at)?,
    };
    let days = || history.rounds.iter().map(RoundRecord::day);
    match (days().min(), days().max()) {
        (Some(first), Some(last)) if day <= first || day >= last => {
            let (first, last) = (date_of_day(first), date_of_day(last));
            let why = format!("{what} has no rounds on both sides: there are rounds from {first} to {last}");
            Err(UsageError(why).into())
        }
        _ => Ok((day, what)),
    }
}

/// Returns the day of the latest event of a kind, and the event as text.
fn latest_event(history: &History, kind: &str) -> anyhow::Result<(i64, String)> {
    let found = history.events.iter().rev().find(|event| event.kind == kind);
    let found = found.map(|event| event_day(history, event));
    found.map(|day| (day, format!("{kind} on {}", date_of_day(day)))).ok_or_else(|| {
        let mut kinds: Vec<&str> = history.events.iter().map(|event| event.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kinds = if kinds.is_empty() { "none so far".to_owned() } else { kinds.join(", ") };
        UsageError(format!(
            "`{kind}` is neither a date nor a kind of recorded event; recorded kinds: {kinds}"
        ))
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{Event, Scale, Timestamp};

    #[test]
    fn event_before_a_change_of_the_clocks_keeps_its_day() {
        let at = |day: i64, minute: i64| Timestamp::from_us((day * 1_440 + minute) * 60_000_000);
        let round = |number, utc_offset_seconds| RoundRecord {
            number,
            started_us: at(100 + number, 0),
            utc_offset_seconds,
            scale: Scale::Quick,
            status: None,
            reason: None,
        };
        // 22:30 UTC: 00:30 of the next day in the summer.
        let at_us = at(101, 22 * 60 + 30);
        let detail = serde_json::Value::Null;
        let history = History {
            rounds: vec![round(1, 7_200), round(2, 3_600)],
            events: vec![Event { target: None, kind: "os-update".to_owned(), detail, at_us }],
            ..History::default()
        };
        assert_eq!(latest_event(&history, "os-update").unwrap().0, 102);
    }
}
