//! Changes that planned operations make in the tree.

use super::super::action::{FileNumber, Opening, PlannedAction, Slot};
use super::super::answers::Planned;
use super::super::tree_state::{NameState, OpenState};
use super::Compiler;
use crate::{Access, Action, ActionResult, Copying, NodeNumber, RecordedOperation};

impl Compiler<'_> {
    /// Changes the tree as an operation does.
    pub(super) fn apply(&mut self, own: u32, operation: &RecordedOperation, planned: &Planned) {
        use PlannedAction as P;
        if planned.expected != ActionResult::Done {
            return;
        }
        match planned.action {
            P::OpenFile(open) => self.apply_open(operation.action, open),
            P::OpenPathOnly { node, slot } => {
                let file = self.file(node);
                self.keep_open(operation.action, OpenState { slot, node, file, access: Access::PathOnly });
            }
            P::OpenFolder { node, slot } => {
                self.keep_open(operation.action, OpenState { slot, node, file: None, access: Access::Read });
            }
            P::Close { slot } => {
                if let Action::Close { handle } = operation.action {
                    self.tree.close(handle);
                    self.free_slots[own as usize].push(slot);
                }
            }
            P::Write { slot, offset, length } => self.apply_write(slot, [offset, length]),
            P::Copy(copy) => self.apply_copy(copy),
            P::Clone { to, .. } => self.apply_clone(to),
            P::SetLength { length, .. } | P::SetLengthByName { length, .. } => {
                let Action::SetLength { node, .. } = operation.action else { return };
                self.touch(node);
                if let Some(file) = self.file(node) {
                    self.tree.set_length(file, length);
                    self.touch_file(file);
                }
            }
            P::SetAttributes { node } | P::SetExtendedAttribute { node, .. } => self.touch_all_of(node),
            P::SetSlotAttributes { slot } => {
                let Some(open) = self.tree.in_slot(slot) else { return };
                self.touch(open.node);
                // The name may stand for another file by now.
                open.file.into_iter().for_each(|file| self.touch_file(file));
            }
            P::Rename { from, to } => self.apply_rename(from, to),
            P::HardLink { from, to } => {
                self.set(to, self.tree.state(from));
                self.file(from).into_iter().for_each(|file| self.tree.link(file));
            }
            P::SymbolicLink { node } => self.set(node, NameState::Link),
            P::Remove { node } | P::RemoveFolder { node } => self.set(node, NameState::Absent),
            P::CreateFolder { node } => self.set(node, NameState::Folder),
            _ => {}
        }
    }

    fn apply_open(&mut self, action: Action, open: Opening) {
        if open.creates {
            self.set(open.node, NameState::File(open.file));
        }
        if open.truncates {
            self.tree.set_length(open.file, 0);
            self.touch_file(open.file);
        }
        let Opening { slot, node, file, .. } = open;
        self.keep_open(action, OpenState { slot, node, file: Some(file), access: open.access });
    }

    fn keep_open(&mut self, action: Action, open: OpenState) {
        if let Action::Open { handle: Some(handle), .. } = action {
            self.tree.open(handle, open);
        }
    }

    fn apply_write(&mut self, slot: Slot, [offset, length]: [u64; 2]) {
        if let Some(file) = self.tree.in_slot(slot).and_then(|open| open.file) {
            self.tree.write(file, offset, length);
            self.written_bytes = self.written_bytes.saturating_add(length);
            self.touch_file(file);
        }
    }

    fn apply_copy(&mut self, copy: Copying<Slot>) {
        if let Some(file) = self.tree.in_slot(copy.to).and_then(|open| open.file) {
            self.tree.copy(file, copy.write_at, copy.length);
            self.written_bytes = self.written_bytes.saturating_add(copy.length);
            self.touch_file(file);
        }
    }

    fn apply_clone(&mut self, to: Slot) {
        if let Some(file) = self.tree.in_slot(to).and_then(|open| open.file) {
            self.tree.replace(file);
            self.touch_file(file);
        }
    }

    fn apply_rename(&mut self, from: NodeNumber, to: NodeNumber) {
        let state = self.tree.state(from);
        if state == NameState::Folder {
            self.touch(from);
            self.touch(to);
            self.tree.rename_folder(from, to);
            self.renamed_folders.insert(from);
        } else {
            self.set(from, NameState::Absent);
            self.set(to, state);
        }
    }

    fn set(&mut self, node: NodeNumber, state: NameState) {
        self.touch(node);
        self.tree.set(node, state);
    }

    fn touch(&mut self, node: NodeNumber) {
        self.corpus[node.0 as usize].changes = true;
    }

    /// Marks a name and the file that it stands for.
    fn touch_all_of(&mut self, node: NodeNumber) {
        self.touch(node);
        self.file(node).into_iter().for_each(|file| self.touch_file(file));
    }

    fn touch_file(&mut self, file: FileNumber) {
        // A file that exists at the beginning has the number of its node.
        if let Some(node) = self.corpus.get_mut(file.0 as usize) {
            node.changes = true;
            node.file_changes = true;
        }
    }
}
