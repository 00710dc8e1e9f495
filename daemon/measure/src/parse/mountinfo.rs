//! Parser for `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt;

use super::mount_source::without_credentials;
use super::options::{significant_options, with_negotiated_version};
use longhaul_model::{Mount, Protocol};

/// File systems whose data stays on this machine, by the names of /proc/filesystems.
const LOCAL_FILE_SYSTEMS: &[&str] = &[
    "affs", "apfs", "bcachefs", "befs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfs",
    "hfsplus", "iso9660", "jffs2", "jfs", "minix", "msdos", "nilfs2", "ntfs", "ntfs3", "overlay", "ramfs",
    "reiserfs", "squashfs", "tmpfs", "ubifs", "udf", "ufs", "vfat", "xfs", "zfs",
];

/// File systems of the host of a virtual machine. As the root they are its disk (Kata Containers, gVisor).
const HOST_FILE_SYSTEMS: &[&str] = &["9p", "virtiofs"];

/// Returns the mounts in the table, in its order. A line that is not a mount is left out.
pub fn mountinfo(table: &[u8]) -> Vec<Mount> {
    table.split(|byte| *byte == b'\n').filter_map(mount).collect()
}

/// Returns the indexes of the mounts whose free space can be queried without blocking: local file systems
/// that are neither below nor covered by a mount that may block.
pub fn safe_to_statfs(mounts: &[Mount]) -> Vec<usize> {
    let blockers: Vec<&Mount> = mounts.iter().filter(|mount| mount.protocol.may_block()).collect();
    let is_free = |mount: &Mount| !blockers.iter().any(|blocker| mount.point.starts_with(&blocker.point));
    let local = |(_, mount): &(usize, &Mount)| matches!(mount.protocol, Protocol::Local(_)) && is_free(mount);
    mounts.iter().enumerate().filter(local).map(|(index, _)| index).collect()
}

/// Parses one line: id, parent, device, root, point, options, any number of optional fields, `-`, type,
/// source, options.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = text(fields.nth(2)?);
    let point = fields.nth(1)?;
    let own_options = text(fields.next()?);
    fields.find(|field| *field == b"-")?;
    let kind = text(fields.next()?);
    let source = text(fields.next().unwrap_or_default());
    let options = format!("{own_options},{}", text(fields.next().unwrap_or_default()));
    let negotiated = significant_options(options.split(','));
    let protocol = match kind.as_str() {
        _ if point == b"/" && HOST_FILE_SYSTEMS.contains(&kind.as_str()) => Protocol::Local(kind),
        _ => with_negotiated_version(protocol(&kind, &source), &negotiated),
    };
    // Only the sources of network and FUSE mounts can contain credentials.
    let source = if matches!(protocol, Protocol::Local(_)) { source } else { without_credentials(&source) };
    let point = OsString::from_vec(unescaped(point));
    Some(Mount {
        negotiated,
        read_only: options.split(',').any(|option| option == "ro"),
        server: address(&options),
        device: Some(device),
        ..Mount::new(point, source, protocol)
    })
}

/// Returns the server's address in `addr=`, which the clients of NFS and SMB add (fs/nfs/super.c,
/// fs/smb/client/cifsfs.c). A link-local address may have a scope, which is left out.
fn address(options: &str) -> Option<IpAddr> {
    let text = options.split(',').find_map(|option| option.strip_prefix("addr="))?;
    text.split('%').next()?.parse().ok()
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(&unescaped(field)).into_owned()
}

/// Decodes the octal escapes that the kernel writes for space, tab, newline, `#` and `\` (seq_escape,
/// fs/seq_file.c).
pub(super) fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut at = 0;
    while let Some(byte) = field.get(at) {
        let escaped = (*byte == b'\\').then(|| octal(field.get(at + 1..at + 4)?)).flatten();
        plain.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 4 } else { 1 };
    }
    plain
}

fn octal(digits: &[u8]) -> Option<u8> {
    let value = digits.iter().try_fold(0, |sum, digit| Some(sum * 8 + char::from(*digit).to_digit(8)?))?;
    u8::try_from(value).ok()
}

/// Returns the protocol for a file system type, without its version.
fn protocol(kind: &str, source: &str) -> Protocol {
    match kind {
        "nfs" | "nfs4" => Protocol::Nfs(None),
        "cifs" | "smb3" | "smbfs" => Protocol::Smb(None),
        "afp" | "afpfs" | "fuse.afpfs" => Protocol::Afp,
        "davfs" | "fuse.davfs" => Protocol::Webdav,
        // davfs2 mounts its URL with the bare type `fuse` (src/mount_davfs.c).
        "fuse" if source.starts_with("http://") || source.starts_with("https://") => Protocol::Webdav,
        "fuse.sshfs" => Protocol::Sftp,
        "fuse" => Protocol::Fuse(None),
        "fuseblk" => Protocol::Fuse(Some("fuseblk".to_owned())),
        _ if LOCAL_FILE_SYSTEMS.contains(&kind) => Protocol::Local(kind.to_owned()),
        _ => user_space_or_other(kind),
    }
}

