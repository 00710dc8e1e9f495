//! The file sets of a preset on a target: their location, their content, and which files exist.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::file_names::{file_name, file_number, folder_name, folder_number, is_file_name};
use super::preset_run::PresetRun;
use super::write_tracker::WriteTracker;
use crate::content_mode::ContentMode;
use crate::profile::FileSet;
use longhaul_corpus::names::to_cstring;
use longhaul_corpus::sectors::{SECTOR_BYTES, Sectors};
use longhaul_measure::error::RunError;
use longhaul_measure::platform::Access;
use longhaul_measure::timed_fs::{Folder, TimedFs};
use longhaul_measure::workloads::{Job, create_or_replace, unlink_leftover};
use longhaul_model::{ColdMethod, DataAge, Progress};
use parking_lot::Mutex;

/// The number of files that are created at the same time during preparation.
const BUILD_THREADS: usize = 4;
/// The minimum size in bytes of files that are synced one by one, so that they can be evicted later.
///
/// Syncing every smaller file would take hours.
const MIN_SYNCED_BYTES: u64 = 1 << 20;
/// The maximum number of files that are evicted one by one.
///
/// Opening more files than that would warm the caches that should be cold.
const MAX_EVICTED: usize = 2000;
/// The number of files that are created between two progress reports.
const PROGRESS_EVERY: usize = 64;

/// A position in the content of a set's file.
#[derive(Debug, Clone, Copy)]
pub struct ContentPosition {
    /// Number of the file.
    pub file: u64,
    /// Version of the content.
    pub turn: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
}

/// One set of files on the target, with open handles of its folders.
pub struct TestFileSet {
    /// Definition of the set in the profile.
    pub spec: FileSet,
    /// Numbers of the files that exist, as the last phase left them.
    pub present: Mutex<BTreeSet<u64>>,
    /// Content version of all writes to this set, if the profile appends to its files; otherwise `None`.
    ///
    /// An append can start in the middle of a sector, and a sector can only hold one content version.
    pub single_turn: Option<u64>,
    /// Lengths in bytes of the files that phases created or wrote, by number; only of a set to whose files phases append.
    pub lengths: Mutex<BTreeMap<u64, u64>>,
    /// Bytes by which the files of all sets may still grow, so that the reserve of the target stays free.
    pub growth_left: Arc<AtomicU64>,
    /// True if every existing file is complete, because no phase creates, extends or deletes files of the set.
    pub is_whole: bool,
    /// Tracker of writes in progress, so that overlapping reads are not verified.
    pub write_tracker: WriteTracker,
    name: String,
    content_mode: ContentMode,
    seed: u64,
    /// Folder that contains the folders of the set.
    home: Folder,
    folders: Vec<Folder>,
    /// File names by number, generated in advance: work between two calls makes the next call slower.
    names: Vec<CString>,
}

impl TestFileSet {
    /// Returns the size of a file in bytes as the profile defines it, without appended data.
    pub fn initial_bytes(&self, number: u64) -> u64 {
        self.spec.size.file_bytes(self.seed, number)
    }

    /// Returns the age of the set's files, as far as it is known: those of a set that phases change are made for each run.
    pub fn age(&self) -> DataAge {
        if self.is_whole { DataAge::Unknown } else { DataAge::Hours }
    }

    /// Returns the name of a file.
    pub fn name_of(&self, number: u64) -> &CStr {
        &self.names[number as usize]
    }

    /// Returns the folder of a file.
    pub fn folder_of(&self, number: u64) -> &Folder {
        &self.folders[(number % self.folders.len() as u64) as usize]
    }

    /// Syncs all folders of the set, so that file names are on stable storage.
    pub fn sync_folders(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        self.folders.iter().try_for_each(|folder| context.sync_folder(folder).map(drop))
    }

    /// Returns the numbers of the set's files, in the order in which the folders list them.
    pub fn list_numbers(&self, context: &TimedFs<'_>) -> Result<Vec<u64>, RunError> {
        let mut numbers = vec![];
        for folder in &self.folders {
            let number = |name: &CString| file_number(self.spec.names, self.seed, name);
            numbers.extend(context.names(folder)?.iter().filter_map(number));
        }
        Ok(numbers)
    }

    /// Fills a buffer with the content at a position.
    pub fn fill(&self, at: ContentPosition, out: &mut [u8]) {
        match self.content_mode {
            ContentMode::Incompressible => self.sectors(at.file).fill(at.turn, at.offset, out),
            ContentMode::AsOriginal => out.fill(0),
        }
    }

