//! The copy engine, similar to rsync: compares a local tree with a folder on the target, copies, deletes and
//! verifies.
//!
//! The local side is read with plain system calls that are not recorded, because only the target is measured.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::listing::{DestinationListing, list_destination};
use super::local_tree::{LocalFile, LocalTree};
use crate::error::RunError;
use crate::platform::{self, Access, TEST_XATTR};
use crate::timed_fs::{Buffer, Folder, ListingBuffer, OpenFile, TimedFs};
use crate::workloads::{create_or_replace, unlink_leftover};
use longhaul_corpus::apple_double::owner_name;
use longhaul_corpus::churn::SourceTree;
use longhaul_corpus::names::as_os_str;
use longhaul_model::SyncKind;
use longhaul_model::draw::shuffled_indices;

/// The number of threads that copy files.
const COPY_THREADS: usize = 4;
/// The number of bytes in one write call, and in one read call during verification.
const BLOCK_BYTES: usize = 1 << 20;
/// The maximum number of files in one batch.
const BATCH_FILES: usize = 16;
/// The name prefix of a file that is still being copied.
const PARTIAL_PREFIX: &str = ".partial-";

/// Files of one folder that must be copied.
pub struct CopyBatch<'tree> {
    folder: &'tree [CString],
    files: Vec<&'tree LocalFile>,
}

/// The differences between a local tree and a folder on the target.
#[derive(Default)]
pub struct Differences<'tree> {
    batches_to_copy: Vec<CopyBatch<'tree>>,
    to_delete: Vec<(&'tree [CString], CString)>,
    /// First path that differs in more than its modification time.
    first_mismatch: Option<PathBuf>,
    /// Number of AppleDouble files in the listings of the target's folders.
    pub apple_double_files: u64,
    /// Number of files on the target that longhaul did not make. They stay.
    pub unexpected_files: u64,
}

impl<'tree> Differences<'tree> {
    /// Returns the number of files that must be copied.
    pub fn files_to_copy(&self) -> u64 {
        self.batches_to_copy.iter().map(|batch| batch.files.len() as u64).sum()
    }

    /// Returns the total size in bytes of the files that must be copied.
    pub fn bytes_to_copy(&self) -> u64 {
        self.batches_to_copy.iter().flat_map(|batch| &batch.files).map(|file| file.size).sum()
    }

    /// Returns the modification time of the oldest file that must be copied, in seconds since 1970 UTC; `None` if there is none.
    pub fn oldest_seconds(&self) -> Option<i64> {
        let files = self.batches_to_copy.iter().flat_map(|batch| &batch.files);
        files.map(|file| file.modified_seconds()).min()
    }

    /// Returns the number of files that must be deleted.
    pub fn files_to_delete(&self) -> u64 {
        self.to_delete.len() as u64
    }

    /// Returns all batches of files that must be copied.
    pub fn batches(&self) -> &[CopyBatch<'tree>] {
        &self.batches_to_copy
    }

    /// Returns the batches in groups of at most `group_size` batches.
    pub fn batch_groups(&self, group_size: usize) -> impl Iterator<Item = &[CopyBatch<'tree>]> {
        self.batches_to_copy.chunks(group_size)
    }

    /// Returns the first path that is missing on the target, is not in the source, or has a different size.
    ///
    /// `None` if all differences are in modification times.
    pub fn first_mismatch(&self) -> Option<&Path> {
        self.first_mismatch.as_deref()
    }

    /// Returns files to read back: up to half of them were just copied, the others are drawn from the whole tree.
    pub fn sample(
        &self,
        tree: &'tree LocalTree,
        seed: u64,
        count: usize,
    ) -> Vec<(&'tree [CString], &'tree LocalFile)> {
        let whole: Vec<_> =
            tree.folders.iter().flat_map(|f| f.files.iter().map(|file| (&f.names[..], file))).collect();
        let copied: Vec<_> =
            self.batches_to_copy.iter().flat_map(|p| p.files.iter().map(|file| (p.folder, *file))).collect();
        let drawn = |from: &[(&'tree [CString], &'tree LocalFile)], stream: u64, count: usize| {
            let order = shuffled_indices(seed, stream, from.len() as u64);
            order.into_iter().take(count).map(|index| from[index as usize]).collect::<Vec<_>>()
        };
        let mut sample = drawn(&copied, 1, count / 2);
        sample.extend(drawn(&whole, 2, count - sample.len()));
        sample
    }

