//! Protocol of a mount, from a closed set, with its negotiated version and options.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// File system or network protocol of a mount, with the dialect in use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", tag = "family", content = "version")]
pub enum Protocol {
    /// Apple Filing Protocol.
    Afp,
    /// NFS with its negotiated version (`3`, `4.0`, `4.1`, `4.2`); `None` if the system does not report it.
    Nfs(Option<String>),
    /// SMB with its negotiated dialect (`1.0`, `2.0.2`, `2.1`, `3.0`, `3.0.2`, `3.1.1`); `None` if unknown.
    Smb(Option<String>),
    /// WebDAV.
    Webdav,
    /// SFTP through sshfs.
    Sftp,
    /// Another FUSE file system, with the subtype that the system reports.
    Fuse(Option<String>),
    /// Local file system, with the system's own name (`ext4`, `apfs`, `tmpfs`).
    Local(String),
    /// Any other file system, with the system's own name (`ceph`, `9p`, `proc`).
    Other(String),
}

/// Types of file systems on other machines, or on the host of a virtual machine, that have no variant of [`Protocol`].
const OTHER_NETWORK_TYPES: [&str; 8] =
    ["9p", "afs", "ceph", "gpfs", "lustre", "orangefs", "vboxsf", "virtiofs"];

/// Family of protocols, without versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolFamily {
    /// Network protocols: data crosses a network, or comes from the host of a virtual machine.
    Network,
    /// User-space file systems: data may or may not cross a network.
    Fuse,
    /// Local file systems: data stays on this machine.
    Local,
    /// Unknown file systems and protocols.
    Other,
}

impl ProtocolFamily {
    /// Returns whether data may cross a network.
    pub const fn is_remote(self) -> bool {
        match self {
            Self::Network | Self::Fuse => true,
            Self::Local | Self::Other => false,
        }
    }
}

impl Protocol {
    /// Returns the family of the protocol, which says whether data crosses a network.
    pub fn family(&self) -> ProtocolFamily {
        match self {
            Self::Afp | Self::Nfs(_) | Self::Smb(_) | Self::Webdav | Self::Sftp => ProtocolFamily::Network,
            Self::Fuse(_) => ProtocolFamily::Fuse,
            Self::Local(_) => ProtocolFamily::Local,
            Self::Other(name) if OTHER_NETWORK_TYPES.contains(&name.as_str()) => ProtocolFamily::Network,
            Self::Other(_) => ProtocolFamily::Other,
        }
    }

    /// Returns whether it is the place of an automount: the next access mounts another file system there (Linux fs/autofs, autofs(5)).
    pub fn is_automount(&self) -> bool {
        matches!(self, Self::Other(name) if name == "autofs")
    }

    /// Returns whether an access to the file system may wait for another machine.
    pub fn may_block(&self) -> bool {
        self.family().is_remote() || self.is_automount()
    }
}

impl Protocol {
    /// Returns the protocol with the version from another reading, if this reading has no version.
    pub fn with_version_from(self, other: &Self) -> Self {
        match (&self, other) {
            (Self::Nfs(None), Self::Nfs(_))
            | (Self::Smb(None), Self::Smb(_))
            | (Self::Fuse(None), Self::Fuse(_)) => other.clone(),
            _ => self,
        }
    }

    /// Returns whether the protocol is NFS or SMB with an unknown version.
    pub fn is_version_unknown(&self) -> bool {
        matches!(self, Self::Nfs(None) | Self::Smb(None))
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let versioned = |name: &str, version: &Option<String>| match version {
            Some(version) => format!("{name} {version}"),
            None => name.to_owned(),
        };
        let text = match self {
            Self::Afp => "AFP".to_owned(),
            Self::Nfs(version) => versioned("NFS", version),
            Self::Smb(version) => versioned("SMB", version),
            Self::Webdav => "WebDAV".to_owned(),
            Self::Sftp => "SFTP".to_owned(),
            Self::Fuse(Some(subtype)) => format!("FUSE ({subtype})"),
            Self::Fuse(None) => "FUSE".to_owned(),
            Self::Local(name) | Self::Other(name) => name.clone(),
        };
        f.pad(&text)
    }
}

/// Options that client and server agreed on, as the system reports them (`rsize`, `wsize`, `signing`, `sec`).
/// Values are text.
pub type NegotiatedOptions = BTreeMap<String, String>;

/// Prefix of options that describe a change of longhaul's own behavior (`longhaul-operations-per-second`).
/// They are stored among the negotiated options, because runs that differ in them are not compared either,
/// although no system reports them.
pub const LONGHAUL_KEY_PREFIX: &str = "longhaul-";

