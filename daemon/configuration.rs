//! The configuration at the start: which file it is, and what happens while that is wrong.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::platform;
use longhaul_service::config::{Config, ConfigError};
use longhaul_service::file_version::FileVersion;

/// How often a file that is wrong is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A configuration that was read.
pub struct Configuration {
    /// The values.
    pub values: Config,
    /// The file, which need not be there.
    pub path: Option<PathBuf>,
    /// The file's version just before it was read: what is written after that is noticed.
    pub version: Option<FileVersion>,
}

impl Configuration {
    /// Reads the file that was given, which has to be there, or else the default one.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn read(given: Option<&Path>) -> Result<Self, ConfigError> {
        let path = path(given);
        let version = path.as_deref().and_then(FileVersion::of);
        let values = match &path {
            Some(path) if given.is_some() || path.exists() => Config::read(path)?,
            _ => Config::default(),
        };
        Ok(Self { values, path, version })
    }

    /// Waits until the file is changed and good, and says once what is wrong with it each time.
    ///
    /// For launchd, which would start a service that ends for it every thirty seconds, for ever, and never cut the file that
    /// it writes standard error to.
    pub fn await_good(given: Option<&Path>) -> Self {
        let version = || path(given).as_deref().and_then(FileVersion::of);
        let mut told = String::new();
        loop {
            let seen = version();
            let error = match Self::read(given) {
                Ok(good) => return good,
                Err(error) => error.to_string(),
            };
            if error != told {
                eprintln!("longhauld: {error}. longhauld waits until the file is changed");
                tracing::error!("{error}. longhauld waits until the file is changed");
                told = error;
            }
            while version() == seen {
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }
}

/// The configuration file: it need not be there yet.
fn path(given: Option<&Path>) -> Option<PathBuf> {
    let default = || platform::config_directory().map(|folder| folder.join("config.toml"));
    given.and_then(|path| std::path::absolute(path).ok()).or_else(default)
}
