//! Finds the mount of the target and reports its protocol and options.

use std::io;

use super::message::{VERSION, WorkerMessage};
use super::state::Worker;
use super::target_mount::TargetMount;
use crate::error::RunError;
use crate::parse::share_option;
use crate::platform;
use crate::sandbox::Sandbox;
use longhaul_model::{Mount, NegotiatedOptions, Operation, ProtocolFamily};

impl Worker {
    /// Finds the mount of the target and queries its negotiated options.
    pub fn find_mount(&self) {
        let path = &self.setup.target.path;
        // The path is resolved in the worker, not in the service, because the call hangs if the server is dead.
        // Here the hang is recorded, and it blocks only this worker.
        let real = self.untracked_fs().timed(Operation::Lookup, || std::fs::canonicalize(path));
        let mounts = platform::mounts().unwrap_or_default();
        let found = real.ok().and_then(|real| Some((Mount::for_path(&mounts, &real)?.clone(), real)));
        *self.mount.borrow_mut() =
            found.map(|(mount, real)| self.with_share(TargetMount::query(mount, &real)));
    }

    /// Adds the tag of the share to the options of a network mount, so that runs on another NAS are not pooled.
    fn with_share(&self, mut found: TargetMount) -> TargetMount {
        let is_network = found.protocol.family() == ProtocolFamily::Network;
        let option = share_option(&found.mount.source, &self.setup.machine).filter(|_| is_network);
        found.negotiated.extend(option);
        found
    }

    /// Queries the protocol version again if it is unknown, and sends the result. The tool that reports the
    /// version gives no answer while a session is being re-established after sleep; without the retry, the whole
    /// round would be stored without a version.
    pub fn retry_version_query(&self) -> io::Result<()> {
        let lacks_version = |found: &TargetMount| found.protocol.is_version_unknown();
        if !self.mount.borrow().as_ref().is_some_and(lacks_version) {
            return Ok(());
        }
        self.find_mount();
        self.send(&self.ready_message())
    }

    /// Opens the sandbox and creates it if there is none. Refuses if its share is not mounted: the path then leads to the
    /// empty folder below.
    pub fn mounted_sandbox(&self) -> Result<Sandbox, RunError> {
        Sandbox::open_if(&self.sandbox_location(), &self.timed_fs(), || self.check_mounted())
    }

    /// Refuses if the share of the target is not mounted.
    pub fn check_mounted(&self) -> Result<(), RunError> {
        if !self.is_unmounted() {
            return Ok(());
        }
        let advice = "Mount the share; longhaul then continues by itself";
        Err(RunError::refused(&self.setup.target.path, "its share is not mounted", advice))
    }

    /// Tells whether the share is missing on which the target belongs, or which this worker found at its start. Only reads
    /// the mount table.
    fn is_unmounted(&self) -> bool {
        let found = self.mount.borrow();
        let Some(known) = found.as_ref().map(|found| &found.mount) else {
            // The share failed when the worker was started, and may have disappeared since.
            return self.setup.is_on_share && self.is_on_local_disk();
        };
        let family = known.protocol.family();
        let is_there = |mount: &Mount| mount.point == known.point && mount.protocol.family() == family;
        match family {
            // The worker was started after the share had disappeared.
            ProtocolFamily::Local => self.setup.is_on_share,
            _ => platform::mounts().is_ok_and(|mounts| !mounts.iter().any(is_there)),
        }
    }

    fn is_on_local_disk(&self) -> bool {
        let is_local = |mount: &Mount| mount.protocol.family() == ProtocolFamily::Local;
        let path = &self.setup.target.path;
        platform::mounts().is_ok_and(|mounts| Mount::for_path(&mounts, path).is_some_and(is_local))
    }

    pub fn ready_message(&self) -> WorkerMessage {
        let found = self.mount.borrow();
        WorkerMessage::Ready {
            protocol: found.as_ref().map(|found| found.protocol.clone()),
            negotiated: self.negotiated(),
            server: found.as_ref().and_then(|found| found.mount.server),
            version: VERSION.to_owned(),
        }
    }

    /// Returns the negotiated options of the mount, which distinguish epochs.
    pub fn negotiated(&self) -> NegotiatedOptions {
        self.mount.borrow().as_ref().map(|found| found.negotiated.clone()).unwrap_or_default()
    }
}
