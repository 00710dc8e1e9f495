//! Creates the tree of a slice, which can be interrupted and continued at any file, and finds damage in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::slices::{stored_slices, tree};
use super::tree_walk::{self, EntryDetail, WalkOptions};
use crate::error::RunError;
use crate::platform::{FINDER_INFO, FINDER_INFO_BYTES};
use crate::timed_fs::{Folder, OpenFile, TimedFs};
use crate::workloads::{Job, create_or_replace};
use longhaul_corpus::Content;
use longhaul_corpus::slices::slice_name;
use longhaul_corpus::tree::{Chunk, Tree};
use longhaul_model::{FOLDER_INDEX, Operation, Progress};

/// The number of threads that create files.
pub const BUILD_THREADS: usize = 4;
/// The number of chunks that are created before the progress is stored in the manifest.
const CHUNKS_PER_SAVE: usize = 64;

/// Creates the missing files of a slice.
pub fn build(job: &Job<'_>, files: u64, slice: u64) -> Result<(), RunError> {
    let mut trees = stored_slices(job)?;
    let tree = tree(files, slice);
    let built = trees.slice(files, slice).built;
    if built >= files {
        return Ok(());
    }
    job.require_space((built..files).map(|number| tree.size(number) + 4096).sum())?;
    let context = job.untimed();
    job.sandbox.record_entry(FOLDER_INDEX.name(), &trees, &context)?;
    let home = context.create_and_open_folder(&job.sandbox.folder()?, c"folder-index")?;
    let root = context.create_and_open_folder(&home, &slice_name(files, slice))?;
    let mut chunks = tree.chunks(built).peekable();
    let mut progress = progress_of(&tree, slice, built);
    while chunks.peek().is_some() {
        let batch: Vec<Chunk> = chunks.by_ref().take(CHUNKS_PER_SAVE).collect();
        context
            .run_parallel(BUILD_THREADS, &batch, |context, chunk| make_chunk(context, &root, &tree, chunk))?;
        // Only whole batches are stored. After an interruption, files of a partial batch are created again.
        let state = trees.slice(files, slice);
        state.built = batch.last().map_or(state.built, |chunk| chunk.end);
        state.used_us = Some(job.now);
        state.written_us = Some(job.now);
        job.sandbox.record_entry(FOLDER_INDEX.name(), &trees, &context)?;
        advance_progress(&mut progress, &tree, &batch);
        job.session.progress(&progress);
    }
    Ok(())
}

fn progress_of(tree: &Tree, slice: u64, built: u64) -> Progress {
    let bytes = |numbers: std::ops::Range<u64>| numbers.map(|number| tree.size(number)).sum();
    Progress {
        item: format!("tree {slice} of folder-index"),
        files: built,
        files_total: tree.files,
        bytes: bytes(0..built),
        bytes_total: bytes(0..tree.files),
    }
}

fn advance_progress(progress: &mut Progress, tree: &Tree, batch: &[Chunk]) {
    for chunk in batch {
        progress.files = chunk.end;
        progress.bytes += (chunk.first..chunk.end).map(|number| tree.size(number)).sum::<u64>();
    }
}

/// One file of a tree.
#[derive(Clone, Copy)]
pub struct TreeFile<'a> {
    /// The tree of the file.
    pub tree: &'a Tree,
    /// Number of the file in the tree.
    pub number: u64,
}

/// Creates the files of one chunk, which are in the same folder, and the parent folders.
pub fn make_chunk(context: &TimedFs<'_>, root: &Folder, tree: &Tree, chunk: &Chunk) -> Result<(), RunError> {
    let created = tree_walk::make_path(context, root, &chunk.folder)?;
    let folder = created.as_ref().unwrap_or(root);
    let mut buffer = vec![0u8; 64 << 10];
    (chunk.first..chunk.end)
        .try_for_each(|number| make_file(context, folder, TreeFile { tree, number }, &mut buffer))
}

