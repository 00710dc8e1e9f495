//! The manifest of a sandbox: one entry per folder, which is enough to recognize every file that longhaul created
//! in it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::control_file;
use super::names::{MANIFEST_FILE, PROBE_FOLDER};
use crate::error::RunError;
use crate::timed_fs::TimedFs;
use longhaul_model::Operation;

/// Manifest of a sandbox.
///
/// A workload does not list its files one by one. Its entry contains the seed and the size of its data, from which
/// all file names are derived. So an entry for a million files takes a hundred bytes, and checking whether a file
/// belongs to longhaul needs no memory for names.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// Entries by the name of the folder in the sandbox.
    pub folders: BTreeMap<String, Value>,
}

impl Manifest {
    /// Reads the manifest. A sandbox without a manifest can only contain files of the latency probe.
    pub fn load(directory: &Dir, path: &Path, context: &TimedFs<'_>) -> Result<Self, RunError> {
        let path = path.join(MANIFEST_FILE);
        let mut manifest =
            match context.timed(Operation::Read, || control_file::read_unshared(directory, MANIFEST_FILE)) {
                Err(error) if error.kind() == ErrorKind::NotFound => Self::default(),
                Err(error) if error.kind() == ErrorKind::InvalidData => return Err(damaged(&path, &error)),
                Err(error) => return Err(RunError::operation(Operation::Read, &path, error)),
                Ok(text) => serde_json::from_slice::<Self>(&text).map_err(|error| damaged(&path, &error))?,
            };
        manifest.folders.entry(PROBE_FOLDER.to_owned()).or_insert(Value::Null);
        Ok(manifest)
    }

    /// Writes the manifest atomically, so that there is always a complete one.
    pub fn save(&self, directory: &Dir, path: &Path, context: &TimedFs<'_>) -> Result<(), RunError> {
        let text = serde_json::to_vec_pretty(self).expect("a manifest is plain data");
        context
            .timed(Operation::Write, || control_file::replace(directory, MANIFEST_FILE, &text))
            .map_err(|error| RunError::operation(Operation::Write, &path.join(MANIFEST_FILE), error))
    }
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    RunError::refused(
        path,
        format!("the manifest is damaged ({error}), so longhaul cannot recognize its own files"),
        "Nothing is deleted. If the folder contains none of your files, remove it by hand",
    )
}
