//! The sections of the configuration file for the background service: `[schedule]`, `[web]` and `[log]`.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use longhaul_model::time::DAY;
use serde::Deserialize;

use super::value::{InvalidValue, in_range};
use crate::schedule::quiet_hours::QuietHours;
use crate::schedule::skip::SkipRules;

/// The order in which the schedule measures targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Every round measures every target. This design needs the least time for a verdict.
    #[default]
    Rounds,
    /// One target is measured per week, for a NAS that can be mounted with only one protocol at a time.
    Weeks,
}

/// Schedule of the rounds that the background service runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Number of rounds in 24 hours.
    pub rounds_per_day: u64,
    /// The order in which targets are measured.
    pub design: Design,
    /// Number of corpus slices that take turns. `None`: enough for each to rest for a day if every target has
    /// ample free space, otherwise the default number.
    pub slices: Option<u64>,
    /// Conditions under which a round is skipped.
    pub skip_rules: SkipRules,
    /// Largest share of the time that rounds may take, from 0 to 1. `None`: no limit.
    pub max_time_share: Option<f64>,
    /// Slowdown of a share in use, as a multiple of its idle latency, at which a round yields to the user.
    pub yield_factor: f64,
    /// Measure freshness at the start of each round, if two shares lead to one folder.
    pub freshness: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            rounds_per_day: 24,
            design: Design::Rounds,
            slices: None,
            skip_rules: SkipRules::default(),
            max_time_share: Some(0.2),
            yield_factor: 3.0,
            freshness: true,
        }
    }
}

impl Schedule {
    /// Returns the planned time between two rounds, in seconds.
    pub fn interval_seconds(&self) -> u64 {
        DAY.as_secs() / self.rounds_per_day.max(1)
    }
}

/// Settings of the dashboard and of the API that controls the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Web {
    /// Port on 127.0.0.1; 0: any free port.
    pub port: u16,
    /// Another address of this machine on which the dashboard listens, for browsers with
    /// a key. `None`: 127.0.0.1 only.
    pub address: Option<IpAddr>,
}

/// Settings of the service's log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Log level: `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// Size limit of the log and its rotated files together, in bytes.
    pub max_bytes: u64,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), max_bytes: 10_000_000 }
    }
}

/// The `[schedule]` section as written, before its values are validated.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileSchedule {
    rounds_per_day: Option<toml::Spanned<u64>>,
    design: Option<Design>,
    slices: Option<toml::Spanned<u64>>,
    quiet_hours: Option<toml::Spanned<String>>,
    skip_on_battery_below_percent: Option<toml::Spanned<f64>>,
    skip_in_dark_wake: Option<bool>,
    skip_in_low_power_mode: Option<bool>,
    skip_when_hot: Option<bool>,
    skip_during_backup: Option<bool>,
    skip_on_other_link: Option<bool>,
    skip_above_traffic_megabytes_per_second: Option<toml::Spanned<f64>>,
    max_time_percent: Option<toml::Spanned<f64>>,
    yield_factor: Option<toml::Spanned<f64>>,
    freshness: Option<bool>,
}

/// The `[web]` section as written, before its values are validated.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileWeb {
    port: Option<u16>,
    address: Option<toml::Spanned<String>>,
}

/// The `[log]` section as written, before its values are validated.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileLog {
    level: Option<toml::Spanned<String>>,
    megabytes: Option<toml::Spanned<u64>>,
}

