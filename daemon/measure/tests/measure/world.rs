//! A target with the sandbox of one machine, on which workloads run.

use std::path::PathBuf;

use longhaul_measure::error::RunError;
use longhaul_measure::sandbox::{Sandbox, SandboxLocation};
use longhaul_measure::timed_fs::{Session, TimedFs};
use longhaul_measure::workloads::{Job, Settings};
use longhaul_model::{FreeSpaceReserve, Scale, TargetName, Timestamp};

/// A target and the folder and settings that runs need.
pub struct World {
    target: tempfile::TempDir,
    local: tempfile::TempDir,
    target_name: TargetName,
    pub settings: Settings,
    /// True if the client keeps listings.
    pub keeps_listings: bool,
}

impl World {
    pub fn new() -> Self {
        let folder = || tempfile::tempdir().unwrap();
        let settings = Settings { reserve: FreeSpaceReserve::NONE, ..Settings::default() };
        Self {
            target: folder(),
            local: folder(),
            target_name: "nas".parse().unwrap(),
            settings,
            keeps_listings: false,
        }
    }

    fn location(&self) -> SandboxLocation<'_> {
        SandboxLocation { target_path: self.target.path(), target: &self.target_name, machine: "m" }
    }

    /// Returns the path of the sandbox.
    pub fn sandbox_path(&self) -> PathBuf {
        self.target.path().join(self.location().folder_name())
    }

    /// Opens the sandbox, and creates it if it does not exist.
    pub fn open_sandbox(&self, context: &TimedFs<'_>) -> Result<Sandbox, RunError> {
        Sandbox::open(&self.location(), context)
    }

    /// Returns the first run at the standard scale.
    pub fn job<'run>(&'run self, session: &'run Session<'run>, sandbox: &'run Sandbox) -> Job<'run> {
        Job {
            session,
            sandbox,
            local_folder: self.local.path(),
            scale: Scale::Standard,
            settings: &self.settings,
            rotation: 0,
            seed: 7,
            now: Timestamp::UNIX_EPOCH,
            keeps_listings: self.keeps_listings,
        }
    }
}
