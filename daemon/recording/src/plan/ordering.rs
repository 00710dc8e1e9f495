//! The things that operations use, and the order of these uses.

use super::action::{Opening, PlannedAction, Slot};
use super::order::{Knowledge, Point, Resource, Use};
use super::steps::{ReplayStep, ReplayThread};
use super::tree_state::{NameState, TreeState};
use crate::NodeNumber;

/// All things that operations use.
pub struct Ordering {
    names: Vec<Resource>,
    folders: Vec<Resource>,
    files: Vec<Resource>,
    slots: Vec<Resource>,
    knowledge: Knowledge,
    needed: Vec<Point>,
}

impl Ordering {
    /// Returns things that nothing used yet. `nodes` is the number of names.
    pub fn new(nodes: usize, lanes: usize) -> Self {
        Self {
            names: vec![Resource::default(); nodes],
            folders: vec![Resource::default(); nodes],
            files: vec![],
            slots: vec![],
            knowledge: Knowledge::new(lanes),
            needed: vec![],
        }
    }

    /// Makes the next step of a thread wait for this one.
    pub fn need(&mut self, point: Point) {
        self.needed.push(point);
    }

    /// Adds the waits of a step to its thread. `tree` is the state before it.
    pub fn order(&mut self, lane: &mut ReplayThread, own: u32, step: &ReplayStep<'_>, tree: &TreeState<'_>) {
        let point = Point { lane: own, steps: lane.len() + 1 };
        let mut uses = Uses { ordering: self, point, tree };
        uses.of_action(step.action);
        step.folder.into_iter().for_each(|slot| uses.slot(slot, Use::Shared));
        let mut needed = std::mem::take(&mut self.needed);
        self.knowledge.add_waits(lane, own, &mut needed);
        self.needed = needed;
    }
}

/// The uses of one operation.
struct Uses<'a, 'b> {
    ordering: &'a mut Ordering,
    point: Point,
    tree: &'a TreeState<'b>,
}

impl Uses<'_, '_> {
    fn of_action(&mut self, action: PlannedAction) {
        use PlannedAction as A;
        match action {
            A::OpenFile(open) => self.of_opening(open),
            A::OpenFolder { node, slot } | A::OpenPathOnly { node, slot } => {
                self.look_up(node);
                self.slot(slot, Use::Alone);
            }
            A::Close { slot } => self.of_close(slot),
            A::List { slot } => {
                self.slot(slot, Use::Shared);
                if let Some(open) = self.open(slot) {
                    self.folder(open, Use::Shared);
                }
            }
            A::Read { slot, .. } | A::Sync { slot } => self.content(slot, Use::Shared),
            A::Write { slot, .. } | A::SetLength { slot, .. } => self.content(slot, Use::Alone),
            A::Copy(copy) => {
                self.content(copy.from, Use::Shared);
                self.content(copy.to, Use::Alone);
            }
            A::Clone { from, to } => {
                self.content(from, Use::Shared);
                self.content(to, Use::Alone);
            }
            A::Lock { slot } | A::SlotAttributes { slot } | A::SetSlotAttributes { slot } => {
                self.slot(slot, Use::Shared)
            }
            A::Attributes { node }
            | A::AttributesButAccessTime { node }
            | A::SetAttributes { node }
            | A::ReadLink { node }
            | A::ExtendedAttribute { node }
            | A::SetExtendedAttribute { node, .. } => self.look_up(node),
            A::SetLengthByName { node, .. } => {
                self.look_up(node);
                self.file_of(node);
            }
            A::Rename { from, to } | A::HardLink { from, to } => {
                self.change(from);
                self.change(to);
            }
            A::RenameToNew { from, to } => {
                self.look_up(from);
                self.look_up(to);
            }
            A::SymbolicLink { node } | A::Remove { node } | A::CreateFolder { node } => self.change(node),
            A::RemoveFolder { node } => {
                self.change(node);
                self.folder(node, Use::Shared);
            }
            A::FreeSpace => {}
        }
    }

    fn of_opening(&mut self, open: Opening) {
        if open.creates {
            self.change(open.node);
        } else {
            self.look_up(open.node);
        }
        self.slot(open.slot, Use::Alone);
        if open.truncates {
            self.file(open.file.0, Use::Alone);
        }
    }

    /// Closing may write what was written to the file before, so that it counts as a write.
    fn of_close(&mut self, slot: Slot) {
        self.slot(slot, Use::Alone);
        let open = self.tree.in_slot(slot);
        if let Some(file) = open.filter(|open| open.is_writable()).and_then(|open| open.file) {
            self.file(file.0, Use::Alone);
        }
    }

    fn content(&mut self, slot: Slot, kind: Use) {
        self.slot(slot, Use::Shared);
        if let Some(file) = self.tree.in_slot(slot).and_then(|open| open.file) {
            self.file(file.0, kind);
        }
    }

    fn open(&self, slot: Slot) -> Option<NodeNumber> {
        self.tree.in_slot(slot).map(|open| open.node)
    }

    fn file_of(&mut self, node: NodeNumber) {
        if let NameState::File(file) = self.tree.state(node) {
            self.file(file.0, Use::Alone);
        }
    }

    fn look_up(&mut self, node: NodeNumber) {
        let mut name = Some(node);
        while let Some(found) = name.filter(|found| found.0 > 0) {
            Entry { kind: Use::Shared, point: self.point, needed: &mut self.ordering.needed }
                .into(&mut self.ordering.names, found.0);
            name = self.tree.parent(found);
        }
    }

    fn change(&mut self, node: NodeNumber) {
        let Some(parent) = self.tree.parent(node) else { return };
        Entry { kind: Use::Alone, point: self.point, needed: &mut self.ordering.needed }
            .into(&mut self.ordering.names, node.0);
        self.folder(parent, Use::Apart);
        self.look_up(parent);
    }

    fn folder(&mut self, node: NodeNumber, kind: Use) {
        Entry { kind, point: self.point, needed: &mut self.ordering.needed }
            .into(&mut self.ordering.folders, node.0);
    }

    fn file(&mut self, file: u32, kind: Use) {
        Entry { kind, point: self.point, needed: &mut self.ordering.needed }
            .into(&mut self.ordering.files, file);
    }

    fn slot(&mut self, slot: Slot, kind: Use) {
        Entry { kind, point: self.point, needed: &mut self.ordering.needed }
            .into(&mut self.ordering.slots, slot.0);
    }
}

/// A use by one step, and what it has to wait for.
struct Entry<'a> {
    kind: Use,
    point: Point,
    needed: &'a mut Vec<Point>,
}

impl Entry<'_> {
    fn into(self, things: &mut Vec<Resource>, number: u32) {
        let index = number as usize;
        if things.len() <= index {
            things.resize_with(index + 1, Resource::default);
        }
        let waits = things[index].enter(self.kind, self.point);
        self.needed.extend(waits.iter().filter(|needed| needed.lane != self.point.lane));
    }
}
