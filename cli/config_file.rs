//! Reads and writes the configuration file.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use longhaul_measure::private_files;
use longhaul_service::config::{ConfigLoader, IgnoredSetting};

use crate::errors::UsageError;

/// Permission to replace an existing configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// The file must not exist yet.
    Never,
    /// An existing file is replaced.
    Always,
}

/// Writes a file atomically: first under a temporary name next to it, then moved into place. The permissions of a file
/// that is replaced are kept.
///
/// # Errors
///
/// If the file cannot be written; with [`Overwrite::Never`] also if it exists.
pub fn write_atomically(path: &Path, text: &str, replace: Overwrite) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        private_files::create_folder(folder)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let mut file = private_files::options().write(true).create_new(true).open(&temporary)?;
    let mode = fs::metadata(path).map(|found| found.permissions());
    let written = mode
        .map_or(Ok(()), |mode| fs::set_permissions(&temporary, mode))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| match replace {
            Overwrite::Always => fs::rename(&temporary, path),
            // Unlike `rename`, `hard_link` fails if the file has been created in the meantime.
            Overwrite::Never => fs::hard_link(&temporary, path),
        });
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => written.and(Err(error)),
        _ => written,
    }
}

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
    write_atomically(&file, text, overwrite).with_context(|| format!("write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_is_written_atomically_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/config.toml");
        write_atomically(&path, "one", Overwrite::Never).unwrap();
        assert_eq!(
            write_atomically(&path, "two", Overwrite::Never).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        write_atomically(&path, "three", Overwrite::Always).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "the temporary file is removed");
    }
}
