//! Reads all files back that the workloads keep on a target, and compares them with what was written.
//!
//! It is no task of a user and has no metrics: a user orders it, and its result is what was verified.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::catalog::WORKLOADS;
use super::job::Job;
use super::workload::Workload;
use crate::checks::integrity::{FileToRead, examine_file, read_and_compare};
use crate::error::RunError;
use crate::timed_fs::{PhaseSpec, TimedFs};
use longhaul_model::{ColdMethod, DataAge, Figure, Mismatch, Timestamp, Unit, VerifiedData, WaitMetric};

/// Name of the workload, of its phase and of its entry in the manifest.
const NAME: &str = "read-back";

/// The workload that reads everything back.
pub static READ_BACK: ReadBack = ReadBack;

/// The workload that reads all kept files back.
pub struct ReadBack;

/// The manifest entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct ReadBackState {
    /// Time at which all files were last read back and found correct.
    #[serde(default)]
    whole_us: Option<Timestamp>,
}

/// Returns the time at which data was last read back and found correct; `None` if that was never done since it was
/// written.
///
/// # Errors
///
/// If the manifest cannot be read.
pub fn last_good(job: &Job<'_>, written: Option<Timestamp>) -> Result<Option<Timestamp>, RunError> {
    let state: Option<ReadBackState> = job.sandbox.manifest_entry(NAME)?;
    let whole = state.and_then(|state| state.whole_us);
    Ok(whole.filter(|whole| written.is_none_or(|written| written <= *whole)))
}

/// A file that a workload keeps.
struct KeptFile {
    workload: &'static dyn Workload,
    path: PathBuf,
}

impl Workload for ReadBack {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Read all of longhaul's own files back and compare them with what was written"
    }

    fn metrics(&self) -> &'static [WaitMetric] {
        &[]
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
        let files = kept_files(job)?;
        job.session.add_fact("files", files.len().to_string());
        let mut first_damaged = None;
        job.session.phase(PhaseSpec::cold(NAME, ColdMethod::Unverified), |context| {
            for file in &files {
                if check_file(context, job, file)? == FileState::Damaged {
                    first_damaged.get_or_insert(file);
                }
            }
            Ok(vec![Figure::new(NAME, Unit::Seconds, context.elapsed())])
        })?;
        match first_damaged {
            None => {
                let state = ReadBackState { whole_us: Some(job.now) };
                job.sandbox.record_entry(NAME, &state, &job.untimed())
            }
            Some(file) => {
                let path = job.sandbox.path().join(file.workload.folder()).join(&file.path);
                Err(RunError::damaged(&path, "its content differs from what was written"))
            }
        }
    }
}

/// State of a file that was read back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileState {
    Whole,
    Damaged,
}

/// Returns the files of all workloads. Workloads that share a folder share their files.
fn kept_files(job: &Job<'_>) -> Result<Vec<KeptFile>, RunError> {
    let mut folders: Vec<&str> = vec![];
    let mut files = vec![];
    for workload in WORKLOADS.iter().copied() {
        if folders.contains(&workload.folder()) {
            continue;
        }
        folders.push(workload.folder());
        files.extend(workload.kept_files(job)?.into_iter().map(|path| KeptFile { workload, path }));
    }
    Ok(files)
}

/// Reads a file back, part by part. Its mismatches are added to the session.
fn check_file(context: &TimedFs<'_>, job: &Job<'_>, file: &KeptFile) -> Result<FileState, RunError> {
    let Some(content) = file.workload.known_content(job, &file.path)? else { return Ok(FileState::Whole) };
    let path = Path::new(file.workload.folder()).join(&file.path);
    let read = FileToRead { sandbox: job.sandbox, path: &path, content: &*content };
    let age = DataAge::between(content.written(), job.now);
    let mut offset = 0;
    loop {
        let found = match read_and_compare(context, &read, offset) {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return add_mismatches(context, job, &read),
            Err(error) => return Err(error),
        };
        if !found.ranges.is_empty() {
            return add_mismatches(context, job, &read);
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
