//! The work behind requests about open files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use longhaul_recording::TraceAction;
use rustix::fs::{FallocateFlags, SeekFrom};

use super::answers::Answers;
use super::attributes::result_of;
use super::locks::Lock;
use super::open_files::OpenFile;
use super::recorder::Subject;
use super::work::on_handle;

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

impl Answers {
    /// Reads bytes.
    pub fn read(&self, by: Use, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        let call = self.recorder.begin(by.thread);
        let mut buffer = vec![0; length as usize];
        let answer = self.on_file(by.handle, |file| rustix::io::pread(file, &mut buffer[..], offset));
        let read = answer.as_ref().map_or(0, |read| *read as u64);
        let action =
            TraceAction::Read { handle: by.handle, offset: Some(offset), length: length.into(), read };
        call.end(Subject::Handle(by.handle), result_of(&answer), Some(on_handle(action)));
        buffer.truncate(answer?);
        Ok(buffer)
    }

    /// Writes bytes, and returns their number.
    pub fn write(&self, by: Use, offset: u64, data: &[u8]) -> io::Result<usize> {
        let call = self.recorder.begin(by.thread);
        let answer = self.on_file(by.handle, |file| rustix::io::pwrite(file, data, offset));
        let length = answer.as_ref().map_or(data.len(), |written| *written) as u64;
        let action = TraceAction::Write { handle: by.handle, offset: Some(offset), length };
        call.end(Subject::Handle(by.handle), result_of(&answer), Some(on_handle(action)));
        answer
    }

    /// Does what a client of a share does when a program closes a file: it writes, and tells of errors. Locks of the program end.
    pub fn flush(&self, by: Use, owner: u64) -> io::Result<()> {
        let call = self.recorder.begin(by.thread);
        let answer = self.files.get(by.handle).and_then(|file| {
            file.is_closed.store(true, Ordering::Relaxed);
            if owner != 0 && file.lock_owner.load(Ordering::Relaxed) == owner {
                Lock::ALL_ENDED.set(&*file)?;
            }
            drop(rustix::io::dup(&*file)?);
            Ok(())
        });
        call.flushed(by.handle);
        answer
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
        let work = on_handle(TraceAction::Sync { handle: by.handle });
        call.end(Subject::Handle(by.handle), result_of(&answer), Some(work));
        answer
    }

    /// Takes or ends a lock.
    pub fn lock(&self, by: Use, request: LockRequest) -> io::Result<()> {
        let call = self.recorder.begin(by.thread);
        let answer = self.files.get(by.handle).and_then(|file| {
            file.lock_owner.store(request.owner, Ordering::Relaxed);
            if request.waits { request.lock.wait(&*file) } else { request.lock.set(&*file) }
        });
        let work = on_handle(TraceAction::Lock { handle: by.handle });
        call.end(Subject::Handle(by.handle), result_of(&answer), Some(work));
        answer
    }

    /// Allocates space. Recordings know only a file that becomes longer by it.
    pub fn allocate(&self, by: Use, range: std::ops::Range<u64>, mode: i32) -> io::Result<()> {
        let call = self.recorder.begin(by.thread);
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let file = self.files.get(by.handle)?;
        let length = range.end - range.start;
        let answer = rustix::fs::fallocate(&*file, flags, range.start, length).map_err(io::Error::from);
        let size = rustix::fs::fstat(&*file).map_or(0, |found| found.st_size.cast_unsigned());
        if flags.is_empty() && size == range.end {
            let number = file.number;
            self.end_on_file(call, number, &answer, move |path| TraceAction::SetLength {
                path,
                length: size,
            });
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
