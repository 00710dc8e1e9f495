//! A file system in memory, in this process, that shows a program what a Mac shows it on a share without extended
//! attributes: a file `._NAME` beside each `NAME` that has some. Linux refuses to set them there, so that nothing appears.
//!
//! Each [`Quirk`] is one more thing that some mounts of a Mac do. ENOTSUP is 95 here, and 45 there.

mod apple_double;
mod locks;
mod names;
mod requests;
mod volume;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use requests::Files;

/// Threads that answer.
const THREADS: usize = 4;

/// A thing that some mounts do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quirk {
    /// Times are kept to so many seconds: 2 on FAT, 1 on HFS+ and ext3.
    TimeStep(u64),
    /// Locks on ranges of bytes are not supported: smbfs (SMBClient kernel/smbfs/smbfs_vnops.c, `smbfs_vnop_advlock`).
    NoLocks,
    /// A file cannot be renamed over one that is open: an SMB server, where another client has it open.
    NoRenameOverOpen,
    /// Each file and folder that is made gets `com.apple.provenance`, and so a twin: macOS 13 and later.
    ProvenanceTwins,
    /// Names that differ only in case are one name.
    CaseInsensitive,
    /// Names are taken in either Unicode form and listed in form D: smbfs, HFS+.
    DecomposedNames,
}

/// A mounted one; unmounted when it is dropped.
pub struct MacLike {
    _session: BackgroundSession,
    /// The privacy settings refuse: no file can be opened or made, while listings and attributes work.
    pub is_private: Arc<AtomicBool>,
    /// The number of opens that the privacy settings have refused.
    pub refused: Arc<AtomicU64>,
}

impl MacLike {
    /// The reason why none can be mounted here, if there is one.
    pub fn impossible() -> Option<&'static str> {
        (!Path::new("/dev/fuse").exists()).then_some("there is no /dev/fuse")
    }

    /// Mounts an empty one here.
    pub fn mount(at: &Path, quirks: &[Quirk]) -> Result<Self, String> {
        let (is_private, refused) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let files = Files::new(quirks, (Arc::clone(&is_private), Arc::clone(&refused)));
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("maclike".to_owned()), MountOption::DefaultPermissions];
        config.acl = SessionACL::Owner;
        config.n_threads = Some(THREADS);
        let session = fuser::spawn_mount(files, at, &config).map_err(|error| error.to_string())?;
        Ok(Self { _session: session, is_private, refused })
    }
}