    fn record_mismatch(&mut self, folder: &[CString], name: &CStr) {
        let path = || folder.iter().map(CString::as_c_str).chain([name]).map(as_os_str).collect();
        self.first_mismatch.get_or_insert_with(path);
    }
}

/// Compares a local tree with a folder on the target by size and modification time.
///
/// Times are compared in whole seconds, because some protocols do not store fractions.
pub fn scan<'tree>(
    context: &TimedFs<'_>,
    tree: &'tree LocalTree,
    root: &Folder,
) -> Result<Differences<'tree>, RunError> {
    let mut differences = Differences::default();
    let mut listing = ListingBuffer::default();
    for local in &tree.folders {
        let folder = make_path(context, root, &local.names)?;
        let DestinationListing { files: mut remaining, apple_double_files, orphans } =
            list_destination(context, &folder, &mut listing)?;
        differences.apple_double_files += apple_double_files;
        let mut changed = vec![];
        for file in &local.files {
            let found = match take_name(&mut remaining, &file.name) {
                true => match_file(context, &folder, file)?,
                false => FileMatch::Different,
            };
            match found {
                FileMatch::Same => {}
                FileMatch::ExceptTime => changed.push(file),
                FileMatch::Different => {
                    differences.record_mismatch(&local.names, &file.name);
                    changed.push(file);
                }
            }
        }
        // An interrupted run may have left partial files of these. The copy replaces them, so they must not be
        // deleted again afterwards.
        for file in &changed {
            remaining.remove(&partial_name(&file.name));
        }
        let batches = changed
            .chunks(BATCH_FILES)
            .map(|files| CopyBatch { folder: &local.names, files: files.to_vec() });
        differences.batches_to_copy.extend(batches);
        for name in remaining.into_iter().filter(|name| !is_folder(tree, &local.names, name)) {
            if is_ours(&local.names, &name) {
                differences.record_mismatch(&local.names, &name);
                differences.to_delete.push((&local.names, name));
            } else {
                differences.unexpected_files += 1;
            }
        }
        let orphans = orphans.into_iter().filter(|name| is_ours(&local.names, name));
        differences.to_delete.extend(orphans.map(|name| (&local.names[..], name)));
    }
    Ok(differences)
}

/// Removes a name from those of a listing, or else one in other letters: a NAS may have changed them. Returns whether there was one.
fn take_name(listed: &mut BTreeSet<CString>, name: &CString) -> bool {
    let is_other_case = |other: &&CString| other.to_bytes().eq_ignore_ascii_case(name.to_bytes());
    listed.remove(name)
        || listed.iter().find(is_other_case).cloned().is_some_and(|other| listed.remove(&other))
}

/// Returns whether a backup gives this name to a file in this folder, to one that it is copying, or to the AppleDouble file of
/// one. Files with other names are never deleted.
fn is_ours(folder: &[CString], name: &CStr) -> bool {
    let name = owner_name(name.to_bytes()).unwrap_or(name.to_bytes());
    let names = folder.iter().map(|name| as_os_str(name)).chain([OsStr::from_bytes(name)]);
    SourceTree::owns(&final_path(&names.collect::<PathBuf>()))
}

/// Returns whether the source has a folder with this name in the folder `names`.
///
/// Needed because some listings do not distinguish files from folders.
fn is_folder(tree: &LocalTree, names: &[CString], name: &CString) -> bool {
    tree.folders
        .iter()
        .any(|folder| folder.names.split_last().is_some_and(|(last, rest)| last == name && rest == names))
}

/// The result of comparing the attributes of a copy with its source.
pub(super) enum FileMatch {
    Same,
    ExceptTime,
    Different,
}

pub(super) fn match_file(
    context: &TimedFs<'_>,
    folder: &Folder,
    file: &LocalFile,
) -> Result<FileMatch, RunError> {
    let found = match context.getattr(folder, &file.name) {
        // A client may show a listing that is no longer true.
        Err(error) if error.is_not_found() => return Ok(FileMatch::Different),
        other => other?,
    };
    let has_same_time = found.modified_ns.div_euclid(1_000_000_000) == file.modified_seconds();
    Ok(match (found.size == file.size, has_same_time) {
        (true, true) => FileMatch::Same,
        (true, false) => FileMatch::ExceptTime,
        (false, _) => FileMatch::Different,
    })
}

