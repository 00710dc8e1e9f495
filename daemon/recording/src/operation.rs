//! The operations of a recording.

use std::num::NonZeroU8;

use longhaul_model::Operation;
use serde::{Deserialize, Serialize};
use strum::{EnumDiscriminants, VariantArray};

use crate::PowerOfTwo;

/// Number of a node in [`Recording::nodes`](crate::Recording::nodes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeNumber(pub u32);

/// Number of an open file or folder, given in the order of opening. A number is used once in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HandleNumber(pub u32);

/// A recorded file operation. Operations stand in the order in which they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedOperation {
    /// Number of the thread, from 0, given in the order of appearance.
    pub thread: u32,
    /// Time between the end of the thread's previous operation and the beginning of this one, in microseconds. For the first
    /// operation of a thread, the time since the end of the recorded operation before it: that of another thread, which often
    /// started this one; 0 if that was still in progress. Together with
    /// [`Recording::mean_pauses`](crate::Recording::mean_pauses) it adds up to the recorded time.
    pub pause: PowerOfTwo,
    /// The work that was asked for.
    pub action: Action,
    /// The answer.
    pub result: ActionResult,
    /// Number of names in each path that the program gave, if it gave them from a folder that it had open (`openat` and its like): 1
    /// for a file in that folder. The client looked up these names; otherwise it looked up those of the folders above as well.
    pub depth_in_open_folder: Option<NonZeroU8>,
}

impl RecordedOperation {
    /// Returns the operation under which longhaul measures this one. An opening that may create counts as a creation, and
    /// attributes of a name that does not exist as a lookup.
    pub const fn kind(&self) -> Operation {
        match self.action {
            Action::Open { mode: OpenMode { create: CreateMode::Never, .. }, .. } => Operation::Open,
            Action::Open { .. } | Action::HardLink { .. } | Action::SymbolicLink { .. } => Operation::Create,
            Action::Close { .. } => Operation::Close,
            Action::List { .. } => Operation::Readdir,
            Action::Read { .. } => Operation::Read,
            Action::Write { .. } | Action::Copy(_) => Operation::Write,
            Action::Sync { .. } => Operation::Sync,
            Action::Attributes { .. } | Action::AttributesButAccessTime { .. }
                if matches!(self.result, ActionResult::NotFound) =>
            {
                Operation::Lookup
            }
            Action::Attributes { .. }
            | Action::AttributesButAccessTime { .. }
            | Action::HandleAttributes { .. }
            | Action::ReadLink { .. }
            | Action::FreeSpace { .. } => Operation::Getattr,
            Action::SetAttributes { .. } | Action::SetHandleAttributes { .. } | Action::SetLength { .. } => {
                Operation::Setattr
            }
            Action::ReadExtendedAttribute { .. } => Operation::Getxattr,
            Action::WriteExtendedAttribute { .. } => Operation::Setxattr,
            Action::Lock { .. } => Operation::Lock,
            Action::Rename { .. } => Operation::Rename,
            Action::Remove { .. } => Operation::Unlink,
            Action::CreateFolder { .. } => Operation::Mkdir,
            Action::RemoveFolder { .. } => Operation::Rmdir,
        }
    }
}

