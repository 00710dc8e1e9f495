//! Operations to columns. The reader is the mirror image: what is put here is taken there, in the same order.

use std::collections::HashMap;

use super::columns::{Column, ColumnWriter};
use crate::operation::ActionKind;
use crate::{Action, HandleNumber, NodeNumber, OpenMode, RecordedOperation};

/// Number of answers; the kind of an action and its answer are one number.
pub(super) const RESULTS: u64 = 4;
/// Added to the kind of an action whose paths were given from open folders; the number of names in them is in the column of modes.
pub(super) const IN_OPEN_FOLDER: u64 = 32;

/// Returns the stored form of at most [`BLOCK_LENGTH`](super::BLOCK_LENGTH) operations.
pub(crate) fn encode(operations: &[RecordedOperation]) -> Vec<u8> {
    let mut writer = BlockWriter::default();
    operations.iter().for_each(|operation| writer.put(operation));
    writer.columns.finish(operations.len())
}

/// Columns, and the values from which the next ones are expected to differ little.
#[derive(Default)]
struct BlockWriter {
    columns: ColumnWriter,
    node: u32,
    next_handle: u32,
    /// End of the last transfer of each handle.
    ends: HashMap<u32, u64>,
}

impl BlockWriter {
    fn put(&mut self, operation: &RecordedOperation) {
        let depth = operation.depth_in_open_folder;
        let place = if depth.is_some() { IN_OPEN_FOLDER } else { 0 };
        let kind = ActionKind::from(operation.action) as u64 + place;
        self.columns.put(Column::Kind, kind * RESULTS + operation.result as u64);
        self.columns.put(Column::Thread, u64::from(operation.thread));
        self.columns.put(Column::Pause, u64::from(operation.pause.number()));
        depth.into_iter().for_each(|depth| self.columns.put(Column::Mode, depth.get().into()));
        self.put_action(operation.action);
    }

    fn put_action(&mut self, action: Action) {
        match action {
            Action::Open { node, mode, handle } => self.put_open(node, mode, handle),
            Action::Read { handle, offset, length, read } => {
                self.put_transfer(handle, offset, read);
                self.columns.put(Column::Length, length);
                self.columns.put_signed(Column::Length, length.wrapping_sub(read) as i64);
            }
            Action::Write { handle, offset, length } => {
                self.put_transfer(handle, offset, length);
                self.columns.put(Column::Length, length);
            }
            Action::Copy(copy) => {
                self.put_transfer(copy.from, copy.read_at, copy.length);
                self.put_transfer(copy.to, copy.write_at, copy.length);
                self.columns.put(Column::Length, copy.length);
            }
            Action::SetLength { node, length } => {
                self.put_node(node);
                self.columns.put(Column::Length, length);
            }
            Action::WriteExtendedAttribute { node, length } => {
                self.put_node(node);
                self.columns.put(Column::Length, u64::from(length.number()));
            }
            // The others have nothing but names and open files.
            Action::Close { .. }
            | Action::List { .. }
            | Action::Sync { .. }
            | Action::Attributes { .. }
            | Action::AttributesButAccessTime { .. }
            | Action::HandleAttributes { .. }
            | Action::SetAttributes { .. }
            | Action::SetHandleAttributes { .. }
            | Action::ReadExtendedAttribute { .. }
            | Action::Lock { .. }
            | Action::Rename { .. }
            | Action::HardLink { .. }
            | Action::SymbolicLink { .. }
            | Action::ReadLink { .. }
            | Action::Remove { .. }
            | Action::CreateFolder { .. }
            | Action::RemoveFolder { .. }
            | Action::FreeSpace { .. } => {
                let (nodes, handles) = action.operands();
                nodes.into_iter().flatten().for_each(|node| self.put_node(node));
                handles.into_iter().flatten().for_each(|handle| self.put_handle(handle));
            }
        }
    }

    fn put_open(&mut self, node: NodeNumber, mode: OpenMode, handle: Option<HandleNumber>) {
        self.put_node(node);
        self.columns.put(Column::Mode, mode_number(mode, handle.is_some()));
        if let Some(HandleNumber(handle)) = handle {
            self.columns.put_signed(Column::Handle, i64::from(handle) - i64::from(self.next_handle));
            self.next_handle = handle.wrapping_add(1);
        }
    }

    fn put_node(&mut self, NodeNumber(node): NodeNumber) {
        self.columns.put_signed(Column::Node, i64::from(node) - i64::from(self.node));
        self.node = node;
    }

    fn put_handle(&mut self, HandleNumber(handle): HandleNumber) {
        self.columns.put_signed(Column::Handle, i64::from(self.next_handle) - i64::from(handle));
    }

    fn put_transfer(&mut self, handle: HandleNumber, offset: u64, moved: u64) {
        self.put_handle(handle);
        let end = self.ends.insert(handle.0, offset.wrapping_add(moved)).unwrap_or(0);
        self.columns.put_signed(Column::Offset, offset.wrapping_sub(end) as i64);
    }
}

/// Returns the bits of a mode: whether it has a handle, must be a folder, loses its content, is created (two bits), access.
fn mode_number(mode: OpenMode, has_handle: bool) -> u64 {
    u64::from(has_handle)
        | u64::from(mode.folder) << 1
        | u64::from(mode.truncate) << 2
        | (mode.create as u64) << 3
        | (mode.access as u64) << 5
}
