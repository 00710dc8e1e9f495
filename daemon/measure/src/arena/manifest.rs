//! What each workload keeps in the arena: enough to recognise every file that it made.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{POOL, own_file};
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
        let mut manifest = match context.timed(Operation::Read, || own_file::read(directory, FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Self::default(),
            Err(error) if error.kind() == ErrorKind::InvalidData => return Err(damaged(&path, &error)),
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
            .timed(Operation::Write, || own_file::replace(directory, FILE, &text))
            .map_err(|error| RunError::operation(Operation::Write, &path.join(FILE), error))
    }
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    RunError::refused(
        path,
        format!("the manifest is damaged ({error}), so nothing here is known to be longhaul's"),
        "Nothing is deleted. If the folder holds nothing of yours, remove it by hand",
    )
}
