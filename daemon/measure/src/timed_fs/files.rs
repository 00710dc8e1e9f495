//! The timed file operations. Names are relative to an open folder, and symbolic links are never followed.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::context::TimedFs;
use super::entry_limit::{MAX_ENTRIES, limit_entries, limit_name_bytes};
use crate::error::RunError;
use crate::platform::{
    self, Access, Attributes, ByteRange, Entry, LISTS_ATTRIBUTES, ListingFields, LockAction, Space,
};
use longhaul_model::{Operation, SyncKind};

/// An open folder on the target.
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
    device: OnceLock<u64>,
}

impl Folder {
    /// Wraps the handle of an open folder. The path is only used in messages.
    pub fn from_handle(handle: OwnedFd, path: &Path) -> Self {
        Self { handle, path: path.to_owned(), device: OnceLock::new() }
    }

    /// Returns the path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the device number of the folder's file system.
    ///
    /// It is read once and then cached. The read is local and causes no request to a server.
    ///
    /// # Errors
    ///
    /// If the system cannot read the attributes of the folder.
    pub fn device(&self) -> Result<u64, RunError> {
        if let Some(device) = self.device.get() {
            return Ok(*device);
        }
        let device = platform::device_of(self.fd())
            .map_err(|error| RunError::operation(Operation::Getattr, &self.path, error))?;
        Ok(*self.device.get_or_init(|| device))
    }

