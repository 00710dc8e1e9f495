//! Memory shared between the supervisor and a worker.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// File of 64-bit words that is mapped into this process and shared with every other process that maps it.
///
/// The file has to be on a local file system: a page fault on a mapping of a dead share would kill the
/// process.
pub struct SharedMapping {
    base: *mut AtomicU64,
    words: usize,
}

// SAFETY: the mapping is memory that lives as long as the value, and it is only reached as `&[AtomicU64]`.
unsafe impl Send for SharedMapping {}
// SAFETY: as above; atomics may be used from several threads.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Sets an empty file to `words` zero words and maps it.
    pub fn create(file: &File, words: usize) -> io::Result<Self> {
        file.set_len(words as u64 * 8)?;
        Self::map(file, words)
    }

    /// Maps a file that [`SharedMapping::create`] created.
    pub fn open(path: &Path, words: usize) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() != words as u64 * 8 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is not a flight recorder of this version",
            ));
        }
        Self::map(&file, words)
    }

    /// Allocates memory of this process alone, for work without a supervisor.
    pub fn private(words: usize) -> io::Result<Self> {
        let length = words * 8;
        // SAFETY: a fresh anonymous mapping at an address that the kernel chooses overlaps nothing.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        Ok(Self { base: base.cast(), words })
    }

    fn map(file: &File, words: usize) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address that the kernel chooses overlaps nothing; the file is `words
        // * 8` long.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                words * 8,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        Ok(Self { base: base.cast(), words })
    }

    /// Returns the words of the mapping.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: `base` is page-aligned memory of `words * 8` bytes, mapped until drop, and an AtomicU64 has
        // no invalid bit pattern; other processes change it only through atomics of the same size.
        unsafe { std::slice::from_raw_parts(self.base, self.words) }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and no reference outlives `self`. A failure would leak, nothing
        // more.
        let _ = unsafe { munmap(self.base.cast(), self.words * 8) };
    }
}
