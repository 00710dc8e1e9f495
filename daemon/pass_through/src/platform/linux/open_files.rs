//! Files and folders that programs have open.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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
    files: RwLock<HashMap<u64, Arc<OpenFile>>>,
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

    /// Returns the latest handle of a file.
    pub fn handle_of(&self, number: u64) -> Option<u64> {
        let files = self.files.read();
        files.iter().filter(|(_, file)| file.number == number).map(|(handle, _)| *handle).max()
    }

    /// Returns the latest handle of a file that no program has closed.
    pub fn used_handle_of(&self, number: u64) -> Option<u64> {
        let files = self.files.read();
        let used =
            files.iter().filter(|(_, file)| file.number == number && !file.is_closed.load(Ordering::Relaxed));
        used.map(|(handle, _)| *handle).max()
    }

    /// Removes an open file.
    pub fn remove(&self, handle: u64) -> Option<Arc<OpenFile>> {
        self.files.write().remove(&handle)
    }
}
