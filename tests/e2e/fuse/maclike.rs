//! File system that behaves like a share without extended attributes on a Mac: macOS keeps the attributes of `NAME` in
//! an AppleDouble file `._NAME`. Linux refuses to set attributes on such a share, so it never creates these files.
//!
//! Each [`Quirk`] adds a behaviour of some Mac mounts. ENOTSUP is 95 on Linux and 45 on macOS.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fuser::{BackgroundSession, Errno};

use super::server::Caching;
use super::{Behaviour, Disk, Incoming, RequestKind, Serving};

/// Number of threads that answer requests.
const THREADS: usize = 4;

/// Behaviour of some mounts on a Mac.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quirk {
    /// Extended attributes are kept in AppleDouble files. [`MacLike`] always has this quirk.
    AppleDouble,
    /// Timestamps have a resolution of this many seconds: 2 on FAT, 1 on HFS+ and ext3.
    TimeStep(u64),
    /// Byte-range locks are not supported: smbfs (SMBClient kernel/smbfs/smbfs_vnops.c:10771).
    NoLocks,
    /// A rename over an open file fails, as on an SMB server while another client has the file open.
    NoRenameOverOpen,
    /// Each new file and folder gets the attribute `com.apple.provenance`, and so an AppleDouble file: macOS 13 and
    /// later.
    ProvenanceTwins,
    /// Names that differ only in case are the same name.
    CaseInsensitive,
    /// Extended attributes and permission bits are accepted and not kept.
    LosesMetadata,
    /// Names are accepted in either Unicode form and listed in form D: smbfs, HFS+.
    DecomposedNames,
}

/// Privacy settings of a Mac. Attributes can be read always.
#[derive(Default)]
pub struct Privacy {
    /// While true, the settings refuse to open or create files.
    pub is_private: AtomicBool,
    /// While true, they also refuse to open folders.
    pub hides_folders: AtomicBool,
    /// Number of opens that the settings refused.
    pub refused: AtomicU64,
}

impl Behaviour for Privacy {
    fn before(&self, request: Incoming) -> Result<(), Errno> {
        let refuses = match request.kind {
            RequestKind::Open => &self.is_private,
            RequestKind::OpenFolder => &self.hides_folders,
            _ => return Ok(()),
        };
        if !refuses.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Errno::EPERM)
    }
}

/// Mounted file system. It is unmounted when dropped.
pub struct MacLike {
    _session: BackgroundSession,
    /// Privacy settings, which a test can change.
    pub privacy: Arc<Privacy>,
}

impl MacLike {
    /// Mounts an empty file system with these quirks.
    pub fn mount(at: &Path, quirks: &[Quirk]) -> Self {
        let privacy = Arc::<Privacy>::default();
        let disk = Disk::with_quirks(quirks.iter().copied().chain([Quirk::AppleDouble]).collect());
        let serving = Serving { behaviour: privacy.clone(), caching: Caching::Nothing, threads: THREADS };
        Self { _session: disk.mount(at, serving), privacy }
    }
}
