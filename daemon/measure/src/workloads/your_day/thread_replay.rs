//! One thread of a replay.

use std::hint::spin_loop;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::busy::{BusyTimes, Interval};
use super::copy;
use super::lookup_folder::LookupFolder;
use super::replay::{Open, OpenedFile, Replay};
use crate::error::RunError;
use crate::platform::{Access, ByteRange, LockAction, NameChange, TEST_XATTR, monotonic_ns, thread_cpu_ns};
use crate::timed_fs::{Answer, Buffer, ListingBuffer, OpenFile, TimedFs};
use longhaul_model::{DataAge, Operation, VerifiedData};
use longhaul_recording::plan::{Opening, PlannedAction, ReplayStep, Slot};
use longhaul_recording::{ActionResult, InitialState, NodeNumber};

/// Largest read or write in one call.
const MAX_TRANSFER: u64 = 4 << 20;
/// Largest value of an extended attribute: what all file systems take (ext4 with blocks of 4 KiB).
const MAX_ATTRIBUTE: u32 = 2048;
/// Pauses end this long before their time and then look at the clock, because a sleep takes longer than asked.
const SLEEP_MARGIN_NS: u64 = 150_000;
/// Comparison of what was read takes at most this part of the time, and the time of pauses.
const COMPARISON_SHARE: u64 = 50;
/// Byte that is locked: far behind all data, because over SMB a shared lock keeps even its holder from writing what it covers.
const LOCKED: ByteRange = ByteRange { begin: 1 << 62, length: 1 };
/// Bytes that are compared in a nanosecond, at least.
const COMPARED_PER_NS: u64 = 4;

/// One thread of a replay.
pub struct ThreadReplay<'a> {
    replay: &'a Replay<'a>,
    thread: usize,
    buffer: Buffer,
    listing: ListingBuffer,
    busy: BusyTimes,
    is_alone: bool,
    began_ns: u64,
    paused_ns: u64,
    compared_bytes: u64,
    /// Time at which the newest step was over and a comparison of what it read began; `None` if there was none.
    comparing_since_ns: Option<u64>,
    /// Processor time of comparisons and of waiting for the end of pauses.
    own_work_ns: u64,
}

impl<'a> ThreadReplay<'a> {
    pub fn new(replay: &'a Replay<'a>, thread: usize) -> Self {
        let now_ns = monotonic_ns();
        Self {
            replay,
            thread,
            buffer: Buffer::new(64 << 10),
            listing: ListingBuffer::default(),
            busy: BusyTimes::default(),
            is_alone: replay.day.plan.lanes.len() == 1,
            began_ns: now_ns,
            paused_ns: 0,
            compared_bytes: 0,
            comparing_since_ns: None,
            own_work_ns: 0,
        }
    }

    /// Makes all steps.
    pub fn run(&mut self, context: &TimedFs<'_>) -> Result<(), RunError> {
        let plan = &self.replay.day.plan;
        for (number, step) in (1..).zip(plan.lanes[self.thread].steps()) {
            self.hold_back(context, &step)?;
            self.comparing_since_ns = None;
            if self.is_alone {
                self.make(context, &step)?;
                continue;
            }
            if self.replay.has_failed() {
                return Ok(());
            }
            let begin_ns = monotonic_ns();
            self.make(context, &step)?;
            let end_ns = self.comparing_since_ns.unwrap_or_else(monotonic_ns);
            self.busy.add(Interval { begin_ns, end_ns });
            self.replay.progress.set(self.thread, number);
        }
        context.add_own_work(self.own_work_ns);
        Ok(())
    }

    /// Returns the times of the operations of this thread.
    pub fn finish(self) -> BusyTimes {
        self.busy
    }

