//! Ensures that the database is on a local disk.

use std::path::{Path, PathBuf};

use longhaul_measure::private_files;
use longhaul_model::Mount;

use crate::error::{Error, Result};

/// Returns the absolute path of the database if it is on a local disk, as far as it exists. Refuses network and FUSE file systems, and
/// automounts: the next access may mount a share there. Nothing is created.
///
/// # Errors
///
/// [`Error::NotLocal`] if the path is not on a local disk.
pub fn check_database_location(path: &Path, mounts: &[Mount]) -> Result<PathBuf> {
    let absolute = std::path::absolute(path).map_err(|error| permission_denied(path, &error))?;
    require_local(&absolute, path, mounts)?;
    require_local(&nearest_existing(&absolute), path, mounts)?;
    Ok(absolute)
}

/// Creates the parent folder of the database and returns the absolute path of the database. Refuses what
/// [`check_database_location`] refuses.
///
/// SQLite's write-ahead log needs shared memory and reliable file locks, which network file systems do not
/// provide reliably. The path is checked three times: first as written, before any access, because accessing a
/// dead share can block forever; then with symbolic links resolved, once before and once after folders are
/// created. [`Store::open`](crate::Store::open) does this, too.
///
/// # Errors
///
/// If the path is not on a local disk, or the folder cannot be created.
pub fn create_database_folder(path: &Path, mounts: &[Mount]) -> Result<PathBuf> {
    let absolute = check_database_location(path, mounts)?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    private_files::create_folder(folder).map_err(|error| permission_denied(folder, &error))?;
    let resolved = folder.canonicalize().map_err(|error| permission_denied(folder, &error))?;
    require_local(&resolved, path, mounts)?;
    Ok(absolute)
}

/// Returns the deepest existing ancestor of a path (or the path itself), with symbolic links resolved.
fn nearest_existing(path: &Path) -> PathBuf {
    path.ancestors().find_map(|part| part.canonicalize().ok()).unwrap_or_else(|| path.to_owned())
}

fn require_local(resolved: &Path, path: &Path, mounts: &[Mount]) -> Result<()> {
    match Mount::for_path(mounts, resolved) {
        Some(mount) if mount.protocol.may_block() => {
            Err(Error::NotLocal { path: path.to_owned(), file_system: mount.protocol.to_string() })
        }
        _ => Ok(()),
    }
}

fn permission_denied(path: &Path, error: &std::io::Error) -> Error {
    let (path, operation) = (path.to_owned(), "create the folder of the database");
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            Error::DiskFull { path, operation }
        }
        _ => Error::PermissionDenied { path, operation, detail: error.to_string() },
    }
}
