//! Finds the mount of the target and reports its protocol and options.

use std::io;
use std::path::Path;

use super::message::{VERSION, WorkerMessage};
use super::state::Worker;
use super::target_mount::TargetMount;
use crate::error::RunError;
use crate::parse::share_option;
use crate::platform;
use crate::sandbox::Sandbox;
use longhaul_model::{Mount, NegotiatedOptions, Operation, Protocol, ProtocolFamily};

impl Worker {
    /// Finds the mount of the target and queries its negotiated options.
    pub fn find_mount(&self) {
        let path = &self.setup.target.path;
        // The path is resolved in the worker, not in the service, because the call hangs if the server is dead.
        // Here the hang is recorded, and it blocks only this worker.
        let fs = self.untracked_fs();
        let real = fs.timed(Operation::Lookup, || std::fs::canonicalize(path)).ok();
        let find = || {
            let mounts = platform::mounts().unwrap_or_default();
            real.as_ref().and_then(|real| Mount::for_path(&mounts, real)).cloned()
        };
        let mut mount = find();
        if let (Some(found), Some(folder)) = (&mount, &real)
            && may_mount_more(found, folder)
        {
            // Resolving a path does not mount an automount at its end, and opening it does (Linux fs/namei.c, `follow_automount`).
            let _ = fs.timed(Operation::Lookup, || platform::open_directory(folder));
            mount = find();
        }
        let found = mount.zip(real.as_ref());
        *self.mount.borrow_mut() =
            found.map(|(mount, real)| self.with_share(TargetMount::query(mount, real)));
    }

    /// Adds the tag of the share to the options of a network mount, so that runs on another NAS are not pooled.
    fn with_share(&self, mut found: TargetMount) -> TargetMount {
        // Without the others, whose sources have no form in common: a tag of them would open an epoch.
        let is_other = matches!(found.protocol, Protocol::Other(_));
        let is_network = found.protocol.family() == ProtocolFamily::Network && !is_other;
        let option = share_option(&found.mount.source, &self.setup.machine).filter(|_| is_network);
        found.negotiated.extend(option);
        found
    }

    /// Queries the protocol again if its version is unknown, or if the share was not mounted yet, and sends the result. The tool
    /// that reports the version gives no answer while a session is being re-established after sleep; without the retry, the whole
    /// round would be stored without a version.
    pub fn retry_protocol_query(&self) -> io::Result<()> {
        if !self.mount.borrow().as_ref().is_some_and(|found| needs_retry(&found.protocol)) {
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

/// Returns whether opening a folder may mount another file system there: an automount at its end, or an export below the one that was
/// found, whose mount expires while it is not used (fs/nfs/namespace.c, `nfs_d_automount`).
fn may_mount_more(found: &Mount, folder: &Path) -> bool {
    let is_nfs = matches!(found.protocol, Protocol::Nfs(_));
    found.protocol.is_automount() || (is_nfs && found.point != folder)
}

/// Returns whether a later query can tell more about the protocol of a target.
fn needs_retry(protocol: &Protocol) -> bool {
    protocol.is_version_unknown() || protocol.is_automount()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_opened_where_that_may_mount_it() {
        let folder = Path::new("/m/nas/photos");
        let may = |point: &str, protocol| may_mount_more(&Mount::new(point, "source", protocol), folder);
        assert!(may("/m/nas", Protocol::Nfs(Some("4.2".to_owned()))));
        assert!(may("/m/nas/photos", Protocol::Other("autofs".to_owned())));
        assert!(!may("/m/nas/photos", Protocol::Nfs(None)) && !may("/m/nas", Protocol::Smb(None)));
    }

    #[test]
    fn idle_automount_is_queried_again() {
        assert!(needs_retry(&Protocol::Other("autofs".to_owned())) && needs_retry(&Protocol::Smb(None)));
        for known in
            [Protocol::Nfs(Some("4.2".to_owned())), Protocol::Other("ceph".to_owned()), Protocol::Afp]
        {
            assert!(!needs_retry(&known), "{known}");
        }
    }
}
