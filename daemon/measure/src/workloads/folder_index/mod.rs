//! Finder-style indexing of a large tree: show one folder, walk everything cold and warm, search, preview.
//!
//! "Finder-style", not "what Finder does": the exact attribute list is not published. On macOS one call brings names
//! with attributes and Finder info (`getattrlistbulk`); on Linux it takes getdents64, statx and the Finder xattr. The
//! two are not comparable with each other, and the system is stored with every run.

pub(crate) mod build;
pub(crate) mod walk;

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::path::Path;

use super::{Job, Workload};
use crate::context::{Buffer, Context, Folder, Listing, PhaseSpec};
use crate::corpus::apple_double::{FACT, twin, twin_of};
use crate::corpus::draw::shuffled;
use crate::corpus::slices::{MOST_SLICES, SLICES, Sets};
use crate::corpus::tree::{INBOX, SEARCHED, Totals, Tree};
use crate::error::RunError;
use crate::model::{CacheState, ColdBy, Endpoint, Figure, Presence, Scale, Unit};
use crate::platform::{
    Access, Attributes, EntryKind, FINDER_INFO, FINDER_INFO_BYTES, LISTS_ATTRIBUTES, Wanted,
};
use walk::{Depth, Scope};

/// How many files the preview phase looks into.
const PREVIEWED: usize = 100;
/// How much of each: what a viewer reads to draw an icon.
const PREVIEW_BYTES: usize = 16 << 10;
/// Rows that a window shows at once; for these the `._` twin is looked for.
const VISIBLE: usize = 40;
/// Names that a Finder-style view looks for in a folder and mostly does not find.
const SIDE_FILES: [&CStr; 4] = [c".DS_Store", c".localized", c".hidden", c"Icon\r"];

/// No slice has more files: a folder whose name says so is not one of ours.
const MOST_FILES: u64 = 10_000_000;

/// The workload.
pub struct FolderIndex;

/// What the manifest says of its corpora.
fn kept(job: &Job<'_>) -> Result<Sets, RunError> {
    Ok(job.arena.holding(FolderIndex.folder())?.unwrap_or_default())
}

/// Files of one slice.
fn slice_files(job: &Job<'_>) -> u64 {
    let total = job.settings.tree_files.unwrap_or(match job.scale {
        Scale::Quick => 6_000,
        Scale::Standard => 10_000,
        Scale::Large => 100_000,
    });
    total.div_ceil(SLICES).max(1)
}

/// The tree of a slice; slices differ in their seed.
fn tree(files: u64, slice: u64) -> Tree {
    Tree { seed: 0x7265_6500 + slice, files }
}

/// The folder of a slice.
fn slice_name(files: u64, slice: u64) -> CString {
    CString::new(format!("{files}-{slice}")).expect("digits hold no NUL")
}

/// The folder of a slice, read back.
fn parse_slice_name(name: &str) -> Option<(u64, u64)> {
    let (files, slice) = name.split_once('-')?;
    let parsed = (files.parse().ok()?, slice.parse().ok()?);
    let is_ours = slice_name(parsed.0, parsed.1).to_bytes() == name.as_bytes();
    (is_ours && parsed.0 <= MOST_FILES && parsed.1 < MOST_SLICES).then_some(parsed)
}

/// What a person waits for when a folder is opened, and what an indexer does. The other phases are in the summary.
const ENDPOINTS: [Endpoint; 4] = {
    const fn folder(name: &'static str, cache: CacheState, weight: f64) -> Endpoint {
        Endpoint {
            name,
            activity: "opening a large folder",
            cache,
            figures: &[("open-folder", "folder-shown")],
            presence: Presence::Interactive,
            weight,
        }
    }
    const fn walk(name: &'static str, cache: CacheState, weight: f64) -> Endpoint {
        Endpoint {
            activity: "walking a large tree",
            figures: &[("walk", "walk")],
            presence: Presence::Background,
            ..folder(name, cache, weight)
        }
    }
    [
        folder("folder-cold", CacheState::Cold, 0.125),
        folder("folder-warm", CacheState::Warm, 0.0),
        walk("walk-cold", CacheState::Cold, 0.125),
        walk("walk-warm", CacheState::Warm, 0.0),
    ]
};