    /// Compares bytes that were read at a position with the content that versions up to its turn wrote.
    ///
    /// # Errors
    ///
    /// [`RunError::Damaged`] with the position of the first wrong byte.
    pub fn verify(&self, at: ContentPosition, bytes: &[u8]) -> Result<(), RunError> {
        let wrong = match self.content_mode {
            ContentMode::Incompressible => self.first_difference(at, bytes),
            ContentMode::AsOriginal => first_nonzero(bytes).map(|index| at.offset + index as u64),
        };
        match wrong {
            None => Ok(()),
            Some(position) => {
                let path = self.folder_of(at.file).join(self.name_of(at.file));
                let damaged =
                    RunError::damaged(&path, format!("byte {position} differs from what was written"));
                Err(damaged.with_found(at.offset, bytes))
            }
        }
    }

    /// Returns the position of the first byte that differs from the expected content; `None` if all bytes match.
    ///
    /// In a set whose files may be incomplete, sectors that were never written are zeros and are skipped.
    fn first_difference(&self, at: ContentPosition, bytes: &[u8]) -> Option<u64> {
        let ContentPosition { file, turn, offset } = at;
        let mut start = 0;
        loop {
            let position =
                self.sectors(file).first_difference(turn, offset + start, &bytes[start as usize..])?;
            let sector = &bytes[(position - offset) as usize..];
            let sector = &sector[..sector.len().min(SECTOR_BYTES as usize)];
            let is_sector_start = position.is_multiple_of(SECTOR_BYTES);
            if self.is_whole || !is_sector_start || first_nonzero(sector).is_some() {
                return Some(position);
            }
            start = position - offset + sector.len() as u64;
        }
    }

    fn sectors(&self, file: u64) -> Sectors {
        Sectors { seed: self.seed, file }
    }

    fn initial_count(&self) -> u64 {
        (self.spec.count as f64 * self.spec.present) as u64
    }
}

/// Returns the index of the first byte that is not zero; `None` if all bytes are zero.
///
/// All zeros is the common case. It costs one `memcmp` per 4 KiB.
fn first_nonzero(bytes: &[u8]) -> Option<usize> {
    const ZEROS: [u8; 4096] = [0; 4096];
    if bytes.chunks(ZEROS.len()).all(|piece| *piece == ZEROS[..piece.len()]) {
        return None;
    }
    bytes.iter().position(|byte| *byte != 0)
}

/// Returns whether this path, below the folder of presets, could be a file of a set, such as
/// `dd-standard/large/d00000/00000000`.
pub fn owns(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let [preset, set, folder, file] = parts[..] else { return false };
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let file = file.strip_suffix("-moved").unwrap_or(file);
    is_name(preset) && is_name(set) && folder_number(folder).is_some() && is_file_name(file)
}

/// All file sets of one preset on one target.
pub struct TestFileSets {
    /// File sets by name.
    pub sets: BTreeMap<String, TestFileSet>,
}

impl TestFileSets {
    /// Opens the folders of all sets; creates missing folders.
    pub fn open(run: &PresetRun<'_>, turn: u64) -> Result<Self, RunError> {
        let PresetRun { job, profile, .. } = run;
        let context = job.untimed();
        let root = run.open_folder()?;
        let growth_left = Arc::new(AtomicU64::new(growth(run)?));
        let sets = profile.files.iter().map(|(name, spec)| {
            let home = context.create_and_open_folder(&root, &to_cstring(name.clone()))?;
            let folders = (0..spec.folders)
                .map(|number| context.create_and_open_folder(&home, &folder_name(number)))
                .collect::<Result<Vec<_>, RunError>>()?;
            let seed = run.seed(name);
            let set = TestFileSet {
                spec: spec.clone(),
                present: Mutex::default(),
                single_turn: profile.has_appends(name).then_some(turn),
                lengths: Mutex::default(),
                growth_left: Arc::clone(&growth_left),
                is_whole: !profile.changes_files(name),
                write_tracker: WriteTracker::default(),
                name: name.clone(),
                content_mode: run.content_mode,
                seed,
                home,
                folders,
                names: (0..spec.count).map(|number| file_name(spec.names, seed, number)).collect(),
            };
            set.present.lock().extend(0..set.initial_count());
            Ok((name.clone(), set))
        });
        Ok(Self { sets: sets.collect::<Result<_, RunError>>()? })
    }

    /// Returns the set with this name.
    ///
    /// # Panics
    ///
    /// If there is no such set. Profiles are checked for this when they are parsed.
    pub fn get(&self, name: &str) -> &TestFileSet {
        &self.sets[name]
    }
}

/// Returns the error for an append that would take space which must stay free.
pub fn no_space_to_append(path: &Path) -> RunError {
    let reason = "what it appends would take the space that must stay free";
    RunError::refused(
        path,
        reason,
        "Append for a shorter time or in smaller blocks, or free space on the target",
    )
}

/// Returns the number of bytes by which files may grow, beside those that phases create.
fn growth(run: &PresetRun<'_>) -> Result<u64, RunError> {
    let PresetRun { job, profile, .. } = run;
    if !profile.files.keys().any(|name| profile.has_appends(name)) {
        return Ok(0);
    }
    let created = profile.files.values().map(|set| (set.total_bytes(0) as f64 * (1.0 - set.present)) as u64);
    Ok(job.spare_bytes()?.saturating_sub(created.fold(0, u64::saturating_add)))
}

