//! An incremental backup like rsync: a local source of which about 1 % changed is copied to the target.
//!
//! The workload scans for differences by size and modification time. Each changed file is copied under a
//! temporary name with its mode and attributes, synced and closed; then its time is set, and it is renamed over
//! the old file. Files that the source no longer has are deleted; files that longhaul did not make stay. Finally, a
//! sample is read back and compared, and a scan checks that the destination equals the source.

mod copy_engine;
mod kept;
mod listing;
mod local_tree;
pub(crate) mod source;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::job::Job;
use super::listings::evict_listings;
use super::workload::{ContentLookup, Workload};
use crate::checks::integrity::{KnownContent, WriteTimes};
use crate::error::RunError;
use crate::timed_fs::{Folder, PhaseSpec, TimedFs};
pub use copy_engine::copy_tree;
use copy_engine::{Differences, scan};
use kept::KeptGeneration;
use local_tree::{LocalFile, LocalTree};
use longhaul_corpus::apple_double::FACT_NAME;
use longhaul_corpus::churn::SourceTree;
use longhaul_corpus::names::to_cstring;
use longhaul_model::{
    ColdMethod, DataAge, Figure, INCREMENTAL_BACKUP, Progress, Scale, Timestamp, Unit, VerifiedData,
};

/// The number of files that the verify phase reads back.
const VERIFIED_FILES: usize = 40;
/// The seconds to wait until a client's attribute cache has expired.
///
/// Linux's SMB client caches attributes for one second by default (`actimeo`).
const ATTRIBUTE_CACHE_SECONDS: f64 = 2.0;

/// The workload that runs an incremental backup.
pub struct IncrementalBackup;

/// The manifest entry: the states of all destinations, by the number of files in their source.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Destinations {
    sets: BTreeMap<u64, Destination>,
    /// Times at which the generations of each destination were written.
    #[serde(default)]
    write_times: BTreeMap<u64, WriteTimes>,
}

impl Destinations {
    fn load(job: &Job<'_>) -> Result<Self, RunError> {
        Ok(job.sandbox.manifest_entry(INCREMENTAL_BACKUP.name())?.unwrap_or_default())
    }

    /// Forgets when the files were written that are now copied again, so that they count as new. On a target that loses times,
    /// these are all files in each run. Stored at once: after an interrupted copy they are not copied again.
    fn forget_copied(
        &mut self,
        job: &Job<'_>,
        files: u64,
        differences: &Differences<'_>,
    ) -> Result<(), RunError> {
        let oldest = differences.oldest_seconds().map(SourceTree::generation_at);
        let times = self.write_times.get_mut(&files).zip(oldest);
        match times.is_some_and(|(times, oldest)| times.forget_from(oldest)) {
            true => job.sandbox.record_entry(INCREMENTAL_BACKUP.name(), self, &job.untimed()),
            false => Ok(()),
        }
    }

    /// Returns the time by which files of a generation were written; `now` for those after the last recorded one, which
    /// were written less than a day ago. `None` if nothing was recorded yet.
    fn written_by(&self, files: u64, generation: u64, now: Timestamp) -> Option<Timestamp> {
        self.write_times.get(&files).map(|times| times.written_by(generation).unwrap_or(now))
    }
}

/// The state of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Destination {
    /// Generation of the source that the destination equals; if `unfinished`, the generation it is being updated
    /// to.
    generation: u64,
    /// True while a backup is in progress and after it was interrupted: the destination may be between two
    /// generations.
    unfinished: bool,
}

/// Returns the source tree of a scale.
fn source_for(scale: Scale) -> SourceTree {
    let files = match scale {
        Scale::Quick => 600,
        Scale::Standard => 4_000,
        Scale::Large => 40_000,
    };
    SourceTree { seed: 0x6261_636b, files }
}

/// Returns what a destination has whose source has this many files.
fn kept_generation(files: u64, state: &Destination) -> KeptGeneration {
    KeptGeneration::new(SourceTree { files, ..source_for(Scale::Quick) }, state.generation)
}

