//! Follows a recording from its first operation to its last one and makes the steps of the replay threads.

mod effects;

use std::collections::HashSet;
use std::num::NonZeroU8;

use super::action::{FileNumber, Opening, PlannedAction, Slot};
use super::answers::{self, Planned};
use super::corpus::{self, PlannedNode};
use super::order::Point;
use super::ordering::Ordering;
use super::steps::{ReplayStep, ReplayThread};
use super::thread_lifetimes::{Beginning, ThreadLifetimes};
use super::threads::Threads;
use super::tree_state::{NameState, TreeState, writes};
use super::{Limits, ReplayPlan};
use crate::{
    Access, Action, ActionResult, Copying, CreateMode, HandleNumber, NodeNumber, OpenMode, RecordedOperation,
    Recording,
};

/// A recording that is followed.
pub struct Compiler<'a> {
    tree: TreeState<'a>,
    threads: Threads,
    lanes: Vec<ReplayThread>,
    ordering: Option<Ordering>,
    /// Slots that each thread closed and can use again.
    free_slots: Vec<Vec<Slot>>,
    slots: u32,
    corpus: Vec<PlannedNode>,
    renamed_folders: HashSet<NodeNumber>,
    thread_lifetimes: ThreadLifetimes,
    last_point: Option<Point>,
    written_bytes: u64,
    left_out: u64,
    replaced: u64,
}

impl<'a> Compiler<'a> {
    pub fn new(recording: &'a Recording, limits: Limits) -> Self {
        let threads = Threads::assign(&recording.operations, limits.threads);
        let corpus = corpus::initial(recording);
        let lengths: Vec<u64> = corpus.iter().map(|node| node.bytes).collect();
        let lanes = threads.steps.len();
        Self {
            tree: TreeState::new(recording, &lengths),
            lanes: threads.steps.iter().map(|steps| ReplayThread::with_capacity(*steps)).collect(),
            ordering: (lanes > 1).then(|| Ordering::new(recording.nodes.len(), lanes)),
            free_slots: vec![vec![]; lanes],
            slots: 0,
            corpus,
            renamed_folders: HashSet::new(),
            thread_lifetimes: ThreadLifetimes::new(recording, threads.spans.len()),
            last_point: None,
            written_bytes: 0,
            left_out: 0,
            replaced: 0,
            threads,
        }
    }

    pub fn finish(mut self, recording: &Recording, limits: Limits) -> ReplayPlan {
        for (number, operation) in (0..).zip(recording.operations.iter()) {
            self.follow(number, &operation);
        }
        self.close_all();
        corpus::touch_below(&mut self.corpus, &self.renamed_folders);
        let cap = u64::try_from(limits.pause.as_nanos()).unwrap_or(u64::MAX);
        ReplayPlan {
            lanes: self.lanes,
            nodes: self.corpus,
            slots: self.slots,
            pauses: self.thread_lifetimes.pauses().into_iter().map(|pause| pause.min(cap)).collect(),
            sparse: self.tree.files.iter().map(|file| file.is_sparse).collect(),
            written_bytes: self.written_bytes,
            left_out: self.left_out,
            replaced: self.replaced,
        }
    }

    fn follow(&mut self, number: u32, operation: &RecordedOperation) {
        let thread = operation.thread as usize;
        let own = self.threads.lane_of[thread];
        self.thread_lifetimes.add_operation(operation);
        let Some(planned) = self.plan(own, operation) else {
            self.left_out += 1;
            self.end(number, thread, own);
            return;
        };
        let (pause, pauses_last) = self.begin(number, operation);
        let folder = operation.depth_in_open_folder.and_then(|depth| self.open_folder(planned.action, depth));
        let Planned { action, expected } = planned;
        let step = ReplayStep { pause, pauses_last, action, expected, folder, waits: &[] };
        let lane = &mut self.lanes[own as usize];
        if let Some(ordering) = &mut self.ordering {
            ordering.order(lane, own, &step, &self.tree);
        }
        lane.push(step);
        self.last_point = Some(Point { lane: own, steps: lane.len() });
        self.apply(own, operation, &planned);
        self.end(number, thread, own);
    }

