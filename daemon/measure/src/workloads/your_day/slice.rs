//! The tree of a slice on a target: made, restored after each replay, and removed.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};

use super::YOUR_DAY_FOLDER;
use super::day::Day;
use super::names::{is_slice_name, parse_name, slice_name};
use crate::error::RunError;
use crate::platform::{Access, EntryKind, ListingFields, NameChange};
use crate::timed_fs::{Answer, Folder, ListingBuffer, TimedFs};
use crate::workloads::{Job, change_for_a_moment};
use longhaul_corpus::slices::{DEFAULT_SLICES, Slice, slice_for_rotation};
use longhaul_model::{Operation, Progress};
use longhaul_recording::plan::PlannedNode;
use longhaul_recording::{InitialState, NodeNumber};

/// Space of a tree, in bytes, from which it is kept in the default number of slices only: that of all other tasks at the quick scale.
pub const LARGE: u64 = 100_000_000;
/// Number of threads that create files.
const BUILD_THREADS: usize = 4;
/// Number of files that are created before the progress is stored in the manifest.
const FILES_PER_SAVE: usize = 512;

/// The slices on a target, as stored in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredSlices {
    /// Recording that the slices belong to, in hexadecimal.
    recording: String,
    /// The slices, by number. `built` counts files.
    slices: Vec<Slice>,
    /// Slices that a replay changed and that were not restored yet.
    changed: BTreeSet<u64>,
}

impl StoredSlices {
    /// Reads the state from the manifest.
    pub fn load(job: &Job<'_>) -> Result<Self, RunError> {
        Ok(job.sandbox.manifest_entry(YOUR_DAY_FOLDER)?.unwrap_or_default())
    }

    /// Writes the state into the manifest.
    pub fn store(&self, job: &Job<'_>) -> Result<(), RunError> {
        job.sandbox.record_entry(YOUR_DAY_FOLDER, self, &job.untimed())
    }

    /// Returns a slice; adds it if it is not known yet.
    pub fn slice(&mut self, slice: u64) -> &mut Slice {
        if self.slices.len() <= slice as usize {
            self.slices.resize(slice as usize + 1, Slice::default());
        }
        &mut self.slices[slice as usize]
    }

    /// Notes that a replay changes a slice, until [`StoredSlices::set_restored`].
    pub fn set_changed(&mut self, slice: u64) {
        self.changed.insert(slice);
    }

    /// Notes that a slice is as at its beginning.
    pub fn set_restored(&mut self, slice: u64) {
        self.changed.remove(&slice);
    }
}

/// Returns the number of the slice that this run uses, from 0. The tree of a large recording is kept in few of them, because the number
/// for which there is space is known for the other tasks only.
pub fn current_slice(job: &Job<'_>, day: &Day) -> u64 {
    let slices =
        if day.space() > LARGE { job.settings.slices.min(DEFAULT_SLICES) } else { job.settings.slices };
    slice_for_rotation(job.rotation, slices)
}

/// Creates the tree of the current slice, or completes what was interrupted.
pub fn prepare(job: &Job<'_>, day: &Day) -> Result<(), RunError> {
    let (context, slice) = (job.untimed(), current_slice(job, day));
    let mut kept = StoredSlices::load(job)?;
    let recording = format!("{:016x}", day.id);
    if kept.recording != recording {
        kept.store(job)?;
        remove_slices(&context, &open_home(job, &context)?)?;
        kept = StoredSlices { recording, ..StoredSlices::default() };
    }
    kept.store(job)?;
    let tree = SliceTree::open(job, day, slice)?;
    let state = *kept.slice(slice);
    if state.written_us.is_none() || state.built < day.files().count() as u64 {
        job.require_space(day.space())?;
        if state.built == 0 {
            empty(&context, &tree.root)?;
        }
        tree.build(job, &mut kept)?;
        kept.slice(slice).evicted = tree.evict(&context)?;
    } else {
        job.require_space(day.plan.written_bytes)?;
        if kept.changed.contains(&slice) {
            tree.restore(&context)?;
            kept.slice(slice).evicted = tree.evict(&context)?;
        }
        tree.replace_linked_files(job)?;
    }
    kept.set_restored(slice);
    kept.store(job)
}

fn open_home(job: &Job<'_>, context: &TimedFs<'_>) -> Result<Folder, RunError> {
    let name = CString::new(YOUR_DAY_FOLDER).expect("the name contains no NUL");
    context.create_and_open_folder(&job.sandbox.folder()?, &name)
}

/// The tree of one slice.
pub struct SliceTree<'a> {
    day: &'a Day,
    number: u64,
    pub root: Folder,
}

impl<'a> SliceTree<'a> {
    /// Opens the folder of a slice; creates it if it does not exist.
    pub fn open(job: &Job<'_>, day: &'a Day, number: u64) -> Result<Self, RunError> {
        let context = job.untimed();
        let home = open_home(job, &context)?;
        let root = context.create_and_open_folder(&home, &slice_name(day.id, number))?;
        Ok(Self { day, number, root })
    }

