//! File operations that only the self-check uses.

use std::ffi::CStr;

use super::context::TimedFs;
use super::files::{Folder, OpenFile};
use crate::error::RunError;
use crate::platform::{self, FileIdentity, FolderWatch, MetadataSource};
use longhaul_model::Operation;

impl TimedFs<'_> {
    /// Creates a hard link to a file in the same folder.
    pub(crate) fn link(&self, folder: &Folder, from: &CStr, to: &CStr) -> Result<(), RunError> {
        self.call(Operation::Create, || folder.join(to), || platform::link_at(folder.fd(), from, to))
    }

    /// Returns the identity of a file, as reported by the server instead of this machine's cache.
    pub(crate) fn server_identity(&self, folder: &Folder, name: &CStr) -> Result<FileIdentity, RunError> {
        let query = || platform::identity_at(folder.fd(), name, MetadataSource::Server);
        self.call(Operation::Getattr, || folder.join(name), query)
    }

    /// Removes an extended attribute of an open file.
    pub(crate) fn remove_xattr(&self, file: &OpenFile, name: &CStr) -> Result<(), RunError> {
        let remove = || platform::remove_xattr(file.fd(), name);
        self.call(Operation::Setxattr, || file.path.clone(), remove)
    }

    /// Returns the share of a file that is in this machine's page cache, from 0 to 1.
    ///
    /// `None` if the system does not report it.
    pub(crate) fn resident_share(&self, file: &OpenFile, length: u64) -> Option<f64> {
        platform::resident_share(file.fd(), length).ok()?
    }

    /// Starts to watch a folder for changes. Returns `None` if the system cannot do this.
    pub(crate) fn watch_folder(&self, folder: &Folder) -> Result<Option<FolderWatch>, RunError> {
        let at = || folder.path().to_owned();
        self.call(Operation::Lookup, at, || FolderWatch::new(folder.path()))
    }
}
