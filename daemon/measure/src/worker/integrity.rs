//! Describes the damage that a run found, outside of its timed region.

use std::path::Path;

use super::state::Worker;
use crate::checks::integrity::{FileToRead, OtherSandboxRange, examine_file, read_elsewhere};
use crate::error::{FoundBytes, RunError};
use crate::platform::wall_clock;
use crate::workloads::{Job, Workload, last_good};
use longhaul_model::{DamagePattern, Mismatch, MismatchReread};

impl Worker {
    /// Reads the file that made a run fail again, and adds its mismatches to the session of the run. Does nothing after
    /// other errors.
    pub fn examine_damage(&self, workload: &dyn Workload, job: &Job<'_>, error: &RunError) {
        let RunError::Damaged { path, found, .. } = error else { return };
        let Ok(path) = path.strip_prefix(job.sandbox.path()) else { return };
        let mismatches = describe(workload, job, path, found.as_deref());
        // If the file cannot be read any more, what was read before is all there is.
        let mismatches =
            mismatches.unwrap_or_else(|_| found.iter().map(|found| undescribed(path, found)).collect());
        let failed = job.session.failed_phase();
        for mismatch in mismatches {
            let phase = failed.as_ref().map(|phase| phase.name.clone());
            let cache = failed.as_ref().map(|phase| phase.cache);
            job.session.add_mismatch(Mismatch { phase, cache, ..mismatch });
        }
    }

    /// Reads a range of a file in another target's sandbox, and returns the fingerprint of its bytes; `None` if the file is
    /// missing.
    pub fn read_elsewhere(&self, range: &OtherSandboxRange) -> Result<Option<u64>, RunError> {
        read_elsewhere(&self.timed_fs(), &self.setup.target.path, range)
    }
}

fn describe(
    workload: &dyn Workload,
    job: &Job<'_>,
    path: &Path,
    found: Option<&FoundBytes>,
) -> Result<Vec<Mismatch>, RunError> {
    let inside = path.strip_prefix(workload.folder()).unwrap_or(path);
    let Some(content) = workload.known_content(job, inside)? else {
        return Ok(found.map(|found| undescribed(path, found)).into_iter().collect());
    };
    let file = FileToRead { sandbox: job.sandbox, path, content: &*content };
    let last_good_us = last_good(job, content.written())?;
    let mismatches = examine_file(&job.untimed(), &file, found)?.into_iter();
    Ok(mismatches.map(|mismatch| Mismatch { last_good_us, ..mismatch }).collect())
}

/// Returns the mismatch for bytes of which only the workload knows what they should be.
fn undescribed(path: &Path, found: &FoundBytes) -> Mismatch {
    let evidence = &found.bytes[..found.bytes.len().min(Mismatch::MAX_EVIDENCE_BYTES)];
    Mismatch {
        offset: found.offset,
        pattern: found.pattern.clone().unwrap_or(DamagePattern::Unknown),
        reread: MismatchReread::Failed,
        fingerprint: crate::checks::integrity::fingerprint(&found.bytes),
        found: evidence.to_vec(),
        ..Mismatch::new(path.display().to_string(), found.bytes.len() as u64, wall_clock())
    }
}
