//! The source of a backup: the listing of a local tree. It is read with plain system calls that are not recorded.

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::error::RunError;
use longhaul_corpus::apple_double::owner_name;
use longhaul_corpus::names::as_os_str;

/// A file of the local tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFile {
    /// File name.
    pub name: CString,
    /// Size in bytes.
    pub size: u64,
    pub(super) modified_ns: i64,
    pub(super) mode: u16,
    pub(super) path: PathBuf,
}

impl LocalFile {
    /// Returns the modification time in whole seconds since 1970 UTC.
    pub(super) fn modified_seconds(&self) -> i64 {
        self.modified_ns.div_euclid(1_000_000_000)
    }
}

/// A folder of the local tree with its files. `names` is its path, relative to the root of the tree.
pub(super) struct LocalFolder {
    pub(super) names: Vec<CString>,
    pub(super) files: Vec<LocalFile>,
}

/// The listing of a local tree.
pub struct LocalTree {
    pub(super) folders: Vec<LocalFolder>,
}

impl LocalTree {
    /// Lists a local tree.
    ///
    /// Skips links and special files, because they cannot be compared across protocols, and AppleDouble files,
    /// because they hold attributes of other files.
    pub fn read(root: &Path) -> Result<Self, RunError> {
        let mut tree = Self { folders: vec![] };
        let mut pending = vec![(root.to_owned(), vec![])];
        while let Some((path, names)) = pending.pop() {
            let listed = list_local(&path).map_err(RunError::local("readdir", &path))?;
            for folder in listed.folders {
                pending.push((path.join(as_os_str(&folder)), [&names[..], &[folder]].concat()));
            }
            tree.folders.push(LocalFolder { names, files: listed.files });
        }
        Ok(tree)
    }

    /// Returns the number of files in the tree.
    pub fn files(&self) -> u64 {
        self.folders.iter().map(|folder| folder.files.len() as u64).sum()
    }
}

/// The subfolders and files of one local folder.
struct LocalListing {
    folders: Vec<CString>,
    files: Vec<LocalFile>,
}

fn list_local(path: &Path) -> io::Result<LocalListing> {
    let mut listing = LocalListing { folders: vec![], files: vec![] };
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = CString::new(entry.file_name().into_vec()).map_err(io::Error::other)?;
        let metadata = entry.metadata()?;
        if owner_name(name.to_bytes()).is_some() {
            continue;
        }
        if metadata.is_dir() {
            listing.folders.push(name);
        } else if metadata.is_file() {
            listing.files.push(LocalFile {
                name,
                size: metadata.len(),
                modified_ns: metadata
                    .mtime()
                    .saturating_mul(1_000_000_000)
                    .saturating_add(metadata.mtime_nsec()),
                mode: (metadata.mode() & 0o7777) as u16,
                path: entry.path(),
            });
        }
    }
    Ok(listing)
}