fn make_file(
    context: &TimedFs<'_>,
    folder: &Folder,
    TreeFile { tree, number }: TreeFile<'_>,
    buffer: &mut [u8],
) -> Result<(), RunError> {
    let file = create_or_replace(context, folder, &tree.name(number))?;
    let (content, size) = (Content::new(tree.seed, number), tree.size(number));
    let mut offset = 0;
    while offset < size {
        let length = buffer.len().min((size - offset) as usize);
        content.fill(offset, &mut buffer[..length]);
        context.write_all(&file, &buffer[..length], offset)?;
        offset += length as u64;
    }
    if tree.has_finder_info(number) {
        context.setxattr(&file, FINDER_INFO, &[1u8; FINDER_INFO_BYTES])?;
    }
    context.close(file)
}

/// Compares the start of a file with the expected content.
///
/// # Errors
///
/// [`RunError::Damaged`] if the content differs, or if fewer than `wanted` bytes were read.
pub fn verify(expected: TreeFile<'_>, file: &OpenFile, head: &[u8], wanted: usize) -> Result<(), RunError> {
    if head.len() < wanted {
        let short = RunError::damaged(file.path(), format!("the file ends after {} bytes", head.len()));
        return Err(short.with_found(0, head));
    }
    match Content::new(expected.tree.seed, expected.number).first_difference(0, head) {
        None => Ok(()),
        Some(offset) => {
            let detail = format!("byte {offset} differs from what was written");
            Err(RunError::damaged(file.path(), detail).with_found(0, head))
        }
    }
}

/// Finds the first file of a tree that is missing or has the wrong size, or one that looks like a file of the tree and is none, and
/// returns it as an error.
///
/// Called after a walk whose totals were wrong, because the totals do not identify the file.
pub fn find_damage(context: &TimedFs<'_>, root: &Folder, tree: &Tree) -> Result<RunError, RunError> {
    for chunk in tree.chunks(0) {
        let folder = tree_walk::open_path(context, root, &chunk.folder)?;
        let folder = folder.as_ref().unwrap_or(root);
        for number in chunk.first..chunk.end {
            let name = tree.name(number);
            let detail = match context.lookup(folder, &name)? {
                None => "the file is missing".to_owned(),
                Some(found) if found.size == tree.size(number) => continue,
                Some(found) => {
                    format!("the file has {} bytes, but {} were written", found.size, tree.size(number))
                }
            };
            return Ok(RunError::damaged(&folder.join(&name), detail));
        }
    }
    let changing = || std::io::Error::other("the tree changed while it was walked");
    Ok(match find_foreign(context, root, tree)? {
        Some(path) => foreign_file(root.path(), &path.display().to_string()),
        None => RunError::operation(Operation::Readdir, root.path(), changing()),
    })
}

/// Finds a file that looks like one of the tree, such as a copy in other letters, and is none. A file that is there once, in other
/// letters, was renamed.
fn find_foreign(context: &TimedFs<'_>, root: &Folder, tree: &Tree) -> Result<Option<PathBuf>, RunError> {
    let mut names: BTreeMap<u64, u64> = BTreeMap::new();
    let mut others = vec![];
    tree_walk::walk(context, root, WalkOptions::whole_tree(EntryDetail::Names), |folder, name, _| {
        let Some(number) = Tree::parse_number(name.to_bytes()) else { return };
        *names.entry(number).or_default() += 1;
        let path = folder.join(name);
        if !path.strip_prefix(root.path()).is_ok_and(|path| tree.owns(path)) {
            others.push((number, path));
        }
    })?;
    let mut foreign = others.into_iter().filter(|(number, _)| *number >= tree.files || names[number] > 1);
    Ok(foreign.next().map(|(_, path)| path))
}

/// Returns the error for a file in a tree that looks like one of the tree and is none, so that a walk or a search finds too many.
pub fn foreign_file(root: &Path, name: &str) -> RunError {
    let reason = format!("there is `{name}`, which longhaul did not make");
    let advice = "`longhaul targets clean NAME` names such files: move them away";
    RunError::refused(root, reason, advice)
}
