//! The engine of presets: creates the file sets of a profile, and runs its phases with threads that repeat steps.

mod analysis;
mod blogbench;
mod blogbench_scores;
mod file_lengths;
mod file_names;
mod file_pool;
mod file_sets;
mod ownership;
mod phases;
mod preset_run;
mod repetition_log;
mod set_manifest;
mod thread;
mod thread_work;
mod timestamps;
mod write_tracker;

pub use ownership::owns;
pub use preset_run::{FOLDER, PresetRun};
