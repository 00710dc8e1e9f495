//! An incremental backup, rsync-style: a local source that changed by about 1 % is copied to the target.
//!
//! Scan by size and modification time, copy what differs under a temporary name with mode and attributes, sync, close,
//! set the time, rename over the old file, delete what is gone, then read a sample back and compare it. Afterwards the
//! destination equals the source, which is checked.

mod listing;
pub(crate) mod source;
mod sync;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Job, Workload};
use crate::context::{Context, Folder, PhaseSpec};
use crate::corpus::apple_double::FACT;
use crate::corpus::churn::Source;
use crate::error::RunError;
use crate::model::{CacheState, ColdBy, Endpoint, Figure, Presence, Progress, Scale, Unit};
use sync::Tree;
pub use sync::copy_tree;
use sync::{Differences, LocalFile, scan};

/// How many files the verify phase reads back.
const VERIFIED: usize = 40;
/// How long clients may show attributes from their cache: Linux's SMB client one second by default (`actimeo`).
const ATTRIBUTE_CACHE_SECONDS: f64 = 2.0;

/// The workload.
pub struct IncrementalBackup;

/// What it keeps in the manifest: by files of the source, how far the destination is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Destinations {
    sets: BTreeMap<u64, Destination>,
}

/// A destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Destination {
    /// The generation of the source that it equals, or is on its way to.
    generation: u64,
    /// Whether it may be anything between two generations.
    unfinished: bool,
}

/// The source of a scale.
fn source_of(scale: Scale) -> Source {
    let files = match scale {
        Scale::Quick => 600,
        Scale::Standard => 4_000,
        Scale::Large => 40_000,
    };
    Source { seed: 0x6261_636b, files }
}

fn set_name(files: u64) -> CString {
    CString::new(files.to_string()).expect("digits hold no NUL")
}

const ENDPOINTS: [Endpoint; 1] = [Endpoint {
    name: "backup",
    activity: "an incremental backup",
    cache: CacheState::None,
    figures: &[("scan", "scan"), ("copy", "copy"), ("delete", "delete")],
    presence: Presence::Background,
    weight: 0.25,
}];

impl Workload for IncrementalBackup {
    fn name(&self) -> &'static str {
        "incremental-backup"
    }

    fn summary(&self) -> &'static str {
        "copies a source of which about 1 % changed, rsync-style with sync, and verifies the copy"
    }

    fn endpoints(&self) -> &'static [Endpoint] {
        &ENDPOINTS
    }

    fn owns(&self, path: &Path) -> bool {
        let mut parts = path.components();
        let files = parts.next().and_then(|part| part.as_os_str().to_str()?.parse().ok());
        let Some(files) = files else { return false };
        let source = Source { files, ..source_of(Scale::Quick) };
        source.owns(&sync::without_partial_prefix(parts.as_path()))
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        let source = source_of(job.scale);
        let mut destinations: Destinations = job.arena.holding(self.name())?.unwrap_or_default();
        let is_new = !destinations.sets.contains_key(&source.files);
        let state = destinations.sets.entry(source.files).or_default();
        let local = local_path(job, &source);
        if is_new || state.unfinished {
            state.unfinished = true;
            let generation = state.generation;
            job.arena.keep(self.name(), &destinations, &job.preparation())?;
            source::bring_to(&source, generation, &local)?;
            bring_up(job, &source, &local)?;
        }
        let state = destinations.sets.entry(source.files).or_default();
        *state = Destination { generation: state.generation + 1, unfinished: true };
        source::bring_to(&source, state.generation, &local)?;
        job.arena.keep(self.name(), &destinations, &job.preparation())
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let source = source_of(job.scale);
        back_up(job, &source)?;
        let mut destinations: Destinations = job.arena.holding(self.name())?.unwrap_or_default();
        destinations.sets.entry(source.files).or_default().unfinished = false;
        job.arena.keep(self.name(), &destinations, &job.preparation())
    }
}

fn local_path(job: &Job<'_>, source: &Source) -> PathBuf {
    job.local.join("incremental-backup").join(source.files.to_string())
}

fn destination(context: &Context<'_>, job: &Job<'_>, source: &Source) -> Result<Folder, RunError> {
    let home = context.make_folder(&job.arena.folder()?, c"incremental-backup")?;
    context.make_folder(&home, &set_name(source.files))
}

