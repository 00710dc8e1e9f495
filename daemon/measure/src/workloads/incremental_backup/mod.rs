//! An incremental backup, rsync-style: a local source that changed by about 1 % is copied to the target.
//!
//! Scan by size and modification time, copy what differs under a temporary name, sync, set time, mode and attributes,
//! rename over the old file, delete what is gone, then read a sample back and compare it. Afterwards the destination
//! equals the source, which is checked.

pub(crate) mod source;
mod sync;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Job, Workload};
use crate::context::{Context, Folder, PhaseSpec};
use crate::corpus::churn::Source;
use crate::error::RunError;
use crate::model::{ColdBy, Figure, Progress, Scale, Unit};
use crate::platform::Access;
use sync::Tree;
pub use sync::copy_tree;
use sync::{Differences, LocalFile, scan};

/// How many files the verify phase reads back.
const VERIFIED: usize = 40;

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

impl Workload for IncrementalBackup {
    fn name(&self) -> &'static str {
        "incremental-backup"
    }

    fn summary(&self) -> &'static str {
        "copies a source of which about 1 % changed, rsync-style with sync, and verifies the copy"
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
    session.phase(PhaseSpec::uncached("copy"), |context| copy_phase(context, job, &root, &differences))?;
    session.phase(PhaseSpec::uncached("delete"), |context| {
        sync::delete(context, &root, &differences)?;
        Ok(vec![Figure::new("delete", Unit::Seconds, context.elapsed())])
    })?;
    let sample = tree.sample(job.seed, VERIFIED, &differences);
    let cold_by = evict_all(&job.preparation(), &root, &sample);
    session.phase(PhaseSpec::cold("verify", cold_by), |context| verify(context, job, &root, &sample))?;
    require_equal(&job.preparation(), &tree, &root)
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
    let evict = |(folder, file): &(&[CString], &LocalFile)| -> Result<Option<f64>, RunError> {
        let folder = sync::open_below(context, root, folder)?;
        let open = context.open(&folder, &file.name, Access::Write)?;
        let stayed = context.evict(&open, file.size);
        context.close(open)?;
        Ok(stayed)
    };
    let all_gone = sample
        .iter()
        .filter(|(_, file)| file.size > 0)
        .all(|item| evict(item).is_ok_and(|stayed| stayed == Some(0.0)));
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

/// Makes sure that the destination equals the source now.
fn require_equal(context: &Context<'_>, tree: &Tree, root: &Folder) -> Result<(), RunError> {
    let left = scan(context, tree, root)?;
    match left.first() {
        None => Ok(()),
        Some(path) => Err(RunError::damaged(
            &root.path().join(path),
            "after the backup it still differs from the source in size or time",
        )),
    }
}

/// The attribute that some source files carry.
pub(crate) const NOTE: &CStr = crate::platform::NOTE_ATTRIBUTE;