impl Workload for FolderIndex {
    fn name(&self) -> &'static str {
        "folder-index"
    }

    fn summary(&self) -> &'static str {
        "shows a folder of 1,000 files, walks a tree cold and warm, searches it, previews files"
    }

    fn endpoints(&self) -> &'static [Endpoint] {
        &ENDPOINTS
    }

    fn owns(&self, path: &Path) -> bool {
        let mut parts = path.components();
        let slice = parts.next().and_then(|part| parse_slice_name(part.as_os_str().to_str()?));
        slice.is_some_and(|(files, slice)| tree(files, slice).owns(parts.as_path()))
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        build::build(job, slice_files(job), job.slice())
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let (files, slice) = (slice_files(job), job.slice());
        let result = Visit::begin(job, files, slice).and_then(|visit| visit.phases(job));
        let mut trees = kept(job)?;
        let state = trees.slice(files, slice);
        state.used_us = Some(job.now_us);
        if result.as_ref().is_err_and(RunError::spoils_the_corpus) {
            state.built = 0;
        }
        job.arena.keep(self.folder(), &trees, &job.preparation())?;
        result
    }
}

/// One visit to one slice.
struct Visit {
    tree: Tree,
    totals: Totals,
    cold: ColdBy,
    root: Folder,
    /// AppleDouble files that the inbox showed.
    twins: Cell<u64>,
}

impl Visit {
    fn begin(job: &Job<'_>, files: u64, slice: u64) -> Result<Self, RunError> {
        let context = job.preparation();
        let home = context.open_folder(&job.arena.folder()?, c"folder-index")?;
        let tree = tree(files, slice);
        Ok(Self {
            tree,
            totals: tree.totals(),
            cold: kept(job)?.slice(files, slice).cold_by(job.now_us),
            root: context.open_folder(&home, &slice_name(files, slice))?,
            twins: Cell::default(),
        })
    }

    fn phases(&self, job: &Job<'_>) -> Result<(), RunError> {
        let session = job.session;
        session.fact(
            "tree",
            format!("{} files and {} in the inbox", self.totals.files, self.tree.inbox_files()),
        );
        session.phase(PhaseSpec::cold("open-folder", self.cold), |context| self.open_folder(context))?;
        session.phase(PhaseSpec::warm("open-folder"), |context| self.open_folder(context))?;
        let mut cold_seconds = 0.0;
        session.phase(PhaseSpec::cold("walk", self.cold), |context| {
            let figures = self.walk(context, job)?;
            cold_seconds = context.elapsed();
            Ok(figures)
        })?;
        session.phase(PhaseSpec::warm("walk"), |context| {
            let mut figures = self.walk(context, job)?;
            figures.push(Figure::new("warm-to-cold", Unit::Share, context.elapsed() / cold_seconds));
            Ok(figures)
        })?;
        session.phase(PhaseSpec::warm("search"), |context| self.search(context))?;
        session.phase(PhaseSpec::cold("preview", self.cold), |context| self.preview(context, job))
    }

    /// Shows the folder of 1,000 files: names, attributes and Finder info, then the names that mostly are not there.
    fn open_folder(&self, context: &Context<'_>) -> Result<Vec<Figure>, RunError> {
        let inbox = context.open_folder(&self.root, INBOX)?;
        let mut entries: Vec<(CString, u64)> = vec![];
        context.list(&inbox, Wanted::FinderAttributes, &mut Listing::default(), |entry| {
            entries.push((entry.name.to_owned(), entry.attributes.map_or(0, |attributes| attributes.size)));
            Ok::<_, RunError>(())
        })?;
        if !LISTS_ATTRIBUTES {
            for (name, size) in &mut entries {
                *size = attributes_and_finder_info(context, &inbox, name)?.size;
            }
        }
        for name in SIDE_FILES {
            context.lookup(&inbox, name)?;
        }
        // A window shows no name that begins with a dot.
        let shown = entries.iter().filter(|(name, _)| twin_of(name.to_bytes()).is_none());
        for (name, _) in shown.take(VISIBLE) {
            context.lookup(&inbox, &twin(name))?;
        }
        let seconds = context.elapsed();
        let twins = entries.iter().filter(|(name, _)| twin_of(name.to_bytes()).is_some());
        self.twins.set(twins.count() as u64);
        let ours = || entries.iter().filter(|(name, _)| Tree::number_in(name.to_bytes()).is_some());
        let bytes: u64 = ours().map(|(_, size)| size).sum();
        if (ours().count() as u64, bytes) != (self.tree.inbox_files(), self.totals.inbox_bytes) {
            return Err(build::first_difference(context, &self.root, &self.tree)?);
        }
        Ok(vec![Figure::new("folder-shown", Unit::Seconds, seconds)])
    }

