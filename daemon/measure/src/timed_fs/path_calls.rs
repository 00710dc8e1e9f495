//! File operations on names at any depth below a folder, as programs make them. Only replays of recordings use them: a
//! refusal is an answer there, not an error.

use std::ffi::CStr;
use std::io::{self, ErrorKind};

use super::context::TimedFs;
use super::files::{Folder, ListingBuffer, OpenFile, false_if_unsupported};
use crate::error::RunError;
use crate::platform::{self, Access, CopyRange, ListingFields, NameChange};
use longhaul_model::Operation;

/// Answer to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<T> {
    /// It was done.
    Done(T),
    /// There is nothing of this name.
    NotFound,
    /// There is something of this name already.
    Exists,
    /// The file system does not offer the operation.
    Unsupported,
}

impl TimedFs<'_> {
    /// Opens a folder below a folder.
    pub fn open_folder_below(&self, folder: &Folder, path: &CStr) -> Result<Answer<Folder>, RunError> {
        let opened =
            self.answer(Operation::Open, (folder, path), || platform::open_folder_below(folder.fd(), path))?;
        Ok(opened.map(|handle| Folder::from_handle(handle, &folder.join(path))))
    }

    /// Opens only the path of a file or folder below a folder (`O_PATH`): no request is sent beyond those of a look-up. On macOS it
    /// is opened for reading.
    pub fn open_path_only_below(&self, folder: &Folder, path: &CStr) -> Result<Answer<Folder>, RunError> {
        let opened = self
            .answer(Operation::Open, (folder, path), || platform::open_path_only_below(folder.fd(), path))?;
        Ok(opened.map(|handle| Folder::from_handle(handle, &folder.join(path))))
    }

    /// Opens an existing file below a folder.
    pub fn open_below(
        &self,
        folder: &Folder,
        path: &CStr,
        access: Access,
    ) -> Result<Answer<OpenFile>, RunError> {
        let open = || platform::open_below(folder.fd(), path, access);
        let opened = self.answer(Operation::Open, (folder, path), open)?;
        Ok(opened.map(|handle| OpenFile::from_handle(handle, folder.join(path))))
    }

    /// Opens an existing file below a folder for writing in place, after a check of its attributes in this machine's memory.
    ///
    /// # Errors
    ///
    /// [`RunError::NotExclusive`] if the file may also belong to something else, or the error of opening it.
    pub fn open_in_place_below(
        &self,
        folder: &Folder,
        path: &CStr,
        access: Access,
    ) -> Result<Answer<OpenFile>, RunError> {
        let opened = self.open_below(folder, path, access)?;
        if let Answer::Done(file) = &opened {
            self.require_exclusive(folder, file, None)?;
        }
        Ok(opened)
    }

    /// Creates a file below a folder. The file must not exist.
    pub fn create_below(
        &self,
        folder: &Folder,
        path: &CStr,
        access: Access,
    ) -> Result<Answer<OpenFile>, RunError> {
        let create = || platform::create_below(folder.fd(), path, access);
        let created = self.answer(Operation::Create, (folder, path), create)?;
        Ok(created.map(|handle| OpenFile::from_handle(handle, folder.join(path))))
    }

    /// Evicts a file below a folder from this machine's cache, and returns whether the system confirms that nothing remained.
    ///
    /// It is opened for writing, because the system tells the cached share only of files that may be written.
    pub fn evict_below(&self, folder: &Folder, path: &CStr, length: u64) -> Result<bool, RunError> {
        let file = match self.open_below(folder, path, Access::ReadWrite)? {
            Answer::Done(file) => file,
            Answer::NotFound => return Ok(true),
            Answer::Exists | Answer::Unsupported => return Ok(false),
        };
        let remaining = self.evict(&file, length);
        self.close(file)?;
        Ok(remaining == Some(0.0))
    }

    /// Reads the attributes of a name below a folder.
    pub fn attributes_below(
        &self,
        folder: &Folder,
        path: &CStr,
        operation: Operation,
    ) -> Result<Answer<()>, RunError> {
        self.answer(operation, (folder, path), || platform::attributes_at(folder.fd(), path).map(drop))
    }

    /// Reads the attributes of a name below a folder without the time of the last access.
    pub fn attributes_but_access_time_below(
        &self,
        folder: &Folder,
        path: &CStr,
        operation: Operation,
    ) -> Result<Answer<()>, RunError> {
        let read = || platform::read_attributes_but_access_time(folder.fd(), path);
        self.answer(operation, (folder, path), read)
    }

    /// Reads an extended attribute of a name below a folder. Its absence is a success.
    pub fn getxattr_below(&self, folder: &Folder, path: &CStr) -> Result<Answer<()>, RunError> {
        let mut value = [0; 256];
        let read = || platform::getxattr_at(folder.fd(), path, platform::TEST_XATTR, &mut value).map(drop);
        self.answer(Operation::Getxattr, (folder, path), read)
    }

    /// Reads a symbolic link below a folder.
    pub fn read_link_below(&self, folder: &Folder, path: &CStr) -> Result<Answer<()>, RunError> {
        let read = || platform::read_link_at(folder.fd(), path).map(drop);
        self.answer(Operation::Lookup, (folder, path), read)
    }

    /// Changes a name below a folder.
    pub fn change_name(&self, folder: &Folder, change: NameChange<'_>) -> Result<Answer<()>, RunError> {
        use NameChange as C;
        let (operation, at) = match change {
            C::Unlink(at) => (Operation::Unlink, at),
            C::CreateFolder(at) => (Operation::Mkdir, at),
            C::RemoveFolder(at) => (Operation::Rmdir, at),
            C::Rename(at, _) | C::RenameToNew(at, _) => (Operation::Rename, at),
            C::HardLink(_, at) | C::SymbolicLink(at) => (Operation::Create, at),
            C::SetTimes(at, _) => (Operation::Setattr, at),
        };
        self.answer(operation, (folder, at.name), || {
            let result = platform::change_name_below(folder.fd(), change);
            match change {
                C::HardLink(..) | C::SymbolicLink(_) | C::SetTimes(..) => {
                    not_permitted_as_unsupported(result)
                }
                _ => result,
            }
        })
    }

    /// Reads the attributes of an open file.
    pub fn handle_attributes(&self, file: &OpenFile) -> Result<(), RunError> {
        let read = || platform::read_handle_attributes(file.fd());
        self.call(Operation::Getattr, || file.path.clone(), read)
    }

    /// Reads the attributes of an open folder.
    pub fn folder_attributes(&self, folder: &Folder) -> Result<(), RunError> {
        let read = || platform::read_handle_attributes(folder.fd());
        self.call(Operation::Getattr, || folder.path().to_owned(), read)
    }

    /// Reads one batch of names of an open folder.
    pub fn list_batch(&self, folder: &Folder, listing: &mut ListingBuffer) -> Result<(), RunError> {
        let list = || platform::list(folder.fd(), ListingFields::Names, listing.bytes());
        self.call(Operation::Readdir, || folder.path().to_owned(), list).map(drop)
    }

    /// Copies bytes from one open file to another with one call, and returns their number; `None` if the file system does not offer
    /// it. The second file must be open for writing in place. The bytes count as read and written: where the server does not copy,
    /// the system does it through this machine, as over NFS 3.
    pub fn copy_range(
        &self,
        from: &OpenFile,
        to: &OpenFile,
        range: CopyRange,
    ) -> Result<Option<u64>, RunError> {
        let copy = || match platform::copy_range(from.fd(), to.fd(), range) {
            Err(error) if error.raw_os_error().is_some_and(platform::is_unsupported) => Ok(None),
            answer => answer.map(Some),
        };
        let copied = self.call(Operation::Write, || to.path.clone(), copy)?;
        self.thread_slot.add_read(copied.unwrap_or(0));
        self.thread_slot.add_written(copied.unwrap_or(0));
        Ok(copied)
    }

    /// Asks the file system to share the blocks of a file with another one, whose content is replaced, and returns whether it did. The
    /// second file must be open for writing in place.
    pub fn share_blocks(&self, from: &OpenFile, to: &OpenFile) -> Result<bool, RunError> {
        let share = || match platform::share_blocks(from.fd(), to.fd()) {
            Err(error) if error.raw_os_error().is_some_and(platform::is_unsupported) => Ok(false),
            answer => answer.map(|()| true),
        };
        self.call(Operation::Write, || to.path.clone(), share)
    }

    /// Sets both times of an open file, in nanoseconds since 1970 UTC. Returns `false` if the file system does not support this.
    pub fn set_handle_times(&self, file: &OpenFile, time_ns: i64) -> Result<bool, RunError> {
        let set = || false_if_unsupported(platform::set_handle_times(file.fd(), time_ns));
        self.call(Operation::Setattr, || file.path.clone(), set)
    }

    /// Sets both times of an open folder, in nanoseconds since 1970 UTC. Returns `false` if the file system does not support this.
    pub fn set_folder_times(&self, folder: &Folder, time_ns: i64) -> Result<bool, RunError> {
        let set = || false_if_unsupported(platform::set_handle_times(folder.fd(), time_ns));
        self.call(Operation::Setattr, || folder.path().to_owned(), set)
    }

    /// Sets the length of a file, which must be open for writing in place.
    pub fn set_length(&self, file: &OpenFile, length: u64) -> Result<(), RunError> {
        self.call(Operation::Setattr, || file.path.clone(), || platform::truncate(file.fd(), length))
    }

    /// Makes a call whose refusals are answers.
    #[inline]
    fn answer<T>(
        &self,
        operation: Operation,
        at: (&Folder, &CStr),
        call: impl FnOnce() -> io::Result<T>,
    ) -> Result<Answer<T>, RunError> {
        let answer = || match call() {
            Ok(done) => Ok(Answer::Done(done)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(Answer::NotFound),
                ErrorKind::AlreadyExists => Ok(Answer::Exists),
                _ if error.raw_os_error().is_some_and(platform::is_unsupported) => Ok(Answer::Unsupported),
                _ => Err(error),
            },
        };
        self.call(operation, || at.0.join(at.1), answer)
    }
}