    fn nodes(&self) -> impl Iterator<Item = (NodeNumber, &PlannedNode)> {
        (1..).map(NodeNumber).zip(&self.day.plan.nodes[1..])
    }

    fn build(&self, job: &Job<'_>, kept: &mut StoredSlices) -> Result<(), RunError> {
        let context = job.untimed();
        for (node, planned) in self.nodes() {
            if !matches!(planned.initial, InitialState::File(_) | InitialState::Absent) {
                self.make(&context, node)?;
            }
        }
        let files: Vec<u32> = self.day.files().collect();
        let built = kept.slice(self.number).built as usize;
        let mut progress = self.progress(&files, built);
        for batch in files[built.min(files.len())..].chunks(FILES_PER_SAVE) {
            context
                .run_parallel(BUILD_THREADS, batch, |context, file| self.make(context, NodeNumber(*file)))?;
            progress.files += batch.len() as u64;
            progress.bytes += batch.iter().map(|file| self.day.plan.nodes[*file as usize].bytes).sum::<u64>();
            job.session.progress(&progress);
            let state = kept.slice(self.number);
            state.built = progress.files;
            state.used_us = Some(job.now);
            state.written_us = Some(job.now);
            kept.store(job)?;
        }
        // A tree without files is complete, too.
        kept.slice(self.number).written_us = Some(job.now);
        Ok(())
    }

    fn progress(&self, files: &[u32], built: usize) -> Progress {
        let bytes = |files: &[u32]| files.iter().map(|file| self.day.plan.nodes[*file as usize].bytes).sum();
        Progress {
            item: format!("tree {} of your-day", self.number),
            files: built as u64,
            files_total: files.len() as u64,
            bytes: bytes(&files[..built.min(files.len())]),
            bytes_total: bytes(files),
        }
    }

    /// Makes a node as it is at the beginning. A file of that name is replaced, never written in place.
    fn make(&self, context: &TimedFs<'_>, node: NodeNumber) -> Result<(), RunError> {
        let at = self.day.paths.name(node);
        match self.day.plan.nodes[node.0 as usize].initial {
            InitialState::Absent => Ok(()),
            InitialState::Folder => context.change_name(&self.root, NameChange::CreateFolder(at)).map(drop),
            InitialState::Link => context.change_name(&self.root, NameChange::SymbolicLink(at)).map(drop),
            InitialState::File(_) => self.make_file(context, node),
        }
    }

    fn make_file(&self, context: &TimedFs<'_>, node: NodeNumber) -> Result<(), RunError> {
        let path = self.day.paths.path(node);
        let mut created = context.create_below(&self.root, path, Access::Write)?;
        if created.is_exists() {
            context.change_name(&self.root, NameChange::Unlink(self.day.paths.name(node)))?;
            created = context.create_below(&self.root, path, Access::Write)?;
        }
        let file = created
            .done()
            .map_err(|kind| RunError::operation(Operation::Create, &self.root.join(path), kind.into()))?;
        let size = self.day.plan.nodes[node.0 as usize].bytes;
        let mut offset = 0;
        while offset < size {
            let piece = self.day.pool.piece(node.0, offset, (size - offset).min(1 << 20) as usize);
            context.write_all(&file, piece, offset)?;
            offset += piece.len() as u64;
        }
        context.close(file)
    }

    /// Makes the tree as it is at the beginning, after a replay or a part of one. Can be interrupted at any moment and made again.
    pub fn restore(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        let mut folders: BTreeSet<NodeNumber> = BTreeSet::new();
        for (node, planned) in self.nodes().filter(|(_, planned)| planned.changes) {
            folders.insert(planned.parent);
            folders.insert(node);
        }
        for folder in folders {
            if self.day.plan.nodes[folder.0 as usize].initial == InitialState::Folder {
                self.remove_changes(context, folder)?;
            }
        }
        let mut changed = self.nodes().filter(|(_, planned)| planned.changes);
        changed.try_for_each(|(node, _)| self.make(context, node))
    }

    /// Removes what does not belong into a folder at the beginning.
    fn remove_changes(&self, context: &TimedFs<'_>, node: NodeNumber) -> Result<(), RunError> {
        let path = self.day.paths.path(node);
        let Answer::Done(folder) = context.open_folder_below(&self.root, path)? else { return Ok(()) };
        for entry in list(context, &folder)? {
            if !self.stays(node, &entry) {
                remove(context, &folder, &entry)?;
            }
        }
        Ok(())
    }

    fn stays(&self, folder: NodeNumber, entry: &Entry) -> bool {
        let number = parse_name(entry.name.to_bytes());
        let Some(node) = number.and_then(|number| self.day.plan.nodes.get(number as usize)) else {
            return false;
        };
        let is_folder = node.initial == InitialState::Folder;
        let is_unchanged = !node.changes && node.initial != InitialState::Absent;
        node.parent == folder && if entry.is_folder { is_folder } else { is_unchanged && !is_folder }
    }

