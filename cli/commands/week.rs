//! `longhaul week`, `compare` and `verdict`: what the weeks say so far.

use std::path::Path;
use std::process::ExitCode;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use longhaul_measure::model::TargetName;
use longhaul_measure::platform;
use longhaul_measure::summary::{
    Caching, Comparison, History, PairSummary, Question, Week, Weekly, before_after, caching, local_day,
    weekly,
};
use longhaul_service::places::history;
use longhaul_web::json::WeekShown;

use super::list::Form;
use super::report;
use crate::arguments::{Compare, Evidence, Shared, Verdict, WeekArguments};
use crate::render::week as render;
use crate::{Usage, exit, places};

/// A history, and what is asked of it.
pub struct Asked {
    /// The history.
    pub history: History,
    question: Question,
}

impl Asked {
    /// Of an export, or else of the database.
    pub fn of(shared: &Shared, evidence: &Evidence, week: Option<Week>) -> anyhow::Result<Self> {
        let history = match &evidence.from_export {
            Some(path) => imported(path)?,
            None => history(&places::reader(shared)?, &places::config(shared)?)?,
        };
        let named = history.premises.zone.as_deref().and_then(|name| TimeZone::get(name).ok());
        let zone = named.unwrap_or_else(TimeZone::system);
        let week = week.unwrap_or_else(|| week_of(&Zoned::now().with_time_zone(zone.clone())));
        Ok(Self { history, question: Question { week, scale: None, zone } })
    }

    /// The summary that was asked for.
    pub fn weekly(&self) -> Weekly {
        weekly(&self.history, &self.question)
    }

    /// Leaves out every round before a day.
    fn since(mut self, date: Option<Date>) -> Self {
        if let Some(date) = date {
            let day = day_of(date);
            self.history.rounds.retain(|round| round.day() >= day);
            let rounds: std::collections::BTreeSet<i64> =
                self.history.rounds.iter().map(|round| round.number).collect();
            self.history.runs.retain(|run| rounds.contains(&run.round));
        }
        self
    }
}

/// The history of an export; what of it was left out is said on standard error.
fn imported(path: &Path) -> anyhow::Result<History> {
    let imported = longhaul_export::read_history(path)?;
    for left in &imported.left_out {
        anstream::eprintln!("longhaul: left out of {}: {left}", path.display());
    }
    Ok(imported.history)
}

fn week_of(now: &Zoned) -> Week {
    let offset = now.offset().seconds();
    Week::of_day(local_day(platform::wall_clock_us(), offset))
}

fn day_of(date: Date) -> i64 {
    let midnight = date.at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).map(|at| at.timestamp());
    midnight.unwrap_or(Timestamp::UNIX_EPOCH).as_second().div_euclid(86_400)
}

/// Prints the summary of a week.
pub fn week(shared: &Shared, arguments: &WeekArguments) -> anyhow::Result<ExitCode> {
    let asked = Asked::of(shared, &arguments.evidence, arguments.week)?;
    let weekly = asked.weekly();
    if let Some(path) = &arguments.html {
        let environment = report::environment_of(shared, &arguments.evidence, &asked.history)?;
        report::write(path, &longhaul_report::html(&weekly, &environment))?;
    } else if arguments.markdown {
        anstream::print!("{}", longhaul_report::markdown(&weekly));
    } else {
        let caching = known_caching(shared, &arguments.evidence)?;
        print(&weekly, &caching, Form::of(arguments.json))?;
    }
    Ok(code(&weekly))
}

/// Whether each protocol is cached; an export does not hold what that is made of.
fn known_caching(shared: &Shared, evidence: &Evidence) -> anyhow::Result<Vec<Caching>> {
    match evidence.from_export {
        Some(_) => Ok(vec![]),
        None => Ok(caching(&places::reader(shared)?.rereads()?)),
    }
}

fn print(weekly: &Weekly, caching: &[Caching], form: Form) -> anyhow::Result<()> {
    match form {
        Form::Json => anstream::println!("{}", serde_json::to_string_pretty(&WeekShown { weekly, caching })?),
        Form::Tables => anstream::print!("{}", render::week(weekly, caching)),
    }
    Ok(())
}

