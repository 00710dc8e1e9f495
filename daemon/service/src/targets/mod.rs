//! Targets before they are measured: two mounts of one folder, and paths that must not be measured.

pub mod same_folder;
pub mod similar_mounts;
pub mod target_path;
