//! File system whose server can hang, as a share does whose server is gone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use fuser::{BackgroundSession, Errno};

use super::server::Caching;
use super::{Behaviour, Disk, Incoming, RequestKind, Serving};

/// State of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Answering,
    /// The server stops after the next answer.
    Stopping,
    /// The server accepts no request.
    Stopped,
    /// Every request fails.
    Ended,
}

/// Answers to writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    Answered,
    /// A write is accepted and never answered.
    Stuck,
}

struct HangingServer {
    state: Mutex<State>,
    changed: Condvar,
    writes: Writes,
}

impl HangingServer {
    fn new(writes: Writes) -> Self {
        Self { state: Mutex::new(State::Answering), changed: Condvar::new(), writes }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    fn set(&self, state: State) {
        *self.state() = state;
        self.changed.notify_all();
    }

    /// Waits while the state satisfies a condition, and returns the first one that does not.
    fn wait_while(&self, is_so: impl Fn(State) -> bool) -> State {
        let waited = self.changed.wait_while(self.state(), |state| is_so(*state));
        *waited.expect("no thread panics while it holds the lock")
    }
}

impl Behaviour for HangingServer {
    fn before(&self, request: Incoming) -> Result<(), Errno> {
        let is_stuck = self.writes == Writes::Stuck && request.kind == RequestKind::Write;
        match self.wait_while(|state| is_stuck && state != State::Ended) {
            State::Ended => Err(Errno::ENOTCONN),
            _ => Ok(()),
        }
    }

    fn after(&self) {
        let stops = *self.state() == State::Stopping;
        if stops {
            self.set(State::Stopped);
        }
        self.wait_while(|state| state == State::Stopped);
    }
}

/// Mounted file system that can hang. It is unmounted when dropped.
///
/// One thread answers its requests, so that all others wait in the kernel while one is held.
pub struct Fuse {
    _session: BackgroundSession,
    server: Arc<HangingServer>,
    at: PathBuf,
}

impl Fuse {
    /// Mounts an empty file system.
    pub fn mount(at: &Path) -> Self {
        Self::of(&Disk::new(), at)
    }

    /// Mounts a disk, which may be mounted elsewhere too.
    pub fn of(disk: &Disk, at: &Path) -> Self {
        Self::serve(disk, at, Writes::Answered)
    }

    /// Mounts an empty file system whose writes never return. A call that the server has accepted cannot be
    /// interrupted, not even by SIGKILL, as on a share whose server is gone.
    pub fn with_stuck_writes(at: &Path) -> Self {
        Self::serve(&Disk::new(), at, Writes::Stuck)
    }

    fn serve(disk: &Disk, at: &Path, writes: Writes) -> Self {
        let server = Arc::new(HangingServer::new(writes));
        let serving = Serving { behaviour: server.clone(), caching: Caching::Nothing, threads: 1 };
        Self { _session: disk.mount(at, serving), server, at: at.to_owned() }
    }

    /// Stops the server: no call on the mount returns until [`Fuse::thaw`]. The calls wait in the kernel's queue, where
    /// a signal ends them.
    pub fn freeze(&self) {
        self.server.set(State::Stopping);
        // The server stops after an answer, so it needs a request. This one waits if another one was first.
        let at = self.at.clone();
        std::thread::spawn(move || std::fs::metadata(at).is_ok());
        self.server.wait_while(|state| state == State::Stopping);
    }

    /// Continues the server.
    pub fn thaw(&self) {
        self.server.set(State::Answering);
    }

    /// Ends the server: every call that waits for it fails, and so does every later one.
    pub fn end(&self) {
        self.server.set(State::Ended);
    }
}

impl Drop for Fuse {
    /// Thaws first, so that every waiting process ends. A process that still uses the mount gets errors afterwards.
    fn drop(&mut self) {
        if *self.server.state() != State::Ended {
            self.thaw();
        }
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
        self.end();
    }
}
