//! File operations through the door. Names are relative to a folder that was opened before, and links are never followed.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Context;
use crate::error::RunError;
use crate::model::{Operation, SyncKind};
use crate::platform::{self, Access, Attributes, Entry, LISTS_ATTRIBUTES, RangeLock, Space, Wanted};

/// An open folder.
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
    device: OnceLock<u64>,
}

impl Folder {
    /// A folder that was opened elsewhere; the path is for messages only.
    pub fn from_handle(handle: OwnedFd, path: &Path) -> Self {
        Self { handle, path: path.to_owned(), device: OnceLock::new() }
    }

    /// Where it is, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the file system that it lies on; asked once, and no server.
    ///
    /// # Errors
    ///
    /// If the system does not say.
    pub fn device(&self) -> Result<u64, RunError> {
        if let Some(device) = self.device.get() {
            return Ok(*device);
        }
        let device = platform::device_of(self.fd())
            .map_err(|error| RunError::operation(Operation::Getattr, &self.path, error))?;
        Ok(*self.device.get_or_init(|| device))
    }

    /// The path of a name in it, for messages; that of `.` is its own.
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

/// An open file.
pub struct OpenFile {
    handle: OwnedFd,
    pub(super) path: PathBuf,
}

impl OpenFile {
    /// Where it is, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// The buffer of folder listings, made once and used for many.
pub struct Listing(Vec<u8>);

impl Default for Listing {
    /// 128 KiB: `getattrlistbulk` needs room for its largest entry, and no listing call gives more at once.
    fn default() -> Self {
        Self(vec![0; 128 << 10])
    }
}

impl Context<'_> {
    /// Opens a folder in a folder.
    pub fn open_folder(&self, folder: &Folder, name: &CStr) -> Result<Folder, RunError> {
        let at = || folder.join(name);
        let handle = self.call(Operation::Open, at, || platform::open_directory_at(folder.fd(), name))?;
        Ok(Folder::from_handle(handle, &folder.join(name)))
    }

    /// Opens a folder by path; for folders outside an arena that a benchmark was pointed at.
    pub fn open_folder_path(&self, path: &Path) -> Result<Folder, RunError> {
        let handle = self.call(Operation::Open, || path.to_owned(), || platform::open_directory(path))?;
        Ok(Folder::from_handle(handle, path))
    }

    /// Lists a folder from where its handle stands to its end, one batch a call, and gives each entry to `each`.
    pub fn list<E: From<RunError>>(
        &self,
        folder: &Folder,
        wanted: Wanted,
        listing: &mut Listing,
        mut each: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let operation = if LISTS_ATTRIBUTES { Operation::ReaddirAttributes } else { Operation::Readdir };
        loop {
            let buffer = &mut listing.0;
            let at = || folder.path.clone();
            let length = self.call(operation, at, || platform::list(folder.fd(), wanted, buffer))?;
            if length == 0 {
                return Ok(());
            }
            platform::entries(&listing.0[..length.min(listing.0.len())], wanted).try_for_each(&mut each)?;
        }
    }

    /// The attributes of a name that must exist.
    #[inline]
    pub fn getattr(&self, folder: &Folder, name: &CStr) -> Result<Attributes, RunError> {
        self.call(Operation::Getattr, || folder.join(name), || platform::attributes_at(folder.fd(), name))
    }

    /// Looks at a name that may not exist.
    pub fn lookup(&self, folder: &Folder, name: &CStr) -> Result<Option<Attributes>, RunError> {
        let look = || match platform::attributes_at(folder.fd(), name) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            answer => answer.map(Some),
        };
        self.call(Operation::Lookup, || folder.join(name), look)
    }

    /// An extended attribute of a name; `None` if it is absent.
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

    /// Opens a file that exists.
    pub fn open(&self, folder: &Folder, name: &CStr, access: Access) -> Result<OpenFile, RunError> {
        let open = || platform::open_at(folder.fd(), name, access);
        let opened = self.call(Operation::Open, || folder.join(name), open);
        let handle = opened.map_err(|error| self.blocked_or(error, folder.fd(), name))?;
        Ok(OpenFile { handle, path: folder.join(name) })
    }

