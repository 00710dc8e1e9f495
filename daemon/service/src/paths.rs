//! Default paths of the configuration file and the database, for the command line and the service.

use std::io;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use longhaul_analysis::attribution::{Attribution, attribute, disk_seconds};
use longhaul_analysis::summary::anonymize;
use longhaul_analysis::usage::{
    CountedUsage, MAX_WEEKS, UsageInput, UsageProfile, count_usage, usage_profile,
};
use longhaul_measure::platform;
use longhaul_model::time::DAY;
use longhaul_model::{History, Scale};
use longhaul_store::{Reader, TaskRequests};

use crate::config::{Argument, Config, FixedSettingError};

/// File name of the database in the data folder.
const DATABASE_FILE: &str = "longhaul.sqlite";

/// Argument and setting of the database's path.
const DATABASE: Argument = Argument { option: "--database", key: "database" };

/// Returns the path of the default configuration file, which need not exist. `None`: there is no home folder.
pub fn default_config_path() -> Option<PathBuf> {
    platform::config_directory().map(|folder| folder.join("config.toml"))
}

/// Returns the given configuration file, or the default one if it exists.
pub fn existing_config_path(given: Option<&Path>) -> Option<PathBuf> {
    given.map(Path::to_owned).or_else(|| default_config_path().filter(|path| path.exists()))
}

/// The reason why the path of the database is unknown.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// There is no home folder, and no path was given.
    #[error("HOME is not set, so there is no default folder for the database: give `--database PATH`")]
    NoHome,
    /// The given path cannot be made absolute.
    #[error("database {}: {source}", path.display())]
    NotAbsolute {
        /// Path as given.
        path: PathBuf,
        /// Error returned by the operating system.
        source: io::Error,
    },
    /// The administrator has set another path.
    #[error(transparent)]
    Fixed(#[from] FixedSettingError),
}

/// Returns the path of the database: as given, from the configuration, or in the data folder.
///
/// # Errors
///
/// [`PathError`] if none of the three gives an absolute path, or if the administrator has set another one than the given.
pub fn database_path(given: Option<&Path>, config: &Config) -> Result<PathBuf, PathError> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|source| PathError::NotAbsolute { path: path.to_owned(), source })
    };
    let default =
        || platform::data_directory().map(|folder| folder.join(DATABASE_FILE)).ok_or(PathError::NoHome);
    let configured = || config.database.as_deref().map_or_else(default, absolute);
    let Some(given) = given.map(absolute).transpose()? else { return configured() };
    if config.managed.covering(DATABASE.key).is_some() {
        config.managed.check_argument(DATABASE, Some(&given), &configured()?)?;
    }
    Ok(given)
}

/// Reads the history that verdicts and exports are made from, anonymized, with the usage profile, as configured or
/// counted, and the time zone of this machine.
pub fn read_history(reader: &Reader, config: &Config) -> longhaul_store::Result<History> {
    read_history_since(reader, config, History::default())
}

/// Like [`read_history`], but takes the runs of `earlier`, a history that was read from the same file before, instead of
/// reading them again.
pub fn read_history_since(
    reader: &Reader,
    config: &Config,
    earlier: History,
) -> longhaul_store::Result<History> {
    let mut history = reader.history_since(earlier)?;
    let (_, profile) = read_usage(reader, config)?;
    history.settings.usage_profile = profile.waits_a_week();
    history.settings.usage_counted_days = profile.counted_days;
    // Without targets, rounds are made by hand, each at its own scale.
    history.settings.scale = (!config.targets.is_empty()).then_some(config.scale);
    history.settings.zone = TimeZone::system().iana_name().map(ToOwned::to_owned);
    Ok(anonymize(history))
}

/// Reads the newest rounds and attributes the time of every metric of every network target to layers. `scale` is that of the weekly
/// summary, so that verdicts and attributions are about the same runs.
pub fn read_attributions(
    reader: &Reader,
    rounds: u32,
    scale: Option<Scale>,
) -> longhaul_store::Result<Vec<Attribution>> {
    let phases = reader.phase_times(rounds, scale)?;
    Ok(attribute(&phases, &disk_seconds(&reader.nas_use_of(&phases)?)))
}

/// Reads the usage of all targets, and returns it with the usage profile that follows from it and the configuration.
pub fn read_usage(reader: &Reader, config: &Config) -> longhaul_store::Result<(CountedUsage, UsageProfile)> {
    let now = platform::wall_clock();
    let days = reader.usage_by_day(now - MAX_WEEKS * 7 * DAY..now)?;
    // Without any usage, the tasks' requests are not needed; older databases then read as fast as before.
    let tasks = if days.is_empty() { TaskRequests::default() } else { reader.task_requests()? };
    let input = UsageInput { days: &days, listings: &tasks.listings, photos: tasks.photos };
    let counted = count_usage(&input);
    let profile = usage_profile(&config.analysis.usage_profile, &counted);
    Ok((counted, profile))
}