/// Splits a path in the workload's folder into the number of files in the name of the destination, and the path in the
/// destination; `None` if no destination has this name.
fn split_path(path: &Path) -> Option<(u64, &Path)> {
    let mut parts = path.components();
    let name = parts.next()?.as_os_str().to_str()?;
    let files: u64 = name.parse().ok()?;
    (files.to_string() == name).then_some((files, parts.as_path()))
}

impl Workload for IncrementalBackup {
    fn name(&self) -> &'static str {
        INCREMENTAL_BACKUP.name()
    }

    fn owns(&self, path: &Path) -> bool {
        let parts = split_path(path);
        parts.is_some_and(|(_, inside)| SourceTree::owns(&copy_engine::final_path(inside)))
    }

    fn known_contents(&self, job: &Job<'_>) -> Result<ContentLookup, RunError> {
        let (destinations, now) = (Destinations::load(job)?, job.now);
        let sets = destinations.sets.iter();
        let kept: BTreeMap<u64, KeptGeneration> =
            sets.map(|(files, state)| (*files, kept_generation(*files, state))).collect();
        let lookup = move |path: &Path| -> Option<Box<dyn KnownContent>> {
            let (files, inside) = split_path(path)?;
            let written_by = |generation| destinations.written_by(files, generation, now);
            kept.get(&files)?.known_content(inside, written_by)
        };
        Ok(Box::new(lookup))
    }

    fn kept_files(&self, job: &Job<'_>) -> Result<Vec<PathBuf>, RunError> {
        let destinations = Destinations::load(job)?;
        let finished = destinations.sets.iter().filter(|(_, state)| !state.unfinished);
        let files = finished.flat_map(|(files, state)| {
            let home = PathBuf::from(files.to_string());
            kept_generation(*files, state).paths().map(|path| home.join(path)).collect::<Vec<_>>()
        });
        Ok(files.collect())
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        let source = source_for(job.scale);
        let mut destinations = Destinations::load(job)?;
        let is_new = !destinations.sets.contains_key(&source.files);
        let state = destinations.sets.entry(source.files).or_default();
        let local = local_path(job, &source);
        // The destination must equal one generation before the timed run copies the differences to the next one.
        if is_new || state.unfinished {
            state.unfinished = true;
            let generation = state.generation;
            job.sandbox.record_entry(self.name(), &destinations, &job.untimed())?;
            source::apply_generation(&source, generation, &local, job.settings.reserve)?;
            update_destination(job, &source, &local, &mut destinations)?;
            destinations.write_times.entry(source.files).or_default().record(generation, job.now);
        }
        let state = destinations.sets.entry(source.files).or_default();
        *state = Destination { generation: state.generation + 1, unfinished: true };
        source::apply_generation(&source, state.generation, &local, job.settings.reserve)?;
        job.sandbox.record_entry(self.name(), &destinations, &job.untimed())
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let source = source_for(job.scale);
        let mut destinations = Destinations::load(job)?;
        run_backup(job, &source, &mut destinations)?;
        let state = destinations.sets.entry(source.files).or_default();
        state.unfinished = false;
        let generation = state.generation;
        destinations.write_times.entry(source.files).or_default().record(generation, job.now);
        job.sandbox.record_entry(self.name(), &destinations, &job.untimed())?;
        evict_listings(job, &destination_folder(&job.untimed(), job, &source)?)
    }
}

fn local_path(job: &Job<'_>, source: &SourceTree) -> PathBuf {
    job.local_folder.join("incremental-backup").join(source.files.to_string())
}

fn destination_folder(context: &TimedFs<'_>, job: &Job<'_>, source: &SourceTree) -> Result<Folder, RunError> {
    let home = context.create_and_open_folder(&job.sandbox.folder()?, c"incremental-backup")?;
    context.create_and_open_folder(&home, &to_cstring(source.files.to_string()))
}

