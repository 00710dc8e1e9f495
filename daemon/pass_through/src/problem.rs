//! Errors of the pass-through, and the ways in which it ends.

use std::io;
use std::path::PathBuf;

/// The reason why a pass-through file system was not mounted.
#[derive(Debug, thiserror::Error)]
pub enum PassThroughError {
    /// This system has no FUSE that longhaul can use.
    #[error(
        "a second mount for recording needs FUSE of Linux. On a Mac, record with Apple's `sudo fs_usage -w -f filesys > trace.txt` \
         while you work, and read the trace: `longhaul record --import trace.txt --on FOLDER`"
    )]
    OtherSystem,
    /// There is no device of FUSE.
    #[error(
        "/dev/fuse does not exist: load the module (`sudo modprobe fuse`), or give the container the device. Without it: \
         `longhaul record -- PROGRAM` records one program"
    )]
    NoDevice,
    /// A user needs a helper for mounting.
    #[error(
        "fusermount3 is not installed; without it only root may mount. Install it (package `fuse3`). Without it: `longhaul record -- \
         PROGRAM` records one program"
    )]
    NoHelper,
    /// The mount point is in use by another recording.
    #[error(
        "{} is the mount of a recording that is going on (process {process}). End that one with Ctrl-C, or give another folder with --at",
        mount_point.display()
    )]
    InUse {
        /// Mount point.
        mount_point: PathBuf,
        /// Process that serves it.
        process: u32,
    },
    /// The mount point contains files, or another mount.
    #[error("{} is not an empty folder. Give another folder with --at", mount_point.display())]
    NotEmpty {
        /// Mount point.
        mount_point: PathBuf,
    },
    /// The mount point lies in the recorded folder, so that each operation would lead to the next.
    #[error("{} lies in the folder that is recorded. Give a folder outside of it with --at", mount_point.display())]
    Inside {
        /// Mount point.
        mount_point: PathBuf,
    },
    /// The operating system refused an operation.
    #[error("{operation} {}: {source}", path.display())]
    Refused {
        /// Operation that failed.
        operation: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error returned by the operating system.
        source: io::Error,
    },
}

/// The end of a pass-through file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was unmounted, and nothing used it any more.
    Unmounted,
    /// It is no longer visible, but these programs still have files or folders of it open. Their calls fail from now on.
    Detached(Vec<Program>),
    /// It could not be unmounted.
    StillMounted,
}

/// A running program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Number of the process.
    pub process: u32,
    /// Name of the program.
    pub name: String,
}