impl FileSchedule {
    pub(super) fn validate(self) -> Result<Schedule, InvalidValue> {
        let default = Schedule::default();
        Ok(Schedule {
            rounds_per_day: in_range(self.rounds_per_day, "rounds-per-day", 1..=8640)?
                .unwrap_or(default.rounds_per_day),
            design: self.design.unwrap_or_default(),
            slices: in_range(self.slices, "slices", 2..=64)?,
            max_time_share: parse_fraction(self.max_time_percent, "max-time-percent", 0.0..=100.0)?
                .or(default.max_time_share),
            yield_factor: in_range(self.yield_factor, "yield-factor", 1.0..=1000.0)?
                .unwrap_or(default.yield_factor),
            freshness: self.freshness.unwrap_or(default.freshness),
            skip_rules: SkipRules {
                battery_below: in_range(
                    self.skip_on_battery_below_percent,
                    "skip-on-battery-below-percent",
                    0.0..=101.0,
                )?
                .or(default.skip_rules.battery_below),
                in_dark_wake: self.skip_in_dark_wake.unwrap_or(default.skip_rules.in_dark_wake),
                in_low_power_mode: self
                    .skip_in_low_power_mode
                    .unwrap_or(default.skip_rules.in_low_power_mode),
                when_hot: self.skip_when_hot.unwrap_or(default.skip_rules.when_hot),
                during_backup: self.skip_during_backup.unwrap_or(default.skip_rules.during_backup),
                on_other_link: self.skip_on_other_link.unwrap_or(default.skip_rules.on_other_link),
                traffic_above: in_range(
                    self.skip_above_traffic_megabytes_per_second,
                    "skip-above-traffic-megabytes-per-second",
                    0.0..=1e6,
                )?
                .map(|megabytes| megabytes * 1e6)
                .or(default.skip_rules.traffic_above),
                quiet_hours: self.quiet_hours.map(parse_quiet_hours).transpose()?,
            },
        })
    }
}

impl FileWeb {
    pub(super) fn validate(self) -> Result<Web, InvalidValue> {
        let address = self.address.map(local_address).transpose()?;
        Ok(Web { port: self.port.unwrap_or_default(), address })
    }
}

/// Parses a single address. The wildcard addresses are refused: they would expose the
/// dashboard on every interface.
fn local_address(text: toml::Spanned<String>) -> Result<IpAddr, InvalidValue> {
    let address = text.get_ref().parse().ok().filter(|address: &IpAddr| !address.is_unspecified());
    let message = format!(
        "`address`: `{}` is not an address of this machine; give one such as 192.168.1.5",
        text.get_ref()
    );
    address.ok_or(InvalidValue::new(text.span().start, message))
}

impl FileLog {
    pub(super) fn validate(self) -> Result<Log, InvalidValue> {
        let default = Log::default();
        Ok(Log {
            level: self.level.map(parse_level).transpose()?.unwrap_or(default.level),
            max_bytes: in_range(self.megabytes, "megabytes", 1..=10_000)?
                .map_or(default.max_bytes, |megabytes| megabytes * 1_000_000),
        })
    }
}

/// Log levels, from the fewest messages to the most.
pub const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

fn parse_level(level: toml::Spanned<String>) -> Result<String, InvalidValue> {
    if LOG_LEVELS.contains(&level.get_ref().as_str()) {
        return Ok(level.into_inner());
    }
    let message = format!("`level` must be one of {}", LOG_LEVELS.join(", "));
    Err(InvalidValue::new(level.span().start, message))
}

fn parse_fraction(
    percent: Option<toml::Spanned<f64>>,
    key: &str,
    range: RangeInclusive<f64>,
) -> Result<Option<f64>, InvalidValue> {
    Ok(in_range(percent, key, range)?.map(|percent| percent / 100.0))
}

/// Parses a span such as `22:00-07:00`.
pub(super) fn parse_quiet_hours(text: toml::Spanned<String>) -> Result<QuietHours, InvalidValue> {
    let parsed = text.get_ref().split_once('-');
    let hours = |(from, to)| Some(QuietHours { from: parse_minutes(from)?, to: parse_minutes(to)? });
    let parsed = parsed.and_then(hours);
    let message = "write `quiet-hours` as \"22:00-07:00\"";
    parsed.ok_or(InvalidValue::new(text.span().start, message))
}

/// Parses a time such as `22:00` into a minute of the day.
pub(super) fn parse_minutes(clock: &str) -> Option<u16> {
    let (hours, minutes) = clock.trim().split_once(':')?;
    let (hours, minutes) = (hours.parse::<u16>().ok()?, minutes.parse::<u16>().ok()?);
    (hours < 24 && minutes < 60 && clock.trim().len() <= 5).then_some(hours * 60 + minutes)
}
