//! The parts of the configuration that are about the background service.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use serde::Deserialize;

use super::{Wrong, within};
use crate::schedule::skip::Rules;

/// Which rounds are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Every round measures every target: the one that decides soonest.
    #[default]
    Rounds,
    /// One target a week, for a NAS that can be mounted in one way at a time.
    Weeks,
}

/// When the background service measures.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Rounds in 24 hours.
    pub rounds_per_day: u64,
    /// Which rounds.
    pub design: Design,
    /// How many slices of a corpus take turns; `None`: as many as let each rest for a day, where there is ample space.
    pub slices: Option<u64>,
    /// What rounds are skipped for.
    pub rules: Rules,
    /// The share of time that rounds may take, from 0 to 1; `None`: any.
    pub duty: Option<f64>,
    /// How many times its calm latency a share may take before a round yields to a person who works on it.
    pub yield_factor: f64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            rounds_per_day: 24,
            design: Design::Rounds,
            slices: None,
            rules: Rules::default(),
            duty: Some(0.2),
            yield_factor: 3.0,
        }
    }
}

impl Schedule {
    /// Seconds from round to round.
    pub fn interval_seconds(&self) -> u64 {
        86_400 / self.rounds_per_day.max(1)
    }
}

/// The page and the control interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Web {
    /// The port on 127.0.0.1; 0: whichever is free.
    pub port: u16,
    /// Another address of this machine on which the page is, for browsers with a key; `None`: on this machine only.
    pub address: Option<IpAddr>,
}

/// The service's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// What is written: `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// Bytes that the log and the older parts kept beside it may take in all.
    pub bytes: u64,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), bytes: 10_000_000 }
    }
}

/// `[schedule]`, word for word.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileSchedule {
    rounds_per_day: Option<toml::Spanned<u64>>,
    design: Option<Design>,
    slices: Option<toml::Spanned<u64>>,
    quiet_hours: Option<toml::Spanned<String>>,
    skip_on_battery_below_percent: Option<toml::Spanned<f64>>,
    skip_in_low_power_mode: Option<bool>,
    skip_when_hot: Option<bool>,
    skip_during_backup: Option<bool>,
    skip_on_other_link: Option<bool>,
    skip_above_traffic_megabytes_per_second: Option<toml::Spanned<f64>>,
    duty_percent: Option<toml::Spanned<f64>>,
    yield_factor: Option<toml::Spanned<f64>>,
}

/// `[web]`, word for word.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileWeb {
    port: Option<u16>,
    address: Option<toml::Spanned<String>>,
}

/// `[log]`, word for word.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileLog {
    level: Option<toml::Spanned<String>>,
    megabytes: Option<toml::Spanned<u64>>,
}

impl FileSchedule {
    pub(super) fn read(self) -> Result<Schedule, Wrong> {
        let default = Schedule::default();
        Ok(Schedule {
            rounds_per_day: within(self.rounds_per_day, "rounds-per-day", 1..=8640)?
                .unwrap_or(default.rounds_per_day),
            design: self.design.unwrap_or_default(),
            slices: within(self.slices, "slices", 2..=64)?,
            duty: share(self.duty_percent, "duty-percent", 0.0..=100.0)?.or(default.duty),
            yield_factor: within(self.yield_factor, "yield-factor", 1.0..=1000.0)?
                .unwrap_or(default.yield_factor),
            rules: Rules {
                battery_below: within(
                    self.skip_on_battery_below_percent,
                    "skip-on-battery-below-percent",
                    0.0..=101.0,
                )?
                .or(default.rules.battery_below),
                low_power_mode: self.skip_in_low_power_mode.unwrap_or(default.rules.low_power_mode),
                heat: self.skip_when_hot.unwrap_or(default.rules.heat),
                backup: self.skip_during_backup.unwrap_or(default.rules.backup),
                other_link: self.skip_on_other_link.unwrap_or(default.rules.other_link),
                traffic_above: within(
                    self.skip_above_traffic_megabytes_per_second,
                    "skip-above-traffic-megabytes-per-second",
                    0.0..=1e6,
                )?
                .map(|megabytes| megabytes * 1e6)
                .or(default.rules.traffic_above),
                quiet: self.quiet_hours.map(quiet_hours).transpose()?,
            },
        })
    }
}

impl FileWeb {
    pub(super) fn read(self) -> Result<Web, Wrong> {
        let address = self.address.map(of_this_machine).transpose()?;
        Ok(Web { port: self.port.unwrap_or_default(), address })
    }
}

/// One address: all of them at once would be more than a person means.
fn of_this_machine(text: toml::Spanned<String>) -> Result<IpAddr, Wrong> {
    let address = text.get_ref().parse().ok().filter(|address: &IpAddr| !address.is_unspecified());
    address.ok_or_else(|| Wrong {
        at: text.span().start,
        message: format!(
            "`address`: `{}` is not one address of this machine, as 192.168.1.5 is",
            text.get_ref()
        ),
    })
}

impl FileLog {
    pub(super) fn read(self) -> Result<Log, Wrong> {
        let default = Log::default();
        Ok(Log {
            level: self.level.map(level).transpose()?.unwrap_or(default.level),
            bytes: within(self.megabytes, "megabytes", 1..=10_000)?
                .map_or(default.bytes, |megabytes| megabytes * 1_000_000),
        })
    }
}

/// The levels of a log, from few words to many.
pub const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

fn level(level: toml::Spanned<String>) -> Result<String, Wrong> {
    if LEVELS.contains(&level.get_ref().as_str()) {
        return Ok(level.into_inner());
    }
    let message = format!("`level` has to be one of {}", LEVELS.join(", "));
    Err(Wrong { at: level.span().start, message })
}

fn share(
    percent: Option<toml::Spanned<f64>>,
    key: &str,
    range: RangeInclusive<f64>,
) -> Result<Option<f64>, Wrong> {
    Ok(within(percent, key, range)?.map(|percent| percent / 100.0))
}

/// `22:00-07:00` as minutes of the day.
fn quiet_hours(text: toml::Spanned<String>) -> Result<(u16, u16), Wrong> {
    let minute = |clock: &str| {
        let (hours, minutes) = clock.trim().split_once(':')?;
        let (hours, minutes) = (hours.parse::<u16>().ok()?, minutes.parse::<u16>().ok()?);
        (hours < 24 && minutes < 60 && clock.trim().len() <= 5).then_some(hours * 60 + minutes)
    };
    let parsed = text.get_ref().split_once('-').and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
    let message = "write `quiet-hours` as \"22:00-07:00\"".to_owned();
    parsed.ok_or(Wrong { at: text.span().start, message })
}
