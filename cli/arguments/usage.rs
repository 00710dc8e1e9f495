//! Arguments of `usage`.

use clap::{Args, Subcommand};
use longhaul_model::PROFILE_LINES;
use longhaul_service::config::USAGE_PER_WEEK;
use longhaul_service::config_edit::UsageValue;

/// Arguments of `usage`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct UsageArgs {
    /// Subcommand to run instead of showing the usage.
    #[command(subcommand)]
    pub command: Option<UsageCommand>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The subcommands of `usage`.
#[derive(Subcommand)]
pub enum UsageCommand {
    /// Set lines of the usage profile in the configuration; they take precedence over what is counted.
    #[command(after_help = "Example: longhaul usage set folder-openings=200 backups=7")]
    Set {
        /// Line and times a week: folder-openings, photo-sessions, backups, time-machine-bursts or recorded-days.
        #[arg(required = true, value_name = "LINE=TIMES", value_parser = parse_usage_value)]
        values: Vec<UsageValue>,
    },
    /// Remove the usage profile from the configuration, so that what is counted is used.
    Reset,
}

/// Parses `LINE=TIMES`.
fn parse_usage_value(text: &str) -> Result<UsageValue, String> {
    let (key, times) = text.split_once('=').ok_or("write LINE=TIMES, such as folder-openings=200")?;
    let keys = PROFILE_LINES.map(|line| line.key);
    let key = keys.into_iter().find(|known| *known == key);
    let key = key.ok_or_else(|| format!("the usage profile has these lines: {}", keys.join(", ")))?;
    let times = parse_times(times)?;
    Ok(UsageValue { key, times })
}

/// Parses a number of times a week.
pub fn parse_times(text: &str) -> Result<f64, String> {
    let times = text.trim().parse::<f64>().ok().filter(|times| USAGE_PER_WEEK.contains(times));
    let (least, most) = (USAGE_PER_WEEK.start(), USAGE_PER_WEEK.end());
    times.ok_or_else(|| format!("`{}` is not a number of times a week, from {least} to {most}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_lines_and_times_are_refused() {
        assert_eq!(parse_usage_value("backups=7"), Ok(UsageValue { key: "backups", times: 7.0 }));
        assert_eq!(parse_usage_value("backups=0"), Ok(UsageValue { key: "backups", times: 0.0 }));
        for bad in ["backups", "backups=", "backups=-1", "backups=nan", "backups=1e9", "backup=1", "=1"] {
            assert!(parse_usage_value(bad).is_err(), "{bad}");
        }
    }
}
