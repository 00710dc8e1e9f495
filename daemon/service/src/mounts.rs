//! Detects changes of the targets' mounts from the mount table, without accessing any mount. Pure.

mod idle;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use longhaul_measure::platform::{SYSTEM, System};
use longhaul_model::{Event, Mount, ProtocolFamily, Target, TargetName, Timestamp};
use serde_json::{Value, json};

/// The last known mount of each target, and where it was mounted before.
#[derive(Debug, Clone, Default)]
pub struct MountTracker {
    targets: BTreeMap<TargetName, TargetMount>,
    /// Mounts that come and go by themselves.
    idle: idle::IdleMounts,
}

/// The mount of a target, and where it was mounted before.
#[derive(Debug, Clone, Default)]
struct TargetMount {
    /// Path of the target. All that is known is about this path.
    path: PathBuf,
    mount: Option<Mount>,
    /// The mount with which the next one is compared: the last one that was not idle.
    compared: Option<Mount>,
    /// Source of the share that the target was on.
    share: Option<String>,
    /// Mount point of this share, which is no longer at the place of the target.
    moved_to: Option<PathBuf>,
    /// True if the path differs from a mount point in upper and lower case only, so that only a look at the path can tell where it
    /// leads.
    is_unclear: bool,
    /// Deepest folder above the target at which something was mounted.
    point: Option<PathBuf>,
    /// True if nothing is mounted any more at that folder.
    is_unmounted: bool,
    /// True in `/Volumes` if a Mac has nothing mounted there above the target.
    is_bare_volume: bool,
}

/// A change of a target's mount.
#[derive(Debug, Clone, PartialEq)]
pub struct MountChange {
    /// Name of the target.
    pub target: TargetName,
    /// Kind of the event, such as `unmount`.
    pub kind: &'static str,
    /// The mount before and after the change, as JSON.
    pub detail: Value,
}

impl MountChange {
    /// Returns the event that records the change.
    pub fn into_event(self, at: Timestamp) -> Event {
        Event { target: Some(self.target), kind: self.kind.to_owned(), detail: self.detail, at_us: at }
    }
}

impl MountTracker {
    /// Updates the mounts from the mount table and returns the changes since the last
    /// call. A new target, or one whose path was changed, has no change; nor has one whose mount becomes idle or is used again.
    /// Symbolic links in the targets' paths are not followed.
    pub fn update(&mut self, targets: &[Target], table: &[Mount]) -> Vec<MountChange> {
        // Every running system has a mount: an empty table means that reading it failed.
        if table.is_empty() {
            return vec![];
        }
        self.targets.retain(|name, known| {
            targets.iter().any(|target| target.name == *name && target.path == known.path)
        });
        self.idle.retain(|name| self.targets.contains_key(name));
        targets.iter().filter_map(|target| self.update_target(target, table)).collect()
    }

    fn update_target(&mut self, target: &Target, table: &[Mount]) -> Option<MountChange> {
        let is_new = !self.targets.contains_key(&target.name);
        let known = self.targets.entry(target.name.clone()).or_default();
        known.path.clone_from(&target.path);
        known.mount = Mount::for_path(table, &target.path).map(without_free_space);
        known.is_bare_volume = is_bare_volume(System::MacOs, &target.path, table);
        known.follow_share(table);
        known.follow_point();
        let now = known.mount.as_ref();
        if idle::is_idle(known.compared.as_ref(), now) {
            self.idle.set_idle(&target.name, known.compared.as_ref());
            return None;
        }
        self.idle.set_mounted(&target.name, known.compared.as_ref(), now);
        let before = std::mem::replace(&mut known.compared, now.cloned());
        let kind = change_kind(before.as_ref(), now, table).filter(|_| !is_new)?;
        let detail = json!({ "before": before.as_ref().map(mount_detail), "after": now.map(mount_detail) });
        Some(MountChange { target: target.name.clone(), kind, detail })
    }

    /// Returns the targets whose earlier mount has expired since the last call, also where that is no change, as below an automount.
    pub fn take_expired(&mut self) -> BTreeSet<TargetName> {
        self.idle.take_expired()
    }