    /// Waits until the step may begin. A pause begins when the step before was over, or after the waits if the plan says so.
    fn hold_back(&mut self, context: &TimedFs<'_>, step: &ReplayStep<'_>) -> Result<(), RunError> {
        let pause_ns = self.replay.day.plan.pauses.get(usize::from(step.pause)).copied().unwrap_or(0);
        if pause_ns == 0 && step.waits.is_empty() {
            return Ok(());
        }
        let mut from_ns = self.comparing_since_ns.unwrap_or_else(monotonic_ns);
        if step.pauses_last && !step.waits.is_empty() {
            self.wait(context, step)?;
            from_ns = monotonic_ns();
        }
        if pause_ns > 0 {
            self.paused_ns += pause_ns;
            self.own_work_ns += sleep_until(context, from_ns + pause_ns)?;
        }
        if step.pauses_last { Ok(()) } else { self.wait(context, step) }
    }

    fn wait(&self, context: &TimedFs<'_>, step: &ReplayStep<'_>) -> Result<(), RunError> {
        step.waits.iter().try_for_each(|wait| self.replay.progress.wait(context, *wait))
    }

    #[inline]
    fn make(&mut self, context: &TimedFs<'_>, step: &ReplayStep<'_>) -> Result<(), RunError> {
        use PlannedAction as A;
        match step.action {
            A::Read { slot, offset, length } => self.read(context, slot, ByteRange { begin: offset, length }),
            A::Write { slot, offset, length } => {
                self.write(context, slot, ByteRange { begin: offset, length })
            }
            A::Copy(copy) => copy::copy(self.replay, context, copy),
            A::Clone { from, to } => copy::share_blocks(self.replay, context, [from, to]),
            A::OpenFile(open) => self.open(context, open, step),
            A::OpenFolder { node, slot } | A::OpenPathOnly { node, slot } => {
                let lookup = LookupFolder::of(self.replay, step);
                let (folder, path) = (lookup.folder(), lookup.path(node));
                let opened = match step.action {
                    A::OpenPathOnly { .. } => context.open_path_only_below(folder, path)?,
                    _ => context.open_folder_below(folder, path)?,
                };
                self.check(node, step.expected, &opened)?;
                self.keep(slot, opened, |folder| Open::Folder(folder, node));
                Ok(())
            }
            A::Close { slot } => self.close(context, slot),
            A::List { .. }
            | A::Sync { .. }
            | A::SlotAttributes { .. }
            | A::SetSlotAttributes { .. }
            | A::Lock { .. }
            | A::SetLength { .. } => self.use_slot(context, step.action),
            A::SetLengthByName { .. } | A::SetExtendedAttribute { .. } => self.change_file(context, step),
            _ => self.use_name(context, step),
        }
    }

    fn open(&self, context: &TimedFs<'_>, open: Opening, step: &ReplayStep<'_>) -> Result<(), RunError> {
        let lookup = LookupFolder::of(self.replay, step);
        let (folder, path) = (lookup.folder(), lookup.path(open.node));
        let access = match open.access {
            longhaul_recording::Access::Read | longhaul_recording::Access::PathOnly => Access::Read,
            longhaul_recording::Access::Write => Access::Write,
            longhaul_recording::Access::ReadWrite => Access::ReadWrite,
        };
        let opened = match (open.creates, access) {
            (true, _) => context.create_below(folder, path, access)?,
            (false, Access::Read) => context.open_below(folder, path, access)?,
            (false, _) => context.open_in_place_below(folder, path, access)?,
        };
        if let (true, Answer::Done(file)) = (open.truncates, &opened) {
            context.set_length(file, 0)?;
        }
        self.check(open.node, step.expected, &opened)?;
        if step.expected == ActionResult::Done {
            self.keep(open.slot, opened, |file| {
                Open::File(OpenedFile { file, number: open.file, access, is_locked: false.into() })
            });
        }
        Ok(())
    }

    fn keep<T>(&self, slot: Slot, opened: Answer<T>, open: impl FnOnce(T) -> Open) {
        if let Answer::Done(opened) = opened {
            *self.replay.slots[slot.0 as usize].write() = Some(open(opened));
        }
    }

