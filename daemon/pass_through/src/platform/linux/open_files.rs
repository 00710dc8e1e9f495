//! Files and folders that programs have open.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::folder::{ListedName, read_names};

/// An open file or folder.
#[derive(Debug)]
pub struct OpenFile {
    file: OwnedFd,
    /// Number of the file in the tree.
    pub number: u64,
    /// Owner of the locks that were taken through this handle; 0 for none.
    pub lock_owner: AtomicU64,
    /// A program has closed it. Others may still have it open; the kernel tells later when none has.
    pub is_closed: AtomicBool,
    /// State of the listing, for a folder.
    pub listing: Mutex<Listing>,
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// State of a listing: the batch of names that was read last.
#[derive(Debug, Default)]
pub struct Listing {
    batch: Vec<ListedName>,
    /// Place of the first name of the batch in the listing.
    first: u64,
}

impl Listing {
    /// Returns the names from a place on: those of the batch, or else of the next one. `on_batch` is called with the number of names of each
    /// batch that is read. The result is empty at the end.
    pub fn names_from(
        &mut self,
        folder: &OpenFile,
        place: u64,
        on_batch: &mut dyn FnMut(u64),
    ) -> io::Result<&[ListedName]> {
        if place < self.first || place == 0 {
            rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))?;
            *self = Self::default();
        }
        while place >= self.end() {
            let batch = read_names(folder)?;
            on_batch(batch.iter().filter(|one| !matches!(&one.name[..], b"." | b"..")).count() as u64);
            if batch.is_empty() {
                return Ok(&[]);
            }
            (self.first, self.batch) = (self.end(), batch);
        }
        Ok(&self.batch[(place - self.first) as usize..])
    }

    fn end(&self) -> u64 {
        self.first + self.batch.len() as u64
    }
}

/// All files that are open, by their handles. A handle is used once.
#[derive(Debug, Default)]
pub struct OpenFiles {
    files: RwLock<BTreeMap<u64, Arc<OpenFile>>>,
    last: AtomicU64,
}

impl OpenFiles {
    /// Adds an open file and returns its handle.
    pub fn add(&self, file: OwnedFd, number: u64) -> u64 {
        let handle = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let open = OpenFile {
            file,
            number,
            lock_owner: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            listing: Mutex::new(Listing::default()),
        };
        self.files.write().insert(handle, Arc::new(open));
        handle
    }

    /// Returns an open file.
    pub fn get(&self, handle: u64) -> io::Result<Arc<OpenFile>> {
        self.files.read().get(&handle).cloned().ok_or_else(|| rustix::io::Errno::BADF.into())
    }

    /// Returns the latest handle of a file that meets a condition.
    pub fn handle_of(&self, number: u64, is_wanted: impl Fn(&OpenFile) -> bool) -> Option<u64> {
        let files = self.files.read();
        let mut latest_first = files.iter().rev();
        latest_first.find(|(_, file)| file.number == number && is_wanted(file)).map(|(handle, _)| *handle)
    }

    /// Returns the openings of a file through which an owner took locks, the first one first.
    pub fn locked_by(&self, number: u64, owner: u64) -> Vec<Arc<OpenFile>> {
        locked_by(&self.files.read(), number, owner)
    }

    /// Returns the openings through which an owner may take locks of a file. The given one comes first if the owner has locks through
    /// it, because locks of two openings exclude each other; else last.
    pub fn lockable_by(&self, file: &Arc<OpenFile>, owner: u64) -> Vec<Arc<OpenFile>> {
        // For writing, so that two threads of a program do not choose two openings.
        let files = self.files.write();
        let mut openings = locked_by(&files, file.number, owner);
        if openings.is_empty() {
            file.lock_owner.store(owner, Ordering::Relaxed);
        }
        openings.sort_by_key(|opening| !Arc::ptr_eq(opening, file));
        if openings.first().is_none_or(|first| !Arc::ptr_eq(first, file)) {
            openings.push(Arc::clone(file));
        }
        openings
    }

    /// Removes an open file.
    pub fn remove(&self, handle: u64) -> Option<Arc<OpenFile>> {
        self.files.write().remove(&handle)
    }
}

fn locked_by(files: &BTreeMap<u64, Arc<OpenFile>>, number: u64, owner: u64) -> Vec<Arc<OpenFile>> {
    let is_locked =
        |file: &&Arc<OpenFile>| file.number == number && file.lock_owner.load(Ordering::Relaxed) == owner;
    files.values().filter(is_locked).cloned().collect()
}

/// Closes a descriptor. A share tells here that it could not keep what was written; dropping the descriptor ignores that.
pub fn close(file: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is owned here, and after `into_raw_fd` nothing else closes it.
    let answer = unsafe { libc::close(file.into_raw_fd()) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::FromRawFd;

    use super::*;

    #[test]
    fn error_at_close_is_returned() {
        // SAFETY: no descriptor has this number, so nothing is closed that something else uses.
        let missing = unsafe { OwnedFd::from_raw_fd(i32::MAX) };
        assert_eq!(close(missing).unwrap_err().raw_os_error(), Some(libc::EBADF));
        close(std::fs::File::open("/dev/null").unwrap().into()).unwrap();
    }
}
