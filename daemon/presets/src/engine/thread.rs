//! One thread of a preset's phase: its files, its open handles and the steps that it repeats.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use super::file_names::digits;
use super::file_pool::FilePool;
use super::file_sets::{ContentPosition, TestFileSet, no_space_to_append};
use super::repetition_log::RepetitionLog;
use super::thread_work::{PhaseShared, ThreadWork};
use super::timestamps::Timestamps;
use crate::profile::{Action, Amount, BlockPosition, FileChoice, FileSharing, Step, StepChoice, ThreadGroup};
use longhaul_corpus::names::to_cstring;
use longhaul_measure::error::RunError;
use longhaul_measure::platform::{Access, ByteRange, ListingFields, LockAction};
use longhaul_measure::timed_fs::{Buffer, OpenFile, TimedFs};
use longhaul_model::VerifiedData;
use longhaul_model::draw::draw;

/// The number of bytes that one lock covers: Netatalk's afp_lantest locks 10 bytes at offsets 0, 10, ... 390.
const LOCK_BYTES: u64 = 10;
/// The number of different offsets that are locked in turn, as in afp_lantest.
const LOCK_OFFSET_COUNT: u64 = 40;

/// A part of a file that is read or written with one call.
#[derive(Clone, Copy)]
struct Block {
    file: u64,
    offset: u64,
    length: usize,
}

/// An open file and the thread's position in it.
struct OpenState {
    file: OpenFile,
    bytes: u64,
    next_offset: u64,
    last_offset: u64,
}

/// The state of one thread that executes the steps of a [`ThreadGroup`].
pub struct PresetThread<'a> {
    shared: &'a PhaseShared,
    context: &'a TimedFs<'a>,
    group: &'a ThreadGroup,
    set: &'a TestFileSet,
    files: FilePool,
    open_files: BTreeMap<u64, OpenState>,
    turn: u64,
    write_buffer: Buffer,
    read_buffer: Buffer,
    log: RepetitionLog,
    started: Timestamps,
}

/// A function that reads or writes one block.
type Transfer<'a> = fn(&mut PresetThread<'a>, Block) -> Result<(), RunError>;

/// The outcome of a step or repetition: go on, or stop because no suitable file is left.
enum ControlFlow {
    Continue,
    OutOfFiles,
}

impl<'a> PresetThread<'a> {
    /// Creates a thread.
    ///
    /// Unless all files are shared, the thread owns the files whose number modulo the number of threads is its
    /// index.
    pub fn new(shared: &'a PhaseShared, context: &'a TimedFs<'a>, work: ThreadWork<'a>) -> Self {
        let ThreadWork { group, set, index } = work;
        let started = Timestamps::now(context);
        let seed = draw(shared.seed, 0x7468_7265, index);
        let is_mine = |number: &u64| group.share == FileSharing::All || number % group.threads == index;
        let (present, absent) = {
            let existing = set.present.lock();
            (0..set.spec.count).filter(is_mine).partition(|number| existing.contains(number))
        };
        let mut files = FilePool::new(present, absent, seed);
        if group.pick == FileChoice::Shuffled {
            files.shuffle(seed);
        }
        let largest_block = group.all_steps().map(|step| step.block.0 as usize).max().unwrap_or_default();
        Self {
            shared,
            context,
            group,
            set,
            files,
            open_files: BTreeMap::new(),
            turn: set.single_turn.unwrap_or(shared.turn),
            write_buffer: Buffer::new(largest_block),
            read_buffer: Buffer::new(largest_block),
            log: if shared.records_repetitions {
                RepetitionLog::with_repetitions()
            } else {
                RepetitionLog::default()
            },
            started,
        }
    }

    /// Runs all steps of the thread and returns the log of its repetitions.
    pub fn run(mut self) -> Result<RepetitionLog, RunError> {
        let result = self.run_all();
        if result.is_err() {
            self.shared.has_failed.store(true, Relaxed);
        }
        result?;
        // A thread that changes which files exist is the only one of its group that uses them.
        let changes = |step: &Step| matches!(step.action, Action::Create | Action::Delete);
        if self.group.all_steps().any(changes) {
            let mut existing = self.set.present.lock();
            existing.extend(self.files.present());
            self.files.absent().for_each(|number| {
                existing.remove(&number);
            });
        }
        Ok(self.log)
    }

