//! Reads and writes the configuration file.

use std::fs;
use std::io::{self, ErrorKind};
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
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
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
    let overwrite = if path.exists() { Overwrite::Always } else { Overwrite::Never };
    write_text(path, text, overwrite)
}

/// Writes the text of a configuration. A link to a file kept elsewhere stays a link.
///
/// # Errors
///
/// If the file cannot be written, or exists and must not be replaced.
pub fn write_text(path: &Path, text: &str, overwrite: Overwrite) -> anyhow::Result<()> {
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    write_atomically(&file, text.as_bytes(), overwrite).map_err(|error| write_error(&file, error))
}

fn write_error(file: &Path, error: io::Error) -> anyhow::Error {
    let is_refused = matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied);
    let advice = match is_refused && file.starts_with("/nix/store") {
        true => ", which Nix manages (change it in your Nix configuration)",
        false => "",
    };
    anyhow::Error::new(error).context(format!("cannot write {}{advice}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_file_in_the_nix_store_says_who_manages_it() {
        let text = |path: &str, kind| format!("{:#}", write_error(Path::new(path), io::Error::from(kind)));
        let store = "/nix/store/abc-home-manager-files/config.toml";
        for kind in [ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied] {
            assert!(text(store, kind).contains("change it in your Nix configuration"), "{kind}");
            assert!(!text("/home/ada/config.toml", kind).contains("Nix"), "{kind}");
        }
        assert!(!text(store, ErrorKind::StorageFull).contains("Nix"));
    }
}