/// The number and size of the copied files, and the kind of sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyResult {
    /// Number of copied files.
    pub files: u64,
    /// Total size of the copied files in bytes.
    pub bytes: u64,
    /// Kind of sync that the system performed; `None` if no file was copied.
    pub sync: Option<SyncKind>,
}

/// Copies batches of files to the target in several threads.
pub fn copy(context: &TimedFs<'_>, root: &Folder, batches: &[CopyBatch<'_>]) -> Result<CopyResult, RunError> {
    let sync = OnceLock::new();
    context.run_parallel(COPY_THREADS, batches, |context, batch| {
        let folder = make_path(context, root, batch.folder)?;
        let largest = batch.files.iter().map(|file| file.size).max().unwrap_or(0);
        let mut buffer = Buffer::new(largest.clamp(1, BLOCK_BYTES as u64) as usize);
        for file in &batch.files {
            let kind = copy_file(context, &folder, file, &mut buffer)?;
            sync.get_or_init(|| kind);
        }
        Ok(())
    })?;
    let files = batches.iter().flat_map(|batch| &batch.files);
    Ok(CopyResult {
        files: files.clone().count() as u64,
        bytes: files.map(|file| file.size).sum(),
        sync: sync.get().copied(),
    })
}

/// Copies one file under a temporary name and renames it over the old one, so that a complete file always exists.
fn copy_file(
    context: &TimedFs<'_>,
    folder: &Folder,
    file: &LocalFile,
    buffer: &mut [u8],
) -> Result<SyncKind, RunError> {
    let partial = partial_name(&file.name);
    let local = RunError::local;
    let mut source = File::open(&file.path).map_err(local("open", &file.path))?;
    let copy = create_or_replace(context, folder, &partial)?;
    let mut offset = 0;
    loop {
        let length = source.read(buffer).map_err(local("read", &file.path))?;
        if length == 0 {
            break;
        }
        context.write_all(&copy, &buffer[..length], offset)?;
        offset += length as u64;
    }
    copy_xattr(context, &source, &copy, &file.path)?;
    context.set_mode(&copy, file.mode)?;
    let sync = context.sync(&copy)?;
    context.close(copy)?;
    // The time is set after closing, as rsync does: Linux's SMB client updates the modification time on close.
    context.set_times(folder, &partial, file.modified_ns)?;
    context.rename(folder, &partial, &file.name)?;
    Ok(sync)
}

fn copy_xattr(context: &TimedFs<'_>, from: &File, to: &OpenFile, path: &Path) -> Result<(), RunError> {
    let mut value = [0u8; 256];
    let xattr_length = platform::getxattr(from.as_fd(), TEST_XATTR, &mut value)
        .map_err(RunError::local("getxattr", path))?;
    if let Some(length) = xattr_length {
        context.setxattr(to, TEST_XATTR, &value[..length])?;
    }
    Ok(())
}

/// Deletes the files that the source no longer has. Those that are gone already are no error: the listing may have been
/// outdated, and the system may have removed an AppleDouble file together with its file.
pub fn delete(context: &TimedFs<'_>, root: &Folder, differences: &Differences<'_>) -> Result<(), RunError> {
    for (folder, name) in &differences.to_delete {
        let folder = open_path(context, root, folder)?;
        unlink_leftover(context, &folder, name)?;
    }
    Ok(())
}

/// Makes a folder on the target equal to a local tree: scans, copies, and deletes files with names of a source.
pub fn copy_tree(context: &TimedFs<'_>, from: &Path, root: &Folder) -> Result<CopyResult, RunError> {
    let tree = LocalTree::read(from)?;
    let differences = scan(context, &tree, root)?;
    let copied = copy(context, root, differences.batches())?;
    delete(context, root, &differences)?;
    Ok(copied)
}

/// The attributes that the target preserved.
///
/// A field is `None` until the attribute was checked, and `Lost` as soon as one file lost it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributeCheck {
    mode: Option<AttributeState>,
    xattr: Option<AttributeState>,
}

impl AttributeCheck {
    /// Returns the results as facts of a run: name, and "kept" or "lost". Skips attributes that were not checked.
    pub fn facts(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [("mode", self.mode), ("extended-attributes", self.xattr)]
            .into_iter()
            .filter_map(|(name, state)| Some((name, state?.name())))
    }
}

