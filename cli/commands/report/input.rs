//! Reads the history that a report is computed from.

use std::path::Path;

use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use longhaul_analysis::summary::{TargetLine, Week, WeeklyQuery, WeeklySummary, summarize_week};
use longhaul_measure::platform;
use longhaul_model::{History, Role};
use longhaul_service::config::Config;
use longhaul_service::paths::read_history;
use longhaul_view::screens::words;
use longhaul_view::time::instant;

use crate::arguments::{GlobalArgs, ReportArgs};
use crate::errors::UsageError;
use crate::paths;

/// Returns a sentence for each share that is left out of the answers, and for each other one that is not in the configuration any
/// more.
pub fn missing_shares(weekly: &WeeklySummary, config: &Config) -> Vec<String> {
    words::unmeasured(weekly).into_iter().chain(former_shares(weekly, config)).collect()
}

/// Returns a sentence for each share with results that is not in the configuration any more; none without a configuration, and none
/// for a share that is left out, because the report names it.
pub fn former_shares(weekly: &WeeklySummary, config: &Config) -> Vec<String> {
    let is_former = |line: &&TargetLine| {
        let is_configured = config.targets.iter().any(|known| known.name == line.name);
        let is_left_out = weekly.unmeasured.iter().any(|share| share.target == line.name);
        line.role == Role::Share && !is_configured && !is_left_out
    };
    let sentence = |line: &TargetLine| {
        format!("{} is no longer in the configuration: it is not measured any more", line.name)
    };
    let shares = weekly.targets.iter().filter(|_| !config.targets.is_empty());
    shares.filter(is_former).map(sentence).collect()
}

/// A history and the week to report.
pub struct WeeklyInput {
    /// Data that the report is computed from.
    pub history: History,
    /// The requested week, scale and time zone.
    pub query: WeeklyQuery,
}

impl WeeklyInput {
    /// Reads the history from an export file if one is given, or else from the database.
    pub fn load(shared: &GlobalArgs, arguments: &ReportArgs) -> anyhow::Result<Self> {
        let history = match &arguments.from_export {
            Some(path) => read_export(path)?,
            None => read_history(&paths::open_reader(shared)?, &paths::load_config(shared)?)?,
        };
        let input = Self::new(history, arguments.week);
        let now = current_week(&Zoned::now().with_time_zone(input.query.zone.clone()));
        let newest = input.history.rounds.last().map_or(now, |round| Week::of_day(round.day()).max(now));
        if arguments.week.is_some_and(|week| week > newest) {
            let message = format!("there is no week {} yet: the newest is {newest}", input.query.week);
            return Err(UsageError(message).into());
        }
        Ok(input)
    }

    /// Creates the input for a week; for the newest week with a round if none is given, as on the dashboard.
    pub fn new(history: History, week: Option<Week>) -> Self {
        let named = history.settings.zone.as_deref().and_then(|name| TimeZone::get(name).ok());
        let zone = named.unwrap_or_else(TimeZone::system);
        let newest = history.rounds.last().map(|round| Week::of_day(round.day()));
        let current = || current_week(&Zoned::now().with_time_zone(zone.clone()));
        let week = week.or(newest).unwrap_or_else(current);
        Self { history, query: WeeklyQuery { week, scale: None, since: None, zone } }
    }

    /// Computes the summary of the week.
    pub fn weekly(&self) -> WeeklySummary {
        summarize_week(&self.history, &self.query)
    }

    /// Uses nothing from before a day, except to know the warm-up.
    pub fn since(mut self, date: Option<Date>) -> Self {
        if let Some(day) = date.map(days_since_epoch) {
            self.query.since = Some(day);
            self.history.freshness.retain(|changes| changes.day >= day);
        }
        self
    }
}

/// Reads an export. Parts that cannot be used are reported on standard error.
fn read_export(path: &Path) -> anyhow::Result<History> {
    let imported = longhaul_export::read_history(path)?;
    for left in &imported.skipped {
        crate::output::eprintln!("longhaul: left out of {}: {left}", path.display());
    }
    Ok(imported.history)
}

fn current_week(now: &Zoned) -> Week {
    let offset = now.offset().seconds();
    Week::of_day(platform::wall_clock().local_day(offset))
}

/// Returns the number of days from 1970-01-01 to a date.
pub fn days_since_epoch(date: Date) -> i64 {
    let midnight = date.at(0, 0, 0, 0).to_zoned(TimeZone::UTC);
    midnight.map_or(0, |midnight| instant(&midnight).local_day(0))
}

#[cfg(test)]
mod tests {
    use longhaul_analysis::summary::UnmeasuredShare;
    use longhaul_model::Target;

    use super::*;

    /// Returns a target of a report.
    fn line(name: &str) -> TargetLine {
        let name = name.parse().unwrap();
        TargetLine { name, role: Role::Share, protocol: None, counted_from: None, epochs: 1 }
    }

    #[test]
    fn each_missing_share_is_named_in_one_sentence() {
        let mut weekly = WeeklyInput::new(History::default(), Some(Week::of_day(102))).weekly();
        weekly.targets = ["smb", "nfs", "afp"].map(line).into();
        let (target, last_day) = ("smb".parse().unwrap(), "1970-04-01".to_owned());
        weekly.unmeasured = vec![UnmeasuredShare { target, day: 90, last_day, is_left_out: true }];
        let afp = Target { name: "afp".parse().unwrap(), path: "/m/afp".into(), role: Role::Share };
        let config = Config { targets: vec![afp], ..Config::default() };
        let of_nfs = "nfs is no longer in the configuration: it is not measured any more";
        assert_eq!(former_shares(&weekly, &config), [of_nfs]);
        let of_smb = "smb has not been measured since 1970-04-01 and is left out.";
        assert_eq!(missing_shares(&weekly, &config), [of_smb, of_nfs]);
    }
}