    /// Returns the place of the open folder that is this number of names above all names of an action.
    fn open_folder(&self, action: PlannedAction, depth: NonZeroU8) -> Option<Slot> {
        let above = |name| (0..depth.get()).try_fold(name, |name, _| self.tree.parent(name));
        let mut folders = action.names().map(above);
        let folder = folders.next().flatten()?;
        if folders.all(|other| other == Some(folder)) { self.tree.open_folder(folder) } else { None }
    }

    /// Adds the waits that follow from the beginnings and ends of threads. Returns the class of the pause, and true if it begins
    /// after the waits.
    fn begin(&mut self, number: u32, operation: &RecordedOperation) -> (u8, bool) {
        let pause = operation.pause.number();
        let Some(ordering) = &mut self.ordering else { return (pause, false) };
        match self.thread_lifetimes.begin(number, operation) {
            Beginning::Own => (pause, false),
            Beginning::First => {
                // A thread goes on from the operation before its first one, which another thread made.
                self.last_point.into_iter().for_each(|point| ordering.need(point));
                (pause, true)
            }
            Beginning::AfterOthers { ends, pause } => {
                ends.into_iter().for_each(|end| ordering.need(end));
                (pause, true)
            }
        }
    }

    fn end(&mut self, number: u32, thread: usize, own: u32) {
        let Some(span) = self.threads.spans[thread].filter(|span| span.last == number) else { return };
        let point = Point { lane: own, steps: self.lanes[own as usize].len() };
        if self.ordering.is_some() && point.steps > 0 {
            self.thread_lifetimes.end(thread, [span.first, number], point);
        }
    }

    /// Closes what is still open, so that a replay leaves nothing open.
    fn close_all(&mut self) {
        for handle in self.tree.handles() {
            let Some(open) = self.tree.handle(handle) else { continue };
            let action = PlannedAction::Close { slot: open.slot };
            let expected = ActionResult::Done;
            let step =
                ReplayStep { pause: 0, pauses_last: false, action, expected, folder: None, waits: &[] };
            if let Some(ordering) = &mut self.ordering {
                ordering.order(&mut self.lanes[0], 0, &step, &self.tree);
            }
            self.lanes[0].push(step);
            self.tree.close(handle);
        }
    }

    fn plan(&mut self, own: u32, operation: &RecordedOperation) -> Option<Planned> {
        match operation.result {
            ActionResult::Done => self.plan_done(own, operation.action),
            ActionResult::NotFound | ActionResult::Exists => answers::refused(&self.tree, operation),
            ActionResult::Failed if let Action::Copy(copy) = operation.action => self.plan_clone(copy),
            ActionResult::Failed if let Action::ReadExtendedAttribute { node } = operation.action => {
                Some(answers::missing_attribute(&self.tree, node))
            }
            ActionResult::Failed => {
                let planned = answers::instead(&self.tree, operation.action);
                self.replaced += u64::from(planned.is_some());
                planned
            }
        }
    }

    /// Plans a question whether the file system can share the blocks of a file. The answer may differ from the recorded one.
    fn plan_clone(&self, copy: Copying) -> Option<Planned> {
        let slot = |handle: HandleNumber| self.tree.handle(handle).filter(|open| open.file.is_some());
        let (from, to) = (slot(copy.from)?.slot, slot(copy.to).filter(|open| open.is_writable())?.slot);
        let action = PlannedAction::Clone { from, to };
        (from != to).then_some(Planned { action, expected: ActionResult::Done })
    }