    /// Returns the path of a name in the folder, for messages. For `.`, this is the path of the folder.
    pub fn join(&self, name: &CStr) -> PathBuf {
        if name == c"." {
            return self.path.clone();
        }
        self.path.join(OsStr::from_bytes(name.to_bytes()))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// An open file on the target.
pub struct OpenFile {
    handle: OwnedFd,
    pub(super) path: PathBuf,
}

impl OpenFile {
    /// Wraps the handle of an open file. The path is only used in messages.
    pub(super) fn from_handle(handle: OwnedFd, path: PathBuf) -> Self {
        Self { handle, path }
    }

    /// Returns the path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// A reusable buffer for folder listings.
pub struct ListingBuffer(Vec<u8>);

impl Default for ListingBuffer {
    /// Allocates 128 KiB: `getattrlistbulk` needs space for its largest entry, and no listing call returns more
    /// at once.
    fn default() -> Self {
        Self(vec![0; 128 << 10])
    }
}

impl ListingBuffer {
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl TimedFs<'_> {
    /// Opens a subfolder of a folder.
    pub fn open_folder(&self, folder: &Folder, name: &CStr) -> Result<Folder, RunError> {
        let at = || folder.join(name);
        let handle = self.call(Operation::Open, at, || platform::open_directory_at(folder.fd(), name))?;
        Ok(Folder::from_handle(handle, &folder.join(name)))
    }

    /// Opens a folder by its whole path, whose names the client looks up.
    pub fn open_folder_path(&self, path: &Path) -> Result<Folder, RunError> {
        let handle = self.call(Operation::Open, || path.to_owned(), || platform::open_directory(path))?;
        Ok(Folder::from_handle(handle, path))
    }

    /// Lists a folder and calls `each` for every entry. Each system call returns a batch of entries.
    ///
    /// The listing starts at the current position of the folder's handle. More than [`MAX_ENTRIES`], or too long
    /// names together, are an error.
    pub fn list<E: From<RunError>>(
        &self,
        folder: &Folder,
        wanted: ListingFields,
        listing: &mut ListingBuffer,
        mut each: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let operation = if LISTS_ATTRIBUTES { Operation::ReaddirAttributes } else { Operation::Readdir };
        let (mut listed, mut name_bytes) = (0, 0);
        loop {
            let buffer = &mut listing.0;
            let at = || folder.path.clone();
            let length = self.call(operation, at, || platform::list(folder.fd(), wanted, buffer))?;
            if length == 0 {
                return Ok(());
            }
            let mut entries = 0;
            let batch = platform::entries(&listing.0[..length.min(listing.0.len())]);
            let count = |entry: &Entry<'_>| {
                entries += 1;
                name_bytes += entry.name.count_bytes() as u64;
            };
            let visited = batch.inspect(count).try_for_each(&mut each);
            self.recorder.add_listed(entries);
            visited?;
            listed += entries;
            limit_entries(&folder.path, listed, MAX_ENTRIES)?;
            limit_name_bytes(&folder.path, name_bytes)?;
        }
    }

    /// Returns the names in a folder. It is opened again, because a listing continues at the position of its handle.
    pub fn names(&self, folder: &Folder) -> Result<Vec<CString>, RunError> {
        let folder = self.open_folder(folder, c".")?;
        let mut names = vec![];
        self.list(&folder, ListingFields::Names, &mut ListingBuffer::default(), |entry| {
            names.push(entry.name.to_owned());
            Ok::<(), RunError>(())
        })?;
        Ok(names)
    }

    /// Returns the attributes of a name that must exist.
    #[inline]
    pub fn getattr(&self, folder: &Folder, name: &CStr) -> Result<Attributes, RunError> {
        self.call(Operation::Getattr, || folder.join(name), || platform::attributes_at(folder.fd(), name))
    }

    /// Returns the attributes of a name; `None` if the name does not exist.
    pub fn lookup(&self, folder: &Folder, name: &CStr) -> Result<Option<Attributes>, RunError> {
        let look = || match platform::attributes_at(folder.fd(), name) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            answer => answer.map(Some),
        };
        self.call(Operation::Lookup, || folder.join(name), look)
    }

    /// Reads an extended attribute of a name into the buffer and returns its length; `None` if it does not exist.
    pub fn getxattr_at(
        &self,
        folder: &Folder,
        name: &CStr,
        attribute: &CStr,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, RunError> {
        let read = || platform::getxattr_at(folder.fd(), name, attribute, buffer);
        self.call(Operation::Getxattr, || folder.join(name), read)
    }

    /// Opens an existing file.
    pub fn open(&self, folder: &Folder, name: &CStr, access: Access) -> Result<OpenFile, RunError> {
        let open = || platform::open_at(folder.fd(), name, access);
        let opened = self.call(Operation::Open, || folder.join(name), open);
        let handle = opened.map_err(|error| self.detect_refusal(error, folder.fd(), name))?;
        Ok(OpenFile { handle, path: folder.join(name) })
    }

    /// Creates a file for writing. The file must not exist.
    pub fn create(&self, folder: &Folder, name: &CStr) -> Result<OpenFile, RunError> {
        self.create_with_access(folder, name, Access::Write)
    }

    /// Creates a file with the given access. The file must not exist.
    ///
    /// [`TimedFs::create`] only requests write access, like programs that copy files. With read access, Linux
    /// sends one more request over NFS 4.2, to check the permission to read: 1.5 ms instead of 1.0 ms on a
    /// network with a delay of 0.25 ms in each direction (`tests/lab/simulated.sh`).
    pub fn create_with_access(
        &self,
        folder: &Folder,
        name: &CStr,
        access: Access,
    ) -> Result<OpenFile, RunError> {
        let create = || platform::create_at(folder.fd(), name, access);
        let handle = self.call(Operation::Create, || folder.join(name), create)?;
        Ok(OpenFile { handle, path: folder.join(name) })
    }

    /// Reads with one call at an offset and returns the number of bytes; 0 at the end of the file.
    #[inline]
    pub fn read_at(&self, file: &OpenFile, buffer: &mut [u8], offset: u64) -> Result<usize, RunError> {
        let read = || platform::read_at(file.fd(), buffer, offset);
        let length = self.call(Operation::Read, || file.path.clone(), read)?;
        self.thread_slot.add_read(length as u64);
        Ok(length)
    }

    /// Reads until the buffer is full or the file ends. Returns the number of bytes.
    pub fn read_full(&self, file: &OpenFile, buffer: &mut [u8], offset: u64) -> Result<usize, RunError> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_at(file, &mut buffer[done..], offset + done as u64)? {
                0 => break,
                length => done += length,
            }
        }
        Ok(done)
    }

