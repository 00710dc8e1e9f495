//! The location of a sandbox on its target.

use std::path::{Path, PathBuf};

use longhaul_model::TargetName;

/// Beginning of the name of every sandbox.
pub const FOLDER_PREFIX: &str = ".longhaul-";

/// Location of a sandbox: target folder, target name and machine id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxLocation<'a> {
    /// Path of the target's folder.
    pub target_path: &'a Path,
    /// Name of the target.
    pub target: &'a TargetName,
    /// Random id of this installation (machine id).
    pub machine: &'a str,
}

impl SandboxLocation<'_> {
    /// Returns the folder name of the sandbox. It contains the target's name, because two targets often have the
    /// same folder on the server: a share that is measured over two protocols.
    pub fn folder_name(&self) -> String {
        format!("{FOLDER_PREFIX}{}-{}", self.machine, self.target)
    }

    /// Returns the path of the sandbox.
    pub(super) fn sandbox_path(&self) -> PathBuf {
        self.target_path.join(self.folder_name())
    }
}