/// State of an attribute on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttributeState {
    Kept,
    Lost,
}

impl AttributeState {
    fn compare<T: PartialEq>(expected: T, found: T) -> Self {
        if expected == found { Self::Kept } else { Self::Lost }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Lost => "lost",
        }
    }
}

/// Updates the result for an attribute: once one file lost it, the result is `Lost`.
fn record_state(result: &mut Option<AttributeState>, state: AttributeState) {
    if *result != Some(AttributeState::Lost) {
        *result = Some(state);
    }
}

/// Reads a copy back, compares it with its source, and returns its size in bytes.
///
/// # Errors
///
/// [`RunError::Damaged`] with the position of the first difference.
pub fn verify_copy(
    context: &TimedFs<'_>,
    folder: &Folder,
    file: &LocalFile,
    checks: &mut AttributeCheck,
) -> Result<u64, RunError> {
    let copy = context.open(folder, &file.name, Access::Read)?;
    let mut source = File::open(&file.path).map_err(RunError::local("open", &file.path))?;
    let (mut expected, mut found) = (Buffer::new(BLOCK_BYTES), Buffer::new(BLOCK_BYTES));
    let mut offset = 0;
    loop {
        let length = context.read_full(&copy, &mut found, offset)?;
        let expected_length =
            read_full(&mut source, &mut expected).map_err(RunError::local("read", &file.path))?;
        if expected[..expected_length] != found[..length] {
            let differing =
                expected.iter().zip(&*found).position(|(a, b)| a != b).unwrap_or(expected_length.min(length));
            let position = offset + differing as u64;
            let damaged = RunError::damaged(copy.path(), format!("byte {position} differs from the source"));
            return Err(damaged.with_found(offset, &found[..length]));
        }
        offset += length as u64;
        if length < BLOCK_BYTES {
            break;
        }
    }
    // A lost mode or attribute is a fact about the target and not damage: not every file system stores them.
    let mode = context.getattr(folder, &file.name)?.mode;
    record_state(&mut checks.mode, AttributeState::compare(file.mode, mode));
    let (mut source_value, mut copy_value) = ([0u8; 256], [0u8; 256]);
    let xattr_length = platform::getxattr(source.as_fd(), TEST_XATTR, &mut source_value)
        .map_err(RunError::local("getxattr", &file.path))?;
    if let Some(length) = xattr_length {
        let copy_length = context.getxattr(&copy, TEST_XATTR, &mut copy_value)?;
        let copied = copy_length.map(|length| &copy_value[..length]);
        record_state(&mut checks.xattr, AttributeState::compare(Some(&source_value[..length]), copied));
    }
    context.close(copy)?;
    Ok(offset)
}

fn read_full(source: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read(&mut buffer[done..])? {
            0 => break,
            length => done += length,
        }
    }
    Ok(done)
}

/// Opens the folder with the path `names` below the root.
pub fn open_path(context: &TimedFs<'_>, root: &Folder, names: &[CString]) -> Result<Folder, RunError> {
    match names.split_first() {
        None => context.open_folder(root, c"."),
        Some((first, rest)) => {
            let first = context.open_folder(root, first)?;
            rest.iter().try_fold(first, |folder, name| context.open_folder(&folder, name))
        }
    }
}

/// Opens the folder with the path `names` below the root; creates missing folders.
fn make_path(context: &TimedFs<'_>, root: &Folder, names: &[CString]) -> Result<Folder, RunError> {
    // Opening comes first: almost all folders exist, and creating each one would add a request per folder.
    match open_path(context, root, names) {
        Err(RunError::Operation { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let mut folder = context.open_folder(root, c".")?;
    for name in names {
        folder = context.create_and_open_folder(&folder, name)?;
    }
    Ok(folder)
}

fn partial_name(name: &CStr) -> CString {
    CString::new([PARTIAL_PREFIX.as_bytes(), name.to_bytes()].concat()).expect("a file name contains no NUL")
}

/// Returns the final path of a partial file. Returns other paths unchanged.
pub fn final_path(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix(PARTIAL_PREFIX));
    name.map_or_else(|| path.to_owned(), |name| path.with_file_name(name))
}
