//! How a target is reached: a closed set, always with what was negotiated.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The file system or protocol behind a mount, with the dialect that is in use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", tag = "family", content = "version")]
pub enum Protocol {
    /// Apple Filing Protocol.
    Afp,
    /// NFS with its version as negotiated, `3`, `4.0`, `4.1`, `4.2`; `None` where the system does not say.
    Nfs(Option<String>),
    /// SMB with its dialect as negotiated, `1.0`, `2.0.2`, `2.1`, `3.0`, `3.0.2`, `3.1.1`; `None` where unknown.
    Smb(Option<String>),
    /// WebDAV.
    Webdav,
    /// SFTP through sshfs.
    Sftp,
    /// Another FUSE file system, with its subtype as the system names it.
    Fuse(Option<String>),
    /// A file system of this machine, by the system's own name (`ext4`, `apfs`, `tmpfs`).
    Local(String),
    /// Something that is neither a known network protocol nor a known local file system.
    Other(String),
}

/// What a protocol is, without its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The bytes cross a network.
    Network,
    /// A user-space file system: may or may not cross a network.
    Fuse,
    /// The bytes stay on this machine.
    Local,
    /// Not known.
    Other,
}

impl Protocol {
    /// Whether the bytes cross a network.
    pub fn family(&self) -> Family {
        match self {
            Self::Afp | Self::Nfs(_) | Self::Smb(_) | Self::Webdav | Self::Sftp => Family::Network,
            Self::Fuse(_) => Family::Fuse,
            Self::Local(_) => Family::Local,
            Self::Other(_) => Family::Other,
        }
    }
}

impl Protocol {
    /// The same protocol with its version from another time, where this time it was not told.
    pub fn completed_from(self, other: &Self) -> Self {
        match (&self, other) {
            (Self::Nfs(None), Self::Nfs(_))
            | (Self::Smb(None), Self::Smb(_))
            | (Self::Fuse(None), Self::Fuse(_)) => other.clone(),
            _ => self,
        }
    }

    /// Whether it has a version that was not told.
    pub fn lacks_version(&self) -> bool {
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

/// What two ends agreed on, as the system reports it (`rsize`, `wsize`, `signing`, `sec`), values as text.
pub type Negotiated = BTreeMap<String, String>;

/// Begins the names of what longhaul itself does otherwise than before (`longhaul-operations-per-second`): it stands among
/// what was negotiated, because runs that differ in it are not compared either, but no system tells it.
pub const OWN_PREFIX: &str = "longhaul-";

/// One line of the mount table, read without touching the mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// What is mounted, with user names and passwords taken out.
    pub source: String,
    /// How it is reached.
    pub protocol: Protocol,
    /// What was negotiated, as far as the system says without a question to the server.
    pub negotiated: Negotiated,
    /// Whether writing is refused.
    pub read_only: bool,
    /// Free bytes for this user as the system last heard; `None` where asking could block.
    pub free_bytes: Option<u64>,
    /// Size in bytes, as `free_bytes`.
    pub total_bytes: Option<u64>,
    /// The server's address, where the mount table has it; it stays in this process.
    #[serde(skip)]
    pub server: Option<IpAddr>,
    /// What the system numbers it by, where the mount table has it: mounts that share it share their counters too.
    #[serde(skip)]
    pub device: Option<String>,
}

impl Mount {
    /// The mount that a path lies on, by the longest mount point that is a prefix of it; later mounts cover earlier ones.
    ///
    /// Purely by name: the path is not touched, so a path that leads through a symbolic link is judged by how it is written.
    pub fn of_path<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
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
        Mount {
            point: point.into(),
            source: "none".into(),
            protocol: Protocol::Local(name.into()),
            negotiated: Negotiated::new(),
            read_only: false,
            free_bytes: None,
            total_bytes: None,
            server: None,
            device: None,
        }
    }

    #[test]
    fn the_deepest_and_latest_mount_owns_a_path() {
        let mounts = [mount("/", "ext4"), mount("/m", "tmpfs"), mount("/m/nas", "a"), mount("/m/nas", "b")];
        let owner = |path: &str| Mount::of_path(&mounts, Path::new(path)).map(|m| m.protocol.to_string());
        assert_eq!(owner("/m/nas/photos").as_deref(), Some("b"));
        assert_eq!(owner("/m/nasty").as_deref(), Some("tmpfs"));
        assert_eq!(owner("/home").as_deref(), Some("ext4"));
        assert_eq!(owner("relative"), None);
    }

    #[test]
    fn a_protocol_is_shown_with_its_negotiated_version_only_when_known() {
        assert_eq!(Protocol::Smb(Some("3.1.1".into())).to_string(), "SMB 3.1.1");
        assert_eq!(Protocol::Nfs(None).to_string(), "NFS");
    }
}
