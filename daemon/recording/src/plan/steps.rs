//! The operations of one replay thread, packed into columns: 6 to 18 bytes each.

use strum::VariantArray;

use super::action::{Code, FileNumber, Opening, PlannedAction, Slot};
use crate::{Access, ActionResult, Copying, NodeNumber};

/// Largest length of one read or write. The kernel of Linux moves no more with one call either.
const MAX_TRANSFER: u64 = 0x7fff_f000;

/// An operation of another thread that must be complete before a step begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Number of the other replay thread.
    pub lane: u32,
    /// Number of its steps that must be complete.
    pub steps: u32,
}

/// A step of a replay thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayStep<'plan> {
    /// Class of the pause before the step, an index of [`ReplayPlan::pauses`](super::ReplayPlan::pauses).
    pub pause: u8,
    /// True if the pause begins when the waits are over; otherwise both begin at once.
    pub pauses_last: bool,
    /// The work.
    pub action: PlannedAction,
    /// The answer that the plan expects: anything but [`ActionResult::Failed`].
    pub expected: ActionResult,
    /// Place of the open folder from which the names are given, if they are; otherwise from the recorded folder.
    pub folder: Option<Slot>,
    /// Steps of other threads that must be complete.
    pub waits: &'plan [Wait],
}

/// The steps of one replay thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplayThread {
    codes: Vec<u8>,
    pauses: Vec<u8>,
    objects: Vec<u32>,
    extras: Vec<u32>,
    /// Steps that wait, in order, with the end of their waits in `waits`.
    waiting_steps: Vec<(u32, u32)>,
    waits: Vec<Wait>,
}

impl ReplayThread {
    /// Returns the number of steps.
    pub fn len(&self) -> u32 {
        self.codes.len() as u32
    }

    /// Tells whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Returns the number of waits for other threads.
    pub fn wait_count(&self) -> usize {
        self.waits.len()
    }

    /// Returns the steps in order.
    pub fn steps(&self) -> Steps<'_> {
        Steps { lane: self, step: 0, extra: 0, waiting_step: 0, wait: 0 }
    }

    /// Makes room for this many steps.
    pub(super) fn with_capacity(steps: usize) -> Self {
        let column = || Vec::with_capacity(steps);
        Self { codes: column(), pauses: column(), objects: Vec::with_capacity(steps), ..Self::default() }
    }

    /// Adds a wait for the step that is pushed next.
    pub(super) fn push_wait(&mut self, wait: Wait) {
        self.waits.push(wait);
        let (step, end) = (self.len(), self.waits.len() as u32);
        match self.waiting_steps.last_mut() {
            Some(last) if last.0 == step => last.1 = end,
            _ => self.waiting_steps.push((step, end)),
        }
    }

    /// Adds a step, whose waits were added before.
    pub(super) fn push(&mut self, step: ReplayStep<'static>) {
        let object = self.pack(step.action);
        self.extras.extend(step.folder.map(|slot| slot.0));
        let place = if step.folder.is_some() { IN_FOLDER } else { 0 };
        self.codes.push(Code::from(step.action) as u8 | place | (step.expected as u8) << 6);
        self.pauses.push(step.pause | if step.pauses_last { PAUSES_LAST } else { 0 });
        self.objects.push(object);
    }

    fn pack(&mut self, action: PlannedAction) -> u32 {
        use PlannedAction as A;
        match action {
            A::OpenFile(open) => {
                let flags =
                    open.access as u32 | u32::from(open.creates) << 2 | u32::from(open.truncates) << 3;
                self.extras.extend([open.slot.0, open.file.0, flags]);
                open.node.0
            }
            A::OpenFolder { node, slot } | A::OpenPathOnly { node, slot } => {
                self.extras.push(slot.0);
                node.0
            }
            A::Read { slot, offset, length } | A::Write { slot, offset, length } => {
                self.pack_transfer(slot, [offset, length])
            }
            A::Copy(copy) => {
                self.extras.push(copy.to.0);
                self.extras.extend([copy.write_at as u32, (copy.write_at >> 32) as u32]);
                self.pack_transfer(copy.from, [copy.read_at, copy.length])
            }
            A::Clone { from, to } => {
                self.extras.push(to.0);
                from.0
            }
            A::SetLength { slot, length } => self.pack_transfer(slot, [length, 0]),
            A::SetLengthByName { node, length } => self.pack_transfer(Slot(node.0), [length, 0]),
            A::SetExtendedAttribute { node, length } => {
                self.extras.push(length);
                node.0
            }
            A::Rename { from, to } | A::RenameToNew { from, to } | A::HardLink { from, to } => {
                self.extras.push(to.0);
                from.0
            }
            A::Close { slot }
            | A::List { slot }
            | A::Sync { slot }
            | A::Lock { slot }
            | A::SlotAttributes { slot }
            | A::SetSlotAttributes { slot } => slot.0,
            A::Attributes { node }
            | A::AttributesButAccessTime { node }
            | A::SetAttributes { node }
            | A::ExtendedAttribute { node }
            | A::SymbolicLink { node }
            | A::ReadLink { node }
            | A::Remove { node }
            | A::CreateFolder { node }
            | A::RemoveFolder { node } => node.0,
            A::FreeSpace => 0,
        }
    }

    fn pack_transfer(&mut self, slot: Slot, [offset, length]: [u64; 2]) -> u32 {
        self.extras.extend([offset as u32, (offset >> 32) as u32, length.min(MAX_TRANSFER) as u32]);
        slot.0
    }
}

