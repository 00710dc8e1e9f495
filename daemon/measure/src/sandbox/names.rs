//! The names that longhaul gives to files and folders at the top of a sandbox.

use std::ffi::OsStr;

use crate::timed_fs::LINK_CHECK_FILES;

/// Name of the marker: the file that identifies the owner of a sandbox.
pub(crate) const MARKER_FILE: &str = "sandbox.json";
/// Name of the manifest file in the sandbox.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Name of the small test file of `longhaul doctor`, which exists only during its check.
pub(crate) const DOCTOR_FILE: &str = "doctor";
/// Name of a file that is written to measure the round-trip time, and removed at once.
pub(crate) const ROUND_TRIP_FILE: &str = "round-trip";
/// Name of a file that keeps Spotlight (mds) from indexing its folder. Memory cards and Apple's own Time Machine
/// images use the same file.
pub(crate) const NEVER_INDEX_FILE: &str = ".metadata_never_index";
/// Name of the latency probe's folder in the sandbox. Every manifest has an entry for it, so that the probe never
/// writes the manifest: the probe and a run are two threads, and concurrent writes would lose an entry.
pub(crate) const PROBE_FOLDER: &str = "probe";

/// Returns the temporary name under which a control file is written until it is complete.
pub fn partial_name(name: &str) -> String {
    format!("{name}.partial")
}

/// Returns all names that longhaul gives to files at the top of a sandbox, in the order of removal: the marker is
/// last.
pub fn control_files() -> impl Iterator<Item = String> {
    let checks = LINK_CHECK_FILES.into_iter().filter_map(|name| name.to_str().ok());
    let files = checks.chain([DOCTOR_FILE, ROUND_TRIP_FILE, NEVER_INDEX_FILE, MANIFEST_FILE, MARKER_FILE]);
    let whole = files.flat_map(|file| [partial_name(file), file.to_owned()]);
    whole.flat_map(|name| [format!("._{name}"), name])
}

/// Returns whether longhaul gives this name to a file at the top of a sandbox.
pub fn is_control_file(name: &OsStr) -> bool {
    control_files().any(|own| name == own.as_str())
}
