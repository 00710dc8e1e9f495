//! Where a database may live: on a local disk only.

use std::path::{Path, PathBuf};

use longhaul_measure::model::{Family, Mount};

use crate::error::{Error, Result};

/// Makes the folder that the database is to be in, unless it is on a network or in user space.
///
/// SQLite's log needs memory that all its processes share and locks that work, which network file systems do not give
/// reliably. The path is judged as it is written before anything touches it, because touching a dead share can block for
/// ever; and then again with its symbolic links resolved, once before and once after folders are made.
pub(crate) fn prepare(path: &Path, mounts: &[Mount]) -> Result<PathBuf> {
    let absolute = std::path::absolute(path).map_err(|error| denied(path, &error))?;
    judge(&absolute, path, mounts)?;
    judge(&nearest_existing(&absolute), path, mounts)?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(|error| denied(folder, &error))?;
    let resolved = folder.canonicalize().map_err(|error| denied(folder, &error))?;
    judge(&resolved, path, mounts)?;
    Ok(absolute)
}

/// The deepest part of a path that exists, with its links resolved.
fn nearest_existing(path: &Path) -> PathBuf {
    path.ancestors().find_map(|part| part.canonicalize().ok()).unwrap_or_else(|| path.to_owned())
}

fn judge(place: &Path, path: &Path, mounts: &[Mount]) -> Result<()> {
    let Some(mount) = Mount::of_path(mounts, place) else { return Ok(()) };
    match mount.protocol.family() {
        Family::Local | Family::Other => Ok(()),
        Family::Network | Family::Fuse => {
            Err(Error::NotLocal { path: path.to_owned(), file_system: mount.protocol.to_string() })
        }
    }
}

fn denied(path: &Path, error: &std::io::Error) -> Error {
    let (path, operation) = (path.to_owned(), "make the folder of the database");
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            Error::Full { path, operation }
        }
        _ => Error::Denied { path, operation, detail: error.to_string() },
    }
}
