//! The slices of the tree, and their state in the manifest.

use crate::error::RunError;
use crate::workloads::Job;
use longhaul_corpus::slices::SliceSets;
use longhaul_corpus::tree::Tree;
use longhaul_model::FOLDER_INDEX;

/// Reads the state of this workload's slices from the manifest.
pub fn stored_slices(job: &Job<'_>) -> Result<SliceSets, RunError> {
    Ok(job.sandbox.manifest_entry(FOLDER_INDEX.name())?.unwrap_or_default())
}

/// Returns the tree of a slice. Every slice has its own seed.
pub fn tree(files: u64, slice: u64) -> Tree {
    Tree { seed: 0x7265_6500 + slice, files }
}
