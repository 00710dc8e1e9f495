//! Lock file that shows that an activity is in progress. The lock is held for as long as the activity lasts.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::private_files;

/// Maximum number of attempts. An attempt fails if another holder removes the file or its folder at the same
/// moment.
const MAX_ATTEMPTS: u32 = 1000;

/// Lock on a file, held until the value is dropped. The kernel releases the lock when the process has ended,
/// however it ends, and not before. Only an orderly exit removes the file.
pub struct FileLock {
    path: PathBuf,
    file: File,
}

impl Drop for FileLock {
    /// Removes the file while the lock is still held, so that a process that opened it meanwhile notices that
    /// it is no longer the file with that name.
    fn drop(&mut self) {
        // After a removal by hand, the file may be that of another process.
        if is_current(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Reason why a lock could not be acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("lock {}: held by {}", path.display(), holder.as_deref().unwrap_or("another process"))]
    Held {
        /// Path of the lock file.
        path: PathBuf,
        /// Description that the holder wrote into the file; `None` if the file is empty or cannot be read.
        holder: Option<String>,
    },
    /// The lock file cannot be created or locked.
    #[error("lock {}: {source}", path.display())]
    Io {
        /// Path of the lock file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl FileLock {
    /// Acquires a lock and creates the folder of its file. The file must be on a local file system.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] if another process holds the lock, [`LockError::Io`] if the file cannot be created
    /// or locked.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        Ok(Self { path: path.to_owned(), file: locked_file(path)? })
    }

    /// Locks a new file if the lock file was removed: another process could create it and lock it, too.
    ///
    /// # Errors
    ///
    /// As [`Self::acquire`]: another process may have been faster.
    pub fn keep(&mut self) -> Result<(), LockError> {
        if !is_current(&self.file, &self.path) {
            self.file = locked_file(&self.path)?;
        }
        Ok(())
    }

    /// Returns whether a process holds the lock. Creates and removes nothing.
    pub fn is_held(path: &Path) -> bool {
        let file = File::options().write(true).open(path);
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

/// Creates and locks a lock file with its folder.
fn locked_file(path: &Path) -> Result<File, LockError> {
    let io = |source| LockError::Io { path: path.to_owned(), source };
    for _ in 0..MAX_ATTEMPTS {
        if let Some(folder) = path.parent() {
            private_files::create_folder(folder).map_err(io)?;
        }
        let file = match open_lock_file(path) {
            // The last holder has just removed the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.map_err(io)?,
        };
        match file.try_lock() {
            Ok(()) if is_current(&file, path) => {
                write_holder(&file);
                return Ok(file);
            }
            // The previous holder has removed this file since it was opened: try again with a new one.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let description = std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
                let holder = description.filter(|text| !text.is_empty());
                return Err(LockError::Held { path: path.to_owned(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
    }
    Err(io(io::ErrorKind::NotFound.into()))
}

/// Opens or creates a lock file. A symbolic link is not followed, because the file that it leads to would be
/// overwritten with the holder's name.
fn open_lock_file(path: &Path) -> io::Result<File> {
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    private_files::options().write(true).create(true).truncate(false).custom_flags(no_follow).open(path)
}

/// Writes the name of the holder into the lock file. Errors are ignored: the name only informs users, so a
/// full disk must not prevent the activity.
fn write_holder(mut file: &File) {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{name}, process {}", std::process::id()));
}

/// Returns whether the path still leads to this file, which the previous holder may have removed.
fn is_current(file: &File, path: &Path) -> bool {
    let identity = |facts: std::fs::Metadata| (facts.dev(), facts.ino());
    let (here, there) = (file.metadata().map(identity), std::fs::metadata(path).map(identity));
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_holds_the_lock_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/a.lock");
        assert!(!FileLock::is_held(&path));
        let first = FileLock::acquire(&path).unwrap();
        assert!(matches!(FileLock::acquire(&path), Err(LockError::Held { holder: Some(_), .. })));
        assert!(FileLock::is_held(&path));
        let mut first = first;
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        first.keep().unwrap();
        assert!(matches!(FileLock::acquire(&path), Err(LockError::Held { .. })), "it is locked again");
        std::fs::remove_file(&path).unwrap();
        let other = FileLock::acquire(&path).unwrap();
        assert!(matches!(first.keep(), Err(LockError::Held { .. })), "another was faster");
        drop(other);
        first.keep().unwrap();
        drop(first);
        assert!(!path.exists() && !FileLock::is_held(&path));
        assert!(FileLock::acquire(&path).is_ok());
    }

    #[test]
    fn a_link_as_lock_file_is_refused_and_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let (letter, path) = (folder.path().join("letter.txt"), folder.path().join("a.lock"));
        std::fs::write(&letter, "mine").unwrap();
        std::os::unix::fs::symlink(&letter, &path).unwrap();
        assert!(matches!(FileLock::acquire(&path), Err(LockError::Io { .. })));
        assert_eq!(std::fs::read_to_string(&letter).unwrap(), "mine");
        assert!(path.is_symlink());
    }
}
