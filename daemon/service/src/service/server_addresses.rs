//! Addresses of the targets' servers as found by workers, used where the mount table has no address, as on a Mac.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use longhaul_model::{Mount, Target, TargetName};

use crate::worker::Worker;

/// Number of processes in a row that cannot find the address of a new mount, after which that of the earlier one is forgotten: it must
/// not skip rounds for good.
const MAX_UNANSWERED: u32 = 10;

/// The addresses of the servers.
#[derive(Default)]
pub(super) struct ServerAddresses {
    known: BTreeMap<TargetName, IpAddr>,
    /// Addresses of targets that were mounted again since. They count until a worker has found the new one: without an address, a
    /// round could run through a VPN.
    earlier: BTreeMap<TargetName, EarlierAddress>,
    /// Targets whose worker may not start now. A round does not measure them until access is granted again, so that an earlier
    /// address must not skip the round.
    unusable: BTreeSet<TargetName>,
}

/// The address of an earlier mount.
struct EarlierAddress {
    server: IpAddr,
    /// Number of processes that could not find the new one.
    unanswered: u32,
}

impl ServerAddresses {
    /// Takes what a worker knows. Returns whether the address of the target has changed.
    pub(super) fn update(&mut self, worker: &mut Worker) -> bool {
        let name = worker.target().name.clone();
        if worker.may_start() {
            self.unusable.remove(&name);
        } else {
            self.unusable.insert(name.clone());
        }
        if self.earlier.contains_key(&name) && worker.has_reported(Duration::ZERO) && worker.server.is_none()
        {
            return self.ask_again(worker);
        }
        match worker.server {
            Some(server) => {
                let earlier = self.earlier.remove(&name).map(|earlier| earlier.server);
                let before = self.known.insert(name, server).or(earlier);
                before.is_some_and(|before| before != server)
            }
            None => {
                let before = self.known.remove(&name);
                let earlier = before.map(|server| (name, EarlierAddress { server, unanswered: 0 }));
                self.earlier.extend(earlier);
                false
            }
        }
    }

    /// Ends a process that could not find the address of a new mount, so that the next one asks again: the tool that tells the address
    /// gives no answer while a session is being re-established. Returns whether the earlier address is forgotten instead.
    fn ask_again(&mut self, worker: &mut Worker) -> bool {
        let name = &worker.target().name;
        let Some(earlier) = self.earlier.get_mut(name) else { return false };
        earlier.unanswered += 1;
        let is_last = earlier.unanswered == MAX_UNANSWERED;
        if is_last {
            self.earlier.remove(name);
        } else {
            worker.shut_down();
        }
        is_last
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
        let may_count = mount.protocol.may_block() && !self.unusable.contains(name);
        let earlier = || self.earlier.get(name).filter(|_| may_count).map(|earlier| earlier.server);
        Mount { server: mount.server.or_else(known).or_else(earlier), ..mount.clone() }
    }

    /// Forgets all targets but these.
    pub(super) fn keep_only(&mut self, kept: &[Target]) {
        let is_kept = |name: &TargetName| kept.iter().any(|target| target.name == *name);
        self.known.retain(|name, _| is_kept(name));
        self.earlier.retain(|name, _| is_kept(name));
        self.unusable.retain(is_kept);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_measure::worker::{FailureReport, VERSION, WorkerMessage};
    use longhaul_model::{NegotiatedOptions, Protocol, Role};

    use super::*;
    use crate::worker::{Launcher, void_failure};

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

    /// Starts a new process, and lets it report.
    fn start(worker: &mut Worker) {
        let has_started = |_| {
            std::thread::sleep(Duration::from_millis(10));
            worker.ensure_started().is_ok()
        };
        assert!((0..6_000).any(has_started), "the last process has ended");
        assert!(worker.has_reported(Duration::from_secs(60)));
    }

    /// Returns the addresses after a share that was reached through a VPN was mounted again.
    fn remounted(worker: &mut Worker) -> ServerAddresses {
        let mut addresses = ServerAddresses::default();
        worker.server = Some(VPN);
        assert!(!addresses.update(worker) && !addresses.is_outdated(&worker.target().name, Some(&share())));
        worker.server = None;
        assert!(!addresses.update(worker) && addresses.is_outdated(&worker.target().name, Some(&share())));
        addresses
    }

    fn share() -> Mount {
        Mount::new("/m/smb", "//nas/x", Protocol::Smb(None))
    }

    #[test]
    fn address_of_an_earlier_mount_counts_until_the_next_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = worker(folder.path(), Some(HOME));
        let (mut addresses, name) = (remounted(&mut worker), worker.target().name.clone());
        let disk = Mount::new("/", "disk", Protocol::Local("apfs".into()));
        assert!(
            !addresses.is_outdated(&name, Some(&disk)) && addresses.add_to(&name, &disk).server.is_none()
        );
        assert_eq!(addresses.add_to(&name, &share()).server, Some(VPN));
        start(&mut worker);
        assert!(addresses.update(&mut worker) && !addresses.is_outdated(&name, Some(&share())));
        assert_eq!(addresses.add_to(&name, &share()).server, Some(HOME));
    }

    #[test]
    fn address_that_no_process_finds_is_forgotten_after_ten() {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = worker(folder.path(), None);
        let (mut addresses, name) = (remounted(&mut worker), worker.target().name.clone());
        for process in 1..=MAX_UNANSWERED {
            assert_eq!(addresses.add_to(&name, &share()).server, Some(VPN), "before process {process}");
            start(&mut worker);
            assert_eq!(addresses.update(&mut worker), process == MAX_UNANSWERED, "process {process}");
        }
        assert!(!addresses.is_outdated(&name, Some(&share())));
        assert_eq!(addresses.add_to(&name, &share()).server, None);
    }

    #[test]
    fn earlier_address_does_not_count_while_the_worker_may_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = worker(folder.path(), None);
        let (mut addresses, name) = (remounted(&mut worker), worker.target().name.clone());
        let mut server_if = |reason: Option<FailureReport>| {
            worker.set_unavailable(reason);
            assert!(!addresses.update(&mut worker));
            addresses.add_to(&name, &share()).server
        };
        let refused = void_failure("access is not allowed".to_owned());
        assert_eq!([Some(refused), None].map(&mut server_if), [None, Some(VPN)]);
    }
}
