//! `longhaul report --pair A,B`: reports two shares in depth.

use std::process::ExitCode;

use jiff::civil::Date;
use longhaul_analysis::summary::{
    PairSummary, UnmeasuredShare, Week, WeeklySummary, before_after, date_of_day, event_day,
};
use longhaul_model::{Event, Role, RoundRecord, TargetName};
use longhaul_view::json;
use longhaul_view::render;
use longhaul_view::screens::before_after::BeforeAfterView;
use longhaul_view::screens::pair::{PairReport, pair as pair_screen};

use super::input::{WeeklyInput, days_since_epoch};
use super::output::{decision_exit_code, print_or_write};
use crate::arguments::{GlobalArgs, PairArg, ReportArgs, ReportFormat};
use crate::errors::UsageError;
use crate::exit;

/// Prints the report of one pair in depth.
pub fn run(shared: &GlobalArgs, arguments: &ReportArgs) -> anyhow::Result<ExitCode> {
    let input = WeeklyInput::load(shared, arguments)?.since(arguments.since);
    check_since(&input)?;
    let weekly = input.weekly();
    let pair = selected_pair(&weekly, arguments)?;
    let around = match &arguments.at {
        Some(at) => Some(parse_moment(&input, [&pair.a, &pair.b], at)?),
        None => None,
    };
    let around =
        around.and_then(|(day, what)| Some((what, before_after(&input.history, &input.query, &pair, day)?)));
    // A file's name alone asks for no other format than JSON.
    let format = match (arguments.format, arguments.chosen_format()) {
        (None, ReportFormat::Md | ReportFormat::Html | ReportFormat::Png) => ReportFormat::Text,
        (_, chosen) => chosen,
    };
    let text = match format {
        ReportFormat::Json => {
            let value = serde_json::json!({ "schema": 1, "pair": json::pair(&pair), "around": around });
            serde_json::to_string_pretty(&value)? + "\n"
        }
        ReportFormat::Text => {
            let around = around.as_ref().map(|(what, rows)| BeforeAfterView { what, rows });
            let report = PairReport { weekly: &weekly, pair: &pair, since: arguments.since, around };
            render::terminal::render(&pair_screen(&report))
        }
        ReportFormat::Md | ReportFormat::Html | ReportFormat::Png => {
            return Err(
                UsageError("`--pair` prints text or JSON only: give `--format text`".to_owned()).into()
            );
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
        if let Some(share) = weekly.unmeasured.iter().find(|share| share.is_left_out && [a, b].contains(&&share.target)) {
            let UnmeasuredShare { target, last_day, .. } = share;
            let week = Week::of_day(share.day);
            return UsageError(format!(
                "`{target}` has not been measured since {last_day}: `longhaul report {week} --pair {a},{b}` shows the pair as it was then"
            ))
            .into();
        }
        let shares = weekly.targets.iter().filter(|target| target.role == Role::Share);
        let known: Vec<&str> = shares.map(|target| target.name.as_str()).collect();
        let unknown: Vec<&TargetName> =
            [a, b].into_iter().filter(|name| !known.contains(&name.as_str())).collect();
        let wrong = match unknown[..] {
            [name] => format!("`{name}` is not a share with runs"),
            _ => format!("`{a}` and `{b}` are not two shares with runs"),
        };
        let known = if known.is_empty() { "none in this period".to_owned() } else { known.join(", ") };
        UsageError(format!("{wrong} (a folder on a local disk is not a share); shares with runs: {known}"))
            .into()
    })
}

/// Refuses a day of `--since` after the newest round of the report.
fn check_since(input: &WeeklyInput) -> Result<(), UsageError> {
    let last_day = input.query.week.last_day();
    let days = input.history.rounds.iter().map(RoundRecord::day);
    match (input.query.since, days.filter(|day| *day <= last_day).max()) {
        (Some(since), Some(newest)) if newest < since => Err(UsageError(format!(
            "there are no rounds since {}; the newest is of {}",
            date_of_day(since),
            date_of_day(newest)
        ))),
        _ => Ok(()),
    }
}

