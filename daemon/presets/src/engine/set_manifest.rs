//! The manifest entry of presets: which file sets are on a target, and in which state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::preset_run::FOLDER;
use crate::profile::{FileSet, Profile};
use longhaul_measure::error::RunError;
use longhaul_measure::workloads::Job;

/// The manifest entry of one preset.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SetState {
    /// Version number of the content that was last written, by a preparation or a run.
    pub turn: u64,
    /// Sets whose files are all complete, by name, as the profile defined them when they were made.
    ///
    /// Versions of longhaul that stored only the names used another key: their sets count as incomplete and are made again.
    #[serde(default)]
    pub complete: BTreeMap<String, FileSet>,
    /// True while a run is in progress and after it was interrupted, so that files may be half written.
    pub unfinished: bool,
}

impl SetState {
    /// Forgets the complete sets that a profile cannot use: it defines them in another way, or its phases change them.
    pub fn keep_usable(&mut self, profile: &Profile) {
        self.complete.retain(|name, made| {
            profile.files.get(name).is_some_and(|wanted| wanted == made) && !profile.changes_files(name)
        });
    }
}

/// The state of every preset's file sets, by folder, as stored in the manifest.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SetManifest {
    folders: BTreeMap<String, SetState>,
}

impl SetManifest {
    /// Reads the state of all presets from the sandbox's manifest.
    pub fn load(job: &Job<'_>) -> Result<Self, RunError> {
        Ok(job.sandbox.manifest_entry(FOLDER)?.unwrap_or_default())
    }

    /// Returns the state of a preset's folder.
    pub fn get(&self, folder: &str) -> SetState {
        self.folders.get(folder).cloned().unwrap_or_default()
    }

    /// Stores the state of a preset's folder in the manifest.
    pub fn store(&mut self, job: &Job<'_>, folder: &str, state: &SetState) -> Result<(), RunError> {
        self.folders.insert(folder.to_owned(), state.clone());
        job.sandbox.record_entry(FOLDER, self, &job.untimed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_known_by_their_names_alone_are_incomplete() {
        let old = r#"{"folders":{"dd-standard":{"turn":7,"complete_sets":["large"],"unfinished":false}}}"#;
        let state = serde_json::from_str::<SetManifest>(old).unwrap().get("dd-standard");
        assert_eq!((state.turn, state.complete.len()), (7, 0));
    }
}
