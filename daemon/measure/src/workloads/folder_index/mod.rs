//! Finder-style indexing of a large tree: open a folder, walk the tree cold and warm, search it, and preview
//! files.
//!
//! This only approximates Finder, because Finder's exact attribute list is not published. On macOS, one call
//! returns names with attributes and Finder info (`getattrlistbulk`); on Linux, this takes getdents64, statx and
//! the Finder extended attribute. Results of the two systems are not comparable, so the system is stored with
//! every run.

pub(crate) mod build;
mod kept;
mod slices;
pub(crate) mod tree_walk;

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

use super::job::Job;
use super::listings::evict_listings;
use super::workload::{ContentLookup, Workload};
use crate::error::RunError;
use crate::platform::{Access, EntryKind, LISTS_ATTRIBUTES, ListingFields};
use crate::timed_fs::{Buffer, Folder, ListingBuffer, PhaseSpec, TimedFs, limit_entries};
use build::TreeFile;
use longhaul_corpus::apple_double::{FACT_NAME, apple_double_name, owner_name};
use longhaul_corpus::slices::{DEFAULT_SLICES, Slice, parse_slice_name, slice_name};
use longhaul_corpus::tree::{INBOX, SEARCH_STEM, Totals, Tree};
use longhaul_model::draw::shuffled_indices;
use longhaul_model::{ColdMethod, DataAge, FOLDER_INDEX, Figure, Scale, Timestamp, Unit, VerifiedData};
use slices::{stored_slices, tree};
use tree_walk::{EntryDetail, WalkOptions, attributes_and_finder_info};

/// The number of files that the preview phase reads.
const PREVIEWED_FILES: usize = 100;
/// The number of bytes read from each previewed file: the amount that a viewer reads to draw an icon.
const PREVIEW_BYTES: usize = 16 << 10;
/// The largest number of entries of the folder that is opened. longhaul creates about a thousand files in it.
const MAX_INBOX_ENTRIES: u64 = 100_000;
/// The number of rows in a window. For these, the AppleDouble file (`._NAME`) is looked up.
const VISIBLE_ENTRIES: usize = 40;
/// Names that a Finder-style view looks up in every folder, and that usually do not exist.
const SIDE_FILES: [&CStr; 4] = [c".DS_Store", c".localized", c".hidden", c"Icon\r"];

/// The workload that indexes a folder tree.
pub struct FolderIndex;

/// Returns the number of files in one slice.
fn slice_files(job: &Job<'_>) -> u64 {
    let total = job.settings.tree_files.unwrap_or(match job.scale {
        Scale::Quick => 6_000,
        Scale::Standard => 10_000,
        Scale::Large => 100_000,
    });
    total.div_ceil(DEFAULT_SLICES).max(1)
}

impl Workload for FolderIndex {
    fn name(&self) -> &'static str {
        FOLDER_INDEX.name()
    }

    fn owns(&self, path: &Path) -> bool {
        let mut parts = path.components();
        let slice = parts.next().and_then(|part| parse_slice_name(part.as_os_str().to_str()?));
        slice.is_some_and(|(files, slice)| tree(files, slice).owns(parts.as_path()))
    }

    fn known_contents(&self, job: &Job<'_>) -> Result<ContentLookup, RunError> {
        let trees = stored_slices(job)?;
        Ok(Box::new(move |path: &Path| kept::known_content(&trees, path)))
    }

    fn kept_files(&self, job: &Job<'_>) -> Result<Vec<PathBuf>, RunError> {
        kept::kept_files(job)
    }

    fn set_all_used(&self, job: &Job<'_>, now: Timestamp) -> Result<(), RunError> {
        let mut trees = stored_slices(job)?;
        trees.set_all_used(now);
        job.sandbox.record_entry(self.folder(), &trees, &job.untimed())
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        build::build(job, slice_files(job), job.current_slice())
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let (files, slice) = (slice_files(job), job.current_slice());
        let mut trees = stored_slices(job)?;
        let state = trees.get(files, slice);
        // Before the first phase: a run can be killed at any moment, and caches hold parts of the slice then.
        trees.slice(files, slice).set_used(job.now);
        job.sandbox.record_entry(self.folder(), &trees, &job.untimed())?;
        let visit = TreeVisit::open(job, tree(files, slice), &slice_name(files, slice), state);
        let result = visit.and_then(|visit| {
            visit.run_phases(job)?;
            evict_listings(job, &visit.root)
        });
        if result.as_ref().is_err_and(RunError::invalidates_corpus) {
            trees.slice(files, slice).built = 0;
            job.sandbox.record_entry(self.folder(), &trees, &job.untimed())?;
        }
        result
    }
}

