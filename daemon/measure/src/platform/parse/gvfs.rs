//! What lies behind a path in the FUSE mount of gvfs, the desktop's own file system service.

use std::path::{Component, Path};

use crate::model::{Mount, Protocol};

/// The protocol that carries a path on a mount: that of the mount, unless gvfs answers for it. All its connections
/// share one FUSE mount, with a folder for each that begins with the kind (`afp-volume:host=nas,volume=media`).
///
/// Purely by name; the path has to be the real one, as a link into the mount tells nothing.
pub fn protocol_below(mount: &Mount, path: &Path) -> Protocol {
    match &mount.protocol {
        Protocol::Fuse(Some(subtype)) if subtype == "gvfsd-fuse" => {
            connection(mount, path).and_then(carrier).unwrap_or_else(|| mount.protocol.clone())
        }
        other => other.clone(),
    }
}

/// The kind of the connection: what its folder's name begins with.
fn connection<'a>(mount: &Mount, path: &'a Path) -> Option<&'a str> {
    match path.strip_prefix(&mount.point).ok()?.components().next()? {
        Component::Normal(name) => name.to_str()?.split_once(':').map(|(kind, _)| kind),
        _ => None,
    }
}

/// Kinds of gvfs mounts (the `Type=` lines of its `daemon/*.mount.in`); versions are not in the name.
fn carrier(kind: &str) -> Option<Protocol> {
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
    use crate::platform::parse::mountinfo;

    const WORKSTATION: &[u8] = include_bytes!("../../../tests/fixtures/mountinfo-workstation.txt");

    fn shown(path: &str) -> String {
        let mounts = mountinfo(WORKSTATION);
        let mount = Mount::of_path(&mounts, Path::new(path)).expect("the fixture has a root");
        protocol_below(mount, Path::new(path)).to_string()
    }

    #[test]
    fn the_desktops_mount_is_named_by_the_connection_that_a_path_leads_into() {
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
    fn a_folder_with_such_a_name_on_another_mount_changes_nothing() {
        assert_eq!(shown("/mnt/smb/afp-volume:host=nas"), "SMB 3.1.1");
        assert_eq!(shown("/mnt/ssh/gvfs/afp-volume:host=nas"), "SFTP");
    }
}
