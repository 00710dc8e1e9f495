//! What each workload keeps in the arena: enough to recognise every file that it made.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::POOL;
use crate::context::Context;
use crate::error::RunError;
use crate::model::Operation;

/// Its file in the arena.
pub const FILE: &str = "manifest.json";

/// A workload does not list its files one by one: it keeps the seed and the size of what it made, from which each
/// name follows. So a tree of a million files is known in a hundred bytes, and asking "is this ours?" needs no memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// By the name of the workload's folder.
    pub holdings: BTreeMap<String, Value>,
}

impl Manifest {
    /// Reads the manifest; an arena without one keeps nothing but what the probe may have made.
    pub fn load(directory: &Dir, path: &Path, context: &Context<'_>) -> Result<Self, RunError> {
        let path = path.join(FILE);
        let mut manifest = match context.timed(Operation::Read, || directory.read(FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(RunError::operation(Operation::Read, &path, error)),
            Ok(text) => serde_json::from_slice::<Self>(&text).map_err(|error| damaged(&path, &error))?,
        };
        manifest.holdings.entry(POOL.to_owned()).or_insert(Value::Null);
        Ok(manifest)
    }

    /// Writes the manifest so that there is always a whole one.
    pub fn save(&self, directory: &Dir, path: &Path, context: &Context<'_>) -> Result<(), RunError> {
        let text = serde_json::to_vec_pretty(self).expect("a manifest is plain data");
        context
            .timed(Operation::Write, || replace(directory, FILE, &text))
            .map_err(|error| RunError::operation(Operation::Write, &path.join(FILE), error))
    }
}

fn damaged(path: &Path, error: &serde_json::Error) -> RunError {
    RunError::refused(
        path,
        format!("the manifest is damaged ({error}), so nothing here is known to be longhaul's"),
        "Nothing is deleted. If the folder holds nothing of yours, remove it by hand",
    )
}

/// The name under which a file is written before it is whole.
pub fn partial_name(name: &str) -> String {
    format!("{name}.partial")
}

/// Writes a file beside the old one, syncs it, and renames it over the old one.
pub fn replace(directory: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    use std::os::fd::AsFd;
    let partial = partial_name(name);
    let mut file = directory.create(&partial)?;
    file.write_all(bytes)?;
    crate::platform::sync(file.as_fd())?;
    drop(file);
    directory.rename(&partial, directory, name)
}