    /// Runs the steps before the first repetition, then the timed repetitions, then closes all files that are
    /// still open.
    fn run_all(&mut self) -> Result<(), RunError> {
        self.group.before.iter().try_for_each(|step| self.run_step(step, 0).map(drop))?;
        let ready = Timestamps::now(self.context);
        self.log.setup_time = ready.elapsed - self.started.elapsed;
        self.started = ready;
        self.run_timed()?;
        self.log.overhead = (self.started.outside_calls(self.context) - self.log.pacing_time).max(0.0);
        let done = self.context.elapsed();
        std::mem::take(&mut self.open_files)
            .into_values()
            .try_for_each(|open| self.context.close(open.file))?;
        self.log.setup_time += self.context.elapsed() - done;
        Ok(())
    }

    /// Runs the repetitions until the count, the time or the files run out, then the steps after the last
    /// repetition.
    fn run_timed(&mut self) -> Result<(), RunError> {
        if self.group.pick == FileChoice::Listed {
            self.files.reorder(self.set.list_numbers(self.context)?.into_iter());
        }
        let count = self.group.times.unwrap_or_else(|| match self.group.seconds {
            Some(_) => u64::MAX,
            None => self.files.total(),
        });
        let start = self.context.elapsed();
        let mut now = start;
        self.log.begin(self.context.seconds_in_calls());
        for turn in 0..count {
            let due = self.group.per_second.map_or(now, |rate| start + turn as f64 / rate);
            // The end is compared with the scheduled start, so that no repetition starts after the time is over.
            let is_over = |seconds| due.max(now) - start >= seconds;
            if self.group.seconds.is_some_and(is_over) || self.shared.has_failed.load(Relaxed) {
                break;
            }
            if due > now {
                self.wait_until(due)?;
            }
            if let ControlFlow::OutOfFiles = self.run_once(turn)? {
                break;
            }
            now = self.context.elapsed();
            self.log.finish_repetition(now, || self.context.seconds_in_calls());
        }
        self.group.after.iter().try_for_each(|step| self.run_step(step, 0).map(drop))
    }

    /// Waits until `second` seconds after the start of the phase.
    ///
    /// The wait is counted as pacing time, not as time of the target and not as overhead of the thread.
    fn wait_until(&mut self, second: f64) -> Result<(), RunError> {
        let started = self.context.elapsed();
        self.context.wait_until(second)?;
        self.log.pacing_time += self.context.elapsed() - started;
        Ok(())
    }

    /// Runs one repetition: all steps, or one step chosen by weight.
    fn run_once(&mut self, turn: u64) -> Result<ControlFlow, RunError> {
        let creates_first = self.group.steps[0].action == Action::Create;
        if !creates_first && self.choose_file(self.group.pick).is_none() {
            return Ok(ControlFlow::OutOfFiles);
        }
        let group = self.group;
        match group.choose {
            StepChoice::All => {
                for step in &group.steps {
                    if let ControlFlow::OutOfFiles = self.run_step(step, turn)? {
                        return Ok(ControlFlow::OutOfFiles);
                    }
                }
                Ok(ControlFlow::Continue)
            }
            // A mix of operations may find no file to delete, or no name left to create. The repetition is then
            // skipped.
            StepChoice::One => {
                let step = self.draw_step();
                self.run_step(step, turn).map(|_| ControlFlow::Continue)
            }
        }
    }

