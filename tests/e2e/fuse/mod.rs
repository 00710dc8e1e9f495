//! FUSE file systems in memory, which the test's own process serves. They need /dev/fuse, but no other program.
//!
//! [`server`] and [`requests`] answer the kernel from a [`volume`]. A [`Behaviour`] adds what a test needs: delays by a
//! script ([`slow`]), a server that hangs ([`hang`]), or the properties of a Mac's mounts ([`maclike`]).

mod apple_double;
pub mod hang;
mod locks;
pub mod maclike;
mod names;
mod requests;
mod server;
pub mod slow;
mod volume;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use fuser::{BackgroundSession, Config, Errno, MountOption, SessionACL};
pub use maclike::Quirk;
use server::{Caching, Server};
use volume::Volume;

/// Kind of a request of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    /// Attributes of a file or folder.
    Attributes,
    /// Opens or creates a file.
    Open,
    OpenFolder,
    Read,
    Write,
    /// Ends the use of a file.
    Close,
    Other,
}

/// Request of the kernel.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    kind: RequestKind,
    /// True if the request is about a file in a folder called `probe`.
    is_probes: bool,
}

/// Work of a file system besides answering requests.
trait Behaviour: Send + Sync + 'static {
    /// Is called before a request is answered. An error is the answer.
    fn before(&self, request: Incoming) -> Result<(), Errno>;

    /// Is called after a request was answered, and before the thread accepts the next one.
    fn after(&self) {}
}

/// Files in memory. More than one mount can show them.
#[derive(Clone)]
pub struct Disk {
    volume: Arc<Mutex<Volume>>,
    /// Source in the mount table, which is the same for every mount of this disk.
    source: String,
}

impl Disk {
    /// Creates an empty disk.
    pub fn new() -> Self {
        Self::with_quirks(BTreeSet::new())
    }

    fn with_quirks(quirks: BTreeSet<Quirk>) -> Self {
        static DISKS: AtomicU32 = AtomicU32::new(0);
        let source = format!("disk{}", DISKS.fetch_add(1, Ordering::Relaxed));
        Self { volume: Arc::new(Mutex::new(Volume::new(quirks))), source }
    }

    fn volume(&self) -> MutexGuard<'_, Volume> {
        self.volume.lock().expect("no thread panics while it holds the lock")
    }

    /// Mounts the disk. Panics if FUSE cannot be used here.
    fn mount(&self, at: &Path, serving: Serving) -> BackgroundSession {
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(self.source.clone())];
        if serving.caching == Caching::Nothing {
            config.mount_options.push(MountOption::DefaultPermissions);
        }
        config.acl = SessionACL::Owner;
        config.n_threads = Some(serving.threads);
        let server = Server::new(self.clone(), &serving);
        fuser::spawn_mount(server, at, &config).unwrap_or_else(|error| {
            panic!("mount FUSE at {}: {error}. It needs /dev/fuse, and root or fusermount3.", at.display())
        })
    }
}

/// Settings of a mount.
struct Serving {
    behaviour: Arc<dyn Behaviour>,
    caching: Caching,
    /// Number of threads that answer requests.
    threads: usize,
}