/// Makes the destination equal to the source, untimed. Needed before the first run and after an interrupted run.
fn update_destination(
    job: &Job<'_>,
    source: &SourceTree,
    local: &Path,
    destinations: &mut Destinations,
) -> Result<(), RunError> {
    let context = job.untimed();
    let root = destination_folder(&context, job, source)?;
    let tree = LocalTree::read(local)?;
    let differences = scan(&context, &tree, &root)?;
    destinations.forget_copied(job, source.files, &differences)?;
    job.require_space(differences.bytes_to_copy())?;
    let mut progress = Progress {
        item: "first backup".to_owned(),
        files: 0,
        files_total: differences.files_to_copy(),
        bytes: 0,
        bytes_total: differences.bytes_to_copy(),
    };
    for part in differences.batch_groups(8) {
        let copied = copy_engine::copy(&context, &root, part)?;
        progress.files += copied.files;
        progress.bytes += copied.bytes;
        job.session.progress(&progress);
    }
    copy_engine::delete(&context, &root, &differences)
}

/// Runs the timed backup: scan, copy, delete and verify phases, and the final check.
fn run_backup(job: &Job<'_>, source: &SourceTree, destinations: &mut Destinations) -> Result<(), RunError> {
    let session = job.session;
    let root = destination_folder(&job.untimed(), job, source)?;
    let tree = LocalTree::read(&local_path(job, source))?;
    let mut differences = Differences::default();
    // Attributes cannot be evicted from the cache, so it cannot be verified that the scan is cold.
    session.phase(PhaseSpec::cold("scan", ColdMethod::Unverified), |context| {
        differences = scan(context, &tree, &root)?;
        let seconds = context.elapsed();
        Ok(vec![
            Figure::new("scan", Unit::Seconds, seconds),
            Figure::new("files", Unit::PerSecond, tree.files() as f64 / seconds),
        ])
    })?;
    destinations.forget_copied(job, source.files, &differences)?;
    session.add_fact("changed-files", differences.files_to_copy().to_string());
    session.add_fact("changed-bytes", differences.bytes_to_copy().to_string());
    session.add_fact("deleted-files", differences.files_to_delete().to_string());
    if differences.apple_double_files > 0 {
        session.add_fact(FACT_NAME, differences.apple_double_files.to_string());
    }
    if differences.unexpected_files > 0 {
        session.add_fact("unexpected-files", differences.unexpected_files.to_string());
    }
    session.phase(PhaseSpec::uncached("copy"), |context| copy_phase(context, job, &root, &differences))?;
    session.phase(PhaseSpec::uncached("delete"), |context| {
        copy_engine::delete(context, &root, &differences)?;
        Ok(vec![Figure::new("delete", Unit::Seconds, context.elapsed())])
    })?;
    let written_by = |generation| destinations.written_by(source.files, generation, job.now);
    let sample = Sample::new(differences.sample(&tree, job.seed, VERIFIED_FILES), job.now, written_by);
    let cold_by = evict_all(&job.untimed(), &root, &sample.files);
    session.phase(PhaseSpec::cold("verify", cold_by), |context| verify(context, job, &root, &sample))?;
    let times = require_equal(&job.untimed(), &tree, &root)?;
    session.add_fact("modification-times", times);
    Ok(())
}

fn copy_phase(
    context: &TimedFs<'_>,
    job: &Job<'_>,
    root: &Folder,
    differences: &Differences<'_>,
) -> Result<Vec<Figure>, RunError> {
    let copied = copy_engine::copy(context, root, differences.batches())?;
    let seconds = context.elapsed();
    if let Some(kind) = copied.sync {
        job.session.add_fact("sync", kind.name());
    }
    Ok(vec![
        Figure::new("copy", Unit::Seconds, seconds),
        Figure::new("files", Unit::PerSecond, copied.files as f64 / seconds),
        Figure::new("throughput", Unit::BytesPerSecond, copied.bytes as f64 / seconds),
    ])
}