    /// Compares an answer with the expected one. After an operation that the file system does not offer, others may differ.
    fn check<T>(&self, node: NodeNumber, expected: ActionResult, answer: &Answer<T>) -> Result<(), RunError> {
        let found = match answer {
            Answer::Done(_) => ActionResult::Done,
            Answer::NotFound => ActionResult::NotFound,
            Answer::Exists => ActionResult::Exists,
            Answer::Unsupported => {
                self.replay.unsupported.fetch_add(1, Relaxed);
                return Ok(());
            }
        };
        if found == expected {
            return Ok(());
        }
        if found == ActionResult::NotFound && self.is_link_at_first(node) {
            // The file system refused the link when the tree was made.
            self.replay.unsupported.fetch_add(1, Relaxed);
        }
        if self.replay.unsupported.load(Relaxed) > 0 {
            return Ok(());
        }
        let detail = match expected {
            ActionResult::Done => "it is missing although the replay needs it",
            _ => "there is something, although nothing should be there or the other way round",
        };
        Err(RunError::damaged(&self.replay.root.join(self.replay.day.paths.path(node)), detail))
    }

    fn is_link_at_first(&self, node: NodeNumber) -> bool {
        self.replay.day.plan.nodes.get(node.0 as usize).is_some_and(|node| node.initial == InitialState::Link)
    }

    fn close(&self, context: &TimedFs<'_>, slot: Slot) -> Result<(), RunError> {
        let open = self.replay.slots[slot.0 as usize].write().take();
        match open {
            Some(Open::File(open)) => context.close(open.file),
            Some(Open::Folder(folder, _)) => context.close_folder(folder),
            None => Ok(()),
        }
    }

    fn read(&mut self, context: &TimedFs<'_>, slot: Slot, range: ByteRange) -> Result<(), RunError> {
        let replay = self.replay;
        let guard = replay.slots[slot.0 as usize].read();
        let Some(Open::File(open)) = &*guard else { return Ok(()) };
        let length = range.length.min(MAX_TRANSFER) as usize;
        if self.buffer.len() < length {
            self.buffer = Buffer::new(length);
        }
        let read = context.read_at(&open.file, &mut self.buffer[..length], range.begin)?;
        self.compare(context, open, ByteRange { begin: range.begin, length: read as u64 })
    }

    /// Compares what was read with what longhaul wrote, as far as there is time.
    fn compare(&mut self, context: &TimedFs<'_>, open: &OpenedFile, read: ByteRange) -> Result<(), RunError> {
        let day = self.replay.day;
        if day.plan.sparse.get(open.number.0 as usize).copied().unwrap_or(true) {
            return Ok(());
        }
        let spent_ns = (self.compared_bytes + read.length) / COMPARED_PER_NS;
        if spent_ns > self.paused_ns {
            let elapsed_ns = monotonic_ns().saturating_sub(self.began_ns);
            if spent_ns > self.paused_ns + elapsed_ns / COMPARISON_SHARE {
                return Ok(());
            }
        }
        self.comparing_since_ns = Some(monotonic_ns());
        let used_ns = thread_cpu_ns();
        let found = &self.buffer[..read.length as usize];
        if let Some(at) = day.pool.first_difference(open.number.0, read.begin, found) {
            let detail = format!("byte {at} differs from what was written");
            return Err(RunError::damaged(open.file.path(), detail).with_found(read.begin, found));
        }
        self.compared_bytes += read.length;
        // Other files were written in this replay or after an earlier one.
        let age = if day.is_unchanged(open.number) { self.replay.age } else { DataAge::Hours };
        context.add_verified(VerifiedData { age, bytes: read.length, files: 0 });
        self.own_work_ns += thread_cpu_ns().saturating_sub(used_ns);
        Ok(())
    }

