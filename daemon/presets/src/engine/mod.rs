//! The engine of presets: creates the file sets of a profile, and runs its phases with threads that repeat steps.

mod analysis;
mod blogbench;
mod blogbench_scores;
mod file_lengths;
mod file_names;
mod file_pool;
mod file_sets;
mod phases;
mod preset_run;
mod repetition_log;
mod set_manifest;
mod thread;
mod thread_work;
mod timestamps;
mod write_tracker;

use std::path::Path;

pub use preset_run::{FOLDER, PresetRun};

/// Returns whether some preset creates a file with this path, relative to the folder that all presets share.
pub fn owns(path: &Path) -> bool {
    let path = path.to_str().unwrap_or_default();
    file_sets::owns(path) || blogbench::owns(path)
}
