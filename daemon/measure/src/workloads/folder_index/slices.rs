//! The slices of the tree: their names, and their state in the manifest.

use std::ffi::CString;

use crate::corpus::slices::{MAX_SLICES, SliceSets};
use crate::corpus::tree::Tree;
use crate::error::RunError;
use crate::workloads::Job;
use longhaul_model::FOLDER_INDEX;

/// The maximum number of files in a slice. A folder whose name claims more was not created by longhaul.
pub const MAX_FILES: u64 = 10_000_000;

/// Reads the state of this workload's slices from the manifest.
pub fn stored_slices(job: &Job<'_>) -> Result<SliceSets, RunError> {
    Ok(job.sandbox.manifest_entry(FOLDER_INDEX.name())?.unwrap_or_default())
}

/// Returns the tree of a slice. Every slice has its own seed.
pub fn tree(files: u64, slice: u64) -> Tree {
    Tree { seed: 0x7265_6500 + slice, files }
}

/// Returns the folder name of a slice: number of files and slice number.
pub fn slice_name(files: u64, slice: u64) -> CString {
    CString::new(format!("{files}-{slice}")).expect("digits contain no NUL")
}

/// Parses the folder name of a slice into its number of files and slice number; `None` for other names.
pub fn parse_slice_name(name: &str) -> Option<(u64, u64)> {
    let (files, slice) = name.split_once('-')?;
    let parsed = (files.parse().ok()?, slice.parse().ok()?);
    let is_ours = slice_name(parsed.0, parsed.1).to_bytes() == name.as_bytes();
    (is_ours && parsed.0 <= MAX_FILES && parsed.1 < MAX_SLICES).then_some(parsed)
}