fn user_space_or_other(kind: &str) -> Protocol {
    match kind.strip_prefix("fuse.").or_else(|| kind.strip_prefix("fuseblk.")) {
        Some(subtype) => Protocol::Fuse(Some(subtype.to_owned())),
        None => Protocol::Other(kind.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const WORKSTATION: &[u8] = include_bytes!("../../tests/fixtures/mountinfo-workstation.txt");
    const OLD: &[u8] = include_bytes!("../../tests/fixtures/mountinfo-old.txt");

    fn at(table: &[u8], point: &str) -> Mount {
        mountinfo(table)
            .into_iter()
            .find(|mount| mount.point == Path::new(point))
            .expect("the fixture has it")
    }

    #[test]
    fn root_of_a_virtual_machine_is_its_disk() {
        let table = b"1 1 0:3 / / rw - virtiofs rootfs rw\n2 1 0:4 / /mnt/c rw - 9p drvfs rw\n";
        assert_eq!(at(table, "/").protocol, Protocol::Local("virtiofs".to_owned()));
        assert!(at(table, "/mnt/c").protocol.may_block());
    }

    #[test]
    fn every_line_of_a_table_is_a_mount() {
        assert_eq!(mountinfo(WORKSTATION).len(), WORKSTATION.split(|b| *b == b'\n').count() - 1);
        assert_eq!(mountinfo(b"\n1 2 0:3\nnonsense\n36 35 98:0 / /x rw\n"), []);
    }

    #[test]
    fn each_kind_of_mount_is_known_with_its_version() {
        for (point, shown) in [
            ("/", "ext4"),
            ("/dev/shm", "tmpfs"),
            ("/proc", "proc"),
            ("/mnt/nfs4", "NFS 4.2"),
            ("/mnt/smb", "SMB 3.1.1"),
            ("/mnt/ssh", "SFTP"),
            ("/mnt/dav", "WebDAV"),
            ("/run/user/1000/gvfs", "FUSE (gvfsd-fuse)"),
            ("/mnt/usb", "FUSE (fuseblk)"),
            ("/misc", "autofs"),
            ("/mnt/loop", "NFS 4.1"),
        ] {
            assert_eq!(at(WORKSTATION, point).protocol.to_string(), shown, "{point}");
        }
        for (point, shown) in [
            ("/mnt/nfs3", "NFS 3"),
            ("/mnt/old", "SMB 1.0"),
            ("/mnt/two", "SMB 2.0.2"),
            ("/mnt/nfs41", "NFS 4.1"),
        ] {
            assert_eq!(at(OLD, point).protocol.to_string(), shown, "{point}");
        }
    }

    #[test]
    fn escapes_in_point_and_source_are_decoded() {
        let mount = at(WORKSTATION, "/mnt/my share");
        assert_eq!(mount.source, "//nas.local/my share");
        assert_eq!(unescaped(br"a\134b\011c\9\04"), b"a\\b\tc\\9\\04");
    }

    #[test]
    fn negotiated_options_are_stored_without_the_user() {
        let mount = at(WORKSTATION, "/mnt/smb");
        let value = |name: &str| mount.negotiated.get(name).map(String::as_str);
        assert_eq!(value("cache"), Some("strict"));
        assert_eq!(value("rsize"), Some("4194304"));
        assert_eq!(value("sec"), Some("ntlmsspi"));
        assert_eq!(value("seal"), Some("yes"));
        assert_eq!((value("username"), value("addr")), (None, None));
        assert_eq!(at(WORKSTATION, "/mnt/ssh").source, "nas.local:/volume1");
        let all = format!("{:?}", mountinfo(WORKSTATION));
        assert!(!all.contains("ada") && !all.contains("secret"), "{all}");
    }

    #[test]
    fn mounts_have_a_server_address_and_a_device_number() {
        let line = "36 35 0:51 / /m rw - cifs //nas/a rw,vers=3.1.1,addr=fe80::1%3,soft\n\
            37 35 0:52 / /n rw - nfs nas:/a rw,mountaddr=10.0.0.9,addr=10.0.0.2\n38 35 8:1 / / rw - ext4 /dev/a rw\n";
        let found = mountinfo(line.as_bytes());
        let server = |index: usize| found[index].server.map(|address: IpAddr| address.to_string());
        assert_eq!(
            (server(0).as_deref(), server(1).as_deref(), server(2)),
            (Some("fe80::1"), Some("10.0.0.2"), None)
        );
        assert_eq!(found[0].device.as_deref(), Some("0:51"));
    }

    #[test]
    fn the_flag_of_mount_or_file_system_means_read_only() {
        assert!(at(WORKSTATION, "/mnt/nfs4").read_only);
        assert!(at(OLD, "/mnt/nfs3").read_only);
        assert!(!at(WORKSTATION, "/mnt/smb").read_only);
    }

    #[test]
    fn only_local_disks_are_queried_for_free_space() {
        let mounts = mountinfo(WORKSTATION);
        let queried: Vec<&Mount> = safe_to_statfs(&mounts).into_iter().map(|index| &mounts[index]).collect();
        assert!(queried.iter().all(|mount| matches!(mount.protocol, Protocol::Local(_))), "{queried:?}");
        assert!(queried.contains(&&at(WORKSTATION, "/")));
    }

    #[test]
    fn a_local_disk_below_or_under_a_share_is_not_queried() {
        let line = |point: &str, kind: &str| format!("1 1 0:1 / {point} rw - {kind} source rw\n");
        let table = [
            line("/", "ext4"),
            line("/m/nas", "nfs4"),
            line("/m/nas/inner", "tmpfs"),
            line("/covered", "ext4"),
            line("/covered", "cifs"),
            line("/auto", "autofs"),
            line("/auto/x", "ext4"),
            line("/home", "xfs"),
            line("/mnt/c", "9p"),
            line("/mnt/c/inner", "ext4"),
        ];
        assert_eq!(safe_to_statfs(&mountinfo(table.concat().as_bytes())), [0, 7]);
    }
}