    fn draw_step(&mut self) -> &'a Step {
        let total_weight: f64 = self.group.steps.iter().map(|step| step.weight).sum();
        let mut remaining = self.files.draw_below(1 << 53) as f64 / (1u64 << 53) as f64 * total_weight;
        let last = &self.group.steps[self.group.steps.len() - 1];
        self.group
            .steps
            .iter()
            .find(|step| {
                remaining -= step.weight;
                remaining < 0.0
            })
            .unwrap_or(last)
    }

    fn run_step(&mut self, step: &Step, turn: u64) -> Result<ControlFlow, RunError> {
        if !(turn + 1).is_multiple_of(step.every) {
            return Ok(ControlFlow::Continue);
        }
        if step.pick == Some(FileChoice::All) {
            return self.run_step_for_all_files(step);
        }
        if step.action == Action::SyncFolders {
            return self.set.sync_folders(self.context).map(|()| ControlFlow::Continue);
        }
        let number = if step.action == Action::Create {
            self.files.create(step.pick.unwrap_or(self.group.pick))
        } else {
            if let Some(pick) = step.pick {
                self.choose_file(pick);
            }
            self.files.current_or_next()
        };
        match number {
            Some(number) => self.perform(step, number, turn).map(|()| ControlFlow::Continue),
            None => Ok(ControlFlow::OutOfFiles),
        }
    }

    fn run_step_for_all_files(&mut self, step: &Step) -> Result<ControlFlow, RunError> {
        if step.action == Action::Create {
            while let Some(number) = self.files.create(FileChoice::Next) {
                self.create(number)?;
            }
            return Ok(ControlFlow::Continue);
        }
        // Sync and close apply to open files only: a sync would open all other files first.
        let numbers: Vec<u64> = match step.action {
            Action::Sync | Action::Close => self.open_files.keys().copied().collect(),
            _ => self.files.present().collect(),
        };
        numbers
            .into_iter()
            .try_for_each(|number| self.perform(step, number, 0))
            .map(|()| ControlFlow::Continue)
    }

    fn choose_file(&mut self, pick: FileChoice) -> Option<u64> {
        let at_end = |open: &OpenState| open.next_offset >= open.bytes;
        let is_done =
            || self.files.chosen_file().and_then(|number| self.open_files.get(&number)).is_some_and(at_end);
        if pick == FileChoice::AtEnd && is_done() {
            let chosen = self.files.choose(FileChoice::Next);
            if let Some(open) = chosen.and_then(|number| self.open_files.get_mut(&number)) {
                open.next_offset = 0;
            }
            return chosen;
        }
        self.files.choose(pick)
    }

    fn perform(&mut self, step: &Step, number: u64, turn: u64) -> Result<(), RunError> {
        let (context, folder) = (self.context, self.set.folder_of(number));
        let name = self.set.name_of(number);
        let sibling_name =
            |prefix: &str, suffix: &str| to_cstring(format!("{prefix}{}{suffix}", digits(number)));
        match step.action {
            Action::Create => self.create(number),
            Action::Open => {
                self.open_files.remove(&number).map_or(Ok(()), |open| context.close(open.file))?;
                self.open_handle(number).map(drop)
            }
            Action::Read => self.transfer(step, number, Self::read),
            Action::Write => self.transfer(step, number, Self::write),
            Action::Append => self.append(step, number),
            Action::Sync => context.sync(&self.open_handle(number)?.file).map(drop),
            Action::SyncFolders => self.set.sync_folders(context),
            Action::Close => self.open_files.remove(&number).map_or(Ok(()), |open| context.close(open.file)),
            Action::Stat => context.getattr(folder, name).map(drop),
            Action::Lookup => context.lookup(folder, &sibling_name("._", "")).map(drop),
            Action::Xattr => context.getxattr_at(folder, name, c"user.longhaul", &mut [0; 64]).map(drop),
            Action::List => self.list(number),
            Action::Rename => {
                let moved = sibling_name("", "-moved");
                context.rename(folder, name, &moved)?;
                context.rename(folder, &moved, name)
            }
            Action::Lock | Action::Unlock => {
                let action = if step.action == Action::Lock { LockAction::Take } else { LockAction::Release };
                let begin = turn % LOCK_OFFSET_COUNT * LOCK_BYTES;
                let range = ByteRange { begin, length: LOCK_BYTES };
                context.lock(&self.open_handle(number)?.file, action, range)
            }
            Action::WithoutReadAhead => {
                context.disable_read_ahead(&self.open_handle(number)?.file);
                Ok(())
            }
            Action::Evict => self.evict(step, number),
            Action::Delete => {
                self.open_files.remove(&number).map_or(Ok(()), |open| context.close(open.file))?;
                self.set.note_deleted(number);
                self.files.delete();
                context.unlink(folder, name)
            }
            Action::MakeFolder => context.create_folder(folder, &sibling_name("f", "")),
            Action::RemoveFolder => context.remove_folder(folder, &sibling_name("f", "")),
        }
    }

    fn create(&mut self, number: u64) -> Result<(), RunError> {
        let reads = self.group.all_steps().any(|step| step.action == Action::Read);
        let access = if reads { Access::ReadWrite } else { Access::Write };
        let file =
            self.context.create_with_access(self.set.folder_of(number), self.set.name_of(number), access)?;
        self.set.note_created(number);
        let bytes = self.set.initial_bytes(number);
        self.open_files.insert(number, OpenState { file, bytes, next_offset: 0, last_offset: 0 });
        Ok(())
    }

    /// Returns the handle of a file. Opens the file if it is not open.
    fn open_handle(&mut self, number: u64) -> Result<&mut OpenState, RunError> {
        if !self.open_files.contains_key(&number) {
            let (folder, name) = (self.set.folder_of(number), self.set.name_of(number));
            // The size is not checked: other threads may be appending to the file.
            let file = match self.group.needs_write_access() {
                true => self.context.open_in_place(folder, name, None)?,
                false => self.context.open(folder, name, Access::Read)?,
            };
            let bytes = self.set.covered_bytes(number);
            self.open_files.insert(number, OpenState { file, bytes, next_offset: 0, last_offset: 0 });
        }
        Ok(self.open_files.get_mut(&number).expect("the handle was just inserted"))
    }

    /// Reads or writes one block, or all blocks of a file in order.
    fn transfer(&mut self, step: &Step, number: u64, transfer_block: Transfer<'a>) -> Result<(), RunError> {
        let bytes = self.open_handle(number)?.bytes;
        match step.amount {
            Amount::Block => {
                let offset = self.next_block_offset(step, number, bytes);
                let length = step.block.0.min(bytes.saturating_sub(offset).max(1)) as usize;
                transfer_block(self, Block { file: number, offset, length })
            }
            Amount::File => {
                // Between two blocks a sector may be written in part.
                let writes = step.action == Action::Write;
                let _writing = writes.then(|| self.set.write_tracker.start_write(number));
                (0..bytes.div_ceil(step.block.0)).try_for_each(|block| {
                    let offset = block * step.block.0;
                    let length = step.block.0.min(bytes - offset) as usize;
                    transfer_block(self, Block { file: number, offset, length })
                })
            }
        }
    }

    /// Returns the offset of the next block in bytes and advances the position in the file.
    fn next_block_offset(&mut self, step: &Step, number: u64, bytes: u64) -> u64 {
        let blocks = (bytes / step.block.0).max(1);
        let open = self.open_files.get_mut(&number).expect("the caller opened the file");
        open.last_offset = match step.at {
            BlockPosition::Random => self.files.draw_below(blocks) * step.block.0,
            BlockPosition::Same => open.last_offset,
            BlockPosition::Next if open.next_offset >= bytes => 0,
            BlockPosition::Next => open.next_offset,
        };
        open.next_offset = open.last_offset + step.block.0;
        open.last_offset
    }

    fn read(&mut self, block: Block) -> Result<(), RunError> {
        let Block { file, offset, length } = block;
        let open = &self.open_files[&file];
        let idle_mark = self.set.write_tracker.mark_if_idle(file);
        let found = self.context.read_full(&open.file, &mut self.read_buffer[..length], offset)?;
        self.log.add_read(found as u64);
        if found < length && self.set.is_whole && offset < open.bytes {
            return Err(RunError::damaged(
                open.file.path(),
                format!("the file ends at byte {}", offset + found as u64),
            ));
        }
        // A read that overlaps a write may return any mix of old and new bytes, so it is not verified.
        if !idle_mark.is_some_and(|mark| self.set.write_tracker.is_unchanged_since(file, mark)) {
            return Ok(());
        }
        self.set.verify(ContentPosition { file, turn: self.turn, offset }, &self.read_buffer[..found])?;
        let files = u64::from(offset + found as u64 >= self.open_files[&file].bytes);
        self.context.add_verified(VerifiedData { age: self.set.age(), bytes: found as u64, files });
        Ok(())
    }

    fn write(&mut self, block: Block) -> Result<(), RunError> {
        let Block { file, offset, length } = block;
        self.set.fill(ContentPosition { file, turn: self.turn, offset }, &mut self.write_buffer[..length]);
        let _writing = self.set.write_tracker.start_write(file);
        self.context.write_all(&self.open_files[&file].file, &self.write_buffer[..length], offset)?;
        self.set.note_written(file, offset + length as u64);
        self.log.add_written(length as u64);
        Ok(())
    }

    fn append(&mut self, step: &Step, number: u64) -> Result<(), RunError> {
        self.open_handle(number)?;
        let offset = self.set.length_of(number);
        let end = offset + step.block.0;
        if !self.set.may_grow(number, end) {
            return Err(no_space_to_append(self.open_files[&number].file.path()));
        }
        self.write(Block { file: number, offset, length: step.block.0 as usize })?;
        let open = self.open_handle(number)?;
        open.bytes = open.bytes.max(end);
        Ok(())
    }

    /// Evicts one block, or the whole file, from this machine's cache.
    fn evict(&mut self, step: &Step, number: u64) -> Result<(), RunError> {
        let bytes = self.open_handle(number)?.bytes;
        let range = match step.amount {
            Amount::Block => {
                ByteRange { begin: self.next_block_offset(step, number, bytes), length: step.block.0 }
            }
            Amount::File => ByteRange { begin: 0, length: bytes },
        };
        self.context.evict_range(&self.open_files[&number].file, range);
        Ok(())
    }

    /// Lists the folder of a file. Opens a new handle, because a handle that was listed before is at the end.
    fn list(&self, number: u64) -> Result<(), RunError> {
        let folder = self.context.open_folder(self.set.folder_of(number), c".")?;
        self.context.list(&folder, ListingFields::Names, &mut Default::default(), |_| Ok::<_, RunError>(()))
    }
}
