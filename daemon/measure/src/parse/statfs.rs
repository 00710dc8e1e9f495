//! Parser for the mount facts in `struct statfs` on macOS (xnu bsd/sys/mount.h:110).

use super::mount_source::{is_loopback, percent_decode, server_of_source, without_credentials};
use longhaul_model::Protocol;

/// Flag `MNT_LOCAL` of a mount (xnu bsd/sys/mount.h:324).
const MNT_LOCAL: u32 = 0x1000;

/// Returns the protocol, without its version, and the source, without user name, of a mount with these
/// `f_fstypename`, `f_mntfromname` and `f_flags`. Bytes after the first NUL of a name are ignored.
pub fn statfs(type_name: &[u8], from_name: &[u8], flags: u32) -> (Protocol, String) {
    let (kind, from) = (text(type_name), text(from_name));
    let protocol = protocol(&kind, &from, flags);
    let source = match protocol {
        Protocol::Local(_) => from,
        // Only the sources of SMB and AFP have escapes (SMBClient lib/smb/parse_url.c:1679); an NFS path may
        // contain a real `%20`.
        Protocol::Smb(_) | Protocol::Afp => percent_decode(&without_credentials(&from)),
        Protocol::Nfs(_) | Protocol::Webdav | Protocol::Sftp | Protocol::Fuse(_) | Protocol::Other(_) => {
            without_credentials(&from)
        }
    };
    (protocol, source)
}

/// Returns whether an `f_mntonname` is that of a share which Time Machine mounted for a backup: it is there for minutes, and others are
/// refused, on a share for guests, too (SMBClient kernel/smbfs/smbfs_vnops.c:13427-13443).
pub fn is_time_machine_mount(point: &[u8]) -> bool {
    point.starts_with(b"/Volumes/.timemachine/")
}

