//! One run of a preset: the part of its profile that is executed, and its place on the target.

use longhaul_corpus::names::to_cstring;
use longhaul_measure::error::RunError;
use longhaul_measure::timed_fs::Folder;
use longhaul_measure::workloads::Job;
use longhaul_model::draw::draw;

use crate::content_mode::ContentMode;
use crate::profile::Profile;

/// The name of the folder and of the manifest entry that all presets share.
pub const FOLDER: &str = "presets";

/// One run of a preset, including its preparation.
pub struct PresetRun<'a> {
    /// Inputs of the run.
    pub job: &'a Job<'a>,
    /// Profile that is executed: reduced for the scale, and one slice of it if the run covers one slice.
    pub profile: Profile,
    /// Content that is written.
    pub content_mode: ContentMode,
    /// Name of the folder for this preset, scale, content and slice, inside the folder of all presets.
    pub folder: String,
    /// Slice that is executed, from 0; `None` if the run covers the whole profile.
    pub slice: Option<u64>,
}

impl PresetRun<'_> {
    /// Opens the folder of the preset; creates it if it is missing.
    pub(super) fn open_folder(&self) -> Result<Folder, RunError> {
        let context = self.job.untimed();
        let sandbox = self.job.sandbox.folder()?;
        let presets = context.create_and_open_folder(&sandbox, &to_cstring(FOLDER.to_owned()))?;
        context.create_and_open_folder(&presets, &to_cstring(self.folder.clone()))
    }

    /// Returns the seed for the content of a file set.
    ///
    /// Each slice has its own seed, so that a NAS with deduplication finds no equal blocks in two slices.
    pub(super) fn seed(&self, set: &str) -> u64 {
        let seed = set.bytes().fold(0x636c_6173, |seed, byte| draw(seed, 0, u64::from(byte)));
        self.slice.map_or(seed, |slice| draw(seed, 1, slice))
    }
}