    /// Returns where the disk or share of a target was mounted, if nothing is mounted there any more.
    pub fn missing_disk(&self, name: &TargetName) -> Option<&Path> {
        self.targets.get(name).filter(|known| known.is_unmounted)?.point.as_deref()
    }

    /// Returns where the share of a target is mounted now, if it was at another place before.
    pub fn moved_to(&self, name: &TargetName) -> Option<&Path> {
        self.targets.get(name)?.moved_to.as_deref()
    }

    /// Returns the mount that contains a target. `None`: unknown.
    pub fn mount(&self, name: &TargetName) -> Option<&Mount> {
        self.targets.get(name)?.mount.as_ref()
    }

    /// Returns whether a target belongs on a share: it was on one when last measured, or since the service started.
    pub fn is_on_share(&self, name: &TargetName, last_family: Option<ProtocolFamily>) -> bool {
        last_family.is_some_and(|family| family != ProtocolFamily::Local)
            || self.targets.get(name).is_some_and(|known| known.share.is_some())
    }

    /// Returns whether the share or the disk of a target is unmounted: one that belongs on a share is now on a local disk, or nothing is
    /// mounted where something was since the service started, or on a Mac at its name in `/Volumes`. Writes to its path would go to the
    /// empty folder below.
    pub fn is_unmounted(&self, name: &TargetName, last_family: Option<ProtocolFamily>) -> bool {
        self.is_unmounted_on(SYSTEM, name, last_family)
    }

    fn is_unmounted_on(
        &self,
        system: System,
        name: &TargetName,
        last_family: Option<ProtocolFamily>,
    ) -> bool {
        let family = self.mount(name).map(|mount| mount.protocol.family());
        let known = self.targets.get(name);
        let is_bare_volume = system == System::MacOs && known.is_some_and(|known| known.is_bare_volume);
        let was_elsewhere = self.is_on_share(name, last_family) || self.missing_disk(name).is_some();
        let is_missing = is_bare_volume || was_elsewhere;
        let is_unclear = known.is_some_and(|known| known.is_unclear);
        is_missing && matches!(family, Some(ProtocolFamily::Local) | None) && !is_unclear
    }
}

impl TargetMount {
    fn follow_share(&mut self, table: &[Mount]) {
        (self.moved_to, self.is_unclear) = (None, false);
        if let Some(share) = self.mount.as_ref().filter(|mount| is_share(mount)) {
            self.share = Some(share.source.clone());
            return;
        }
        let shares = || table.iter().filter(|mount| mount.protocol.family().is_remote());
        let moved = shares().find(|mount| self.share.as_ref() == Some(&mount.source));
        self.moved_to = moved.map(|mount| mount.point.clone());
        self.is_unclear = shares().any(|mount| is_below_in_other_case(&self.path, &mount.point));
    }

    fn follow_point(&mut self) {
        let Some(now) = &self.mount else { return };
        let known = self.point.as_ref();
        self.is_unmounted = known.is_some_and(|point| *point != now.point && point.starts_with(&now.point));
        if !self.is_unmounted {
            self.point = Some(now.point.clone());
        }
    }
}

/// Returns true if a path is at or below `/Volumes/NAME` on a Mac, and nothing is mounted there, so that it leads to the start disk. macOS
/// mounts shares and disks in that folder (apple-oss-distributions/DiskArbitration, diskarbitrationd/DAMain.c,
/// `kDAMainMountPointFolder`). Pure: a symbolic link, as `/Volumes/Macintosh HD` is one, is not followed.
pub fn is_bare_volume(system: System, path: &Path, table: &[Mount]) -> bool {
    let root = Path::new("/");
    let is_in_volumes = path.strip_prefix("/Volumes").is_ok_and(|rest| rest.components().next().is_some());
    let is_on_start_disk = Mount::for_path(table, path).is_some_and(|mount| mount.point == root);
    let may_lead_to = |mount: &Mount| mount.point != root && is_below_in_other_case(path, &mount.point);
    system == System::MacOs && is_in_volumes && is_on_start_disk && !table.iter().any(may_lead_to)
}