/// The state of one run on one slice of the tree.
struct TreeVisit {
    tree: Tree,
    totals: Totals,
    cold_by: ColdMethod,
    age: DataAge,
    root: Folder,
    /// Number of AppleDouble files that the listing of the inbox showed.
    apple_double_files: Cell<u64>,
}

impl TreeVisit {
    /// Opens the tree in the folder `name`. `state` is that of its slice before this run.
    fn open(job: &Job<'_>, tree: Tree, name: &CStr, state: Slice) -> Result<Self, RunError> {
        let context = job.untimed();
        let home = context.open_folder(&job.sandbox.folder()?, c"folder-index")?;
        Ok(Self {
            tree,
            totals: tree.totals(),
            cold_by: state.metadata_cold_method(job.now),
            age: DataAge::between(state.written_us, job.now),
            root: context.open_folder(&home, name)?,
            apple_double_files: Cell::default(),
        })
    }

    fn run_phases(&self, job: &Job<'_>) -> Result<(), RunError> {
        let session = job.session;
        session.add_fact(
            "tree",
            format!("{} files and {} in the inbox", self.totals.files, self.tree.inbox_files()),
        );
        session.phase(PhaseSpec::cold("open-folder", self.cold_by), |context| self.open_folder(context))?;
        session.phase(PhaseSpec::warm("open-folder"), |context| self.open_folder(context))?;
        let mut cold_seconds = 0.0;
        session.phase(PhaseSpec::cold("walk", self.cold_by), |context| {
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
        session.phase(PhaseSpec::cold("preview", self.cold_by), |context| self.preview(context, job))
    }

    /// Opens the folder of 1,000 files: lists names, attributes and Finder info, then looks up names that rarely
    /// exist.
    fn open_folder(&self, context: &TimedFs<'_>) -> Result<Vec<Figure>, RunError> {
        let inbox = context.open_folder(&self.root, INBOX)?;
        let mut entries: Vec<(CString, u64)> = vec![];
        context.list(&inbox, ListingFields::FinderAttributes, &mut ListingBuffer::default(), |entry| {
            entries.push((entry.name.to_owned(), entry.attributes.map_or(0, |attributes| attributes.size)));
            limit_entries(inbox.path(), entries.len() as u64, MAX_INBOX_ENTRIES)
        })?;
        if !LISTS_ATTRIBUTES {
            for (name, size) in &mut entries {
                *size = attributes_and_finder_info(context, &inbox, name)?.size;
            }
        }
        for name in SIDE_FILES {
            context.lookup(&inbox, name)?;
        }
        // A window hides names that start with a dot, so AppleDouble files do not take up rows.
        let shown = entries.iter().filter(|(name, _)| owner_name(name.to_bytes()).is_none());
        for (name, _) in shown.take(VISIBLE_ENTRIES) {
            context.lookup(&inbox, &apple_double_name(name))?;
        }
        let seconds = context.elapsed();
        let apple_double_files = entries.iter().filter(|(name, _)| owner_name(name.to_bytes()).is_some());
        self.apple_double_files.set(apple_double_files.count() as u64);
        let ours = || entries.iter().filter(|(name, _)| Tree::parse_number(name.to_bytes()).is_some());
        let bytes: u64 = ours().map(|(_, size)| size).sum();
        if (ours().count() as u64, bytes) != (self.tree.inbox_files(), self.totals.inbox_bytes) {
            return Err(build::find_damage(context, &self.root, &self.tree)?);
        }
        Ok(vec![Figure::new("folder-shown", Unit::Seconds, seconds)])
    }

    /// Walks the tree and compares the totals with the expected ones.
    ///
    /// Skips the inbox, because it was just opened and is warm.
    fn walk(&self, context: &TimedFs<'_>, job: &Job<'_>) -> Result<Vec<Figure>, RunError> {
        let mut found = Totals::default();
        let (mut entries, mut foreign, mut apple_double_files) = (0u64, 0u64, self.apple_double_files.get());
        let options = WalkOptions { detail: EntryDetail::FinderInfo, skipped_folder: Some(INBOX) };
        tree_walk::walk(context, &self.root, options, |_, name, attributes| {
            entries += 1;
            match Tree::parse_number(name.to_bytes()) {
                Some(_) => {
                    found.files += 1;
                    found.bytes += attributes.size;
                }
                None if owner_name(name.to_bytes()).is_some() => apple_double_files += 1,
                None => foreign += u64::from(attributes.kind == EntryKind::File),
            }
        })?;
        // The clock is read before the totals are checked, so that the check is not part of the figure.
        let seconds = context.elapsed();
        if foreign > 0 {
            job.session.add_fact("unexpected-files", foreign.to_string());
        }
        if apple_double_files > 0 {
            job.session.add_fact(FACT_NAME, apple_double_files.to_string());
        }
        if (found.files, found.bytes) != (self.totals.files, self.totals.bytes) {
            return Err(build::find_damage(context, &self.root, &self.tree)?);
        }
        Ok(vec![
            Figure::new("walk", Unit::Seconds, seconds),
            Figure::new("entries", Unit::PerSecond, entries as f64 / seconds),
        ])
    }

    /// Searches the tree for files by name, like the search field of a window on a volume without an index.
    fn search(&self, context: &TimedFs<'_>) -> Result<Vec<Figure>, RunError> {
        let mut matches = 0u64;
        let mut entries = 0u64;
        let mut foreign = None;
        tree_walk::walk(
            context,
            &self.root,
            WalkOptions::whole_tree(EntryDetail::Names),
            |_, name, attributes| {
                entries += 1;
                let is_file = attributes.kind == EntryKind::File;
                let name = name.to_string_lossy();
                let begin = name.as_bytes().get(..SEARCH_STEM.len());
                let is_match =
                    is_file && begin.is_some_and(|begin| begin.eq_ignore_ascii_case(SEARCH_STEM.as_bytes()));
                matches += u64::from(is_match);
                if is_match && Tree::parse_number(name.as_bytes()).is_none() {
                    foreign = Some(name.into_owned());
                }
            },
        )?;
        let seconds = context.elapsed();
        if let Some(name) = foreign {
            return Err(build::foreign_file(self.root.path(), &name));
        }
        if matches != self.totals.search_matches {
            let detail =
                format!("the search found {matches} files instead of {}", self.totals.search_matches);
            return Err(RunError::damaged(self.root.path(), detail));
        }
        Ok(vec![
            Figure::new("search", Unit::Seconds, seconds),
            Figure::new("entries", Unit::PerSecond, entries as f64 / seconds),
        ])
    }

    /// Reads the start of a random sample of files, which differs from round to round.
    fn preview(&self, context: &TimedFs<'_>, job: &Job<'_>) -> Result<Vec<Figure>, RunError> {
        let sample = shuffled_indices(job.seed, 0x7072_6576, self.tree.files);
        let mut head = Buffer::new(PREVIEW_BYTES);
        for number in sample.iter().take(PREVIEWED_FILES) {
            self.preview_file(context, *number, &mut head)?;
        }
        let shown = sample.len().min(PREVIEWED_FILES) as f64;
        Ok(vec![
            Figure::new("preview", Unit::Seconds, context.elapsed()),
            Figure::new("previews", Unit::PerSecond, shown / context.elapsed()),
        ])
    }

    fn preview_file(&self, context: &TimedFs<'_>, number: u64, head: &mut [u8]) -> Result<(), RunError> {
        let folder = tree_walk::open_path(context, &self.root, &self.tree.folder(number))?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        let file = context.open(folder, &self.tree.name(number), Access::Read)?;
        let wanted = head.len().min(self.tree.size(number) as usize);
        let length = context.read_full(&file, &mut head[..wanted], 0)?;
        let expected = TreeFile { tree: &self.tree, number };
        build::verify(expected, &file, &head[..length], wanted)?;
        let is_whole = wanted as u64 == self.tree.size(number);
        context.add_verified(VerifiedData {
            age: self.age,
            bytes: wanted as u64,
            files: u64::from(is_whole),
        });
        context.close(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_corpus::slices::MAX_FILES;

    #[test]
    fn a_folder_name_with_an_impossible_size_is_not_owned() {
        for size in [u64::MAX, u64::MAX / 2 + 1, MAX_FILES + 1] {
            let path = format!("{size}-0/Inbox/x 000001.txt");
            assert!(!FolderIndex.owns(Path::new(&path)), "{path}");
        }
        let tree = tree(1500, 0);
        let inside = format!("1500-0/Inbox/{}", tree.name(3).to_str().expect("names are UTF-8"));
        assert!(FolderIndex.owns(Path::new(&inside)));
    }
}
