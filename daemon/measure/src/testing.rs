//! A place for unit tests: a temporary folder with a sandbox, and what file operations need.

use std::path::Path;

use crate::recorder::Recorder;
use crate::sandbox::{Sandbox, SandboxLocation};
use crate::timed_fs::{StopSwitch, TimedFs};
use longhaul_model::TargetName;

/// A temporary folder that is a target.
pub struct Site {
    /// Recorder of all file operations.
    pub recorder: Recorder,
    folder: tempfile::TempDir,
    target: TargetName,
    stop: StopSwitch,
}

impl Site {
    /// Creates an empty folder.
    pub fn new() -> Self {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        Self { recorder, folder: tempfile::tempdir().unwrap(), target: "nas".parse().unwrap(), stop }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the file operations of a thread.
    pub fn context(&self, thread: usize) -> TimedFs<'_> {
        TimedFs::new(&self.recorder, thread, &self.stop)
    }

    /// Opens the sandbox `.longhaul-m-nas`; creates it if it does not exist.
    pub fn sandbox(&self) -> Sandbox {
        let location = SandboxLocation { target_path: self.path(), target: &self.target, machine: "m" };
        Sandbox::open(&location, &self.context(0)).unwrap()
    }
}
