//! A file that says that something is going on, held for as long.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// How often it is tried again because another holder went, with the file or the folder, at this very moment.
const ATTEMPTS: u32 = 1000;

/// Held while something goes on. The kernel lets go of it however the process ends, and not before it has ended; the file goes
/// with an orderly end.
pub struct Held {
    path: PathBuf,
    _file: File,
}

impl Drop for Held {
    /// Removed while the lock is still held: whoever opened it meanwhile sees that it is no longer the file of that name.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Why something cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It goes on elsewhere.
    #[error("lock {}: held by {}", path.display(), holder.as_deref().unwrap_or("another process"))]
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

impl Held {
    /// Takes a lock, and makes the folder that its file lies in. It has to be on a local file system.
    ///
    /// # Errors
    ///
    /// Why not; somebody else may hold it.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        for _ in 0..ATTEMPTS {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(io)?;
            }
            let file = match open(path) {
                // Whoever was the last in the folder has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(io)?,
            };
            match file.try_lock() {
                Ok(()) if is_current(&file, path) => {
                    say_who(&file);
                    return Ok(Self { path: path.to_owned(), _file: file });
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let said = std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
                    let holder = said.filter(|text| !text.is_empty());
                    return Err(LockError::Taken { path: path.to_owned(), holder });
                }
                Err(TryLockError::Error(source)) => return Err(io(source)),
            }
        }
        Err(io(io::ErrorKind::NotFound.into()))
    }

    /// Whether somebody holds it. Nothing is made or removed.
    pub fn is_taken(path: &Path) -> bool {
        let file = File::options().write(true).open(path);
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

/// Opens or makes a lock file. A link would have the file that it leads to overwritten with the holder's name.
fn open(path: &Path) -> io::Result<File> {
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    File::options().write(true).create(true).truncate(false).custom_flags(no_follow).open(path)
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
    fn one_holds_it_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/a.lock");
        assert!(!Held::is_taken(&path));
        let first = Held::take(&path).unwrap();
        assert!(matches!(Held::take(&path), Err(LockError::Taken { holder: Some(_), .. })));
        assert!(Held::is_taken(&path));
        drop(first);
        assert!(!path.exists() && !Held::is_taken(&path));
        assert!(Held::take(&path).is_ok());
    }
    #[test]
    fn a_link_in_place_of_a_lock_is_refused_and_its_file_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (letter, path) = (folder.path().join("letter.txt"), folder.path().join("a.lock"));
        std::fs::write(&letter, "mine").unwrap();
        std::os::unix::fs::symlink(&letter, &path).unwrap();
        assert!(matches!(Held::take(&path), Err(LockError::Io { .. })));
        assert_eq!(std::fs::read_to_string(&letter).unwrap(), "mine");
        assert!(path.is_symlink());
    }
}
