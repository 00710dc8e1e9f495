//! Reads and writes the configuration file.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use longhaul_measure::private_files::{Overwrite, write_atomically};
use longhaul_service::config::{ConfigLoader, IgnoredSetting};

use crate::errors::UsageError;

/// Reads the text of a configuration; empty if there is none. An invalid one is refused before anything is written.
///
/// # Errors
///
/// If the file exists and cannot be read, or is invalid.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    if !path.exists() {
        return Ok(String::new());
    }
    ConfigLoader::system().read(Some(path))?;
    fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

/// Replaces the text of a configuration, or creates it.
///
/// # Errors
///
/// If the text is no valid configuration, sets what the administrator has set differently, or cannot be written.
pub fn replace_text(path: &Path, text: &str) -> anyhow::Result<()> {
    let managed = ConfigLoader::system().parse(text, path)?.managed;
    let before = ConfigLoader::system().read(Some(path).filter(|path| path.exists()))?.managed.ignored;
    let is_new = |found: &&IgnoredSetting| !before.iter().any(|old| old.key == found.key);
    if let Some(ignored) = managed.ignored.iter().find(is_new) {
        managed
            .check_option(&format!("`{}`", ignored.key), &ignored.key)
            .map_err(|error| UsageError(error.to_string()))?;
    }
    // A link to a file kept elsewhere stays a link.
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let overwrite = if file.exists() { Overwrite::Always } else { Overwrite::Never };
    write_atomically(&file, text.as_bytes(), overwrite).with_context(|| format!("write {}", file.display()))
}
