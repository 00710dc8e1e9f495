//! Runs a profile that a user wrote, which travels to the worker as part of the settings.

use std::path::Path;

use longhaul_measure::error::RunError;
use longhaul_measure::workloads::{Job, Workload};

use crate::engine;
use crate::preset::Preset;

/// The workload that runs the custom profile in the settings of a job.
pub struct CustomPreset;

impl CustomPreset {
    fn of(job: &Job<'_>) -> Result<Preset, RunError> {
        let preset = job.settings.custom_profile.clone().unwrap_or_default();
        serde_json::from_value(preset).map_err(|error| {
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
