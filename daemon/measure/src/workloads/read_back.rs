//! Reads all files back that the workloads keep on a target, and compares them with what was written. These are not all of
//! longhaul's files: those of `your-day` and of presets, and the property lists of `time-machine`, are left out.
//!
//! It is no task of a user and has no metrics: a user orders it, and its result is what was verified.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::catalog::WORKLOADS;
use super::job::Job;
use super::workload::{ContentLookup, Workload};
use crate::checks::integrity::{FileToRead, examine_file, read_and_compare};
use crate::error::RunError;
use crate::timed_fs::{PhaseSpec, TimedFs};
use longhaul_model::{ColdMethod, DataAge, Figure, Mismatch, Timestamp, Unit, VerifiedData};

/// Name of the workload, of its phase and of its entry in the manifest.
const NAME: &str = "read-back";

/// The workload that reads all kept files back.
pub static READ_BACK: ReadBack = ReadBack;

/// The workload that reads all kept files back.
pub struct ReadBack;

/// The manifest entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct ReadBackState {
    /// Time at which all kept files were last read back and found correct.
    #[serde(default)]
    whole_us: Option<Timestamp>,
}

/// Returns the time at which data was last read back and found correct; `None` if that was never done since it was
/// written, or if it is not recorded when it was written.
///
/// # Errors
///
/// If the manifest cannot be read.
pub fn last_good(job: &Job<'_>, written: Option<Timestamp>) -> Result<Option<Timestamp>, RunError> {
    let state: Option<ReadBackState> = job.sandbox.manifest_entry(NAME)?;
    let whole = state.and_then(|state| state.whole_us);
    Ok(whole.filter(|whole| written.is_some_and(|written| written <= *whole)))
}

/// The files that a workload keeps.
struct KeptFiles {
    workload: &'static dyn Workload,
    /// Paths of the files in the workload's folder.
    paths: Vec<PathBuf>,
    content: ContentLookup,
}

impl Workload for ReadBack {
    fn name(&self) -> &'static str {
        NAME
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn owns(&self, _: &Path) -> bool {
        false
    }

    fn prepare(&self, _: &Job<'_>) -> Result<(), RunError> {
        Ok(())
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        let (kept, began) = (kept_files(job)?, Instant::now());
        job.session.add_fact("files", kept.iter().map(|kept| kept.paths.len()).sum::<usize>().to_string());
        // Before the reading, which may be killed, and after it, because it can take hours. A share that cannot be written to any
        // more is read nevertheless.
        let before = set_all_used(job, &kept, job.now);
        let mut first_damaged = None;
        let result = job.session.phase(PhaseSpec::cold(NAME, ColdMethod::Unverified), |context| {
            first_damaged = check_files(context, job, &kept)?;
            Ok(vec![Figure::new(NAME, Unit::Seconds, context.elapsed())])
        });
        let after = set_all_used(job, &kept, job.now + began.elapsed());
        result?;
        if let Some(path) = first_damaged {
            return Err(RunError::damaged(&path, "its content differs from what was written"));
        }
        before.and(after)?;
        let state = ReadBackState { whole_us: Some(job.now) };
        job.sandbox.record_entry(NAME, &state, &job.untimed())
    }
}

/// Records that the files of all workloads are read at this time.
fn set_all_used(job: &Job<'_>, kept: &[KeptFiles], now: Timestamp) -> Result<(), RunError> {
    let mut read = kept.iter().filter(|kept| !kept.paths.is_empty());
    read.try_for_each(|kept| kept.workload.set_all_used(job, now))
}

/// State of a file that was read back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileState {
    Whole,
    Damaged,
}

/// Returns the files of all workloads. Workloads that share a folder share their files.
fn kept_files(job: &Job<'_>) -> Result<Vec<KeptFiles>, RunError> {
    let mut files: Vec<KeptFiles> = vec![];
    for workload in WORKLOADS.iter().copied() {
        if files.iter().all(|known| known.workload.folder() != workload.folder()) {
            let (paths, content) = (workload.kept_files(job)?, workload.known_contents(job)?);
            files.push(KeptFiles { workload, paths, content });
        }
    }
    Ok(files)
}

/// Reads files back. Returns the path of the first damaged one.
fn check_files(
    context: &TimedFs<'_>,
    job: &Job<'_>,
    kept: &[KeptFiles],
) -> Result<Option<PathBuf>, RunError> {
    let mut first_damaged = None;
    for KeptFiles { workload, paths, content } in kept {
        for path in paths {
            let Some(content) = content(path) else { continue };
            let path = Path::new(workload.folder()).join(path);
            let read = FileToRead { sandbox: job.sandbox, path: &path, content: &*content };
            if check_file(context, job, &read)? == FileState::Damaged {
                first_damaged.get_or_insert_with(|| job.sandbox.path().join(&path));
            }
        }
    }
    Ok(first_damaged)
}

/// Reads a file back, part by part. Its mismatches are added to the session.
fn check_file(context: &TimedFs<'_>, job: &Job<'_>, read: &FileToRead<'_>) -> Result<FileState, RunError> {
    let content = read.content;
    let age = DataAge::between(content.written(), job.now);
    let mut offset = 0;
    loop {
        let found = match read_and_compare(context, read, offset) {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return add_mismatches(context, job, read),
            Err(error) => return Err(error),
        };
        if !found.ranges.is_empty() {
            return add_mismatches(context, job, read);
        }
        offset += found.bytes.len() as u64;
        let reaches_end = offset >= content.length();
        let bytes = found.bytes.len() as u64;
        context.add_verified(VerifiedData { age, bytes, files: u64::from(reaches_end) });
        if reaches_end {
            return Ok(FileState::Whole);
        }
    }
}

fn add_mismatches(
    context: &TimedFs<'_>,
    job: &Job<'_>,
    file: &FileToRead<'_>,
) -> Result<FileState, RunError> {
    let last_good_us = last_good(job, file.content.written())?;
    for mismatch in examine_file(context, file, None)? {
        let phase = Some(NAME.to_owned());
        job.session.add_mismatch(Mismatch { last_good_us, phase, ..mismatch });
    }
    Ok(FileState::Damaged)
}
