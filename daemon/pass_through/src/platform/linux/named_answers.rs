//! Requests about names in folders: each is done and reported.

use std::io;
use std::path::Path;

use longhaul_recording::TraceAction;
use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags};

use super::answers::{Answers, FoundEntry};
use super::attributes::{open_flags, open_mode, result_of};
use super::folder::{ListedName, magic_path};
use super::recorder::Subject;
use super::tree::NameIn;

impl Answers {
    /// Looks a name up.
    pub fn look_up(&self, thread: u32, name: NameIn) -> io::Result<FoundEntry> {
        let call = self.recorder.begin(thread);
        let answer = self.find(&name);
        match &answer {
            Ok(found) => call.found(name, found.entry.number),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => match self.absolute_name(&name) {
                Some(path) => call.missing(name, path),
                None => drop(call),
            },
            // A file that the share does not show now may be there.
            Err(_) => {
                self.end_on_name(call, name, &answer, |path| TraceAction::Attributes { path, found: None });
            }
        }
        answer
    }

    /// Creates a file without opening it, or a file of another kind. Those have no operation in recordings and are counted.
    pub fn make_node(&self, thread: u32, name: NameIn, mode: u32, device: u32) -> io::Result<FoundEntry> {
        let call = self.recorder.begin(thread);
        let kind = FileType::from_raw_mode(mode);
        let answer = self.create(&name, |folder| {
            let mode = Mode::from_raw_mode(mode & 0o7777);
            rustix::fs::mknodat(&folder, &name.name, kind, mode, device.into())
        });
        if kind == FileType::RegularFile {
            let mode = open_mode(libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL);
            self.end_on_name(call, name, &answer, |path| TraceAction::Open { path, mode, handle: None });
        } else {
            self.recorder.unknown_call("mknod", self.absolute_name(&name).as_deref());
            call.end(Subject::Name(name), result_of(&answer), None);
        }
        answer
    }

    /// Creates a folder.
    pub fn make_folder(&self, thread: u32, name: NameIn, mode: u32) -> io::Result<FoundEntry> {
        let call = self.recorder.begin(thread);
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let answer = self.create(&name, |folder| rustix::fs::mkdirat(&folder, &name.name, mode));
        self.end_on_name(call, name, &answer, |path| TraceAction::CreateFolder { path });
        answer
    }

    /// Makes a symbolic link.
    pub fn make_link(&self, thread: u32, name: NameIn, target: &Path) -> io::Result<FoundEntry> {
        let call = self.recorder.begin(thread);
        let answer = self.create(&name, |folder| rustix::fs::symlinkat(target, &folder, &name.name));
        self.end_on_name(call, name, &answer, |path| TraceAction::SymbolicLink { path });
        answer
    }

    /// Makes a second name of a file.
    pub fn make_name(&self, thread: u32, number: u64, name: NameIn) -> io::Result<FoundEntry> {
        let call = self.recorder.begin(thread);
        let from = self.absolute_path(number);
        let answer = self.handle(number).and_then(|file| {
            self.create(&name, |folder| {
                rustix::fs::linkat(CWD, magic_path(&file), &folder, &name.name, AtFlags::SYMLINK_FOLLOW)
            })
        });
        let paths = from.zip(self.absolute_name(&name));
        let action = paths.as_ref().map(|(from, to)| TraceAction::HardLink { from, to });
        call.end(Subject::Name(name), result_of(&answer), action);
        answer
    }

    /// Removes a file.
    pub fn remove_file(&self, thread: u32, name: NameIn) -> io::Result<()> {
        let call = self.recorder.begin(thread);
        let answer = self.remove(&name, AtFlags::empty());
        self.end_on_name(call, name, &answer, |path| TraceAction::Remove { path });
        answer
    }

    /// Removes a folder.
    pub fn remove_folder(&self, thread: u32, name: NameIn) -> io::Result<()> {
        let call = self.recorder.begin(thread);
        let answer = self.remove(&name, AtFlags::REMOVEDIR);
        self.end_on_name(call, name, &answer, |path| TraceAction::RemoveFolder { path });
        answer
    }

    /// Renames a file. Two files that change places have no operation in recordings and are counted.
    pub fn move_name(&self, thread: u32, from: &NameIn, to: NameIn, flags: RenameFlags) -> io::Result<()> {
        let call = self.recorder.begin(thread);
        let paths = self.absolute_name(from).zip(self.absolute_name(&to));
        let answer = self.rename(from, &to, flags);
        let mut action = paths.as_ref().map(|(from, to)| TraceAction::Rename { from, to });
        if flags.contains(RenameFlags::EXCHANGE) {
            action = None;
            self.recorder.unknown_call("rename_exchange", paths.as_ref().map(|(from, _)| from.as_slice()));
        }
        call.end(Subject::Name(to), result_of(&answer), action);
        answer
    }

    /// Opens a file or folder, and returns its handle.
    pub fn open_node(&self, thread: u32, number: u64, flags: i32) -> io::Result<u64> {
        let call = self.recorder.begin(thread);
        let answer = self.open(number, open_flags(flags));
        let (mode, handle) = (open_mode(flags), answer.as_ref().ok().copied());
        self.end_on_file(call, number, &answer, |path| TraceAction::Open { path, mode, handle });
        answer
    }

    /// Creates and opens a file.
    pub fn create_open(
        &self,
        thread: u32,
        name: NameIn,
        flags: i32,
        mode: u32,
    ) -> io::Result<(FoundEntry, u64)> {
        let call = self.recorder.begin(thread);
        let flags = flags | libc::O_CREAT;
        let answer = self.create_file(&name, flags, mode);
        let (mode, handle) = (open_mode(flags), answer.as_ref().ok().map(|(_, handle)| *handle));
        self.end_on_name(call, name, &answer, |path| TraceAction::Open { path, mode, handle });
        answer
    }

    /// Lists names of an open folder from a place on. `add` takes one and says if the answer is full.
    pub fn list(
        &self,
        by: super::file_answers::Use,
        place: u64,
        add: &mut dyn FnMut(u64, &ListedName, u64) -> bool,
    ) -> io::Result<()> {
        let call = self.recorder.begin(by.thread);
        let mut batch = None;
        let answer = self.files.get(by.handle).and_then(|file| {
            let device = rustix::fs::fstat(&*file)?.st_dev;
            let mut listing = file.listing.lock();
            let names = listing.names_from(&file, place, &mut |entries| batch = Some(entries))?;
            let mut tree = self.tree.write();
            for (next, one) in (place + 1..).zip(names) {
                let is_itself = matches!(&one.name[..], b"." | b"..");
                let inode = one.inode;
                let identity = super::tree::Identity { device, inode };
                let number = if is_itself { file.number } else { tree.number(identity) };
                if add(number, one, next) {
                    break;
                }
            }
            Ok(())
        });
        // The kernel asks for fewer names at a time than a program does: one operation for each batch of the folder.
        if batch.is_some() || answer.is_err() {
            let action = TraceAction::List { handle: by.handle, entries: batch };
            call.end(Subject::Handle(by.handle), result_of(&answer), Some(action));
        }
        answer
    }

    /// Reads a symbolic link.
    pub fn read_link(&self, thread: u32, number: u64) -> io::Result<Vec<u8>> {
        let call = self.recorder.begin(thread);
        let read = |file| Ok(rustix::fs::readlinkat(&file, "", vec![])?.as_bytes().to_owned());
        let answer = self.handle(number).and_then(read);
        self.end_on_file(call, number, &answer, |path| TraceAction::ReadLink { path });
        answer
    }
}