/// Work that a program asked a file system for. Lengths and offsets are in bytes. Recordings store variants by number: new ones
/// go last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumDiscriminants)]
#[strum_discriminants(
    name(ActionKind),
    vis(pub(crate)),
    doc = "Kind of an action; its number is the one that recordings store."
)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "members say what their fields are")]
pub enum Action {
    /// Opens a file or folder; `handle` is given only if that succeeded.
    Open { node: NodeNumber, mode: OpenMode, handle: Option<HandleNumber> },
    /// Closes a handle.
    Close { handle: HandleNumber },
    /// Reads one batch of names of an open folder.
    List { handle: HandleNumber },
    /// Reads bytes; `length` is what was asked for, `read` what came.
    Read { handle: HandleNumber, offset: u64, length: u64, read: u64 },
    /// Writes bytes; `length` is what was written.
    Write { handle: HandleNumber, offset: u64, length: u64 },
    /// Writes data to stable storage.
    Sync { handle: HandleNumber },
    /// Reads attributes by path (`stat`, `access`).
    Attributes { node: NodeNumber },
    /// Reads attributes of an open file (`fstat`).
    HandleAttributes { handle: HandleNumber },
    /// Sets mode, owner or times.
    SetAttributes { node: NodeNumber },
    /// Sets the length of a file.
    SetLength { node: NodeNumber, length: u64 },
    /// Reads or lists extended attributes.
    ReadExtendedAttribute { node: NodeNumber },
    /// Writes or removes an extended attribute of this many bytes.
    WriteExtendedAttribute { node: NodeNumber, length: PowerOfTwo },
    /// Takes or releases a lock on a range of an open file.
    Lock { handle: HandleNumber },
    /// Renames a file or folder, over an existing one if there is one.
    Rename { from: NodeNumber, to: NodeNumber },
    /// Makes a second name of a file.
    HardLink { from: NodeNumber, to: NodeNumber },
    /// Makes a symbolic link.
    SymbolicLink { node: NodeNumber },
    /// Reads a symbolic link.
    ReadLink { node: NodeNumber },
    /// Removes a file.
    Remove { node: NodeNumber },
    /// Creates a folder.
    CreateFolder { node: NodeNumber },
    /// Removes an empty folder.
    RemoveFolder { node: NodeNumber },
    /// Asks for the free space.
    FreeSpace { node: NodeNumber },
    /// Copies bytes from one open file to another without moving them through the program (`copy_file_range`).
    Copy(Copying),
    /// Reads attributes by path without the time of the last access (`statx`, as `ls` does): a client that has just listed a folder
    /// over NFS then asks the server nothing.
    AttributesButAccessTime { node: NodeNumber },
    /// Sets mode, owner or times of an open file.
    SetHandleAttributes { handle: HandleNumber },
}

impl Action {
    /// Returns the names and the open files that an action uses; not the file that it opens.
    pub(crate) const fn operands(self) -> ([Option<NodeNumber>; 2], [Option<HandleNumber>; 2]) {
        match self {
            Self::Open { node, .. }
            | Self::Attributes { node }
            | Self::AttributesButAccessTime { node }
            | Self::SetAttributes { node }
            | Self::SetLength { node, .. }
            | Self::ReadExtendedAttribute { node }
            | Self::WriteExtendedAttribute { node, .. }
            | Self::SymbolicLink { node }
            | Self::ReadLink { node }
            | Self::Remove { node }
            | Self::CreateFolder { node }
            | Self::RemoveFolder { node }
            | Self::FreeSpace { node } => ([Some(node), None], [None, None]),
            Self::Rename { from, to } | Self::HardLink { from, to } => ([Some(from), Some(to)], [None, None]),
            Self::Close { handle }
            | Self::List { handle }
            | Self::Read { handle, .. }
            | Self::Write { handle, .. }
            | Self::Sync { handle }
            | Self::HandleAttributes { handle }
            | Self::SetHandleAttributes { handle }
            | Self::Lock { handle } => ([None, None], [Some(handle), None]),
            Self::Copy(copy) => ([None, None], [Some(copy.from), Some(copy.to)]),
        }
    }
}

/// Copy of a part of an open file to another open file. A length of 0 is the answer at the end of the first file. A copy that
/// failed is a question whether the file system can share the blocks of the whole file (`FICLONE`), which it refused. A replay
/// plan has the [`Slot`](crate::plan::Slot)s of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Copying<File = HandleNumber> {
    /// File that is read.
    pub from: File,
    /// File that is written.
    pub to: File,
    /// Offset in the file that is read.
    pub read_at: u64,
    /// Offset in the file that is written.
    pub write_at: u64,
    /// Number of bytes that were copied.
    pub length: u64,
}

/// The way in which a file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenMode {
    /// Reading, writing or both.
    pub access: Access,
    /// Creation of the file.
    pub create: CreateMode,
    /// True if its content is removed.
    pub truncate: bool,
    /// True if it must be a folder.
    pub folder: bool,
}

/// Access that was asked for. Recordings store variants by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Reading and writing.
    ReadWrite,
    /// Neither: only the path (`O_PATH`), for which the server is asked no more than for a look-up.
    #[serde(rename = "place")]
    PathOnly,
}

/// Creation of a file when it is opened. Recordings store variants by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum CreateMode {
    /// It must exist.
    Never,
    /// It is created if it does not exist.
    IfAbsent,
    /// It must not exist.
    Exclusive,
}

/// Answer of the file system. Recordings store variants by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum ActionResult {
    /// It was done.
    Done,
    /// There is nothing of this name; most programs look for files that do not exist.
    NotFound,
    /// There is something of this name already.
    Exists,
    /// Another error; which one is not kept.
    Failed,
}
