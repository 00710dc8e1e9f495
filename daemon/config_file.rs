//! Loads the configuration at startup, and waits for a valid one if needed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_service::config::{Config, ConfigError, ConfigLoader};
use longhaul_service::file_version::FileVersion;
use longhaul_service::paths::default_config_path;

/// Interval at which an invalid file is read again.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A configuration with its origin.
pub struct LoadedConfig {
    /// Values of the configuration.
    pub values: Config,
    /// Path of the configuration file, which need not exist.
    pub path: Option<PathBuf>,
    /// Version of the file just before it was read, so that later changes can be detected.
    pub version: Option<FileVersion>,
    /// Version of the administrator's file just before it was read.
    pub managed_version: Option<FileVersion>,
}

impl LoadedConfig {
    /// Reads the given file, which has to exist, or else the default file, and the administrator's.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid.
    pub fn read(given: Option<&Path>) -> Result<Self, ConfigError> {
        let path = config_path(given);
        let loader = ConfigLoader::system();
        let version = path.as_deref().and_then(FileVersion::of);
        let managed_version = FileVersion::of(loader.managed_path());
        let values = loader.read(path.as_deref().filter(|path| given.is_some() || path.exists()))?;
        Ok(Self { values, path, version, managed_version })
    }

    /// Waits until the configuration is valid, and reports each new error once.
    ///
    /// Used under launchd, which would restart a service that exits every thirty seconds for ever, and never
    /// truncate the file that receives its standard error.
    pub fn wait_until_valid(given: Option<&Path>) -> Self {
        let mut last_error = String::new();
        loop {
            let error = match Self::read(given) {
                Ok(good) => return good,
                Err(error) => error.to_string(),
            };
            if error != last_error {
                eprintln!("longhauld: {error}. longhauld waits until the file is changed");
                tracing::error!(
                    error,
                    "the configuration cannot be used: longhauld waits until the file is changed"
                );
                last_error = error;
            }
            // The file is read again even if its time and size are the same: two edits within one tick of the kernel's
            // clock (4 ms) have equal times.
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Writes into the log which settings of the user's file are not used, because the administrator has set them.
pub fn log_ignored_settings(config: &Config) {
    for ignored in &config.managed.ignored {
        let (key, line, managed) = (&ignored.key, ignored.line, config.managed.path.display());
        tracing::warn!(key, line, %managed, "this setting of the configuration is not used: the administrator has set it");
    }
}

/// Returns the path of the configuration file. It need not exist yet.
fn config_path(given: Option<&Path>) -> Option<PathBuf> {
    given.and_then(|path| std::path::absolute(path).ok()).or_else(default_config_path)
}
