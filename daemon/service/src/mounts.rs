//! What lies under the targets, as the mount table says: noticed without touching any of them. Pure.

use std::collections::BTreeMap;

use longhaul_measure::model::{Family, Mount, Target, TargetName};
use serde_json::{Value, json};

/// What was last seen under each target.
#[derive(Debug, Clone, Default)]
pub struct MountBook {
    seen: BTreeMap<TargetName, Option<Mount>>,
}

/// Something changed under a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The target.
    pub target: TargetName,
    /// The event's kind.
    pub kind: &'static str,
    /// The particulars.
    pub detail: Value,
}

impl MountBook {
    /// Takes in the mount table and tells what changed under which target since the last time. A target that was not
    /// there before has not changed.
    pub fn changes(&mut self, targets: &[Target], table: &[Mount]) -> Vec<Change> {
        // A system without a single mount does not run: the table could not be read.
        if table.is_empty() {
            return vec![];
        }
        self.seen.retain(|name, _| targets.iter().any(|target| target.name == *name));
        let look = |target: &Target| {
            let now = Mount::of_path(table, &target.path).map(without_space);
            let before = self.seen.insert(target.name.clone(), now.clone())?;
            let kind = kind(before.as_ref(), now.as_ref())?;
            let detail = json!({ "before": before.as_ref().map(told), "after": now.as_ref().map(told) });
            Some(Change { target: target.name.clone(), kind, detail })
        };
        targets.iter().filter_map(look).collect()
    }

    /// What lies under a target.
    pub fn mount(&self, name: &TargetName) -> Option<&Mount> {
        self.seen.get(name)?.as_ref()
    }

    /// Whether a target that was a share when it was last measured lies on a local disk now: its mount is gone, and what
    /// is written to its path would land in the empty folder below.
    pub fn is_bare(&self, name: &TargetName, was: Option<Family>) -> bool {
        let now = self.mount(name).map(|mount| mount.protocol.family());
        matches!((was, now), (Some(Family::Network | Family::Fuse), Some(Family::Local) | None))
    }
}

/// Free space changes all the time and says nothing about the mount.
fn without_space(mount: &Mount) -> Mount {
    Mount { free_bytes: None, total_bytes: None, ..mount.clone() }
}

fn told(mount: &Mount) -> Value {
    json!({
        "point": mount.point.to_string_lossy(),
        "protocol": mount.protocol.to_string(),
        "read_only": mount.read_only,
        "negotiated": mount.negotiated,
    })
}

fn kind(before: Option<&Mount>, now: Option<&Mount>) -> Option<&'static str> {
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) if before == now => return None,
        (Some(before), Some(now)) => (before, now),
        (None, None) => return None,
        (None, Some(_)) => return Some("mount"),
        (Some(_), None) => return Some("unmount"),
    };
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
    use longhaul_measure::model::{Negotiated, Protocol, Role};

    fn mount(point: &str, protocol: Protocol) -> Mount {
        Mount {
            point: point.into(),
            source: "nas:/share".into(),
            protocol,
            negotiated: Negotiated::new(),
            read_only: false,
            free_bytes: Some(7),
            total_bytes: None,
            server: None,
            device: None,
        }
    }

    #[test]
    fn each_change_has_its_name_and_free_space_is_none() {
        let target = Target { name: "smb".parse().unwrap(), path: "/m/nas/x".into(), role: Role::Share };
        let root = mount("/", Protocol::Local("ext4".into()));
        let smb = mount("/m/nas", Protocol::Smb(None));
        let read_only = Mount { read_only: true, ..smb.clone() };
        let nfs = mount("/m/nas", Protocol::Nfs(None));
        let fuller = Mount { free_bytes: Some(1), ..nfs.clone() };
        let other_source = Mount { source: "nas:/other".into(), ..nfs.clone() };
        let mut book = MountBook::default();
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
            let changes = book.changes(std::slice::from_ref(&target), &table);
            assert_eq!(changes.first().map(|change| change.kind), expected);
        }
        assert!(!book.is_bare(&target.name, Some(Family::Network)));
        book.changes(std::slice::from_ref(&target), &[mount("/", Protocol::Local("ext4".into()))]);
        assert!(book.is_bare(&target.name, Some(Family::Network)));
        assert!(!book.is_bare(&target.name, Some(Family::Local)) && !book.is_bare(&target.name, None));
    }
}