/// Returns true if a path may be at or below a folder for a system that ignores case: names that are not ASCII may be equal in many
/// ways.
pub(crate) fn is_below_in_other_case(path: &Path, folder: &Path) -> bool {
    let mut parts = path.components().map(|part| part.as_os_str());
    let may_be_equal = |part: &OsStr, other: &OsStr| {
        part.eq_ignore_ascii_case(other) || !(part.as_bytes().is_ascii() && other.as_bytes().is_ascii())
    };
    folder.components().all(|part| parts.next().is_some_and(|other| may_be_equal(part.as_os_str(), other)))
}

/// Returns whether a mount is a share: anything but a local disk and the place of an automount. A file system of an unknown type counts as
/// one, because its path leads to another disk when it is not mounted.
fn is_share(mount: &Mount) -> bool {
    mount.protocol.family() != ProtocolFamily::Local && !mount.protocol.is_automount()
}

/// Removes the disk space from a mount: it changes all the time and is no change of the mount.
pub(crate) fn without_free_space(mount: &Mount) -> Mount {
    Mount { free_bytes: None, total_bytes: None, ..mount.clone() }
}

fn mount_detail(mount: &Mount) -> Value {
    json!({
        "point": mount.point.to_string_lossy(),
        "protocol": mount.protocol.to_string(),
        "read_only": mount.read_only,
        "negotiated": mount.negotiated,
    })
}

