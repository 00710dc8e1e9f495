//! One call in its thread: resolves descriptors and paths, and makes events.

use std::cell::RefCell;
use std::num::NonZeroU8;
use std::rc::Rc;

use super::processes::{Descriptor, OpenFile, Thread};
use super::syntax::{self, Answer, Call};
use crate::import::paths::{MAX_PATH_BYTES, absolute};
use crate::{
    Access, ActionResult, CallTime, CreateMode, FoundFile, Note, OpenMode, TraceAction, TraceEvent, TraceSink,
};

/// Descriptors that every program inherits: input, output and errors.
const STANDARD: std::ops::RangeInclusive<u64> = 0..=2;

/// A call in its thread.
pub(super) struct Context<'call, 'order> {
    pub(super) thread: Thread,
    pub(super) time: CallTime,
    /// Number of names in each path of the call, if they are given from open folders.
    pub(super) depth_in_open_folder: Option<NonZeroU8>,
    pub(super) next_handle: &'call mut u64,
    pub(super) sink: &'call mut (dyn TraceSink + 'order),
}

/// An open file and the number of its opening.
pub(super) struct Opened {
    pub(super) file: Rc<RefCell<OpenFile>>,
    pub(super) handle: u64,
}

impl Context<'_, '_> {
    /// Emits an event for this call.
    pub(super) fn emit(&mut self, action: TraceAction<'_>, result: ActionResult) {
        let (time, depth_in_open_folder) = (self.time, self.depth_in_open_folder);
        self.sink.event(&TraceEvent { time, action, result, depth_in_open_folder });
    }

    /// Emits an event that the trace does not show, or that is a part of a call, and that takes no time.
    pub(super) fn emit_implied(&mut self, action: TraceAction<'_>) {
        let time = CallTime { took: None, ..self.time };
        let (result, depth_in_open_folder) = (ActionResult::Done, None);
        self.sink.event(&TraceEvent { time, action, result, depth_in_open_folder });
    }

    /// Emits the end of openings.
    pub(super) fn emit_closed(&mut self, handles: impl IntoIterator<Item = u64>) {
        handles.into_iter().for_each(|handle| self.emit_implied(TraceAction::Close { handle }));
    }

    /// Notes an operation of unknown kind.
    pub(super) fn unknown(&mut self, name: &'static str, path: Option<&[u8]>) {
        self.sink.note(Note::UnknownCall { name, path });
    }

    /// Notes an operation on a path or descriptor that the trace does not tell.
    pub(super) fn unresolved(&mut self) {
        self.sink.note(Note::UnknownHandle);
    }

    /// Returns a number for a new opening.
    pub(super) fn new_handle(&mut self) -> u64 {
        *self.next_handle += 1;
        *self.next_handle
    }

    /// Returns the path in an argument; one that is relative belongs to the folder `at`, or to the current one.
    pub(super) fn path(&self, at: Option<&[u8]>, argument: Option<&&[u8]>) -> Option<Vec<u8>> {
        let path = syntax::string(argument?)?;
        if path.starts_with(b"/") {
            return self.below_descriptor(&path).or_else(|| absolute(None, &path));
        }
        absolute(self.folder(at).as_deref(), &path)
    }

    /// Returns the path that `/proc/self/fd/NUMBER` or `/dev/fd/NUMBER`, and what follows it, stands for; `None` if it is another
    /// path, or if the descriptor is no known file.
    fn below_descriptor(&self, path: &[u8]) -> Option<Vec<u8>> {
        let below = path.strip_prefix(b"/proc/self/fd/").or_else(|| path.strip_prefix(b"/dev/fd/"))?;
        let (digits, rest) =
            below.split_at(below.iter().position(|byte| *byte == b'/').unwrap_or(below.len()));
        let file = self.thread.file(syntax::number(digits)?)?;
        let file = file.borrow();
        let folder = Some(file.path.as_slice()).filter(|path| !path.is_empty());
        absolute(folder, rest.strip_prefix(b"/").unwrap_or(rest))
    }

    /// Returns the folder that a descriptor or `AT_FDCWD` stands for; without one, the current folder.
    fn folder(&self, at: Option<&[u8]>) -> Option<Vec<u8>> {
        let current = || self.thread.folder.borrow().as_deref().map(<[u8]>::to_vec);
        let Some(at) = at else { return current() };
        if let Some(annotated) = at.strip_prefix(b"AT_FDCWD") {
            let path = annotated.strip_prefix(b"<").and_then(|path| path.strip_suffix(b">"));
            return path.map_or_else(current, syntax::unescaped);
        }
        self.descriptor_path(at)
    }

    /// Returns the number of names in a path that is given from the folder `at`, if the trace shows that this was opened.
    pub(super) fn depth_below(&self, at: Option<&[u8]>, path: Option<&&[u8]>) -> Option<NonZeroU8> {
        self.handle(at.as_ref())?;
        let path = syntax::string(path?)?;
        let mut names = path.split(|byte| *byte == b'/');
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
        let depth = names.clone().count();
        if names.all(is_name) { NonZeroU8::new(u8::try_from(depth).ok()?) } else { None }
    }