/// 5 while there is nothing to show.
pub fn code(weekly: &Weekly) -> ExitCode {
    if weekly.table.is_empty() { ExitCode::from(exit::NO_DATA) } else { exit::OK }
}

/// Prints one pair in depth.
pub fn compare(shared: &Shared, arguments: &Compare) -> anyhow::Result<ExitCode> {
    let asked = Asked::of(shared, &arguments.evidence, None)?.since(arguments.since);
    let weekly = asked.weekly();
    let mut pair = pair(&weekly, (&arguments.a, &arguments.b))?.clone();
    if let Some(workload) = &arguments.workload {
        pair.tasks.retain(|task| task.subject.workload == Some(workload.as_str()));
        if pair.tasks.is_empty() {
            return Err(Usage(format!(
                "`{workload}` was not run on both: `longhaul summary` lists what was"
            ))
            .into());
        }
    }
    let around = match &arguments.at {
        Some(at) => Some(moment(&asked.history, at)?),
        None => None,
    };
    let around = around.and_then(|(day, what)| {
        Some((what, before_after(&asked.history, &asked.question, (&pair.a, &pair.b), day)?))
    });
    if arguments.json {
        let value = serde_json::json!({ "schema": 1, "pair": pair, "around": around });
        anstream::println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        anstream::print!("{}", render::pair_in_depth(&weekly, &pair, arguments.since));
        if let Some((what, around)) = &around {
            anstream::print!("{}", render::before_after(what, (&pair.a, &pair.b), around));
        }
    }
    Ok(if pair.headline.is_some() || !pair.tasks.is_empty() {
        exit::OK
    } else {
        ExitCode::from(exit::NO_DATA)
    })
}

/// The pair of two targets, in the order in which they are kept.
fn pair<'w>(weekly: &'w Weekly, (a, b): (&TargetName, &TargetName)) -> anyhow::Result<&'w PairSummary> {
    let is_meant = |pair: &&PairSummary| (&pair.a, &pair.b) == (a, b) || (&pair.a, &pair.b) == (b, a);
    weekly.pairs.iter().find(is_meant).ok_or_else(|| {
        let known: Vec<&str> = weekly
            .targets
            .iter()
            .filter(|target| target.role == longhaul_measure::model::Role::Share)
            .map(|target| target.name.as_str())
            .collect();
        let known = if known.is_empty() { "none so far".to_owned() } else { known.join(", ") };
        Usage(format!("`{a}` and `{b}` are not two shares with runs; shares with runs are: {known}")).into()
    })
}

/// The day that `--at` means: a date, or the latest event of a kind.
fn moment(history: &History, at: &str) -> anyhow::Result<(i64, String)> {
    if let Ok(date) = at.parse::<Date>() {
        return Ok((day_of(date), date.to_string()));
    }
    let offset = history.rounds.last().map_or(0, |round| round.utc_offset_seconds);
    let found = history.events.iter().rev().find(|event| event.kind == at);
    let found = found.map(|event| local_day(event.at_us, offset));
    found.map(|day| (day, format!("{at} on {}", longhaul_measure::summary::calendar(day)))).ok_or_else(|| {
        let mut kinds: Vec<&str> = history.events.iter().map(|event| event.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kinds = if kinds.is_empty() { "none so far".to_owned() } else { kinds.join(", ") };
        Usage(format!("`{at}` is no date and no kind of event that is recorded; recorded are: {kinds}"))
            .into()
    })
}

/// Prints the headline of each pair; 5 unless every one is decided.
pub fn verdict(shared: &Shared, arguments: &Verdict) -> anyhow::Result<ExitCode> {
    let weekly = Asked::of(shared, &arguments.evidence, None)?.weekly();
    let headlines: Vec<&Comparison> = weekly.pairs.iter().filter_map(|pair| pair.headline.as_ref()).collect();
    for pair in &weekly.pairs {
        anstream::println!("{}", render::headline(pair));
    }
    let all = !headlines.is_empty() && headlines.len() == weekly.pairs.len();
    let is_decided = all && headlines.iter().all(|headline| headline.verdict.is_decided());
    if weekly.pairs.is_empty() {
        anstream::println!("There are no two shares with runs yet, so there is nothing to decide.");
    }
    Ok(if is_decided || !arguments.exit_code { exit::OK } else { ExitCode::from(exit::NO_DATA) })
}
