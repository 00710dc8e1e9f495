//! Addresses of the targets' servers as found by workers, used where the mount table has no address, as on a Mac.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use longhaul_model::{Mount, Target, TargetName};

use crate::worker::Worker;

/// The addresses of the servers.
#[derive(Default)]
pub(super) struct ServerAddresses {
    known: BTreeMap<TargetName, IpAddr>,
    /// Addresses of targets that were mounted again since. They count until a worker has reported on the new mount: without an
    /// address, a round could run through a VPN.
    earlier: BTreeMap<TargetName, IpAddr>,
}

impl ServerAddresses {
    /// Takes what a worker knows. An address that a new process cannot find is forgotten: it must not skip rounds for good. Returns
    /// whether the address of the target has changed.
    pub(super) fn update(&mut self, worker: &mut Worker) -> bool {
        let name = worker.target().name.clone();
        if self.earlier.contains_key(&name) && worker.has_reported(Duration::ZERO) && worker.server.is_none()
        {
            self.earlier.remove(&name);
            return true;
        }
        match worker.server {
            Some(server) => {
                let earlier = self.earlier.remove(&name);
                let before = self.known.insert(name, server).or(earlier);
                before.is_some_and(|before| before != server)
            }
            None => {
                let before = self.known.remove(&name);
                self.earlier.extend(before.map(|before| (name, before)));
                false
            }
        }
    }

    /// Returns whether a worker must start to find the address of a target, of which only that of an earlier mount is known. It never
    /// must at an idle automount, which it would mount.
    pub(super) fn is_outdated(&self, name: &TargetName, mount: Option<&Mount>) -> bool {
        let has_no_address = |mount: &Mount| mount.server.is_none() && mount.protocol.family().is_remote();
        self.earlier.contains_key(name) && mount.is_some_and(has_no_address)
    }

    /// Returns the mount of a target with the address of its server, as far as it is known.
    pub(super) fn add_to(&self, name: &TargetName, mount: &Mount) -> Mount {
        let known = || self.known.get(name).copied();
        // What lies below the place of an unmounted share has no server.
        let earlier = || self.earlier.get(name).copied().filter(|_| mount.protocol.may_block());
        Mount { server: mount.server.or_else(known).or_else(earlier), ..mount.clone() }
    }

    /// Forgets all targets but these.
    pub(super) fn keep_only(&mut self, kept: &[Target]) {
        let is_kept = |name: &TargetName| kept.iter().any(|target| target.name == *name);
        self.known.retain(|name, _| is_kept(name));
        self.earlier.retain(|name, _| is_kept(name));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_measure::worker::{VERSION, WorkerMessage};
    use longhaul_model::{NegotiatedOptions, Protocol, Role};

    use super::*;
    use crate::worker::Launcher;

    const VPN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(100, 64, 0, 5));
    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 5));

    /// Returns a worker whose processes report this address.
    fn worker(folder: &Path, server: Option<IpAddr>) -> Worker {
        let (protocol, negotiated) = (Some(Protocol::Smb(None)), NegotiatedOptions::new());
        let ready = WorkerMessage::Ready { protocol, negotiated, server, version: VERSION.to_owned() };
        let shell = "read -r setup; printf '%s\\n' \"$1\"; read -r command";
        let ready = serde_json::to_string(&ready).unwrap();
        let arguments = ["-c", shell, "worker", &ready].map(str::to_owned).to_vec();
        let launcher = Launcher::for_database("/bin/sh".into(), &folder.join("x.sqlite"), "m");
        let target = Target { name: "smb".parse().unwrap(), path: "/m/smb".into(), role: Role::Share };
        Worker::new(target, Launcher { arguments, ..launcher })
    }

    /// Returns the address before and after a new process reports `server`, of a share that was reached through a VPN before it was
    /// mounted again.
    fn addresses_around_report(server: Option<IpAddr>) -> [Option<IpAddr>; 2] {
        let folder = tempfile::tempdir().unwrap();
        let (mut worker, mut addresses) = (worker(folder.path(), server), ServerAddresses::default());
        let name = worker.target().name.clone();
        let share = Mount::new("/m/smb", "//nas/x", Protocol::Smb(None));
        let disk = Mount::new("/", "disk", Protocol::Local("apfs".into()));
        worker.server = Some(VPN);
        assert!(!addresses.update(&mut worker) && !addresses.is_outdated(&name, Some(&share)));
        // The share is mounted again.
        worker.server = None;
        assert!(!addresses.update(&mut worker) && addresses.is_outdated(&name, Some(&share)));
        assert!(
            !addresses.is_outdated(&name, Some(&disk)) && addresses.add_to(&name, &disk).server.is_none()
        );
        let before = addresses.add_to(&name, &share).server;
        worker.ensure_started().unwrap();
        assert!(worker.has_reported(Duration::from_secs(60)));
        assert!(addresses.update(&mut worker) && !addresses.is_outdated(&name, Some(&share)));
        [before, addresses.add_to(&name, &share).server]
    }

    #[test]
    fn address_of_an_earlier_mount_counts_until_the_next_is_found() {
        assert_eq!(addresses_around_report(Some(HOME)), [Some(VPN), Some(HOME)]);
    }

    #[test]
    fn address_that_a_new_process_cannot_find_is_forgotten() {
        assert_eq!(addresses_around_report(None), [Some(VPN), None]);
    }
}