/// Makes the destination equal to the source without measuring it: the first time, and after an interrupted run.
fn bring_up(job: &Job<'_>, source: &Source, local: &Path) -> Result<(), RunError> {
    let context = job.preparation();
    let root = destination(&context, job, source)?;
    let tree = Tree::of(local)?;
    let differences = scan(&context, &tree, &root)?;
    job.require_space(differences.bytes())?;
    let mut progress = Progress {
        what: "first backup".to_owned(),
        files: 0,
        files_total: differences.files(),
        bytes: 0,
        bytes_total: differences.bytes(),
    };
    for part in differences.parts(8) {
        let copied = sync::copy(&context, &root, part)?;
        progress.files += copied.files;
        progress.bytes += copied.bytes;
        job.session.progress(&progress);
    }
    sync::delete(&context, &root, &differences)
}

/// The measured backup.
fn back_up(job: &Job<'_>, source: &Source) -> Result<(), RunError> {
    let session = job.session;
    let root = destination(&job.preparation(), job, source)?;
    let tree = Tree::of(&local_path(job, source))?;
    let mut differences = Differences::default();
    session.phase(PhaseSpec::cold("scan", ColdBy::Unverified), |context| {
        differences = scan(context, &tree, &root)?;
        let seconds = context.elapsed();
        Ok(vec![
            Figure::new("scan", Unit::Seconds, seconds),
            Figure::new("files", Unit::PerSecond, tree.files() as f64 / seconds),
        ])
    })?;
    session.fact("changed-files", differences.files().to_string());
    session.fact("changed-bytes", differences.bytes().to_string());
    session.fact("deleted-files", differences.gone().to_string());
    if differences.twins > 0 {
        session.fact(FACT, differences.twins.to_string());
    }
    session.phase(PhaseSpec::uncached("copy"), |context| copy_phase(context, job, &root, &differences))?;
    session.phase(PhaseSpec::uncached("delete"), |context| {
        sync::delete(context, &root, &differences)?;
        Ok(vec![Figure::new("delete", Unit::Seconds, context.elapsed())])
    })?;
    let sample = tree.sample(job.seed, VERIFIED, &differences);
    let cold_by = evict_all(&job.preparation(), &root, &sample);
    session.phase(PhaseSpec::cold("verify", cold_by), |context| verify(context, job, &root, &sample))?;
    let times = require_equal(&job.preparation(), &tree, &root)?;
    session.fact("modification-times", times);
    Ok(())
}

fn copy_phase(
    context: &Context<'_>,
    job: &Job<'_>,
    root: &Folder,
    differences: &Differences<'_>,
) -> Result<Vec<Figure>, RunError> {
    let copied = sync::copy(context, root, differences.all())?;
    let seconds = context.elapsed();
    if let Some(kind) = copied.sync {
        job.session.fact("sync", kind.name());
    }
    Ok(vec![
        Figure::new("copy", Unit::Seconds, seconds),
        Figure::new("files", Unit::PerSecond, copied.files as f64 / seconds),
        Figure::new("throughput", Unit::BytesPerSecond, copied.bytes as f64 / seconds),
    ])
}

/// Makes the sample cold, as far as this machine's own cache is concerned.
fn evict_all(context: &Context<'_>, root: &Folder, sample: &[(&[CString], &LocalFile)]) -> ColdBy {
    let evict = |(folder, file): &(&[CString], &LocalFile)| {
        let folder = sync::open_below(context, root, folder)?;
        context.evict_named(&folder, &file.name, file.size)
    };
    let all_gone = sample.iter().filter(|(_, file)| file.size > 0).all(|item| evict(item).unwrap_or(false));
    if all_gone { ColdBy::Evicted } else { ColdBy::Unverified }
}

/// Reads the sample back and compares content, time, mode and attributes with the source.
fn verify(
    context: &Context<'_>,
    job: &Job<'_>,
    root: &Folder,
    sample: &[(&[CString], &LocalFile)],
) -> Result<Vec<Figure>, RunError> {
    let mut bytes = 0;
    let mut kept = sync::Kept::default();
    for (folder, file) in sample {
        let folder = sync::open_below(context, root, folder)?;
        bytes += sync::compare(context, &folder, file, &mut kept)?;
    }
    let seconds = context.elapsed();
    for (name, answer) in kept.facts() {
        job.session.fact(name, answer);
    }
    Ok(vec![
        Figure::new("verify", Unit::Seconds, seconds),
        Figure::new("throughput", Unit::BytesPerSecond, bytes as f64 / seconds),
    ])
}