    /// Writes all bytes, in as many calls as the system needs.
    pub fn write_all(&self, file: &OpenFile, mut bytes: &[u8], mut offset: u64) -> Result<(), RunError> {
        while !bytes.is_empty() {
            let write = || match platform::write_at(file.fd(), bytes, offset)? {
                0 => Err(std::io::ErrorKind::WriteZero.into()),
                length => Ok(length),
            };
            let length = self.call(Operation::Write, || file.path.clone(), write)?;
            self.thread_slot.add_written(length as u64);
            bytes = &bytes[length..];
            offset += length as u64;
        }
        Ok(())
    }

    /// Syncs a file to stable storage with `fsync`, as most programs do, including `rsync --fsync` and the
    /// original tools of all presets.
    pub fn sync(&self, file: &OpenFile) -> Result<SyncKind, RunError> {
        self.call(Operation::Sync, || file.path.clone(), || platform::fsync(file.fd()))
    }

    /// Syncs a file so that a power failure loses no data, as Time Machine does.
    ///
    /// Returns the kind of sync that the system performed.
    pub fn full_sync(&self, file: &OpenFile) -> Result<SyncKind, RunError> {
        self.call(Operation::Sync, || file.path.clone(), || platform::full_sync(file.fd()))
    }

    /// Syncs a folder, so that the names in it are on stable storage.
    pub fn sync_folder(&self, folder: &Folder) -> Result<SyncKind, RunError> {
        self.call(Operation::Sync, || folder.path.clone(), || platform::fsync(folder.fd()))
    }

    /// Locks or unlocks a range of bytes, given as offset and length.
    pub fn lock(&self, file: &OpenFile, action: LockAction, range: ByteRange) -> Result<(), RunError> {
        self.call(Operation::Lock, || file.path.clone(), || platform::lock_range(file.fd(), action, range))
    }

    /// Closes a file. Errors of delayed writes may be reported here.
    pub fn close(&self, file: OpenFile) -> Result<(), RunError> {
        let OpenFile { handle, path } = file;
        self.call(Operation::Close, || path, || platform::close(handle))
    }

    /// Closes a folder, which over SMB is a request after its names were listed.
    pub fn close_folder(&self, folder: Folder) -> Result<(), RunError> {
        let Folder { handle, path, .. } = folder;
        self.call(Operation::Close, || path, || platform::close(handle))
    }

    /// Renames a file or folder. Both names are relative to `folder`; an existing file with the new name is
    /// replaced.
    pub fn rename(&self, folder: &Folder, from: &CStr, to: &CStr) -> Result<(), RunError> {
        let rename = || platform::rename_at(folder.fd(), from, to);
        self.call(Operation::Rename, || folder.join(from), rename)
    }

    /// Deletes a file.
    pub fn unlink(&self, folder: &Folder, name: &CStr) -> Result<(), RunError> {
        self.call(Operation::Unlink, || folder.join(name), || platform::unlink_at(folder.fd(), name))
    }

    /// Creates a folder, unless it exists, and opens it.
    pub fn create_and_open_folder(&self, folder: &Folder, name: &CStr) -> Result<Folder, RunError> {
        self.create_folder(folder, name)?;
        self.open_folder(folder, name)
    }

