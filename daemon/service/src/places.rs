//! Where things are on this machine, for the command line and the service alike.

use std::io;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use longhaul_measure::platform;
use longhaul_measure::summary::{History, public};
use longhaul_store::Reader;

use crate::config::Config;

/// The database's file name.
const DATABASE: &str = "longhaul.sqlite";

/// The configuration file that is meant: the one that was given, or the default one if it is there.
pub fn config_file(given: Option<&Path>) -> Option<PathBuf> {
    let default = || platform::config_directory().map(|folder| folder.join("config.toml"));
    given.map(Path::to_owned).or_else(|| default().filter(|path| path.exists()))
}

/// Why it is not known where the database is.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// There is no home.
    #[error("HOME is not set, so the database needs a place: give `--database PATH`")]
    NoHome,
    /// The path cannot be made absolute.
    #[error("database {}: {source}", path.display())]
    Relative {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The database: as given, as in the configuration, or in the data folder.
///
/// # Errors
///
/// [`PlaceError`] where there is none of the three.
pub fn database(given: Option<&Path>, config: &Config) -> Result<PathBuf, PlaceError> {
    match given.or(config.database.as_deref()) {
        Some(path) => {
            std::path::absolute(path).map_err(|source| PlaceError::Relative { path: path.to_owned(), source })
        }
        None => platform::data_directory().map(|folder| folder.join(DATABASE)).ok_or(PlaceError::NoHome),
    }
}

/// Everything that a verdict rests on, in the form in which verdicts and exports take it.
///
/// # Errors
///
/// As [`Reader::history`].
pub fn history(reader: &Reader, config: &Config) -> longhaul_store::Result<History> {
    let mut history = reader.history()?;
    history.premises.mix = config.premises.mix.clone();
    history.premises.zone = TimeZone::system().iana_name().map(ToOwned::to_owned);
    Ok(public(history))
}
