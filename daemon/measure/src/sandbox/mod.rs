//! The sandbox: the only folder on a target that longhaul writes to.
//!
//! `<target>/.longhaul-<machine id>-<target name>/` contains a marker (the owner of the sandbox), a manifest
//! (which data of each workload is in the sandbox), and one folder per workload. Creation and deletion use cap-std
//! handles, so that no `..` and no link leads out of the sandbox. Measured operations use handles opened below the
//! handle that this module returns.

mod clean;
mod control_file;
mod folder;
mod location;
mod manifest;
mod marker;
mod names;

pub use clean::{CleanMode, CleanReport, MAX_FOREIGN_LISTED};
pub use folder::Sandbox;
pub use location::{FOLDER_PREFIX, SandboxLocation};
pub(crate) use names::{DOCTOR_FILE, MARKER_FILE, PROBE_FOLDER};
