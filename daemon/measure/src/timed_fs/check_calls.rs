//! File operations that only the self-check and the check of fidelity use.

use std::ffi::{CStr, CString};
use std::time::Duration;

use super::context::TimedFs;
use super::files::{Folder, OpenFile};
use crate::error::RunError;
use crate::platform::{self, ByteRange, FileFacts, FolderWatch, LockAction};
use longhaul_model::Operation;

impl TimedFs<'_> {
    /// Returns the facts about a name, as the server reports them; `None` if the name does not exist.
    pub(crate) fn server_facts(&self, folder: &Folder, name: &CStr) -> Result<Option<FileFacts>, RunError> {
        let query = || match platform::server_facts_at(folder.fd(), name) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            answer => answer.map(Some),
        };
        self.call(Operation::Getattr, || folder.join(name), query)
    }

    /// Creates a symbolic link.
    pub(crate) fn symlink(&self, folder: &Folder, destination: &CStr, name: &CStr) -> Result<(), RunError> {
        let create = || platform::symlink_at(folder.fd(), destination, name);
        self.call(Operation::Create, || folder.join(name), create)
    }

    /// Returns the destination of a symbolic link.
    pub(crate) fn read_link(&self, folder: &Folder, name: &CStr) -> Result<CString, RunError> {
        self.call(Operation::Lookup, || folder.join(name), || platform::read_link_at(folder.fd(), name))
    }

    /// Reserves space for the first bytes of an empty file, which grows to this length.
    pub(crate) fn preallocate(&self, file: &OpenFile, length: u64) -> Result<(), RunError> {
        self.call(Operation::Setattr, || file.path.clone(), || platform::preallocate(file.fd(), length))
    }

    /// Locks or unlocks a range of bytes for this handle, against all other handles.
    pub(crate) fn lock_handle(
        &self,
        file: &OpenFile,
        action: LockAction,
        range: ByteRange,
    ) -> Result<(), RunError> {
        let lock = || platform::lock_open_file(file.fd(), action, range);
        self.call(Operation::Lock, || file.path.clone(), lock)
    }

    /// Writes to the start of a file through memory that it is mapped to.
    pub(crate) fn write_mapped(&self, file: &OpenFile, bytes: &[u8]) -> Result<(), RunError> {
        self.call(Operation::Write, || file.path.clone(), || platform::write_mapped(file.fd(), bytes))
    }

    /// Sets the time of creation of a file, since 1970 UTC.
    pub(crate) fn set_created(&self, file: &OpenFile, created: Duration) -> Result<(), RunError> {
        self.call(Operation::Setattr, || file.path.clone(), || platform::set_created(file.fd(), created))
    }

    /// Creates a hard link to a file in the same folder.
    pub(crate) fn link(&self, folder: &Folder, from: &CStr, to: &CStr) -> Result<(), RunError> {
        self.call(Operation::Create, || folder.join(to), || platform::link_at(folder.fd(), from, to))
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
