//! The lock that keeps two workers from using one target at the same time.

use std::io;
use std::path::{Path, PathBuf};

use longhaul_model::draw::draw;

use super::message::WorkerSetup;
use crate::lock::{FileLock, LockError};

/// Returns the path of the lock file of a worker. A worker holds the lock as long as its process exists, so that
/// the next supervisor can detect a stuck worker. `local` is the folder on the local disk that is used only for
/// the target.
pub fn lock_path(local: &Path, target: &Path) -> PathBuf {
    // The name contains a hash of the target's path, because the same target name may later be used for another
    // path.
    let bytes = target.as_os_str().as_encoded_bytes().iter();
    let hash = bytes.fold(0, |hash, byte| draw(hash, 0x6c6f_636b, u64::from(*byte)));
    let mut name = local.as_os_str().to_owned();
    name.push(format!("-{hash:016x}.lock"));
    name.into()
}

/// Lock of a worker, released when the value is dropped.
pub(super) struct WorkerLock {
    lock: Option<FileLock>,
    /// Folder of the lock file, which only workers write to.
    folder: PathBuf,
}

impl Drop for WorkerLock {
    /// Releases the lock, and removes the folder if it is empty.
    fn drop(&mut self) {
        drop(self.lock.take());
        let _ = std::fs::remove_dir(&self.folder);
    }
}

impl WorkerLock {
    /// Acquires the lock. If the lock file cannot be created, the worker continues without a lock. Fails if
    /// another worker holds the lock.
    pub(super) fn acquire(setup: &WorkerSetup) -> io::Result<Self> {
        let path = lock_path(&setup.local, &setup.target.path);
        let folder = path.parent().unwrap_or(&path).to_owned();
        match FileLock::acquire(&path) {
            Ok(lock) => Ok(Self { lock: Some(lock), folder }),
            Err(LockError::Io { .. }) => Ok(Self { lock: None, folder }),
            Err(error @ LockError::Held { .. }) => Err(io::Error::other(error)),
        }
    }
}