    /// Plans an operation that was done, if it can be done in the tree as it is known.
    fn plan_done(&mut self, own: u32, action: Action) -> Option<Planned> {
        use PlannedAction as P;
        let slot = |handle: HandleNumber| self.tree.handle(handle).map(|open| open.slot);
        let opened = |handle: HandleNumber| self.tree.handle(handle).filter(|open| open.is_open());
        let file_slot =
            |handle: HandleNumber| opened(handle).filter(|open| open.file.is_some()).map(|open| open.slot);
        let exists = |node: NodeNumber| self.tree.state(node) != NameState::Absent;
        let action = match action {
            Action::Open { node, mode, handle } => return self.plan_open(own, (node, mode, handle)),
            Action::Close { handle } => P::Close { slot: slot(handle)? },
            Action::List { handle } => {
                let open = opened(handle).filter(|open| open.file.is_none())?;
                P::List { slot: open.slot }
            }
            Action::Read { handle, offset, length, read } => {
                P::Read { slot: file_slot(handle)?, offset, length: if read > 0 { read } else { length } }
            }
            Action::Write { handle, offset, length } => {
                let open = self.tree.handle(handle).filter(|open| open.is_writable())?;
                P::Write { slot: open.slot, offset, length }
            }
            Action::Copy(copy) => {
                let from = file_slot(copy.from)?;
                let to =
                    self.tree.handle(copy.to).filter(|open| open.is_writable() && open.slot != from)?.slot;
                let Copying { read_at, write_at, length, .. } = copy;
                P::Copy(Copying { from, to, read_at, write_at, length })
            }
            Action::Sync { handle } => P::Sync { slot: opened(handle)?.slot },
            Action::Lock { handle } => P::Lock { slot: file_slot(handle)? },
            Action::HandleAttributes { handle } => P::SlotAttributes { slot: slot(handle)? },
            Action::FreeSpace { .. } => P::FreeSpace,
            Action::Attributes { node } => P::Attributes { node: Some(node).filter(|node| exists(*node))? },
            Action::AttributesButAccessTime { node } => {
                P::AttributesButAccessTime { node: Some(node).filter(|node| exists(*node))? }
            }
            Action::SetAttributes { node } => {
                P::SetAttributes { node: Some(node).filter(|node| exists(*node) && node.0 > 0)? }
            }
            Action::ReadExtendedAttribute { node } => {
                P::ExtendedAttribute { node: Some(node).filter(|node| exists(*node))? }
            }
            Action::SetHandleAttributes { handle } => P::SetSlotAttributes { slot: opened(handle)?.slot },
            Action::SetLength { node, length } => self.plan_set_length(node, length)?,
            Action::WriteExtendedAttribute { node, length } => {
                let length = u32::try_from(length.floor()).unwrap_or(u32::MAX);
                self.unlinked_file(node)?;
                P::SetExtendedAttribute { node, length }
            }
            other => return self.plan_name_change(other),
        };
        Some(Planned { action, expected: ActionResult::Done })
    }

    fn plan_name_change(&self, action: Action) -> Option<Planned> {
        use PlannedAction as P;
        let state = |node: NodeNumber| self.tree.state(node);
        let can_create = |node: NodeNumber| state(node) == NameState::Absent && self.tree.has_folder(node);
        let is_file = |node: NodeNumber| matches!(state(node), NameState::File(_));
        let (possible, action) = match action {
            Action::Rename { from, to } => (self.can_rename(from, to), P::Rename { from, to }),
            Action::HardLink { from, to } => (is_file(from) && can_create(to), P::HardLink { from, to }),
            Action::SymbolicLink { node } => (can_create(node), P::SymbolicLink { node }),
            Action::ReadLink { node } => (state(node) == NameState::Link, P::ReadLink { node }),
            Action::Remove { node } => (is_file(node) || state(node) == NameState::Link, P::Remove { node }),
            Action::CreateFolder { node } => (can_create(node), P::CreateFolder { node }),
            Action::RemoveFolder { node } => {
                let is_empty = state(node) == NameState::Folder && node.0 > 0 && self.tree.is_empty(node);
                (is_empty, P::RemoveFolder { node })
            }
            _ => return None,
        };
        possible.then_some(Planned { action, expected: ActionResult::Done })
    }