/// Parses the argument of `--at`, a date or a kind of event, and returns the day of the date or of the latest such
/// event.
fn parse_moment(input: &WeeklyInput, pair: [&TargetName; 2], at: &str) -> anyhow::Result<(i64, String)> {
    let (day, what) = match at.parse::<Date>() {
        Ok(date) => (days_since_epoch(date), date.to_string()),
        Err(_) => latest_event(input, pair, at)?,
    };
    let last_day = input.query.week.last_day();
    let days = || input.history.rounds.iter().map(RoundRecord::day).filter(|day| *day <= last_day);
    match (days().min(), days().max()) {
        (Some(first), Some(last)) if day <= first || day >= last => {
            let (first, last) = (date_of_day(first), date_of_day(last));
            let why = format!("{what} has no rounds on both sides: there are rounds from {first} to {last}");
            Err(UsageError(why).into())
        }
        _ => Ok((day, what)),
    }
}

/// Returns the day of the latest event of a kind that may concern a pair, up to the end of the week, and the event as text.
fn latest_event(input: &WeeklyInput, pair: [&TargetName; 2], kind: &str) -> anyhow::Result<(i64, String)> {
    let WeeklyInput { history, query } = input;
    let last_day = query.week.last_day();
    let may_concern = |event: &&Event| {
        let is_of_pair = event.target.as_ref().is_none_or(|target| pair.contains(&target));
        is_of_pair && event_day(history, event) <= last_day
    };
    let events: Vec<&Event> = history.events.iter().filter(may_concern).collect();
    let found = events.iter().rev().find(|event| event.kind == kind).map(|event| event_day(history, event));
    found.map(|day| (day, format!("{kind} on {}", date_of_day(day)))).ok_or_else(|| {
        let mut kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kinds = if kinds.is_empty() { "none so far".to_owned() } else { kinds.join(", ") };
        let (a, b, until) = (pair[0], pair[1], date_of_day(last_day));
        UsageError(format!(
            "`{kind}` is neither a date nor a kind of event of {a} and {b} until {until}; recorded kinds: {kinds}"
        ))
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{History, Scale, Timestamp};

    fn at(day: i64, minute: i64) -> Timestamp {
        Timestamp::from_us((day * 1_440 + minute) * 60_000_000)
    }

    /// Returns rounds on the days 101 and 102, of which only the first is in summer time, and a report of the week of day 102.
    fn input(events: Vec<Event>) -> WeeklyInput {
        let round = |number, utc_offset_seconds| RoundRecord {
            number,
            started_us: at(100 + number, 0),
            utc_offset_seconds,
            scale: Scale::Quick,
            status: None,
            reason: None,
        };
        let rounds = vec![round(1, 7_200), round(2, 3_600)];
        WeeklyInput::new(History { rounds, events, ..History::default() }, Some(Week::of_day(102)))
    }

    fn event(target: Option<&str>, at_us: Timestamp) -> Event {
        let target = target.map(|name| name.parse().unwrap());
        Event { target, kind: "os-update".to_owned(), detail: serde_json::Value::Null, at_us }
    }

    fn latest_day(events: Vec<Event>) -> Option<i64> {
        let [a, b]: [TargetName; 2] = ["smb", "nfs"].map(|name| name.parse().unwrap());
        latest_event(&input(events), [&a, &b], "os-update").ok().map(|(day, _)| day)
    }

    #[test]
    fn event_before_a_change_of_the_clocks_keeps_its_day() {
        // 22:30 UTC: 00:30 of the next day in the summer.
        assert_eq!(latest_day(vec![event(None, at(101, 22 * 60 + 30))]), Some(102));
    }

    #[test]
    fn day_after_the_newest_round_is_named_as_such() {
        let since = |day| check_since(&input(vec![]).since(Some(date_of_day(day)))).map_err(|error| error.0);
        assert_eq!(since(102), Ok(()));
        assert_eq!(
            since(103),
            Err("there are no rounds since 1970-04-14; the newest is of 1970-04-13".to_owned())
        );
    }

    #[test]
    fn event_of_another_target_or_after_the_week_is_not_the_latest() {
        let sunday = Week::of_day(102).last_day();
        let later = [event(Some("afp"), at(102, 600)), event(None, at(sunday + 1, 600))];
        assert_eq!(latest_day([vec![event(Some("nfs"), at(101, 600))], later.to_vec()].concat()), Some(101));
        assert_eq!(latest_day(later.to_vec()), None);
    }
}