    fn write(&self, context: &TimedFs<'_>, slot: Slot, range: ByteRange) -> Result<(), RunError> {
        let guard = self.replay.slots[slot.0 as usize].read();
        let Some(Open::File(open)) = &*guard else { return Ok(()) };
        let (mut offset, end) = (range.begin, range.begin.saturating_add(range.length));
        while offset < end {
            let piece =
                self.replay.day.pool.piece(open.number.0, offset, (end - offset).min(MAX_TRANSFER) as usize);
            context.write_all(&open.file, piece, offset)?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    /// Uses an open file or folder.
    fn use_slot(&mut self, context: &TimedFs<'_>, action: PlannedAction) -> Result<(), RunError> {
        use PlannedAction as A;
        let (A::List { slot }
        | A::Sync { slot }
        | A::SlotAttributes { slot }
        | A::SetSlotAttributes { slot }
        | A::Lock { slot }
        | A::SetLength { slot, .. }) = action
        else {
            return Ok(());
        };
        let replay = self.replay;
        let guard = replay.slots[slot.0 as usize].read();
        match (&*guard, action) {
            (Some(Open::Folder(folder, _)), A::List { .. }) => context.list_batch(folder, &mut self.listing),
            (Some(Open::Folder(folder, _)), A::Sync { .. }) => context.sync_folder(folder).map(drop),
            (Some(Open::Folder(folder, _)), A::SlotAttributes { .. }) => context.folder_attributes(folder),
            (Some(Open::File(open)), A::Sync { .. }) => context.sync(&open.file).map(drop),
            (Some(Open::File(open)), A::SlotAttributes { .. }) => context.handle_attributes(&open.file),
            (Some(Open::File(open)), A::SetLength { length, .. }) => context.set_length(&open.file, length),
            (Some(Open::File(open)), A::Lock { .. }) => self.lock(context, open),
            (Some(open), A::SetSlotAttributes { .. }) => self.set_times(context, open),
            _ => Ok(()),
        }
    }

    fn set_times(&self, context: &TimedFs<'_>, open: &Open) -> Result<(), RunError> {
        let is_set = match open {
            Open::File(open) => context.set_handle_times(&open.file, SET_TIME_NS)?,
            Open::Folder(folder, _) => context.set_folder_times(folder, SET_TIME_NS)?,
        };
        self.replay.unsupported.fetch_add(u64::from(!is_set), Relaxed);
        Ok(())
    }

    /// Takes a lock on a file, or releases the one that it has.
    fn lock(&self, context: &TimedFs<'_>, open: &OpenedFile) -> Result<(), RunError> {
        let was_locked = open.is_locked.fetch_xor(true, Relaxed);
        // Shared where possible: programs lock files that they only read, and several handles of one file.
        let action = match open.access {
            _ if was_locked => LockAction::Release,
            Access::Write => LockAction::Take,
            Access::Read | Access::ReadWrite => LockAction::TakeShared,
        };
        match context.lock_handle(&open.file, action, LOCKED) {
            Err(error) if error.is_unsupported() => {
                self.replay.unsupported.fetch_add(1, Relaxed);
                Ok(())
            }
            // The server was asked, as in the recording.
            Err(error) if error.is_lock_held_elsewhere() => Ok(()),
            other => other,
        }
    }

    /// Changes a file by its name, which is opened for it.
    fn change_file(&self, context: &TimedFs<'_>, step: &ReplayStep<'_>) -> Result<(), RunError> {
        use PlannedAction as A;
        let (A::SetLengthByName { node, .. } | A::SetExtendedAttribute { node, .. }) = step.action else {
            return Ok(());
        };
        let lookup = LookupFolder::of(self.replay, step);
        let opened = context.open_in_place_below(lookup.folder(), lookup.path(node), Access::ReadWrite)?;
        self.check(node, ActionResult::Done, &opened)?;
        let Answer::Done(file) = opened else { return Ok(()) };
        match step.action {
            A::SetLengthByName { length, .. } => context.set_length(&file, length)?,
            A::SetExtendedAttribute { length, .. } => self.set_attribute(context, &file, length)?,
            _ => {}
        }
        context.close(file)
    }

    fn set_attribute(&self, context: &TimedFs<'_>, file: &OpenFile, length: u32) -> Result<(), RunError> {
        let value = self.replay.day.pool.piece(0, 0, length.clamp(1, MAX_ATTRIBUTE) as usize);
        if !context.setxattr(file, TEST_XATTR, value)? {
            self.replay.unsupported.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// Uses or changes a name.
    fn use_name(&self, context: &TimedFs<'_>, step: &ReplayStep<'_>) -> Result<(), RunError> {
        use PlannedAction as A;
        let lookup = LookupFolder::of(self.replay, step);
        let (folder, name) = (lookup.folder(), |node| lookup.name(node));
        let (node, change) = match step.action {
            A::Attributes { node } | A::AttributesButAccessTime { node } => {
                let operation = match step.expected {
                    ActionResult::Done => Operation::Getattr,
                    _ => Operation::Lookup,
                };
                let path = lookup.path(node);
                let answer = match step.action {
                    A::Attributes { .. } => context.attributes_below(folder, path, operation)?,
                    _ => context.attributes_but_access_time_below(folder, path, operation)?,
                };
                return self.check(node, step.expected, &answer);
            }
            A::ExtendedAttribute { node } => {
                let answer = context.getxattr_below(folder, lookup.path(node))?;
                return self.check(node, step.expected, &answer);
            }
            A::ReadLink { node } => {
                let answer = context.read_link_below(folder, lookup.path(node))?;
                return self.check(node, step.expected, &answer);
            }
            A::FreeSpace => return context.space(self.replay.root).map(drop),
            A::HardLink { from, to } => return self.hard_link(context, &lookup, [from, to]),
            A::SetAttributes { node } => (node, NameChange::SetTimes(name(node), SET_TIME_NS)),
            A::Rename { from, to } => (from, NameChange::Rename(name(from), name(to))),
            A::RenameToNew { from, to } => (to, NameChange::RenameToNew(name(from), name(to))),
            A::SymbolicLink { node } => (node, NameChange::SymbolicLink(name(node))),
            A::Remove { node } => (node, NameChange::Unlink(name(node))),
            A::CreateFolder { node } => (node, NameChange::CreateFolder(name(node))),
            A::RemoveFolder { node } => (node, NameChange::RemoveFolder(name(node))),
            _ => return Ok(()),
        };
        let answer = context.change_name(folder, change)?;
        self.check(node, step.expected, &answer)
    }

    /// Makes a second name of a file. Where a share has none, the file is copied, so that later operations find it.
    fn hard_link(
        &self,
        context: &TimedFs<'_>,
        lookup: &LookupFolder<'_>,
        [from, to]: [NodeNumber; 2],
    ) -> Result<(), RunError> {
        let folder = lookup.folder();
        let answer = context.change_name(folder, NameChange::HardLink(lookup.name(from), lookup.name(to)))?;
        self.check(to, ActionResult::Done, &answer)?;
        if answer != Answer::Unsupported {
            return Ok(());
        }
        let source = context.open_below(folder, lookup.path(from), Access::Read)?;
        let copy = context.create_below(folder, lookup.path(to), Access::Write)?;
        let (Answer::Done(source), Answer::Done(copy)) = (source, copy) else { return Ok(()) };
        let (mut bytes, mut offset) = (Buffer::new(64 << 10), 0);
        loop {
            let length = context.read_full(&source, &mut bytes, offset)?;
            context.write_all(&copy, &bytes[..length], offset)?;
            offset += length as u64;
            if length < bytes.len() {
                break;
            }
        }
        context.close(source)?;
        context.close(copy)
    }
}

/// Modification time that replays set: 2001-09-09, in nanoseconds since 1970 UTC.
const SET_TIME_NS: i64 = 1_000_000_000_000_000_000;

/// Waits until the monotonic clock reaches a time. Returns the processor time for looking at the clock, in nanoseconds.
fn sleep_until(context: &TimedFs<'_>, at_ns: u64) -> Result<u64, RunError> {
    let left_ns = at_ns.saturating_sub(monotonic_ns());
    if left_ns > SLEEP_MARGIN_NS {
        context.pause(Duration::from_nanos(left_ns - SLEEP_MARGIN_NS))?;
    }
    let used_ns = thread_cpu_ns();
    while monotonic_ns() < at_ns {
        spin_loop();
    }
    Ok(thread_cpu_ns().saturating_sub(used_ns))
}