    fn can_rename(&self, from: NodeNumber, to: NodeNumber) -> bool {
        let mut above = Some(to);
        while let Some(node) = above.filter(|node| *node != from) {
            above = self.tree.parent(node);
        }
        let fits = match (self.tree.state(from), self.tree.state(to)) {
            (NameState::Absent, _) => false,
            (_, NameState::Absent) => true,
            (NameState::Folder, NameState::Folder) => self.tree.is_empty(to),
            (NameState::Folder, _) | (_, NameState::Folder) => false,
            (from, to) => from != to,
        };
        fits && from.0 > 0
            && above.is_none()
            && self.tree.has_folder(to)
            && !self.tree.had_name(from, to)
            && self.tree.stays_removable(from, to)
    }

    fn plan_set_length(&self, node: NodeNumber, length: u64) -> Option<PlannedAction> {
        Some(match self.tree.writable(self.file(node)?) {
            Some(open) => PlannedAction::SetLength { slot: open.slot, length },
            None => {
                self.unlinked_file(node)?;
                PlannedAction::SetLengthByName { node, length }
            }
        })
    }

    /// Returns a file that has one name. A replay opens no other for writing, because it may belong to a user's backup.
    fn unlinked_file(&self, node: NodeNumber) -> Option<FileNumber> {
        self.file(node).filter(|file| !self.tree.is_linked(*file))
    }

    fn file(&self, node: NodeNumber) -> Option<FileNumber> {
        match self.tree.state(node) {
            NameState::File(file) => Some(file),
            _ => None,
        }
    }

    fn plan_open(
        &mut self,
        own: u32,
        opened: (NodeNumber, OpenMode, Option<HandleNumber>),
    ) -> Option<Planned> {
        let (node, mode, handle) = opened;
        handle?;
        if mode.access == Access::PathOnly {
            return self.plan_path_only(own, node);
        }
        let creates = mode.create != CreateMode::Never && self.tree.state(node) == NameState::Absent;
        let file = match self.tree.state(node) {
            NameState::Folder if writes(mode.access) => return None,
            NameState::Folder => {
                let action = PlannedAction::OpenFolder { node, slot: self.slot(own) };
                return Some(Planned { action, expected: ActionResult::Done });
            }
            NameState::File(_) if mode.folder || mode.create == CreateMode::Exclusive => return None,
            NameState::File(_) if writes(mode.access) => self.unlinked_file(node)?,
            NameState::File(file) => file,
            NameState::Absent if creates && self.tree.has_folder(node) => self.tree.new_file(),
            _ => return None,
        };
        let truncates = mode.truncate && !creates && writes(mode.access);
        let slot = self.slot(own);
        let open = Opening { node, slot, file, access: mode.access, creates, truncates };
        Some(Planned { action: PlannedAction::OpenFile(open), expected: ActionResult::Done })
    }

    /// Plans an opening of only the path. For a link, which a replay does not hold, a question for its attributes is planned.
    fn plan_path_only(&mut self, own: u32, node: NodeNumber) -> Option<Planned> {
        let action = match self.tree.state(node) {
            NameState::Absent => return None,
            NameState::Link => PlannedAction::Attributes { node },
            NameState::Folder | NameState::File(_) => {
                PlannedAction::OpenPathOnly { node, slot: self.slot(own) }
            }
        };
        Some(Planned { action, expected: ActionResult::Done })
    }

    fn slot(&mut self, own: u32) -> Slot {
        self.free_slots[own as usize].pop().unwrap_or_else(|| {
            self.slots += 1;
            Slot(self.slots - 1)
        })
    }
}
