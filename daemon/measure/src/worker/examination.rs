//! The worker's part of `longhaul doctor`: makes every call that a run needs once, with one small file.

use std::ffi::CString;

use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::platform::{Access, UnrecognizedOutput, unrecognized_outputs};
use crate::sandbox::{DOCTOR_FILE, Sandbox};
use crate::timed_fs::TimedFs;
use longhaul_model::SyncKind;

/// Size of the test file in bytes.
const FILE_BYTES: usize = 64 << 10;

/// Result of examining a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetExamination {
    /// Free space on the target in bytes.
    pub free_bytes: u64,
    /// Kind of sync that was used for the test file.
    pub sync: SyncKind,
    /// Duration of the examination in seconds.
    pub seconds: f64,
    /// Outputs of system tools that were not recognized.
    pub unrecognized_outputs: Vec<UnrecognizedOutput>,
}

/// Creates, writes, syncs, reads, compares and removes a test file in the sandbox.
pub fn examine(sandbox: &Sandbox, context: &TimedFs<'_>) -> Result<TargetExamination, RunError> {
    let start = std::time::Instant::now();
    let name = CString::new(DOCTOR_FILE).expect("the name contains no NUL");
    let name = name.as_c_str();
    let folder = sandbox.folder()?;
    // A killed examination may have left its test file behind.
    if context.lookup(&folder, name)?.is_some() {
        context.unlink(&folder, name)?;
    }
    let content: Vec<u8> = (0..FILE_BYTES).map(|offset| (offset * 31 % 251) as u8).collect();
    let file = context.create(&folder, name)?;
    context.write_all(&file, &content, 0)?;
    let sync = context.full_sync(&file)?;
    context.close(file)?;
    let file = context.open(&folder, name, Access::Read)?;
    let mut read = vec![0; FILE_BYTES];
    let length = context.read_full(&file, &mut read, 0)?;
    context.close(file)?;
    context.unlink(&folder, name)?;
    if length != FILE_BYTES || read != content {
        return Err(RunError::refused(
            sandbox.path(),
            "the content of a file differs from what was written",
            "Check the NAS and its disks before anything else",
        ));
    }
    Ok(TargetExamination {
        free_bytes: sandbox.space(context)?.free_bytes,
        sync,
        seconds: start.elapsed().as_secs_f64(),
        unrecognized_outputs: unrecognized_outputs(),
    })
}
