//! The work of a replay plan. Names and handles are numbers, and the answer of each operation is known.

use crate::{Access, Copying, NodeNumber};

/// Number of a file, which it keeps when it is renamed. A file that exists at the beginning has the number of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(pub u32);

/// Place for an open file. It is used again after the file was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// Opening of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Name of the file.
    pub node: NodeNumber,
    /// Place where it is kept open; meaningless if the opening fails.
    pub slot: Slot,
    /// The file.
    pub file: FileNumber,
    /// Access that is asked for.
    pub access: Access,
    /// True if the file is created, which must not exist, or, with the answer `Exists`, was to be created.
    pub creates: bool,
    /// True if its content is removed.
    pub truncates: bool,
}

/// Work of one step. Offsets and lengths are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(Code),
    vis(pub(super)),
    derive(strum::VariantArray),
    doc = "Kind of a step, kept as a number."
)]
#[expect(missing_docs, reason = "as in `Action`")]
pub enum PlannedAction {
    OpenFile(Opening),
    OpenFolder { node: NodeNumber, slot: Slot },
    OpenPathOnly { node: NodeNumber, slot: Slot },
    Close { slot: Slot },
    List { slot: Slot },
    Read { slot: Slot, offset: u64, length: u64 },
    Write { slot: Slot, offset: u64, length: u64 },
    Copy(Copying<Slot>),
    Clone { from: Slot, to: Slot },
    Sync { slot: Slot },
    Lock { slot: Slot },
    SlotAttributes { slot: Slot },
    Attributes { node: NodeNumber },
    AttributesButAccessTime { node: NodeNumber },
    SetAttributes { node: NodeNumber },
    SetSlotAttributes { slot: Slot },
    SetLength { slot: Slot, length: u64 },
    SetLengthByName { node: NodeNumber, length: u64 },
    ExtendedAttribute { node: NodeNumber },
    SetExtendedAttribute { node: NodeNumber, length: u32 },
    Rename { from: NodeNumber, to: NodeNumber },
    RenameToNew { from: NodeNumber, to: NodeNumber },
    HardLink { from: NodeNumber, to: NodeNumber },
    SymbolicLink { node: NodeNumber },
    ReadLink { node: NodeNumber },
    Remove { node: NodeNumber },
    CreateFolder { node: NodeNumber },
    RemoveFolder { node: NodeNumber },
    FreeSpace,
}

impl PlannedAction {
    /// Returns the names that a step uses, not counting the one of an open file.
    pub(super) fn names(self) -> impl Iterator<Item = NodeNumber> {
        use PlannedAction as A;
        let names = match self {
            A::OpenFile(open) => [Some(open.node), None],
            A::OpenFolder { node, .. }
            | A::OpenPathOnly { node, .. }
            | A::Attributes { node }
            | A::AttributesButAccessTime { node }
            | A::SetAttributes { node }
            | A::SetLengthByName { node, .. }
            | A::ExtendedAttribute { node }
            | A::SetExtendedAttribute { node, .. }
            | A::SymbolicLink { node }
            | A::ReadLink { node }
            | A::Remove { node }
            | A::CreateFolder { node }
            | A::RemoveFolder { node } => [Some(node), None],
            A::Rename { from, to } | A::RenameToNew { from, to } | A::HardLink { from, to } => {
                [Some(from), Some(to)]
            }
            A::Close { .. }
            | A::List { .. }
            | A::Read { .. }
            | A::Write { .. }
            | A::Copy(_)
            | A::Clone { .. }
            | A::Sync { .. }
            | A::Lock { .. }
            | A::SlotAttributes { .. }
            | A::SetSlotAttributes { .. }
            | A::SetLength { .. }
            | A::FreeSpace => [None, None],
        };
        names.into_iter().flatten()
    }
}