/// Returns the event kind of a mount change. `None`: no change.
fn change_kind(before: Option<&Mount>, now: Option<&Mount>, table: &[Mount]) -> Option<&'static str> {
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) if idle::is_same(before, now, table) => return None,
        (Some(before), Some(now)) => (before, now),
        (None, None) => return None,
        (None, Some(_)) => return Some("mount"),
        (Some(_), None) => return Some("unmount"),
    };
    // `Mount::for_path` finds the deepest mount above the target: after an unmount, that
    // is one closer to the root.
    let depth = |mount: &Mount| mount.point.components().count();
    Some(match depth(now).cmp(&depth(before)) {
        std::cmp::Ordering::Less => "unmount",
        std::cmp::Ordering::Greater => "mount",
        std::cmp::Ordering::Equal if before.protocol != now.protocol => "protocol",
        std::cmp::Ordering::Equal if before.read_only != now.read_only => {
            if now.read_only {
                "read-only"
            } else {
                "writable"
            }
        }
        std::cmp::Ordering::Equal => "remount",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{Protocol, Role};

    fn mount(point: &str, protocol: Protocol) -> Mount {
        Mount { free_bytes: Some(7), ..Mount::new(point, "nas:/share", protocol) }
    }

    #[test]
    fn each_change_has_its_kind_and_free_space_is_no_change() {
        let target = Target { name: "smb".parse().unwrap(), path: "/m/nas/x".into(), role: Role::Share };
        let root = mount("/", Protocol::Local("ext4".into()));
        let smb = mount("/m/nas", Protocol::Smb(None));
        let read_only = Mount { read_only: true, ..smb.clone() };
        let nfs = mount("/m/nas", Protocol::Nfs(None));
        let fuller = Mount { free_bytes: Some(1), ..nfs.clone() };
        let other_source = Mount { source: "nas:/other".into(), ..nfs.clone() };
        let mut tracker = MountTracker::default();
        let steps = [
            (vec![root.clone(), smb.clone()], None),
            (vec![root.clone(), read_only], Some("read-only")),
            (vec![root.clone(), smb], Some("writable")),
            (vec![root.clone(), nfs], Some("protocol")),
            (vec![root.clone(), fuller], None),
            (vec![root.clone(), other_source.clone()], Some("remount")),
            (vec![root.clone()], Some("unmount")),
            (vec![root, other_source], Some("mount")),
        ];
        for (table, expected) in steps {
            let changes = tracker.update(std::slice::from_ref(&target), &table);
            assert_eq!(changes.first().map(|change| change.kind), expected);
        }
        assert!(!tracker.is_unmounted(&target.name, Some(ProtocolFamily::Network)));
        tracker.update(std::slice::from_ref(&target), &[mount("/", Protocol::Local("ext4".into()))]);
        assert!(tracker.is_unmounted(&target.name, Some(ProtocolFamily::Network)));
    }

    #[test]
    fn mount_of_an_automount_that_comes_and_goes_is_no_change() {
        let target = Target { name: "smb".parse().unwrap(), path: "/m/nas/x".into(), role: Role::Share };
        let root = || mount("/", Protocol::Local("ext4".into()));
        let idle = || vec![root(), mount("/m/nas", Protocol::Other("autofs".into()))];
        let with = |mount: Mount| [idle(), vec![mount]].concat();
        let smb = |device: &str| Mount {
            device: Some(device.to_owned()),
            ..mount("/m/nas", Protocol::Smb(Some("3.1.1".into())))
        };
        let nfs = mount("/m/nas", Protocol::Nfs(None));
        let steps = [
            (idle(), None),
            (with(smb("0:51")), None),
            (idle(), None),
            (with(smb("0:52")), None),
            (idle(), None),
            (with(Mount { read_only: true, ..smb("0:53") }), Some("read-only")),
            (idle(), None),
            (with(nfs), Some("protocol")),
            (vec![root()], Some("unmount")),
        ];
        let mut tracker = MountTracker::default();
        for (number, (table, expected)) in steps.into_iter().enumerate() {
            let changes = tracker.update(std::slice::from_ref(&target), &table);
            assert_eq!(changes.first().map(|change| change.kind), expected, "step {number}");
            let has_expired = [3, 5, 7].contains(&number);
            assert_eq!(tracker.take_expired().len(), usize::from(has_expired), "step {number}");
        }
    }

    #[test]
    fn local_disk_that_was_mounted_can_be_unmounted() {
        let target =
            |path: &str| Target { name: "usb".parse().unwrap(), path: path.into(), role: Role::Share };
        let ext4 = |point: &str| mount(point, Protocol::Local("ext4".into()));
        let [root, disk, inner] = ["/", "/media/usb", "/media/usb/inner"].map(ext4);
        let mut tracker = MountTracker::default();
        let mut is_unmounted = |target: &Target, table: &[&Mount]| {
            let table: Vec<Mount> = table.iter().map(|mount| (*mount).clone()).collect();
            tracker.update(std::slice::from_ref(target), &table);
            tracker.is_unmounted(&target.name, Some(ProtocolFamily::Local))
        };
        let on_disk = target("/media/usb/a");
        assert!(!is_unmounted(&on_disk, &[&root]), "it may belong on this disk");
        assert!(!is_unmounted(&on_disk, &[&root, &disk]));
        assert!(is_unmounted(&on_disk, &[&root]));
        assert!(is_unmounted(&on_disk, &[&root]), "also at the next look");
        assert!(!is_unmounted(&on_disk, &[&root, &disk, &inner]));
        assert!(!is_unmounted(&target("/home/a"), &[&root]), "it was moved to another folder");
        let automount = mount("/media", Protocol::Other("autofs".into()));
        assert!(!is_unmounted(&on_disk, &[&root, &automount, &disk]));
        assert!(!is_unmounted(&on_disk, &[&root, &automount]), "it is mounted again by the next access");
    }

    #[test]
    fn target_that_was_on_a_share_can_be_unmounted() {
        let target = Target { name: "x".parse().unwrap(), path: "/m/nas/x".into(), role: Role::Share };
        let targets = std::slice::from_ref(&target);
        let root = [mount("/", Protocol::Local("ext4".into()))];
        let mut tracker = MountTracker::default();
        tracker.update(targets, &root);
        assert!(!tracker.is_unmounted(&target.name, Some(ProtocolFamily::Local)));
        assert!(
            tracker.is_unmounted(&target.name, Some(ProtocolFamily::Other)),
            "it was measured on a share"
        );
        assert!(!tracker.is_unmounted(&target.name, None));
        tracker.update(targets, &[root[0].clone(), mount("/m/nas", Protocol::Nfs(None))]);
        assert!(!tracker.is_unmounted(&target.name, None));
        tracker.update(targets, &root);
        assert!(tracker.is_unmounted(&target.name, None), "it was seen on a share, although never measured");
    }

    #[test]
    fn target_that_was_moved_off_its_share_is_not_unmounted() {
        let share = Target { name: "x".parse().unwrap(), path: "/m/nas/x".into(), role: Role::Share };
        let table = [mount("/", Protocol::Local("ext4".into())), mount("/m/nas", Protocol::Nfs(None))];
        let mut tracker = MountTracker::default();
        tracker.update(std::slice::from_ref(&share), &table);
        let moved = Target { path: "/home/ada/x".into(), ..share };
        let changes = tracker.update(std::slice::from_ref(&moved), &table);
        assert!(changes.is_empty(), "the share is still mounted: {changes:?}");
        assert!(!tracker.is_unmounted(&moved.name, None));
    }

    #[test]
    fn share_that_was_mounted_elsewhere_is_found_by_its_source() {
        let target =
            Target { name: "smb".parse().unwrap(), path: "/Volumes/media/x".into(), role: Role::Share };
        let targets = std::slice::from_ref(&target);
        let root = mount("/", Protocol::Local("apfs".into()));
        let at = |point: &str| mount(point, Protocol::Smb(None));
        let mut tracker = MountTracker::default();
        tracker.update(targets, &[root.clone(), at("/Volumes/media")]);
        assert_eq!(tracker.moved_to(&target.name), None);
        tracker.update(targets, &[root.clone(), at("/Volumes/media-1")]);
        assert!(tracker.is_unmounted(&target.name, None));
        assert_eq!(tracker.moved_to(&target.name), Some(Path::new("/Volumes/media-1")));
        tracker.update(targets, &[root, at("/Volumes/media")]);
        assert_eq!(tracker.moved_to(&target.name), None);
    }

    #[test]
    fn volume_without_a_mount_is_bare_on_a_mac() {
        let root = mount("/", Protocol::Local("apfs".into()));
        let table = [
            root,
            mount("/Volumes/media", Protocol::Smb(None)),
            mount("/Volumes/USB", Protocol::Local("exfat".into())),
        ];
        let is_bare = |system, path: &str| is_bare_volume(system, Path::new(path), &table);
        for path in ["/Volumes/photos", "/Volumes/photos/x", "/Volumes/media-1/x"] {
            assert!(is_bare(System::MacOs, path), "{path}");
            assert!(!is_bare(System::Linux, path), "{path}");
        }
        for path in ["/Volumes", "/Volumes/media/x", "/Volumes/usb/x", "/Users/ada/x", "/x/Volumes/photos"] {
            assert!(!is_bare(System::MacOs, path), "{path}");
        }
    }

    #[test]
    fn bare_volume_is_unmounted_without_any_history() {
        let target =
            Target { name: "x".parse().unwrap(), path: "/Volumes/media/x".into(), role: Role::Share };
        let root = mount("/", Protocol::Local("apfs".into()));
        let mut tracker = MountTracker::default();
        let mut is_unmounted_on = |system, table: &[Mount]| {
            tracker.update(std::slice::from_ref(&target), table);
            tracker.is_unmounted_on(system, &target.name, None)
        };
        let bare = [root.clone()];
        assert!(is_unmounted_on(System::MacOs, &bare));
        assert!(!is_unmounted_on(System::Linux, &bare));
        assert!(!is_unmounted_on(System::MacOs, &[root, mount("/Volumes/media", Protocol::Smb(None))]));
    }

    #[test]
    fn path_in_other_case_is_left_to_a_look_at_it() {
        let target =
            Target { name: "smb".parse().unwrap(), path: "/volumes/Media/x".into(), role: Role::Share };
        let mut tracker = MountTracker::default();
        let root = mount("/", Protocol::Local("apfs".into()));
        let table = [root.clone(), mount("/Volumes/media", Protocol::Smb(None))];
        tracker.update(std::slice::from_ref(&target), &table);
        assert!(!tracker.is_unmounted(&target.name, Some(ProtocolFamily::Network)));
        tracker.update(std::slice::from_ref(&target), std::slice::from_ref(&root));
        assert!(tracker.is_unmounted(&target.name, Some(ProtocolFamily::Network)));
        let target = Target { path: "/Volumes/M\u{dc}SIK/x".into(), ..target };
        tracker.update(
            std::slice::from_ref(&target),
            &[root, mount("/Volumes/Mu\u{308}sik", Protocol::Smb(None))],
        );
        assert!(!tracker.is_unmounted(&target.name, Some(ProtocolFamily::Network)));
    }
}
