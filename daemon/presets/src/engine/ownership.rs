//! Recognizes the files that presets create.

use std::path::Path;

use super::{blogbench, file_sets};

/// Returns whether some preset creates a file with this path, relative to the folder that all presets share.
pub fn owns(path: &Path) -> bool {
    let path = path.to_str().unwrap_or_default();
    file_sets::owns(path) || blogbench::owns(path)
}
