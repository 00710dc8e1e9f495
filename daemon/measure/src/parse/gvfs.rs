//! Protocol behind a path in the FUSE mount of gvfs, the file system service of the desktop.

use std::path::{Component, Path};

use longhaul_model::{Mount, Protocol};

/// Returns the protocol of a path on a mount: that of the mount, except for gvfs. All connections of gvfs
/// share one FUSE mount, with a folder for each, whose name starts with the kind of connection
/// (`afp-volume:host=nas,volume=media`).
///
/// Compares names only. The path has to be the real one, because a link into the mount does not show the
/// connection.
pub fn protocol_at(mount: &Mount, path: &Path) -> Protocol {
    match &mount.protocol {
        Protocol::Fuse(Some(subtype)) if subtype == "gvfsd-fuse" => {
            connection_kind(mount, path).and_then(protocol_of_kind).unwrap_or_else(|| mount.protocol.clone())
        }
        other => other.clone(),
    }
}

/// Returns the kind of the connection, with which the name of its folder starts.
fn connection_kind<'a>(mount: &Mount, path: &'a Path) -> Option<&'a str> {
    match path.strip_prefix(&mount.point).ok()?.components().next()? {
        Component::Normal(name) => name.to_str()?.split_once(':').map(|(kind, _)| kind),
        _ => None,
    }
}

/// Returns the protocol for a kind of gvfs mount (the `Type=` lines of its `daemon/*.mount.in`). The names
/// contain no version.
fn protocol_of_kind(kind: &str) -> Option<Protocol> {
    match kind {
        "afp-volume" => Some(Protocol::Afp),
        "smb-share" => Some(Protocol::Smb(None)),
        "nfs" => Some(Protocol::Nfs(None)),
        "sftp" => Some(Protocol::Sftp),
        "dav" | "davs" | "dav+sd" | "davs+sd" => Some(Protocol::Webdav),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::mountinfo;

    const WORKSTATION: &[u8] = include_bytes!("../../tests/fixtures/mountinfo-workstation.txt");

    fn shown(path: &str) -> String {
        let mounts = mountinfo(WORKSTATION);
        let mount = Mount::for_path(&mounts, Path::new(path)).expect("the fixture has a root");
        protocol_at(mount, Path::new(path)).to_string()
    }

    #[test]
    fn a_gvfs_path_has_the_protocol_of_its_connection() {
        for (path, protocol) in [
            ("/run/user/1000/gvfs/afp-volume:host=10.77.0.2,user=lab,volume=share/photos", "AFP"),
            ("/run/user/1000/gvfs/afp-volume:host=nas,volume=share", "AFP"),
            ("/run/user/1000/gvfs/smb-share:server=nas,share=media/x", "SMB"),
            ("/run/user/1000/gvfs/sftp:host=nas", "SFTP"),
            ("/run/user/1000/gvfs/dav:host=cloud.example,ssl=true", "WebDAV"),
            ("/run/user/1000/gvfs/google-drive:host=x", "FUSE (gvfsd-fuse)"),
            ("/run/user/1000/gvfs/no-connection", "FUSE (gvfsd-fuse)"),
            ("/run/user/1000/gvfs", "FUSE (gvfsd-fuse)"),
        ] {
            assert_eq!(shown(path), protocol, "{path}");
        }
    }

    #[test]
    fn gvfs_folder_names_on_other_mounts_are_ignored() {
        assert_eq!(shown("/mnt/smb/afp-volume:host=nas"), "SMB 3.1.1");
        assert_eq!(shown("/mnt/ssh/gvfs/afp-volume:host=nas"), "SFTP");
    }
}