    /// Creates a folder, unless it exists.
    pub fn create_folder(&self, folder: &Folder, name: &CStr) -> Result<(), RunError> {
        let create = || match platform::make_directory_at(folder.fd(), name) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            answer => answer,
        };
        self.call(Operation::Mkdir, || folder.join(name), create)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, folder: &Folder, name: &CStr) -> Result<(), RunError> {
        let remove = || platform::remove_directory_at(folder.fd(), name);
        self.call(Operation::Rmdir, || folder.join(name), remove)
    }

    /// Sets the modification time of a name, in nanoseconds since 1970 UTC.
    ///
    /// Returns `false` if the file system does not support this.
    pub fn set_times(&self, folder: &Folder, name: &CStr, modified_ns: i64) -> Result<bool, RunError> {
        let set = || false_if_unsupported(platform::set_times_at(folder.fd(), name, modified_ns));
        self.call(Operation::Setattr, || folder.join(name), set)
    }

    /// Sets the permission bits of a file. Returns `false` if the file system does not support this.
    pub fn set_mode(&self, file: &OpenFile, mode: u16) -> Result<bool, RunError> {
        let set = || false_if_unsupported(platform::set_mode(file.fd(), mode));
        self.call(Operation::Setattr, || file.path.clone(), set)
    }

    /// Sets an extended attribute of a file. Returns `false` if the file system does not support this.
    pub fn setxattr(&self, file: &OpenFile, name: &CStr, value: &[u8]) -> Result<bool, RunError> {
        let set = || false_if_unsupported(platform::setxattr(file.fd(), name, value));
        self.call(Operation::Setxattr, || file.path.clone(), set)
    }

    /// Reads an extended attribute of an open file into the buffer and returns its length; `None` if it does not
    /// exist.
    pub fn getxattr(
        &self,
        file: &OpenFile,
        name: &CStr,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, RunError> {
        self.call(Operation::Getxattr, || file.path.clone(), || platform::getxattr(file.fd(), name, buffer))
    }

    /// Disables read-ahead for an open file, so that a read fetches only the requested bytes. Untimed.
    ///
    /// Does nothing if the system does not support it.
    pub fn disable_read_ahead(&self, file: &OpenFile) {
        let _ = platform::disable_read_ahead(file.fd());
    }

    /// Returns the free and total space of a folder's file system.
    pub fn space(&self, folder: &Folder) -> Result<Space, RunError> {
        self.call(Operation::Getattr, || folder.path.clone(), || platform::space(folder.fd()))
    }

    /// Evicts a file from this machine's cache and returns the share that remained, from 0 to 1. Untimed.
    ///
    /// `None` if the system does not report the share. A file system may ignore the eviction; this is not an
    /// error.
    pub fn evict(&self, file: &OpenFile, length: u64) -> Option<f64> {
        platform::evict(file.fd(), ByteRange { begin: 0, length }).ok()?;
        platform::resident_share(file.fd(), length).ok()?
    }

    /// Evicts a range of a file, given as offset and length, from this machine's cache. Untimed.
    ///
    /// Does not check the result, because callers evict before each read.
    pub fn evict_range(&self, file: &OpenFile, range: ByteRange) {
        let _ = platform::evict(file.fd(), range);
    }

    /// Evicts a file by name from this machine's cache, and returns whether the system confirms that nothing
    /// remained.
    ///
    /// The file is opened for writing, because the system only reports the cached share of files that the process
    /// may write. On mounts that cannot open existing files for writing (gvfs), the file is opened for reading.
    pub fn evict_by_name(&self, folder: &Folder, name: &CStr, length: u64) -> Result<bool, RunError> {
        let file = match self.open(folder, name, Access::ReadWrite) {
            Err(error) if error.is_unsupported() => self.open(folder, name, Access::Read)?,
            other => other?,
        };
        let remaining = self.evict(&file, length);
        self.close(file)?;
        Ok(remaining == Some(0.0))
    }
}

/// Turns an error that means "unsupported" into `false`, and success into `true`.
pub(super) fn false_if_unsupported(result: std::io::Result<()>) -> std::io::Result<bool> {
    match result {
        Err(error) if error.raw_os_error().is_some_and(platform::is_unsupported) => Ok(false),
        answer => answer.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unsupported_attributes_are_no_error() {
        let result_for = |code| false_if_unsupported(Err(std::io::Error::from_raw_os_error(code)));
        assert!(matches!(result_for(libc::EOPNOTSUPP), Ok(false)));
        assert!(matches!(result_for(libc::ENOTSUP), Ok(false)));
        assert!(matches!(result_for(libc::ENOSYS), Ok(false)));
        assert!(result_for(libc::EIO).is_err() && result_for(libc::EPERM).is_err());
        assert!(matches!(false_if_unsupported(Ok(())), Ok(true)));
    }
}