    /// Returns the path that a descriptor or `AT_FDCWD` stands for.
    pub(super) fn at_path(&self, argument: &[u8]) -> Option<Vec<u8>> {
        self.folder(Some(argument))
    }

    /// Returns the path of a descriptor.
    pub(super) fn descriptor_path(&self, argument: &[u8]) -> Option<Vec<u8>> {
        let descriptor = syntax::descriptor(argument)?;
        if let Some(path) = annotated_path(descriptor.annotation) {
            return Some(path);
        }
        let file = self.thread.file(descriptor.number)?;
        let path = file.borrow().path.clone();
        (!path.is_empty()).then_some(path)
    }

    /// Returns the number of the opening of a descriptor, if the trace shows it.
    pub(super) fn handle(&self, argument: Option<&&[u8]>) -> Option<u64> {
        self.thread.file(syntax::descriptor(argument?)?.number)?.borrow().handle
    }

    /// Returns the number of the opening of a descriptor, if that is more than a path (`O_PATH`).
    pub(super) fn open_handle(&self, argument: Option<&&[u8]>) -> Option<u64> {
        let file = self.thread.file(syntax::descriptor(argument?)?.number)?;
        let file = file.borrow();
        file.handle.filter(|_| !file.is_path_only)
    }

    /// Returns the open file of a descriptor. One that was open before the trace began is opened now; one that is no file
    /// gives nothing; one that nothing is known of is counted.
    pub(super) fn opened(&mut self, argument: Option<&&[u8]>, access: Access) -> Option<Opened> {
        let descriptor = syntax::descriptor(argument?)?;
        if let Some(file) = self.thread.file(descriptor.number) {
            let handle = file.borrow().handle?;
            return Some(Opened { file, handle });
        }
        match annotated_path(descriptor.annotation) {
            Some(path) => Some(self.add_opening(descriptor.number, path, access)),
            None if descriptor.annotation.is_some() || STANDARD.contains(&descriptor.number) => None,
            None => {
                self.unresolved();
                None
            }
        }
    }

    fn add_opening(&mut self, descriptor: u64, path: Vec<u8>, access: Access) -> Opened {
        let handle = self.new_handle();
        self.sink.note(Note::AddedOpening { path: &path });
        let mode = OpenMode { access, create: CreateMode::Never, truncate: false, folder: false };
        self.emit_implied(TraceAction::Open { path: &path, mode, handle: Some(handle) });
        let file =
            OpenFile { handle: Some(handle), path, position: None, appends: false, is_path_only: false };
        let file = Rc::new(RefCell::new(file));
        let added = Descriptor { file: file.clone(), closes_on_exec: false };
        self.thread.set(descriptor, added);
        Opened { file, handle }
    }
}

/// Returns the path of a descriptor that is a file, unless it is too long; sockets and pipes have none.
pub(super) fn annotated_path(annotation: Option<&[u8]>) -> Option<Vec<u8>> {
    // A device has its numbers behind the path.
    let path = annotation.filter(|text| text.starts_with(b"/"))?.split(|byte| *byte == b'<').next()?;
    syntax::unescaped(path).filter(|path| path.len() <= MAX_PATH_BYTES)
}

/// Returns the answer as an event has it; `None` if the call did not end, or never reached a file system.
pub(super) fn result(call: &Call<'_>) -> Option<ActionResult> {
    match call.answer {
        Answer::Number(_) => Some(ActionResult::Done),
        Answer::Error(b"ENOENT") => Some(ActionResult::NotFound),
        Answer::Error(b"EEXIST") => Some(ActionResult::Exists),
        Answer::Error(b"EBADF" | b"EFAULT" | b"ENOSYS" | b"EINTR") | Answer::Unknown => None,
        Answer::Error(_) => Some(ActionResult::Failed),
    }
}

/// Returns the number that a call returned; 0 if it failed.
pub(super) fn returned(call: &Call<'_>) -> u64 {
    if let Answer::Number(returned) = call.answer { returned.number } else { 0 }
}

/// Tells whether an argument has a flag.
pub(super) fn has(argument: Option<&&[u8]>, flag: &str) -> bool {
    let is_word = |part: &[u8]| part == flag.as_bytes();
    argument
        .is_some_and(|text| text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').any(is_word))
}

/// Returns the number behind `key=` in a structure.
pub(super) fn field(structure: &[u8], key: &str) -> Option<u64> {
    let start = structure.windows(key.len()).position(|part| part == key.as_bytes())? + key.len();
    let digits = structure[start..].split(|byte| !byte.is_ascii_digit()).next()?;
    syntax::number(digits)
}

/// Returns the attributes in a structure of `stat` or `statx`.
pub(super) fn found(structure: Option<&&[u8]>) -> Option<FoundFile> {
    if has(structure, "S_IFDIR") {
        return Some(FoundFile::Folder);
    }
    if has(structure, "S_IFLNK") {
        return Some(FoundFile::Link);
    }
    let size = field(structure?, "st_size=").or_else(|| field(structure?, "stx_size="));
    if has(structure, "S_IFREG") { size.map(FoundFile::File) } else { None }
}