/// Evicts the sampled files from this machine's cache.
///
/// Returns [`ColdMethod::Unverified`] if the system does not confirm the eviction of all of them.
fn evict_all(context: &TimedFs<'_>, root: &Folder, sample: &[(&[CString], &LocalFile)]) -> ColdMethod {
    let evict = |(folder, file): &(&[CString], &LocalFile)| {
        let folder = copy_engine::open_path(context, root, folder)?;
        context.evict_by_name(&folder, &file.name, file.size)
    };
    let all_gone = sample.iter().filter(|(_, file)| file.size > 0).all(|item| evict(item).unwrap_or(false));
    if all_gone { ColdMethod::Evicted } else { ColdMethod::Unverified }
}

/// Files to read back, with the age of each.
struct Sample<'tree> {
    files: Vec<(&'tree [CString], &'tree LocalFile)>,
    ages: Vec<DataAge>,
}

impl<'tree> Sample<'tree> {
    /// `written_by` returns the time by which the files of a generation were written.
    fn new(
        files: Vec<(&'tree [CString], &'tree LocalFile)>,
        now: Timestamp,
        written_by: impl Fn(u64) -> Option<Timestamp>,
    ) -> Self {
        let age = |file: &LocalFile| {
            let generation = SourceTree::generation_at(file.modified_seconds());
            DataAge::between(written_by(generation), now)
        };
        let ages = files.iter().map(|(_, file)| age(file)).collect();
        Self { files, ages }
    }
}

/// Reads the sample back and compares content, mode and extended attributes with the source.
fn verify(
    context: &TimedFs<'_>,
    job: &Job<'_>,
    root: &Folder,
    sample: &Sample<'_>,
) -> Result<Vec<Figure>, RunError> {
    let mut bytes = 0;
    let mut attributes = copy_engine::AttributeCheck::default();
    for ((folder, file), age) in sample.files.iter().zip(&sample.ages) {
        let folder = copy_engine::open_path(context, root, folder)?;
        let compared = copy_engine::verify_copy(context, &folder, file, &mut attributes)?;
        context.add_verified(VerifiedData { age: *age, bytes: compared, files: 1 });
        bytes += compared;
    }
    let seconds = context.elapsed();
    for (name, answer) in attributes.facts() {
        job.session.add_fact(name, answer);
    }
    Ok(vec![
        Figure::new("verify", Unit::Seconds, seconds),
        Figure::new("throughput", Unit::BytesPerSecond, bytes as f64 / seconds),
    ])
}

/// Checks that the destination equals the source, and returns what happened to modification times.
///
/// The result is "kept", "kept, shown late" or "lost". Lost times are not an error but a fact about the target:
/// the next scan then finds every file changed, like any backup that compares times.
///
/// # Errors
///
/// [`RunError::Damaged`] if files are missing, unexpected or of the wrong size.
fn require_equal(context: &TimedFs<'_>, tree: &LocalTree, root: &Folder) -> Result<&'static str, RunError> {
    if only_times_differ(context, tree, root)? {
        // The client may still show old times from its attribute cache, so a second scan decides.
        context.wait_until(context.elapsed() + ATTRIBUTE_CACHE_SECONDS)?;
        return Ok(if only_times_differ(context, tree, root)? { "lost" } else { "kept, shown late" });
    }
    Ok("kept")
}

/// Returns whether modification times differ. Any other difference is an error, [`RunError::Damaged`].
fn only_times_differ(context: &TimedFs<'_>, tree: &LocalTree, root: &Folder) -> Result<bool, RunError> {
    let left = scan(context, tree, root)?;
    match left.first_mismatch() {
        None => Ok(left.files_to_copy() > 0),
        Some(path) => Err(RunError::damaged(
            &root.path().join(path),
            "after the backup, the file is missing, is not in the source, or has a different size than its source",
        )),
    }
}

#[cfg(test)]
mod tests;
