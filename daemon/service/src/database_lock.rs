//! The lock that allows one measuring process per database: two at once would disturb each other's results.

use std::path::{Path, PathBuf};

use longhaul_measure::lock::{FileLock, LockError};
use longhaul_model::Mount;
use longhaul_store::create_database_folder;

/// The lock of a database, held while measuring.
pub struct DatabaseLock {
    lock: FileLock,
    database: PathBuf,
}

/// The reason why the lock of a database cannot be acquired.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseLockError {
    /// Another process holds the lock and measures.
    #[error(
        "another longhaul{} is measuring with this database (lock {}): two at once would disturb each \
         other's results. If it is a command, wait until it ends. The background service holds the lock as long as it runs: \
         `longhaul round` starts a round there; to measure by hand, stop it (`longhaul service stop`)",
        holder.as_ref().map_or(String::new(), |holder| format!(" ({holder})")),
        path.display()
    )]
    AlreadyLocked {
        /// Path of the lock file.
        path: PathBuf,
        /// Description that the lock holder wrote into the lock file.
        holder: Option<String>,
    },
    /// The database cannot be where it should be, for example on a share.
    #[error("cannot lock the database")]
    Place(#[from] longhaul_store::Error),
    /// The lock file cannot be created.
    #[error(
        "cannot lock the database {} ({source}): check that you can read and write its folder, or give another \
         `--database PATH`",
        database.display()
    )]
    NoAccess {
        /// Path of the database.
        database: PathBuf,
        /// Error of the lock file.
        source: LockError,
    },
}

impl DatabaseLockError {
    fn new(database: &Path, source: LockError) -> Self {
        match source {
            LockError::Held { path, holder } => Self::AlreadyLocked { path, holder },
            LockError::Io { .. } => Self::NoAccess { database: database.to_owned(), source },
        }
    }
}

impl DatabaseLock {
    /// Acquires the lock of a database, and creates its folder.
    ///
    /// # Errors
    ///
    /// If another process holds the lock, the database is not on a local disk, or the lock file cannot be created.
    pub fn acquire(database: &Path, mounts: &[Mount]) -> Result<Self, DatabaseLockError> {
        // Before anything is done beside it: on a dead share that could take for ever.
        create_database_folder(database, mounts)?;
        // A link to the database leads to the same results.
        let resolved = database.canonicalize().unwrap_or_else(|_| database.to_owned());
        let lock = FileLock::acquire(&resolved.with_extension("lock"));
        let lock = lock.map_err(|error| DatabaseLockError::new(database, error))?;
        Ok(Self { lock, database: database.to_owned() })
    }

    /// Locks the database again if its lock file was removed.
    ///
    /// # Errors
    ///
    /// If another process was faster, or the lock file cannot be created.
    pub fn keep(&mut self) -> Result<(), DatabaseLockError> {
        self.lock.keep().map_err(|error| DatabaseLockError::new(&self.database, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_lock_fails_until_the_first_is_released() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("new/longhaul.sqlite");
        let first = DatabaseLock::acquire(&database, &[]).unwrap();
        assert!(matches!(
            DatabaseLock::acquire(&database, &[]),
            Err(DatabaseLockError::AlreadyLocked { holder: Some(_), .. })
        ));
        std::fs::write(&database, "").unwrap();
        let link = folder.path().join("link.sqlite");
        std::os::unix::fs::symlink(&database, &link).unwrap();
        assert!(matches!(DatabaseLock::acquire(&link, &[]), Err(DatabaseLockError::AlreadyLocked { .. })));
        drop(first);
        assert!(!folder.path().join("new/longhaul.lock").exists(), "the lock file is removed");
        assert!(DatabaseLock::acquire(&database, &[]).is_ok());
    }

    #[test]
    fn nothing_is_locked_on_a_share() {
        let folder = tempfile::tempdir().unwrap();
        let share = folder.path().canonicalize().unwrap();
        let mount = format!("36 1 0:50 / {} rw - nfs4 nas:/media rw\n", share.display());
        let mount = longhaul_measure::parse::mountinfo(mount.as_bytes());
        let error = DatabaseLock::acquire(&share.join("longhaul.sqlite"), &mount).err().unwrap();
        assert!(matches!(error, DatabaseLockError::Place(longhaul_store::Error::NotLocal { .. })), "{error}");
        assert_eq!(std::fs::read_dir(&share).unwrap().count(), 0);
    }
}
