//! A pass-through file system: a second mount that shows the files of a folder, and reports each operation of the programs that
//! use it. It writes nothing itself.
//!
//! ```text
//! program -> kernel -> FUSE -> Answers -> folder (through its directory handle)
//!                                  \-> Recorder -> TraceEvent, in the order in which operations began
//! ```
//!
//! **Nothing is cached by the kernel in front of the pass-through**: each call of a program arrives here and goes on to the folder. What
//! the client of the share answers from its own cache is still answered from there, as it will be when the recording is replayed.
//! From Linux 6.6 on, reads and writes arrive as the program makes them (FUSE's direct I/O), up to 1 MiB each; before, as the kernel's
//! page cache asks for them.

mod platform;
mod problem;

pub use platform::{PassThrough, mount};
pub use problem::{End, PassThroughError, Program};

use std::path::PathBuf;

use longhaul_model::Mount;
use longhaul_recording::TraceSink;

/// Receiver of the operations, in the order in which they began, and of notes on calls for which recordings have no operation.
pub type Receiver = Box<dyn TraceSink + Send>;

/// Beginning of the mount's source in the mount table; the number of the serving process follows.
const SOURCE: &str = "longhaul-recording-";

/// Paths of a pass-through file system.
#[derive(Debug, Clone)]
pub struct MountPaths {
    /// Folder whose files are shown, as an absolute path.
    pub folder: PathBuf,
    /// Folder on which it is mounted. It is created if it does not exist, and removed at the end.
    pub mount_point: PathBuf,
}

/// Returns the process that serves a mount, if it is a pass-through file system.
pub fn serving_process(mount: &Mount) -> Option<u32> {
    mount.source.strip_prefix(SOURCE)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use longhaul_model::Protocol;

    use super::*;

    #[test]
    fn own_mounts_are_recognized_by_their_source() {
        let process = |source: &str| serving_process(&Mount::new("/m", source, Protocol::Fuse(None)));
        assert_eq!(process("longhaul-recording-17"), Some(17));
        assert_eq!([process("longhaul-recording-"), process("nas:/share")], [None, None]);
    }
}