    /// Replaces files that a replay changes themselves and that have a second name or are missing, or all where link counts are not
    /// reliable.
    fn replace_linked_files(&self, job: &Job<'_>) -> Result<(), RunError> {
        let context = job.untimed();
        // Not those that are only replaced or removed: a question for their attributes would warm the folders that they are in.
        let file_changes = |node: &NodeNumber| self.day.plan.nodes[node.0 as usize].file_changes;
        let files = || self.day.files().map(NodeNumber).filter(file_changes);
        if files().next().is_none() {
            return Ok(());
        }
        let is_reliable = context.has_reliable_link_counts(&job.sandbox.folder()?)?;
        let mut replaced = 0;
        for node in files() {
            let path = self.day.paths.path(node);
            let is_exclusive = is_reliable
                && match context.in_place_refusal(&self.root, path) {
                    Err(error) if error.is_not_found() => false,
                    answer => answer?.is_none(),
                };
            if !is_exclusive {
                self.make_file(&context, node)?;
                replaced += 1;
            }
        }
        if replaced > 0 {
            job.session.add_fact("recreated-files", replaced.to_string());
        }
        Ok(())
    }

    /// Evicts the files and the names in the folders from this machine's cache, and returns whether the system confirms that nothing
    /// of the files remained. Done after the use of a slice and not before the next one, because opening the files would warm their
    /// attributes.
    pub fn evict(&self, context: &TimedFs<'_>) -> Result<bool, RunError> {
        let all_gone = self.evict_files(context)?;
        self.evict_listings(context)?;
        Ok(all_gone)
    }

    /// Changes each folder for a moment. An SMB client would list some of them without a request, and then ask for each file.
    fn evict_listings(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        let is_folder = |(_, node): &(NodeNumber, &PlannedNode)| node.initial == InitialState::Folder;
        let below = self.nodes().filter(is_folder).map(|(node, _)| node);
        let folders: Vec<NodeNumber> = std::iter::once(NodeNumber(0)).chain(below).collect();
        context.run_parallel(BUILD_THREADS, &folders, |context, folder| {
            let path = self.day.paths.path(*folder);
            change_for_a_moment(context, &self.root, path)
        })
    }

    fn evict_files(&self, context: &TimedFs<'_>) -> Result<bool, RunError> {
        let files: Vec<u32> = self.day.files().collect();
        let all_gone = AtomicBool::new(true);
        context.run_parallel(BUILD_THREADS, &files, |context, file| {
            let size = self.day.plan.nodes[*file as usize].bytes;
            let path = self.day.paths.path(NodeNumber(*file));
            if !context.evict_below(&self.root, path, size)? {
                all_gone.store(false, Relaxed);
            }
            Ok(())
        })?;
        Ok(all_gone.into_inner())
    }
}

/// Name in a folder.
struct Entry {
    name: CString,
    is_folder: bool,
}

fn list(context: &TimedFs<'_>, folder: &Folder) -> Result<Vec<Entry>, RunError> {
    let mut found = vec![];
    context.list(folder, ListingFields::Names, &mut ListingBuffer::default(), |entry| {
        found.push((entry.name.to_owned(), entry.kind));
        Ok::<_, RunError>(())
    })?;
    let entry = |(name, kind): (CString, EntryKind)| {
        let kind = match kind {
            EntryKind::Unknown => context.getattr(folder, &name)?.kind,
            kind => kind,
        };
        Ok(Entry { name, is_folder: kind == EntryKind::Folder })
    };
    found.into_iter().map(entry).collect()
}

/// Removes a name with everything below it that has a generated name. Foreign files stay, and so do the folders that contain
/// them.
fn remove(context: &TimedFs<'_>, folder: &Folder, entry: &Entry) -> Result<(), RunError> {
    if parse_name(entry.name.to_bytes()).is_none() {
        return Ok(());
    }
    if !entry.is_folder {
        return super::super::unlink_leftover(context, folder, &entry.name);
    }
    empty(context, &context.open_folder(folder, &entry.name)?)?;
    remove_folder(context, folder, &entry.name)
}

/// Removes a folder, unless something foreign is in it.
fn remove_folder(context: &TimedFs<'_>, folder: &Folder, name: &CStr) -> Result<(), RunError> {
    match context.remove_folder(folder, name) {
        Err(error) if error.is_not_empty() => Ok(()),
        other => other,
    }
}

fn empty(context: &TimedFs<'_>, folder: &Folder) -> Result<(), RunError> {
    list(context, folder)?.iter().try_for_each(|entry| remove(context, folder, entry))
}

/// Removes the slices of all recordings.
fn remove_slices(context: &TimedFs<'_>, home: &Folder) -> Result<(), RunError> {
    for entry in list(context, home)? {
        if entry.is_folder && entry.name.to_str().is_ok_and(is_slice_name) {
            empty(context, &context.open_folder(home, &entry.name)?)?;
            remove_folder(context, home, &entry.name)?;
        }
    }
    Ok(())
}