/// Mark of the class of a pause, at most 64, that begins when the waits are over.
const PAUSES_LAST: u8 = 0x80;
/// Mark of a code whose names are given from an open folder.
const IN_FOLDER: u8 = 0x20;

const _: () = assert!(Code::VARIANTS.len() <= IN_FOLDER as usize);

/// Iterator over the steps of a replay thread.
#[derive(Clone)]
pub struct Steps<'plan> {
    lane: &'plan ReplayThread,
    step: usize,
    extra: usize,
    waiting_step: usize,
    wait: usize,
}

impl<'plan> Steps<'plan> {
    fn extra(&mut self) -> u32 {
        self.extra += 1;
        self.lane.extras[self.extra - 1]
    }

    fn transfer(&mut self) -> [u64; 2] {
        let [low, high, length] = [self.extra(), self.extra(), self.extra()].map(u64::from);
        [low | high << 32, length]
    }

    fn copy(&mut self, from: Slot) -> Copying<Slot> {
        let to = Slot(self.extra());
        let [low, high] = [self.extra(), self.extra()].map(u64::from);
        let [read_at, length] = self.transfer();
        Copying { from, to, read_at, write_at: low | high << 32, length }
    }

    fn opening(&mut self, node: NodeNumber) -> Opening {
        let (slot, file, flags) = (Slot(self.extra()), FileNumber(self.extra()), self.extra());
        Opening {
            node,
            slot,
            file,
            access: Access::VARIANTS[(flags & 3) as usize],
            creates: flags & 4 > 0,
            truncates: flags & 8 > 0,
        }
    }

    fn unpack(&mut self, code: Code, object: u32) -> PlannedAction {
        use PlannedAction as A;
        let (node, slot) = (NodeNumber(object), Slot(object));
        match code {
            Code::OpenFile => A::OpenFile(self.opening(node)),
            Code::OpenFolder => A::OpenFolder { node, slot: Slot(self.extra()) },
            Code::OpenPathOnly => A::OpenPathOnly { node, slot: Slot(self.extra()) },
            Code::Close => A::Close { slot },
            Code::List => A::List { slot },
            Code::Read => {
                let [offset, length] = self.transfer();
                A::Read { slot, offset, length }
            }
            Code::Write => {
                let [offset, length] = self.transfer();
                A::Write { slot, offset, length }
            }
            Code::Copy => A::Copy(self.copy(slot)),
            Code::Clone => A::Clone { from: slot, to: Slot(self.extra()) },
            Code::Sync => A::Sync { slot },
            Code::Lock => A::Lock { slot },
            Code::SlotAttributes => A::SlotAttributes { slot },
            Code::Attributes => A::Attributes { node },
            Code::AttributesButAccessTime => A::AttributesButAccessTime { node },
            Code::SetAttributes => A::SetAttributes { node },
            Code::SetSlotAttributes => A::SetSlotAttributes { slot },
            Code::SetLength => A::SetLength { slot, length: self.transfer()[0] },
            Code::SetLengthByName => A::SetLengthByName { node, length: self.transfer()[0] },
            Code::ExtendedAttribute => A::ExtendedAttribute { node },
            Code::SetExtendedAttribute => A::SetExtendedAttribute { node, length: self.extra() },
            Code::Rename => A::Rename { from: node, to: NodeNumber(self.extra()) },
            Code::RenameToNew => A::RenameToNew { from: node, to: NodeNumber(self.extra()) },
            Code::HardLink => A::HardLink { from: node, to: NodeNumber(self.extra()) },
            Code::SymbolicLink => A::SymbolicLink { node },
            Code::ReadLink => A::ReadLink { node },
            Code::Remove => A::Remove { node },
            Code::CreateFolder => A::CreateFolder { node },
            Code::RemoveFolder => A::RemoveFolder { node },
            Code::FreeSpace => A::FreeSpace,
        }
    }

    fn waits(&mut self) -> &'plan [Wait] {
        let lane = self.lane;
        match lane.waiting_steps.get(self.waiting_step) {
            Some((step, end)) if *step as usize == self.step => {
                let begin = std::mem::replace(&mut self.wait, *end as usize);
                self.waiting_step += 1;
                &lane.waits[begin..self.wait]
            }
            _ => &[],
        }
    }
}

impl<'plan> Iterator for Steps<'plan> {
    type Item = ReplayStep<'plan>;

    #[inline]
    fn next(&mut self) -> Option<ReplayStep<'plan>> {
        let packed = *self.lane.codes.get(self.step)?;
        let waits = self.waits();
        let action = self.unpack(Code::VARIANTS[(packed & 0x1f) as usize], self.lane.objects[self.step]);
        let folder = if packed & IN_FOLDER > 0 { Some(Slot(self.extra())) } else { None };
        let expected = ActionResult::VARIANTS[(packed >> 6) as usize];
        let pause = self.lane.pauses[self.step];
        let (pause, pauses_last) = (pause & !PAUSES_LAST, pause & PAUSES_LAST > 0);
        self.step += 1;
        Some(ReplayStep { pause, pauses_last, action, expected, folder, waits })
    }
}