    /// Walks everything but the inbox, which was just shown and is warm, and compares what it found with what was made.
    fn walk(&self, context: &Context<'_>, job: &Job<'_>) -> Result<Vec<Figure>, RunError> {
        let mut found = Totals::default();
        let (mut entries, mut foreign, mut twins) = (0u64, 0u64, self.twins.get());
        let scope = Scope { depth: Depth::FinderInfo, without: Some(INBOX) };
        walk::walk(context, &self.root, scope, |_, name, attributes| {
            entries += 1;
            match Tree::number_in(name.to_bytes()) {
                Some(_) => {
                    found.files += 1;
                    found.bytes += attributes.size;
                }
                None if twin_of(name.to_bytes()).is_some() => twins += 1,
                None => foreign += u64::from(attributes.kind == EntryKind::File),
            }
        })?;
        let seconds = context.elapsed();
        if foreign > 0 {
            job.session.fact("foreign-files-in-the-tree", foreign.to_string());
        }
        if twins > 0 {
            job.session.fact(FACT, twins.to_string());
        }
        if (found.files, found.bytes) != (self.totals.files, self.totals.bytes) {
            return Err(build::first_difference(context, &self.root, &self.tree)?);
        }
        Ok(vec![
            Figure::new("walk", Unit::Seconds, seconds),
            Figure::new("entries", Unit::PerSecond, entries as f64 / seconds),
        ])
    }

    /// Looks for files by name, as the search field of a window does on a volume without an index.
    fn search(&self, context: &Context<'_>) -> Result<Vec<Figure>, RunError> {
        let mut matches = 0u64;
        let mut entries = 0u64;
        walk::walk(context, &self.root, Scope::all(Depth::Names), |_, name, attributes| {
            entries += 1;
            let is_file = attributes.kind == EntryKind::File;
            let name = name.to_string_lossy();
            matches += u64::from(is_file && name.starts_with(SEARCHED));
        })?;
        let seconds = context.elapsed();
        if matches != self.totals.matches {
            let detail = format!("the search found {matches} files, {} are there", self.totals.matches);
            return Err(RunError::damaged(self.root.path(), detail));
        }
        Ok(vec![
            Figure::new("search", Unit::Seconds, seconds),
            Figure::new("entries", Unit::PerSecond, entries as f64 / seconds),
        ])
    }

    /// Reads the beginning of a sample that differs from round to round.
    fn preview(&self, context: &Context<'_>, job: &Job<'_>) -> Result<Vec<Figure>, RunError> {
        let sample = shuffled(job.seed, 0x7072_6576, self.tree.files);
        let mut head = Buffer::new(PREVIEW_BYTES);
        for number in sample.iter().take(PREVIEWED) {
            self.preview_file(context, *number, &mut head)?;
        }
        let shown = sample.len().min(PREVIEWED) as f64;
        Ok(vec![
            Figure::new("preview", Unit::Seconds, context.elapsed()),
            Figure::new("previews", Unit::PerSecond, shown / context.elapsed()),
        ])
    }

    fn preview_file(&self, context: &Context<'_>, number: u64, head: &mut [u8]) -> Result<(), RunError> {
        let folder = walk::descend(context, &self.root, &self.tree.folder(number))?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        let file = context.open(folder, &self.tree.name(number), Access::Read)?;
        let wanted = head.len().min(self.tree.size(number) as usize);
        let length = context.read_full(&file, &mut head[..wanted], 0)?;
        build::verify(&self.tree, number, &file, &head[..length], wanted)?;
        context.close(file)
    }
}

/// The attributes of a name, and its Finder info. An AppleDouble file has none: asked for it, a Mac refuses (EPERM, xnu
/// bsd/vfs/vfs_xattr.c `open_xattrfile`).
fn attributes_and_finder_info(
    context: &Context<'_>,
    folder: &Folder,
    name: &CStr,
) -> Result<Attributes, RunError> {
    let attributes = context.getattr(folder, name)?;
    if twin_of(name.to_bytes()).is_none() {
        context.getxattr_at(folder, name, FINDER_INFO, &mut [0u8; FINDER_INFO_BYTES])?;
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_claims_an_impossible_size_is_not_ours() {
        for size in [u64::MAX, u64::MAX / 2 + 1, MOST_FILES + 1] {
            let path = format!("{size}-0/Inbox/x 000001.txt");
            assert!(!FolderIndex.owns(Path::new(&path)), "{path}");
        }
        let tree = tree(1500, 0);
        let inside = format!("1500-0/Inbox/{}", tree.name(3).to_str().expect("names are UTF-8"));
        assert!(FolderIndex.owns(Path::new(&inside)));
    }
}