    /// Makes a file that must not exist.
    pub fn create(&self, folder: &Folder, name: &CStr) -> Result<OpenFile, RunError> {
        self.create_for(folder, name, Access::Write)
    }

    /// The same for more than writing, which programs that copy do not ask for: over NFS 4.2 Linux then asks the server once
    /// more whether the file may be read (1.5 instead of 1.0 ms over a wire of 0.25 ms each way, `tests/lab/simulated.sh`).
    pub fn create_for(&self, folder: &Folder, name: &CStr, access: Access) -> Result<OpenFile, RunError> {
        let create = || platform::create_at(folder.fd(), name, access);
        let handle = self.call(Operation::Create, || folder.join(name), create)?;
        Ok(OpenFile { handle, path: folder.join(name) })
    }

    /// One read call.
    #[inline]
    pub fn read_at(&self, file: &OpenFile, buffer: &mut [u8], offset: u64) -> Result<usize, RunError> {
        let read = || platform::read_at(file.fd(), buffer, offset);
        let length = self.call(Operation::Read, || file.path.clone(), read)?;
        self.lane.add_read(length as u64);
        Ok(length)
    }

    /// Reads until the buffer is full or the file ends; returns how much was read.
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
            self.lane.add_written(length as u64);
            bytes = &bytes[length..];
            offset += length as u64;
        }
        Ok(())
    }

    /// Asks for a file to be on stable storage as most programs do, with `fsync`: `rsync --fsync`, and the originals of all
    /// presets.
    pub fn sync(&self, file: &OpenFile) -> Result<SyncKind, RunError> {
        self.call(Operation::Sync, || file.path.clone(), || platform::fsync(file.fd()))
    }

    /// Asks so that a power cut loses nothing, as Time Machine does, and says how that was asked.
    pub fn full_sync(&self, file: &OpenFile) -> Result<SyncKind, RunError> {
        self.call(Operation::Sync, || file.path.clone(), || platform::full_sync(file.fd()))
    }

    /// Asks for the names in a folder to be on stable storage.
    pub fn sync_folder(&self, folder: &Folder) -> Result<SyncKind, RunError> {
        self.call(Operation::Sync, || folder.path.clone(), || platform::fsync(folder.fd()))
    }

    /// Takes or gives back a lock on a range of bytes: where it begins, and how long it is.
    pub fn lock(&self, file: &OpenFile, what: RangeLock, range: (u64, u64)) -> Result<(), RunError> {
        self.call(Operation::Lock, || file.path.clone(), || platform::lock_range(file.fd(), what, range))
    }

    /// Closes a file; where writes were delayed, this is where they may fail.
    pub fn close(&self, file: OpenFile) -> Result<(), RunError> {
        let OpenFile { handle, path } = file;
        self.call(Operation::Close, || path, || platform::close(handle))
    }

    /// Renames, over an existing name too.
    pub fn rename(&self, from: (&Folder, &CStr), to: (&Folder, &CStr)) -> Result<(), RunError> {
        let rename = || platform::rename_at((from.0.fd(), from.1), (to.0.fd(), to.1));
        self.call(Operation::Rename, || from.0.join(from.1), rename)
    }

    /// Removes a file.
    pub fn unlink(&self, folder: &Folder, name: &CStr) -> Result<(), RunError> {
        self.call(Operation::Unlink, || folder.join(name), || platform::unlink_at(folder.fd(), name))
    }

    /// Makes a folder, which may be there already, and opens it.
    pub fn make_folder(&self, folder: &Folder, name: &CStr) -> Result<Folder, RunError> {
        self.add_folder(folder, name)?;
        self.open_folder(folder, name)
    }

    /// Makes a folder, which may be there already.
    pub fn add_folder(&self, folder: &Folder, name: &CStr) -> Result<(), RunError> {
        let make = || match platform::make_directory_at(folder.fd(), name) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            answer => answer,
        };
        self.call(Operation::Mkdir, || folder.join(name), make)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, folder: &Folder, name: &CStr) -> Result<(), RunError> {
        let remove = || platform::remove_directory_at(folder.fd(), name);
        self.call(Operation::Rmdir, || folder.join(name), remove)
    }

    /// Sets the times of a name, in nanoseconds since 1970; `false` if the file system keeps none, which is an answer
    /// and not a failure.
    pub fn set_times(&self, folder: &Folder, name: &CStr, modified_ns: i64) -> Result<bool, RunError> {
        let set = || unless_unsupported(platform::set_times_at(folder.fd(), name, modified_ns));
        self.call(Operation::Setattr, || folder.join(name), set)
    }

    /// Sets the permission bits of a file; `false` as for [`Context::set_times`].
    pub fn set_mode(&self, file: &OpenFile, mode: u16) -> Result<bool, RunError> {
        let set = || unless_unsupported(platform::set_mode(file.fd(), mode));
        self.call(Operation::Setattr, || file.path.clone(), set)
    }

    /// Sets an extended attribute; `false` as for [`Context::set_times`].
    pub fn setxattr(&self, file: &OpenFile, name: &CStr, value: &[u8]) -> Result<bool, RunError> {
        let set = || unless_unsupported(platform::setxattr(file.fd(), name, value));
        self.call(Operation::Setxattr, || file.path.clone(), set)
    }

    /// An extended attribute of an open file; `None` if it is absent.
    pub fn getxattr(
        &self,
        file: &OpenFile,
        name: &CStr,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, RunError> {
        self.call(Operation::Getxattr, || file.path.clone(), || platform::getxattr(file.fd(), name, buffer))
    }

    /// Lets reads of a file that was just opened fetch what they ask for and no more; not part of any phase. Where the
    /// system cannot, they may fetch more.
    pub fn without_read_ahead(&self, file: &OpenFile) {
        let _ = platform::without_read_ahead(file.fd());
    }

    /// The space on the file system of a folder.
    pub fn space(&self, folder: &Folder) -> Result<Space, RunError> {
        self.call(Operation::Getattr, || folder.path.clone(), || platform::space(folder.fd()))
    }

    /// Drops a file's pages from this machine's cache and returns the share that stayed; not part of any phase.
    ///
    /// `None` where the system does not say. Eviction is advice: a file system that ignores it is no failure.
    pub fn evict(&self, file: &OpenFile, length: u64) -> Option<f64> {
        platform::evict(file.fd(), (0, length)).ok()?;
        platform::resident_share(file.fd(), length).ok()?
    }

    /// Drops a range, where it begins and how long it is, and asks nothing: for whoever does so before each call.
    pub fn drop_cached(&self, file: &OpenFile, range: (u64, u64)) {
        let _ = platform::evict(file.fd(), range);
    }

    /// Does so for a name, and says whether the system confirms that nothing stayed.
    ///
    /// Opened for writing, as the system tells what it holds of a file only to whoever may write it; where a file that
    /// exists can only be read (gvfs), it is opened for that.
    pub fn evict_named(&self, folder: &Folder, name: &CStr, length: u64) -> Result<bool, RunError> {
        let file = match self.open(folder, name, Access::Both) {
            Err(error) if error.is_unsupported() => self.open(folder, name, Access::Read)?,
            other => other?,
        };
        let stayed = self.evict(&file, length);
        self.close(file)?;
        Ok(stayed == Some(0.0))
    }
}

/// Makes "this cannot be set here" an answer instead of an error.
fn unless_unsupported(result: std::io::Result<()>) -> std::io::Result<bool> {
    match result {
        Err(error) if error.raw_os_error().is_some_and(platform::is_unsupported) => Ok(false),
        answer => answer.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_system_does_not_keep_is_an_answer_and_other_errors_are_errors() {
        let said = |code| unless_unsupported(Err(std::io::Error::from_raw_os_error(code)));
        assert!(matches!(said(libc::EOPNOTSUPP), Ok(false)));
        assert!(matches!(said(libc::ENOTSUP), Ok(false)));
        assert!(matches!(said(libc::ENOSYS), Ok(false)));
        assert!(said(libc::EIO).is_err() && said(libc::EPERM).is_err());
        assert!(matches!(unless_unsupported(Ok(())), Ok(true)));
    }
}
