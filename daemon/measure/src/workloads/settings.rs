//! The settings that all workloads share.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use longhaul_corpus::slices::DEFAULT_SLICES;
use longhaul_model::{FreeSpaceReserve, LONGHAUL_KEY_PREFIX, NegotiatedOptions};

/// The settings that all workloads share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Total number of files in the folder-index tree; `None` uses the default of the scale.
    pub tree_files: Option<u64>,
    /// Size of one band file of the time-machine image, in bytes.
    pub band_bytes: u64,
    /// Space that must always stay free on the target.
    pub reserve: FreeSpaceReserve,
    /// Number of slices of a corpus. Slices take turns, one per round, so that each of them rests and becomes
    /// cold.
    pub slices: u64,
    /// Maximum number of operations per second on a target; `None` means no limit.
    #[serde(default)]
    pub operations_per_second: Option<u32>,
    /// Part of a sliced preset that a run covers.
    #[serde(default)]
    pub preset_slices: SliceSelection,
    /// Profile that a user wrote, if any. [`Catalog::custom`](super::Catalog::custom) interprets it and runs it.
    #[serde(default)]
    pub custom_profile: Option<Value>,
    /// File of the recording that `your-day` replays, if one was chosen.
    #[serde(default)]
    pub recording: Option<PathBuf>,
}

/// The part of a sliced preset that a run covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceSelection {
    /// The slice whose turn it is. Used in rounds, which cover the other slices later.
    #[default]
    One,
    /// All slices. Used when a user starts a single run.
    All,
}

impl Settings {
    /// Returns the settings that change what a run does, as options that distinguish epochs, so that runs before and after a change of
    /// them are never pooled. One at its default is left out.
    pub fn options(&self) -> NegotiatedOptions {
        let band = Some(self.band_bytes).filter(|bytes| *bytes != Self::default().band_bytes);
        let options = [
            ("operations-per-second", self.operations_per_second.map(u64::from)),
            ("tree-files", self.tree_files),
            ("band-bytes", band),
        ];
        let chosen = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
        chosen.map(|(name, value)| (format!("{LONGHAUL_KEY_PREFIX}{name}"), value.to_string())).collect()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tree_files: None,
            band_bytes: 8 << 20,
            reserve: FreeSpaceReserve::default(),
            slices: DEFAULT_SLICES,
            operations_per_second: None,
            preset_slices: SliceSelection::default(),
            custom_profile: None,
            recording: None,
        }
    }
}
