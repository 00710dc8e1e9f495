//! Mounts that the system removes while they are idle and makes again with the next access: automounts, and NFS mounts inside of
//! others. That is no change of a target. Pure.

use std::collections::BTreeSet;

use longhaul_model::{Mount, Protocol, TargetName};

/// Targets whose mount is idle, and those whose earlier mount has expired.
#[derive(Debug, Clone, Default)]
pub struct IdleMounts {
    idle: BTreeSet<TargetName>,
    expired: BTreeSet<TargetName>,
}

impl IdleMounts {
    /// Records that the mount of a target is idle, and which mount it had before.
    pub fn set_idle(&mut self, target: &TargetName, before: Option<&Mount>) {
        let is_new = self.idle.insert(target.clone());
        // A Mac's mount table has no device numbers. Not once it is mounted again: that may be the access of a new process.
        if is_new && before.is_some_and(|before| before.device.is_none()) {
            self.expired.insert(target.clone());
        }
    }

    /// Records that a target is mounted, and which mount it had before.
    pub fn set_mounted(&mut self, target: &TargetName, before: Option<&Mount>, now: Option<&Mount>) {
        self.idle.remove(target);
        let Some((before, now)) = before.zip(now) else { return };
        let has_other_device = before.device.is_some() && before.device != now.device;
        // The first access since the service started only mounts it.
        if has_other_device && !expires_into(now, before) {
            self.expired.insert(target.clone());
        }
    }

    /// Returns the targets whose earlier mount has expired since the last call: the device number of the next one tells, or without a
    /// number that it is idle.
    pub fn take_expired(&mut self) -> BTreeSet<TargetName> {
        std::mem::take(&mut self.expired)
    }

    /// Forgets all targets but those that `keep` keeps.
    pub fn retain(&mut self, keep: impl Fn(&TargetName) -> bool) {
        self.idle.retain(&keep);
        self.expired.retain(keep);
    }
}

/// Returns whether a target's mount is only idle: what the table has in its place now leads to it with the next access.
pub fn is_idle(known: Option<&Mount>, now: Option<&Mount>) -> bool {
    known.zip(now).is_some_and(|(known, now)| expires_into(known, now))
}

/// Returns whether two mounts of a target are the same, also if it was idle before or in between.
pub fn is_same(before: &Mount, now: &Mount, table: &[Mount]) -> bool {
    // Each time that it is mounted, it gets a new number.
    let without_device = |mount: &Mount| Mount { device: None, ..mount.clone() };
    let may_expire = || table.iter().any(|other| expires_into(now, other));
    before == now
        || expires_into(now, before)
        || may_expire() && without_device(before) == without_device(now)
}

/// Returns whether `rest` is what is left at the place of a mount while that is idle.
fn expires_into(mount: &Mount, rest: &Mount) -> bool {
    let is_automounted = rest.protocol.is_automount() && !mount.protocol.is_automount();
    mount.point.starts_with(&rest.point) && (is_automounted || is_inner_export(mount, rest))
}

/// Returns whether an NFS mount is a folder of another one that the client mounted by itself, because it is a file system of its own on
/// the server. Such mounts expire after `nfs_mountpoint_expiry_timeout`, 500 seconds (Linux fs/nfs/namespace.c); the source is that
/// of the outer one with the path in it (`nfs_path`).
fn is_inner_export(inner: &Mount, outer: &Mount) -> bool {
    let path = inner.point.strip_prefix(&outer.point).ok().and_then(|path| path.to_str());
    let source = path.filter(|path| !path.is_empty()).map(|path| {
        let outer = outer.source.trim_end_matches('/');
        format!("{outer}/{path}")
    });
    matches!(inner.protocol, Protocol::Nfs(_))
        && inner.protocol == outer.protocol
        && source.is_some_and(|source| source == inner.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nfs(point: &str, source: &str) -> Mount {
        Mount::new(point, source, Protocol::Nfs(Some("4.2".to_owned())))
    }

    #[test]
    fn mount_expires_into_its_automount_and_not_into_a_disk() {
        let share = nfs("/net/nas/media", "nas:/media");
        let at = |point: &str, protocol: &str| Mount::new(point, "x", Protocol::Other(protocol.to_owned()));
        for point in ["/net/nas/media", "/net/nas", "/net"] {
            assert!(is_idle(Some(&share), Some(&at(point, "autofs"))), "{point}");
            assert!(!is_idle(Some(&share), Some(&at(point, "proc"))), "{point}");
        }
        assert!(!is_idle(Some(&share), Some(&at("/net/other", "autofs"))));
        assert!(!is_idle(Some(&at("/net", "autofs")), Some(&at("/net", "autofs"))), "it is as it was");
        assert!(!is_idle(None, Some(&at("/net", "autofs"))) && !is_idle(Some(&share), None));
    }

    #[test]
    fn nfs_mount_expires_into_the_outer_one_of_its_server() {
        let (inner, root) = (nfs("/m/nas/photos", "nas:/photos"), nfs("/m/nas", "nas:/"));
        assert!(is_idle(Some(&inner), Some(&root)));
        assert!(is_same(&root, &inner, std::slice::from_ref(&root)));
        assert!(!is_idle(Some(&inner), Some(&nfs("/m/nas", "other:/"))), "another server");
        assert!(!is_idle(Some(&nfs("/m/nas/photos", "nas:/x")), Some(&root)), "another folder");
        assert!(!is_idle(Some(&root), Some(&inner)));
    }

    #[test]
    fn device_number_is_ignored_below_an_automount_only() {
        let mounted = |device: &str| Mount { device: Some(device.to_owned()), ..nfs("/m/nas", "nas:/") };
        let automount = Mount::new("/m/nas", "systemd-1", Protocol::Other("autofs".to_owned()));
        assert!(is_same(&mounted("0:51"), &mounted("0:52"), &[automount]));
        assert!(!is_same(&mounted("0:51"), &mounted("0:52"), &[]));
    }

    /// Returns whether the earlier mount of a target counts as expired at each step. `None`: its mount is idle.
    fn expired(steps: &[Option<&Mount>]) -> Vec<bool> {
        let (mut mounts, target) = (IdleMounts::default(), "nas".parse().unwrap());
        let (mut before, mut found) = (None, vec![]);
        for step in steps {
            match step {
                None => mounts.set_idle(&target, before),
                Some(now) => mounts.set_mounted(&target, before.replace(*now), Some(*now)),
            }
            found.push(!mounts.take_expired().is_empty());
        }
        found
    }

    #[test]
    fn mount_with_another_device_number_was_made_again() {
        let mounted = |device: &str| Mount { device: Some(device.to_owned()), ..nfs("/m/nas", "nas:/") };
        let automount = Mount {
            device: Some("0:40".to_owned()),
            ..Mount::new("/m/nas", "systemd-1", Protocol::Other("autofs".to_owned()))
        };
        let [first, second] = ["0:51", "0:52"].map(mounted);
        let steps = [Some(&automount), Some(&first), None, Some(&first), None, Some(&second), Some(&first)];
        assert_eq!(expired(&steps), [false, false, false, false, false, true, true]);
    }

    #[test]
    fn mount_without_a_device_number_has_expired_once_it_is_idle() {
        let share = nfs("/m/nas", "nas:/");
        let steps = [Some(&share), Some(&share), None, None, Some(&share), None];
        assert_eq!(expired(&steps), [false, false, true, false, false, true]);
    }
}
