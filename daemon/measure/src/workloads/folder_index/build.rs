//! Building a slice as a stream that can be interrupted and resumed at any file, and looking for damage in it.

use super::{FolderIndex, kept, slice_name, tree, walk};
use crate::context::{Context, Folder, OpenFile};
use crate::corpus::Content;
use crate::corpus::tree::{Chunk, Tree};
use crate::error::RunError;
use crate::model::{Operation, Progress};
use crate::platform::{FINDER_INFO, FINDER_INFO_BYTES};
use crate::workloads::{Job, Workload, create_anew};

/// How many files are made at the same time.
pub const WIDTH: usize = 4;
/// How many pieces are made between two entries in the manifest.
const PIECES: usize = 64;

/// Makes what is missing of a slice.
pub fn build(job: &Job<'_>, files: u64, slice: u64) -> Result<(), RunError> {
    let mut trees = kept(job)?;
    let tree = tree(files, slice);
    let built = trees.slice(files, slice).built;
    if built >= files {
        return Ok(());
    }
    job.require_space((built..files).map(|number| tree.size(number) + 4096).sum())?;
    let context = job.preparation();
    job.arena.keep(FolderIndex.folder(), &trees, &context)?;
    let home = context.make_folder(&job.arena.folder()?, c"folder-index")?;
    let root = context.make_folder(&home, &slice_name(files, slice))?;
    let mut chunks = tree.chunks(built).peekable();
    let mut progress = progress_of(&tree, slice, built);
    while chunks.peek().is_some() {
        let pieces: Vec<Chunk> = chunks.by_ref().take(PIECES).collect();
        context.spread(WIDTH, &pieces, |context, chunk| make_chunk(context, &root, &tree, chunk))?;
        let state = trees.slice(files, slice);
        state.built = pieces.last().map_or(state.built, |chunk| chunk.end);
        state.used_us = Some(job.now_us);
        job.arena.keep(FolderIndex.folder(), &trees, &context)?;
        advance(&mut progress, &tree, &pieces);
        job.session.progress(&progress);
    }
    Ok(())
}

fn progress_of(tree: &Tree, slice: u64, built: u64) -> Progress {
    let bytes = |numbers: std::ops::Range<u64>| numbers.map(|number| tree.size(number)).sum();
    Progress {
        what: format!("tree {slice} of folder-index"),
        files: built,
        files_total: tree.files,
        bytes: bytes(0..built),
        bytes_total: bytes(0..tree.files),
    }
}

fn advance(progress: &mut Progress, tree: &Tree, pieces: &[Chunk]) {
    for chunk in pieces {
        progress.files = chunk.end;
        progress.bytes += (chunk.first..chunk.end).map(|number| tree.size(number)).sum::<u64>();
    }
}

/// Makes neighbouring files, and the folders that lead to them.
pub fn make_chunk(context: &Context<'_>, root: &Folder, tree: &Tree, chunk: &Chunk) -> Result<(), RunError> {
    let made = walk::make(context, root, &chunk.folder)?;
    let folder = made.as_ref().unwrap_or(root);
    let mut buffer = vec![0u8; 64 << 10];
    (chunk.first..chunk.end).try_for_each(|number| make_file(context, folder, (tree, number), &mut buffer))
}

fn make_file(
    context: &Context<'_>,
    folder: &Folder,
    (tree, number): (&Tree, u64),
    buffer: &mut [u8],
) -> Result<(), RunError> {
    let file = create_anew(context, folder, &tree.name(number))?;
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

/// Compares the beginning of a file with what was written.
pub fn verify(tree: &Tree, number: u64, file: &OpenFile, head: &[u8], wanted: usize) -> Result<(), RunError> {
    if head.len() < wanted {
        return Err(RunError::damaged(file.path(), format!("it ends after {} bytes", head.len())));
    }
    match Content::new(tree.seed, number).first_difference(0, head) {
        None => Ok(()),
        Some(offset) => Err(RunError::damaged(file.path(), format!("byte {offset} is not what was written"))),
    }
}

/// The first file of a tree that is not as it was made: the walk says only that one is.
pub fn first_difference(context: &Context<'_>, root: &Folder, tree: &Tree) -> Result<RunError, RunError> {
    for chunk in tree.chunks(0) {
        let folder = walk::descend(context, root, &chunk.folder)?;
        let folder = folder.as_ref().unwrap_or(root);
        for number in chunk.first..chunk.end {
            let name = tree.name(number);
            let detail = match context.lookup(folder, &name)? {
                None => "it is gone".to_owned(),
                Some(found) if found.size == tree.size(number) => continue,
                Some(found) => format!("it has {} bytes, {} were written", found.size, tree.size(number)),
            };
            return Ok(RunError::damaged(&folder.join(&name), detail));
        }
    }
    let changing = std::io::Error::other("the tree changed while it was walked");
    Ok(RunError::operation(Operation::Readdir, root.path(), changing))
}