/// Makes sure that the destination equals the source now, and says whether it keeps the times of files: where it does
/// not, that is a fact about it, and the next scan finds every file changed, as any backup by time would.
fn require_equal(context: &Context<'_>, tree: &Tree, root: &Folder) -> Result<&'static str, RunError> {
    if only_times_differ(context, tree, root)? {
        context.wait_until(context.elapsed() + ATTRIBUTE_CACHE_SECONDS)?;
        return Ok(if only_times_differ(context, tree, root)? { "lost" } else { "kept, shown late" });
    }
    Ok("kept")
}

/// Whether times differ; anything else that does is damage.
fn only_times_differ(context: &Context<'_>, tree: &Tree, root: &Folder) -> Result<bool, RunError> {
    let left = scan(context, tree, root)?;
    match left.unlike() {
        None => Ok(left.files() > 0),
        Some(path) => Err(RunError::damaged(
            &root.path().join(path),
            "after the backup it is missing, too many, or of another size than its source",
        )),
    }
}

/// The attribute that some source files carry.
pub(crate) const NOTE: &CStr = crate::platform::NOTE_ATTRIBUTE;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::StopSwitch;
    use crate::recorder::Recorder;

    /// A source and a copy of it, given to a check.
    fn copied(check: impl FnOnce(&Context<'_>, &Tree, &Folder)) {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(from.path().join("folder")).unwrap();
        std::fs::write(from.path().join("folder/letter"), "dear").unwrap();
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        let root = context.open_folder_path(to.path()).unwrap();
        let tree = Tree::of(from.path()).unwrap();
        sync::copy(&context, &root, scan(&context, &tree, &root).unwrap().all()).unwrap();
        check(&context, &tree, &root);
    }

    #[test]
    fn a_copy_keeps_the_time_of_its_source() {
        copied(|context, tree, root| {
            assert_eq!(require_equal(context, tree, root).unwrap(), "kept");
            assert_eq!(scan(context, tree, root).unwrap().files(), 0);
        });
    }

    #[test]
    fn a_time_that_is_not_kept_is_a_fact_and_has_the_file_copied_again() {
        copied(|context, tree, root| {
            let copy = root.path().join("folder/letter");
            std::fs::File::open(&copy).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            assert_eq!(require_equal(context, tree, root).unwrap(), "lost");
            assert_eq!(scan(context, tree, root).unwrap().files(), 1);
        });
    }

    #[test]
    fn a_twin_belongs_to_its_file_and_an_orphan_goes_without_damage() {
        copied(|context, tree, root| {
            std::fs::write(root.path().join("folder/._letter"), "attributes").unwrap();
            std::fs::write(root.path().join("._folder"), "attributes").unwrap();
            let left = scan(context, tree, root).unwrap();
            assert_eq!((left.files(), left.gone(), left.twins, left.unlike()), (0, 0, 2, None));
            std::fs::write(root.path().join("folder/._note"), "attributes").unwrap();
            let left = scan(context, tree, root).unwrap();
            assert_eq!((left.gone(), left.unlike()), (1, None));
            sync::delete(context, root, &left).unwrap();
            sync::delete(context, root, &left).unwrap();
            assert_eq!(require_equal(context, tree, root).unwrap(), "kept");
            assert!(root.path().join("folder/._letter").exists());
        });
    }

    #[test]
    fn a_copy_that_is_missing_too_many_or_of_another_size_is_damage() {
        let damages: [fn(&Path); 3] = [
            |root| std::fs::remove_file(root.join("folder/letter")).unwrap(),
            |root| std::fs::write(root.join("folder/stray"), "x").unwrap(),
            |root| std::fs::write(root.join("folder/letter"), "longer than it was").unwrap(),
        ];
        for damage in damages {
            copied(|context, tree, root| {
                damage(root.path());
                assert!(matches!(require_equal(context, tree, root), Err(RunError::Damaged { .. })));
            });
        }
    }
}