/// Changes an error of an operation that file systems refuse with EPERM or EMLINK if they do not offer it (link(2), symlink(2)).
fn not_permitted_as_unsupported(result: io::Result<()>) -> io::Result<()> {
    result.map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EMLINK) => io::Error::from_raw_os_error(libc::ENOTSUP),
        _ => error,
    })
}

impl<T> Answer<T> {
    /// Returns whether there is something of the name already.
    pub fn is_exists(&self) -> bool {
        matches!(self, Self::Exists)
    }

    /// Returns what was done, or the kind of error that the answer stands for.
    ///
    /// # Errors
    ///
    /// `NotFound`, `AlreadyExists` or `Unsupported`.
    pub fn done(self) -> Result<T, ErrorKind> {
        match self {
            Self::Done(done) => Ok(done),
            Self::NotFound => Err(ErrorKind::NotFound),
            Self::Exists => Err(ErrorKind::AlreadyExists),
            Self::Unsupported => Err(ErrorKind::Unsupported),
        }
    }

    fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Self::Done(done) => Answer::Done(change(done)),
            Self::NotFound => Answer::NotFound,
            Self::Exists => Answer::Exists,
            Self::Unsupported => Answer::Unsupported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Site;

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "no other system copies from file to file")]
    fn copied_bytes_count_as_read_and_written() {
        let site = Site::new();
        let context = site.context(0);
        std::fs::write(site.path().join("a"), [7; 5_000]).unwrap();
        let folder = context.open_folder_path(site.path()).unwrap();
        let from = context.open_below(&folder, c"a", Access::Read).unwrap().done().unwrap();
        let to = context.create_below(&folder, c"b", Access::Write).unwrap().done().unwrap();
        let range = CopyRange { read_at: 0, write_at: 0, length: 5_000 };
        assert_eq!(context.copy_range(&from, &to, range).unwrap(), Some(5_000));
        assert_eq!(site.recorder.bytes_written(), 5_000);
    }
}