/// Negotiated options with a tag of the server and the share: another NAS at the same path opens an epoch. The first is for servers
/// with a host name, the second for those with a name of Bonjour, which need not be the same. Missing while unknown.
pub const SHARE_KEYS: [&str; 2] = ["longhaul-share", "longhaul-bonjour-share"];

/// Entry of the mount table, read without accessing the mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Mount point.
    pub point: PathBuf,
    /// Source of the mount (`//nas/media`), without user name and password.
    pub source: String,
    /// Protocol of the mount.
    pub protocol: Protocol,
    /// Negotiated options that the system knows without a request to the server.
    pub negotiated: NegotiatedOptions,
    /// True if the mount is read-only.
    pub read_only: bool,
    /// Free space for this user in bytes, as last reported to the system; `None` if a query could block.
    pub free_bytes: Option<u64>,
    /// Total size in bytes, with the same source and limits as `free_bytes`.
    pub total_bytes: Option<u64>,
    /// Address of the server, if the mount table contains it. The address is never serialized.
    #[serde(skip)]
    pub server: Option<IpAddr>,
    /// Device number, if the mount table contains it. Mounts with the same number share their counters.
    #[serde(skip)]
    pub device: Option<String>,
    /// Id of the user who mounted it, where the mount table names one: on a Mac, except for shares mounted as guest.
    #[serde(skip)]
    pub owner: Option<u32>,
}

impl Mount {
    /// Tells whether a Mac refuses this mount to a user: an SMB share, to every user but root and the one who mounted it
    /// (SMBClient kernel/smbfs/smbfs_vnops.c:13427).
    pub fn is_refused_to(&self, user: u32) -> bool {
        let is_foreign = self.owner.is_some_and(|owner| owner != user);
        matches!(self.protocol, Protocol::Smb(_)) && is_foreign && user != 0
    }

    /// Returns a writable mount with these properties; all others are unknown.
    pub fn new(point: impl Into<PathBuf>, source: impl Into<String>, protocol: Protocol) -> Self {
        Self {
            point: point.into(),
            source: source.into(),
            protocol,
            negotiated: NegotiatedOptions::new(),
            read_only: false,
            free_bytes: None,
            total_bytes: None,
            server: None,
            owner: None,
            device: None,
        }
    }

    /// Returns the mount that a path lies on: the one with the longest mount point that is a prefix of the
    /// path. Of equal mount points the last one wins, because it covers the earlier ones.
    ///
    /// Compares names only and does not access the path. A path through a symbolic link is therefore judged
    /// by its text, not by its destination.
    pub fn for_path<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
        mounts
            .iter()
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.components().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &str, name: &str) -> Mount {
        Mount::new(point, "none", Protocol::Local(name.into()))
    }

    #[test]
    fn a_mac_refuses_an_smb_share_of_another_user() {
        let of = |protocol: Protocol, owner| Mount { owner, ..Mount::new("/m", "//nas/x", protocol) };
        let smb = |owner| of(Protocol::Smb(None), owner);
        assert!(smb(Some(502)).is_refused_to(501));
        assert!(!smb(Some(501)).is_refused_to(501) && !smb(Some(502)).is_refused_to(0));
        assert!(!smb(None).is_refused_to(501), "Linux names no owner");
        assert!(!of(Protocol::Nfs(None), Some(502)).is_refused_to(501));
    }

    #[test]
    fn the_deepest_and_latest_mount_owns_a_path() {
        let mounts = [mount("/", "ext4"), mount("/m", "tmpfs"), mount("/m/nas", "a"), mount("/m/nas", "b")];
        let owner = |path: &str| Mount::for_path(&mounts, Path::new(path)).map(|m| m.protocol.to_string());
        assert_eq!(owner("/m/nas/photos").as_deref(), Some("b"));
        assert_eq!(owner("/m/nasty").as_deref(), Some("tmpfs"));
        assert_eq!(owner("/home").as_deref(), Some("ext4"));
        assert_eq!(owner("relative"), None);
    }

    #[test]
    fn shares_of_hosts_and_clusters_are_on_a_network() {
        for name in OTHER_NETWORK_TYPES {
            let protocol = Protocol::Other(name.to_owned());
            assert!(protocol.family() == ProtocolFamily::Network && protocol.may_block(), "{name}");
        }
        let [automount, kernel] = ["autofs", "proc"].map(|name| Protocol::Other(name.to_owned()));
        assert!(automount.is_automount() && automount.may_block() && !kernel.may_block());
        assert_eq!([automount.family(), kernel.family()], [ProtocolFamily::Other; 2]);
    }

    #[test]
    fn a_protocol_is_shown_with_its_version_if_known() {
        assert_eq!(Protocol::Smb(Some("3.1.1".into())).to_string(), "SMB 3.1.1");
        assert_eq!(Protocol::Nfs(None).to_string(), "NFS");
    }
}
