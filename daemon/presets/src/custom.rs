//! Profiles that a user wrote. They travel to the worker as part of the settings.

use std::path::Path;

use longhaul_measure::error::RunError;
use longhaul_measure::workloads::{Job, Workload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content_mode::ContentMode;
use crate::engine;
use crate::preset::Preset;
use crate::profile::{Profile, is_valid_name};

/// A user-written profile, with the name that its runs are stored under.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CustomProfile {
    name: String,
    profile: Profile,
    content_mode: ContentMode,
}

impl CustomProfile {
    /// Creates a custom profile. [`ContentMode::AsOriginal`] adds a suffix to the name.
    ///
    /// # Errors
    ///
    /// A message for the user if the name is not a valid folder name.
    pub fn new(name: &str, profile: Profile, content_mode: ContentMode) -> Result<Self, String> {
        let advice = "name the file with 1 to 40 lower-case letters, digits and dashes";
        match is_valid_name(name) {
            true => Ok(Self { name: format!("{name}{}", content_mode.suffix()), profile, content_mode }),
            false => Err(format!("`{name}` is not a valid profile name: {advice}")),
        }
    }

    /// Returns the name that runs of this profile are stored under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the form for [`Settings::custom_profile`](longhaul_measure::workloads::Settings::custom_profile).
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a profile is plain data")
    }

    /// Returns this profile as a preset.
    pub fn preset(&self) -> Preset {
        let name = &self.name;
        let profile_name = name.strip_suffix(self.content_mode.suffix()).unwrap_or(name);
        Preset::new(profile_name, self.profile.clone(), self.content_mode)
    }
}

/// The workload that runs the custom profile in the settings of a job.
pub struct CustomPreset;

impl CustomPreset {
    fn of(job: &Job<'_>) -> Result<Preset, RunError> {
        let profile = job.settings.custom_profile.clone().unwrap_or_default();
        let profile: Result<CustomProfile, _> = serde_json::from_value(profile);
        profile.map(|profile| profile.preset()).map_err(|error| {
            let reason = format!("the custom profile in the settings cannot be read: {error}");
            RunError::refused(job.sandbox.path(), reason, "Use programs of the same version of longhaul")
        })
    }
}

impl Workload for CustomPreset {
    fn name(&self) -> &str {
        "custom-profile"
    }

    fn folder(&self) -> &str {
        engine::FOLDER
    }

    fn owns(&self, path: &Path) -> bool {
        engine::owns(path)
    }

    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError> {
        Self::of(job)?.prepare(job)
    }

    fn run(&self, job: &Job<'_>) -> Result<(), RunError> {
        Self::of(job)?.run(job)
    }
}
