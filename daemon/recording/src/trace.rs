//! The events of a trace, with real names. They exist only while a trace is read and are never stored.

use std::num::NonZeroU8;
use std::time::Duration;

use crate::{ActionResult, OpenMode};

/// A file operation in a trace. Paths are absolute and normalized; importers resolve descriptors and relative paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEvent<'trace> {
    /// Thread and times.
    pub time: CallTime,
    /// The work that was asked for.
    pub action: TraceAction<'trace>,
    /// The answer.
    pub result: ActionResult,
    /// As in [`RecordedOperation`](crate::RecordedOperation); `None` also if the trace does not tell.
    pub depth_in_open_folder: Option<NonZeroU8>,
}

/// Thread and times of an operation in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTime {
    /// Number of the thread in the trace.
    pub thread: u64,
    /// Beginning of the operation, since a moment that is the same for all events of a trace.
    pub began: Duration,
    /// Duration of the operation without what the recorder took of it; `None` if the trace does not tell.
    pub took: Option<Duration>,
    /// Time that the recorder has taken from this thread so far, in all its calls and between them; zero if unknown.
    pub recorder: Duration,
}

impl CallTime {
    /// Returns the time of an operation of which only the beginning is known.
    pub const fn beginning(thread: u64, began: Duration) -> Self {
        Self { thread, began, took: None, recorder: Duration::ZERO }
    }
}

/// Work that a program asked a file system for. The members are those of [`Action`](crate::Action). `handle` is a number
/// that the importer gives to each successful opening; it is never used twice. `offset` is `None` where the trace
/// does not tell it: the end of the previous transfer of this handle, or of the file for the first write. `entries` is the
/// number of names in a batch without `.` and `..`, if the trace tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in `Action`, which says what each member is")]
pub enum TraceAction<'trace> {
    Open { path: &'trace [u8], mode: OpenMode, handle: Option<u64> },
    Close { handle: u64 },
    List { handle: u64, entries: Option<u64> },
    Read { handle: u64, offset: Option<u64>, length: u64, read: u64 },
    Write { handle: u64, offset: Option<u64>, length: u64 },
    Copy { from: u64, to: u64, read_at: Option<u64>, write_at: Option<u64>, length: u64 },
    Sync { handle: u64 },
    Attributes { path: &'trace [u8], found: Option<FoundFile> },
    AttributesButAccessTime { path: &'trace [u8], found: Option<FoundFile> },
    HandleAttributes { handle: u64, found: Option<FoundFile> },
    SetAttributes { path: &'trace [u8] },
    SetHandleAttributes { handle: u64 },
    SetLength { path: &'trace [u8], length: u64 },
    ReadExtendedAttribute { path: &'trace [u8] },
    WriteExtendedAttribute { path: &'trace [u8], length: u64 },
    Lock { handle: u64 },
    Rename { from: &'trace [u8], to: &'trace [u8] },
    HardLink { from: &'trace [u8], to: &'trace [u8] },
    SymbolicLink { path: &'trace [u8] },
    ReadLink { path: &'trace [u8] },
    Remove { path: &'trace [u8] },
    CreateFolder { path: &'trace [u8] },
    RemoveFolder { path: &'trace [u8] },
    FreeSpace { path: &'trace [u8] },
}

/// The attributes that a trace shows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundFile {
    /// A file of this many bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
}

/// Direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the file to the program.
    Read,
    /// From the program to the file.
    Write,
}

/// Receiver of the events of a trace.
pub trait TraceSink {
    /// Takes an event. Events come in the order in which they began.
    fn event(&mut self, event: &TraceEvent<'_>);

    /// Takes note of a part of the trace that is no event.
    fn note(&mut self, note: Note<'_>);
}

/// A part of a trace that is no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note<'trace> {
    /// A line or record was read.
    Line,
    /// A line was truncated or damaged, so that an operation is missing.
    Damaged,
    /// An operation on a file whose opening or path the trace does not show.
    UnknownHandle,
    /// The next event opens a file that was open before the trace began.
    AddedOpening {
        /// Path of the file.
        path: &'trace [u8],
    },
    /// A file operation of unknown kind.
    UnknownCall {
        /// Name of the call, from the importer's own list.
        name: &'static str,
        /// Path of the file, if known.
        path: Option<&'trace [u8]>,
    },
}

impl<'trace> TraceAction<'trace> {
    /// Returns the action with other paths: each one is replaced by what `replace` makes of it, in order.
    pub(crate) fn with_paths<'other>(
        self,
        replace: &mut dyn FnMut(&'trace [u8]) -> &'other [u8],
    ) -> TraceAction<'other> {
        use TraceAction as A;
        match self {
            A::Open { path, mode, handle } => A::Open { path: replace(path), mode, handle },
            A::Attributes { path, found } => A::Attributes { path: replace(path), found },
            A::AttributesButAccessTime { path, found } => {
                A::AttributesButAccessTime { path: replace(path), found }
            }
            A::SetAttributes { path } => A::SetAttributes { path: replace(path) },
            A::SetLength { path, length } => A::SetLength { path: replace(path), length },
            A::ReadExtendedAttribute { path } => A::ReadExtendedAttribute { path: replace(path) },
            A::WriteExtendedAttribute { path, length } => {
                A::WriteExtendedAttribute { path: replace(path), length }
            }
            A::Rename { from, to } => A::Rename { from: replace(from), to: replace(to) },
            A::HardLink { from, to } => A::HardLink { from: replace(from), to: replace(to) },
            A::SymbolicLink { path } => A::SymbolicLink { path: replace(path) },
            A::ReadLink { path } => A::ReadLink { path: replace(path) },
            A::Remove { path } => A::Remove { path: replace(path) },
            A::CreateFolder { path } => A::CreateFolder { path: replace(path) },
            A::RemoveFolder { path } => A::RemoveFolder { path: replace(path) },
            A::FreeSpace { path } => A::FreeSpace { path: replace(path) },
            A::Close { handle } => A::Close { handle },
            A::List { handle, entries } => A::List { handle, entries },
            A::Read { handle, offset, length, read } => A::Read { handle, offset, length, read },
            A::Write { handle, offset, length } => A::Write { handle, offset, length },
            A::Copy { from, to, read_at, write_at, length } => {
                A::Copy { from, to, read_at, write_at, length }
            }
            A::Sync { handle } => A::Sync { handle },
            A::HandleAttributes { handle, found } => A::HandleAttributes { handle, found },
            A::SetHandleAttributes { handle } => A::SetHandleAttributes { handle },
            A::Lock { handle } => A::Lock { handle },
        }
    }
}
