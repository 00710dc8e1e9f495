//! Requests about attributes: each is done and reported.

use std::ffi::OsStr;
use std::io;
use std::sync::atomic::Ordering;

use fuser::FileAttr;
use longhaul_recording::TraceAction;
use rustix::fs::{Access, AtFlags, CWD, StatVfs, XattrFlags};

use super::answers::{Answers, Change};
use super::attributes::{found_file, result_of};
use super::folder::magic_path;
use super::open_files::OpenFile;
use super::recorder::Subject;

/// Attribute that the kernel reads before writes, not the program.
const KERNELS_OWN_ATTRIBUTE: &str = "security.capability";
/// Largest extended attribute, and largest list of their names, on Linux.
const LARGEST_ATTRIBUTE: usize = 64 << 10;

/// A new value of an extended attribute.
pub struct NewAttribute<'r> {
    /// Name of the attribute.
    pub name: &'r OsStr,
    /// The value.
    pub value: &'r [u8],
    /// Says if the attribute must exist, or must not.
    pub flags: i32,
}

impl Answers {
    /// Returns the attributes of a file.
    pub fn get_attributes(&self, thread: u32, number: u64, given: Option<u64>) -> io::Result<FileAttr> {
        let call = self.recorder.begin(thread);
        // The kernel does not say if a program asked with a path or with an open file. With a path, it looked that up.
        let has_path = self.recorder.has_walked_to(thread, number);
        let is_used = |file: &OpenFile| !file.is_closed.load(Ordering::Relaxed);
        let open = given.or_else(|| self.files.handle_of(number, is_used)).filter(|_| !has_path);
        let answer = self.attributes(number, open);
        let found = answer.as_ref().ok().map(found_file);
        match open {
            Some(handle) => {
                let action = TraceAction::HandleAttributes { handle, found };
                call.end(Subject::Handle(handle), result_of(&answer), Some(action));
            }
            None => {
                self.end_on_file(call, number, &answer, |path| TraceAction::Attributes { path, found });
            }
        }
        answer
    }

    /// Sets attributes.
    pub fn change(&self, thread: u32, number: u64, change: &Change) -> io::Result<FileAttr> {
        let call = self.recorder.begin(thread);
        let answer = self.set_attributes(number, change);
        self.end_on_file(call, number, &answer, |path| match change.size {
            Some(length) => TraceAction::SetLength { path, length },
            None => TraceAction::SetAttributes { path },
        });
        answer
    }

    /// Tells whether a program may use a file in this way.
    pub fn may_access(&self, thread: u32, number: u64, mask: i32) -> io::Result<()> {
        let call = self.recorder.begin(thread);
        let access = Access::from_bits_retain(mask.cast_unsigned());
        let ask = |file| Ok(rustix::fs::accessat(CWD, magic_path(&file), access, AtFlags::EACCESS)?);
        let answer = self.handle(number).and_then(ask);
        self.end_on_file(call, number, &answer, |path| TraceAction::Attributes { path, found: None });
        answer
    }

    /// Returns the space of the file system.
    pub fn space(&self, thread: u32, number: u64) -> io::Result<StatVfs> {
        let call = self.recorder.begin(thread);
        let answer = self.handle(number).and_then(|file| Ok(rustix::fs::fstatvfs(&file)?));
        self.end_on_file(call, number, &answer, |path| TraceAction::FreeSpace { path });
        answer
    }

    /// Sets an extended attribute.
    pub fn set_extended(&self, thread: u32, number: u64, new: &NewAttribute<'_>) -> io::Result<()> {
        let call = self.recorder.begin(thread);
        let flags = XattrFlags::from_bits_retain(new.flags.cast_unsigned());
        let set = |file| Ok(rustix::fs::setxattr(magic_path(&file), new.name, new.value, flags)?);
        let answer = self.handle(number).and_then(set);
        let length = new.value.len() as u64;
        self.end_on_file(call, number, &answer, |path| TraceAction::WriteExtendedAttribute { path, length });
        answer
    }

    /// Removes an extended attribute.
    pub fn remove_extended(&self, thread: u32, number: u64, name: &OsStr) -> io::Result<()> {
        let call = self.recorder.begin(thread);
        let answer =
            self.handle(number).and_then(|file| Ok(rustix::fs::removexattr(magic_path(&file), name)?));
        self.end_on_file(call, number, &answer, |path| TraceAction::WriteExtendedAttribute {
            path,
            length: 0,
        });
        answer
    }

    /// Returns the value of an extended attribute.
    pub fn get_extended(&self, thread: u32, number: u64, name: &OsStr) -> io::Result<Vec<u8>> {
        let call = self.recorder.begin(thread);
        let get = |file| with_buffer(|buffer| rustix::fs::getxattr(magic_path(&file), name, buffer));
        let answer = self.handle(number).and_then(get);
        if name != KERNELS_OWN_ATTRIBUTE {
            self.end_on_file(call, number, &answer, |path| TraceAction::ReadExtendedAttribute { path });
        }
        answer
    }

    /// Returns the names of all extended attributes.
    pub fn list_extended(&self, thread: u32, number: u64) -> io::Result<Vec<u8>> {
        let call = self.recorder.begin(thread);
        let list = |file| with_buffer(|buffer| rustix::fs::listxattr(magic_path(&file), buffer));
        let answer = self.handle(number).and_then(list);
        self.end_on_file(call, number, &answer, |path| TraceAction::ReadExtendedAttribute { path });
        answer
    }
}

fn with_buffer(call: impl FnOnce(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; LARGEST_ATTRIBUTE];
    let length = call(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}
