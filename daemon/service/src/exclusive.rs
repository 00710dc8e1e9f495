//! One measurement at a time on a machine: two at once would measure each other.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Held while measuring. The kernel lets go of it however the process ends; the file goes with an orderly end.
pub struct Exclusive {
    path: PathBuf,
    _file: File,
}

impl Drop for Exclusive {
    /// Removed while the lock is still held: whoever opened it meanwhile sees that it is no longer the file of that name.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Why measuring cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ExclusiveError {
    /// Another process measures.
    #[error(
        "another longhaul{} is measuring with this database (lock {}): two at once would measure each other. Wait for it, \
         or stop it",
        holder.as_ref().map_or(String::new(), |holder| format!(" ({holder})")),
        path.display()
    )]
    Taken {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, as it says itself.
        holder: Option<String>,
    },
    /// The lock file cannot be made.
    #[error("lock {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Exclusive {
    /// Takes the lock that belongs to a database.
    pub fn take(database: &Path) -> Result<Self, ExclusiveError> {
        let path = database.with_extension("lock");
        let io = |source| ExclusiveError::Io { path: path.clone(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        loop {
            let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(io)?;
            match file.try_lock() {
                Ok(()) if is_current(&file, &path) => {
                    say_who(&file);
                    return Ok(Self { path, _file: file });
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let said = std::fs::read_to_string(&path).ok().map(|text| text.trim().to_owned());
                    let holder = said.filter(|text| !text.is_empty());
                    return Err(ExclusiveError::Taken { path, holder });
                }
                Err(TryLockError::Error(source)) => return Err(io(source)),
            }
        }
    }
}

/// Writes into the lock file who holds it. It helps people only, so that a full disk is no reason not to begin.
fn say_who(mut file: &File) {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{name}, process {}", std::process::id()));
}

/// Whether the path still leads to this file, which its last holder may have removed.
fn is_current(file: &File, path: &Path) -> bool {
    let identity = |facts: std::fs::Metadata| (facts.dev(), facts.ino());
    let (here, there) = (file.metadata().map(identity), std::fs::metadata(path).map(identity));
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_measures_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("new/longhaul.sqlite");
        let first = Exclusive::take(&database).unwrap();
        assert!(matches!(Exclusive::take(&database), Err(ExclusiveError::Taken { holder: Some(_), .. })));
        drop(first);
        assert!(!folder.path().join("new/longhaul.lock").exists(), "nothing is left behind");
        assert!(Exclusive::take(&database).is_ok());
    }
}
