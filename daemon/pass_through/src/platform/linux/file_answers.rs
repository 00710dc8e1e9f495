//! The work behind requests about open files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use longhaul_recording::TraceAction;
use rustix::fs::{FallocateFlags, SeekFrom};

use super::answers::Answers;
use super::attributes::result_of;
use super::locks::Lock;
use super::open_files::{OpenFile, close};
use super::programs::has_signal;
use super::recorder::Subject;

/// A request about a lock.
#[derive(Debug, Clone, Copy)]
pub struct LockRequest {
    /// The lock.
    pub lock: Lock,
    /// Owner of the lock.
    pub owner: u64,
    /// The program waits until it gets the lock.
    pub waits: bool,
}

/// An open file, and the thread that uses it.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// Thread of the program.
    pub thread: u32,
    /// Handle of the file.
    pub handle: u64,
}

impl LockRequest {
    /// Takes the lock through the first of these openings of its file that can have it: one that only reads has no lock for writing.
    fn take(self, thread: u32, openings: &[Arc<OpenFile>]) -> io::Result<()> {
        let mut answer = Err(rustix::io::Errno::BADF.into());
        for opening in openings {
            opening.lock_owner.store(self.owner, Ordering::Relaxed);
            answer = match self.waits {
                true => self.lock.wait(opening, || has_signal(thread)),
                false => self.lock.set(opening),
            };
            if !matches!(&answer, Err(error) if error.raw_os_error() == Some(libc::EBADF)) {
                break;
            }
        }
        answer
    }
}

impl Answers {
    /// Reads bytes.
    pub fn read(&self, by: Use, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        let call = self.recorder.begin(by.thread);
        let mut buffer = vec![0; length as usize];
        let answer = self.on_file(by.handle, |file| rustix::io::pread(file, &mut buffer[..], offset));
        let read = answer.as_ref().map_or(0, |read| *read as u64);
        let action =
            TraceAction::Read { handle: by.handle, offset: Some(offset), length: length.into(), read };
        call.end(Subject::Handle(by.handle), result_of(&answer), Some(action));
        buffer.truncate(answer?);
        Ok(buffer)
    }

    /// Writes bytes, and returns their number.
    pub fn write(&self, by: Use, offset: u64, data: &[u8]) -> io::Result<usize> {
        let call = self.recorder.begin(by.thread);
        let answer = self.on_file(by.handle, |file| rustix::io::pwrite(file, data, offset));
        let length = answer.as_ref().map_or(data.len(), |written| *written) as u64;
        let action = TraceAction::Write { handle: by.handle, offset: Some(offset), length };
        call.end(Subject::Handle(by.handle), result_of(&answer), Some(action));
        answer
    }

    /// Does what a client of a share does when a program closes a file: it writes, and tells of errors. Locks of the program end.
    pub fn flush(&self, by: Use, owner: u64) -> io::Result<()> {
        let call = self.recorder.begin(by.thread);
        let answer = self.files.get(by.handle).and_then(|file| {
            file.is_closed.store(true, Ordering::Relaxed);
            let unlocked = self.end_locks(file.number, owner);
            close(rustix::io::dup(&*file)?).and(unlocked)
        });
        call.flushed(by.handle);
        answer
    }

    /// Ends all locks that an owner has on a file: one closed handle of a program ends those of all its handles (fcntl(2)).
    fn end_locks(&self, number: u64, owner: u64) -> io::Result<()> {
        let locked = if owner == 0 { vec![] } else { self.files.locked_by(number, owner) };
        locked.iter().try_for_each(|file| {
            file.lock_owner.store(0, Ordering::Relaxed);
            Lock::ALL_ENDED.set(file)
        })
    }

    /// Closes a file or folder.
    pub fn release(&self, by: Use) {
        let call = self.recorder.begin(by.thread);
        drop(self.files.remove(by.handle));
        call.released(by.handle);
    }

    /// Writes a file to stable storage.
    pub fn sync(&self, by: Use, only_data: bool) -> io::Result<()> {
        let call = self.recorder.begin(by.thread);
        let sync = if only_data { rustix::fs::fdatasync } else { rustix::fs::fsync };
        let answer = self.on_file(by.handle, sync);
        let action = TraceAction::Sync { handle: by.handle };
        call.end(Subject::Handle(by.handle), result_of(&answer), Some(action));
        answer
    }

    /// Takes or ends a lock.
    pub fn lock(&self, by: Use, request: LockRequest) -> io::Result<()> {
        let call = self.recorder.begin(by.thread);
        let answer = self.files.get(by.handle).and_then(|file| {
            let openings = self.files.lockable_by(&file, request.owner);
            let mut locked =
                openings.iter().filter(|one| one.lock_owner.load(Ordering::Relaxed) == request.owner);
            match request.lock.kind {
                libc::F_UNLCK => locked.try_for_each(|opening| request.lock.set(opening)),
                _ => request.take(by.thread, &openings),
            }
        });
        let action = TraceAction::Lock { handle: by.handle };
        call.end(Subject::Handle(by.handle), result_of(&answer), Some(action));
        answer
    }

    /// Returns a lock of another owner that is in the way of this one; of kind `F_UNLCK` if there is none.
    pub fn conflict(&self, handle: u64, request: LockRequest) -> io::Result<Lock> {
        let file = self.files.get(handle)?;
        let locked = self.files.locked_by(file.number, request.owner);
        request.lock.conflict(locked.first().unwrap_or(&file))
    }

    /// Allocates space. Recordings know only a file that becomes longer by it; the rest is counted.
    pub fn allocate(&self, by: Use, range: std::ops::Range<u64>, mode: i32) -> io::Result<()> {
        let call = self.recorder.begin(by.thread);
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let file = self.files.get(by.handle)?;
        let length = range.end - range.start;
        let answer = rustix::fs::fallocate(&*file, flags, range.start, length).map_err(io::Error::from);
        let size = rustix::fs::fstat(&*file).map_or(0, |found| found.st_size.cast_unsigned());
        if flags.is_empty() && size == range.end {
            self.end_on_file(call, file.number, &answer, |path| TraceAction::SetLength {
                path,
                length: size,
            });
        } else {
            self.recorder.unknown_call("fallocate", self.absolute_path(file.number).as_deref());
        }
        answer
    }

    /// Finds data or a hole.
    pub fn seek(&self, handle: u64, to: SeekFrom) -> io::Result<u64> {
        self.on_file(handle, |file| rustix::fs::seek(file, to))
    }

    fn on_file<T>(
        &self,
        handle: u64,
        call: impl FnOnce(Arc<OpenFile>) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        Ok(call(self.files.get(handle)?)?)
    }
}
