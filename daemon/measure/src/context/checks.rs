//! Calls that only the self-check makes: no workload needs them.

use std::ffi::CStr;

use super::{Context, Folder, OpenFile};
use crate::error::RunError;
use crate::model::Operation;
use crate::platform::{self, FileIdentity, FolderWatch, Source};

impl Context<'_> {
    /// Gives a file a second name in its folder.
    pub(crate) fn link(&self, folder: &Folder, from: &CStr, to: &CStr) -> Result<(), RunError> {
        self.call(Operation::Create, || folder.join(to), || platform::link_at(folder.fd(), from, to))
    }

    /// What the server says of a name.
    pub(crate) fn identity(&self, folder: &Folder, name: &CStr) -> Result<FileIdentity, RunError> {
        let ask = || platform::identity_at(folder.fd(), name, Source::Server);
        self.call(Operation::Getattr, || folder.join(name), ask)
    }

    /// Removes an extended attribute.
    pub(crate) fn remove_xattr(&self, file: &OpenFile, name: &CStr) -> Result<(), RunError> {
        let remove = || platform::remove_xattr(file.fd(), name);
        self.call(Operation::Setxattr, || file.path.clone(), remove)
    }

    /// The share of a file that this machine's page cache holds, from 0 to 1; `None` where the system does not say.
    pub(crate) fn cached_share(&self, file: &OpenFile, length: u64) -> Option<f64> {
        platform::resident_share(file.fd(), length).ok()?
    }

    /// Watches a folder for changes; `None` where the system cannot.
    pub(crate) fn watch_folder(&self, folder: &Folder) -> Result<Option<FolderWatch>, RunError> {
        let at = || folder.path().to_owned();
        self.call(Operation::Lookup, at, || FolderWatch::new(folder.path()))
    }
}