/// Removes all files that an earlier run left in a set, then creates the files that must exist before the phases.
pub fn build(job: &Job<'_>, set: &TestFileSet, turn: u64) -> Result<(), RunError> {
    remove(job, set)?;
    let context = job.untimed();
    let numbers: Vec<u64> = (0..set.initial_count()).collect();
    let total = if numbers.is_empty() { 0 } else { set.spec.total_bytes(set.seed) };
    let mut progress = Progress {
        item: format!("files of {}", set.name),
        files: 0,
        files_total: numbers.len() as u64,
        bytes: 0,
        bytes_total: total,
    };
    for chunk in numbers.chunks(PROGRESS_EVERY) {
        context.run_parallel(BUILD_THREADS, chunk, |context, file| {
            make_file(context, set, ContentPosition { file: *file, turn, offset: 0 })
        })?;
        progress.files += chunk.len() as u64;
        progress.bytes += chunk.iter().map(|number| set.initial_bytes(*number)).sum::<u64>();
        job.session.progress(&progress);
    }
    Ok(())
}

fn make_file(context: &TimedFs<'_>, set: &TestFileSet, mut at: ContentPosition) -> Result<(), RunError> {
    let bytes = set.initial_bytes(at.file);
    let file = create_or_replace(context, set.folder_of(at.file), set.name_of(at.file))?;
    let block = set.spec.block.0.min(bytes) as usize;
    let mut buffer = vec![0; block];
    while at.offset < bytes {
        let length = block.min((bytes - at.offset) as usize);
        set.fill(at, &mut buffer[..length]);
        context.write_all(&file, &buffer[..length], at.offset)?;
        at.offset += length as u64;
    }
    if bytes >= MIN_SYNCED_BYTES {
        context.sync(&file)?;
    }
    context.close(file)
}

/// Removes all files of a set, and the folders that it has no more since its profile was edited.
pub fn remove(job: &Job<'_>, set: &TestFileSet) -> Result<(), RunError> {
    let context = job.untimed();
    set.folders.iter().try_for_each(|folder| remove_files(&context, folder))?;
    let number = |name: &CString| name.to_str().ok().and_then(folder_number);
    let is_former = |name: &&CString| number(name).is_some_and(|number| number >= set.spec.folders);
    for name in context.names(&set.home)?.iter().filter(is_former) {
        remove_files(&context, &context.open_folder(&set.home, name)?)?;
        match context.remove_folder(&set.home, name) {
            // Another program has put something into it.
            Err(error) if error.is_not_empty() => {}
            removed => removed?,
        }
    }
    Ok(())
}

/// Removes all files that a set may have in a folder.
fn remove_files(context: &TimedFs<'_>, folder: &Folder) -> Result<(), RunError> {
    let names = context.names(folder)?;
    let mut ours = names.iter().filter(|name| is_ours(name));
    ours.try_for_each(|name| unlink_leftover(context, folder, name))
}

fn is_ours(name: &CStr) -> bool {
    name.to_str().is_ok_and(|name| owns(&format!("x/x/d00000/{name}")))
}

/// Evicts the files of a set from this machine's cache.
///
/// Returns [`ColdMethod::Unverified`] if there are too many files, or if the system does not confirm the eviction.
pub fn evict(job: &Job<'_>, set: &TestFileSet) -> Result<ColdMethod, RunError> {
    let context = job.untimed();
    let present = set.present.lock().clone();
    if present.len() > MAX_EVICTED {
        return Ok(ColdMethod::Unverified);
    }
    let mut all_gone = true;
    for number in present {
        let (folder, name) = (set.folder_of(number), set.name_of(number));
        let file = context.open(folder, name, Access::ReadWrite)?;
        context.sync(&file)?;
        context.close(file)?;
        all_gone &= context.evict_by_name(folder, name, set.covered_bytes(number))?;
    }
    Ok(if all_gone { ColdMethod::Evicted } else { ColdMethod::Unverified })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_file_sets_are_owned() {
        assert!(owns("dd-standard/large/d00000/00000000"));
        assert!(owns("dd-quick-zeros/large/d00012/0000ab01-moved"));
        for other in [
            "dd/large/d00000/0",
            "dd/large/diary/00000000",
            "dd/large/00000000",
            "",
            "../large/d00000/00000000",
        ] {
            assert!(!owns(other), "{other}");
        }
    }

    #[test]
    fn the_first_nonzero_byte_is_found() {
        let mut bytes = vec![0; 10_000];
        assert_eq!(first_nonzero(&bytes), None);
        bytes[9_999] = 1;
        assert_eq!(first_nonzero(&bytes), Some(9_999));
    }
}