/// Returns whether an `f_mntfromname` is that of a share mounted as guest, which smbfs lets every user use (SMBClient
/// kernel/smbfs/smbfs_vnops.c:13427-13443).
pub fn is_guest_share(from_name: &[u8]) -> bool {
    let from = text(from_name);
    let user = from
        .strip_prefix("//")
        .and_then(|rest| rest.split(['/', '@', ':']).next().filter(|_| rest.contains('@')));
    user.is_some_and(|user| user.eq_ignore_ascii_case("guest"))
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

fn protocol(kind: &str, from: &str, flags: u32) -> Protocol {
    match kind {
        // fuse-t has no kernel part: it is a server on this machine (fuse-t README).
        "nfs" | "smbfs" if from.starts_with("fuse-t:") => Protocol::Fuse(Some("fuse-t".to_owned())),
        "smbfs" => Protocol::Smb(None),
        "nfs" => nfs(from),
        "afpfs" => Protocol::Afp,
        "webdav" => Protocol::Webdav,
        // Names of macFUSE over the years: mpv pull request 8769.
        "macfuse" | "osxfuse" | "osxfusefs" | "fusefs" => Protocol::Fuse(None),
        _ if flags & MNT_LOCAL != 0 && is_disk(kind) => Protocol::Local(kind.to_owned()),
        _ => Protocol::Other(kind.to_owned()),
    }
}

/// Returns the protocol of a mount of the type `nfs`. `ftp:` mounts have this type too (NFS
/// nfsstat/nfsstat.c), and a server on this machine is most often a program that speaks NFS to the kernel and
/// another protocol to its own server. OrbStack's mount of its virtual machine has a name of its own (`mount` as published in
/// orbstack/orbstack#2689).
fn nfs(from: &str) -> Protocol {
    if from.starts_with("ftp:") {
        Protocol::Other("ftp".to_owned())
    } else if from.starts_with("OrbStack:") || is_loopback(server_of_source(&without_credentials(from))) {
        Protocol::Other("nfs from this machine".to_owned())
    } else {
        Protocol::Nfs(None)
    }
}

/// Returns whether a type is a file system of disks. `lifs` is not one: anything may be behind FSKit.
fn is_disk(kind: &str) -> bool {
    matches!(
        kind,
        "apfs" | "hfs" | "exfat" | "msdos" | "ntfs" | "udf" | "cd9660" | "cddafs" | "ufs" | "zfs" | "tmpfs"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One example of each documented form of `f_mntfromname`: SMBClient lib/smb/parse_url.c:1679, NFS
    /// kext/nfs_vfsops.c:1612, xnu, autofs.
    const FORMS: &[(&str, &str, u32, &str, &str)] = &[
        ("apfs", "/dev/disk3s1s1", MNT_LOCAL, "apfs", "/dev/disk3s1s1"),
        ("devfs", "devfs", MNT_LOCAL, "devfs", "devfs"),
        ("autofs", "map auto_home", 0x400000, "autofs", "map auto_home"),
        ("smbfs", "//ada@nas.local/media", 0x18, "SMB", "//nas.local/media"),
        ("smbfs", "//guest:@nas/my%20share", 0x18, "SMB", "//nas/my share"),
        ("smbfs", "//ada%40work@NAS._smb._tcp.local/share/sub", 0, "SMB", "//NAS._smb._tcp.local/share/sub"),
        ("smbfs", "//u@[fe80::1%25en0]/share", 0, "SMB", "//[fe80::1%en0]/share"),
        ("smbfs", "//nas/%zz%", 0, "SMB", "//nas/%zz%"),
        ("nfs", "nas.local:/volume1/my%20media", 0x18, "NFS", "nas.local:/volume1/my%20media"),
        ("nfs", "ftp://ada:secret@host/", 0, "ftp", "ftp://host/"),
        ("nfs", "fuse-t:/ntfs", 0, "FUSE (fuse-t)", "fuse-t:/ntfs"),
        ("nfs", "127.0.0.1:/srv", 0, "nfs from this machine", "127.0.0.1:/srv"),
        ("nfs", "[::1]:/srv", 0, "nfs from this machine", "[::1]:/srv"),
        ("nfs", "OrbStack:/OrbStack", 0, "nfs from this machine", "OrbStack:/OrbStack"),
        (
            "afpfs",
            "//ada@mynas._afpovertcp._tcp.local/Media",
            0,
            "AFP",
            "//mynas._afpovertcp._tcp.local/Media",
        ),
        ("webdav", "https://ada@cloud.example/dav/", 0, "WebDAV", "https://cloud.example/dav/"),
        ("macfuse", "ada@nas:/volume1", 0, "FUSE", "nas:/volume1"),
        ("macfuse", "/dev/disk5s1", MNT_LOCAL, "FUSE", "/dev/disk5s1"),
        ("apfs", "/dev/disk9", 0, "apfs", "/dev/disk9"),
    ];

    #[test]
    fn guest_is_recognized_by_the_user_of_the_source() {
        assert!(is_guest_share(b"//guest:@nas/media\0x") && is_guest_share(b"//GUEST@nas/media"));
        for other in
            ["//nas/guest", "//guest/media", "//ada@guest/media", "//guests@nas/media", "nas:/guest@x"]
        {
            assert!(!is_guest_share(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn each_form_of_a_mount_is_known_and_shown_without_its_user() {
        for (kind, from, flags, shown, source) in FORMS {
            let (protocol, found) = statfs(kind.as_bytes(), from.as_bytes(), *flags);
            assert_eq!((protocol.to_string().as_str(), found.as_str()), (*shown, *source), "{kind} {from}");
        }
    }

    #[test]
    fn a_disk_is_local_only_if_the_system_says_so() {
        assert_eq!(statfs(b"apfs\0\0", b"/dev/disk3\0rest", MNT_LOCAL).0, Protocol::Local("apfs".into()));
        assert_eq!(statfs(b"apfs", b"/dev/disk3", 0).0, Protocol::Other("apfs".into()));
    }
}
