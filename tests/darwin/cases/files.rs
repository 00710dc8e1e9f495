//! Calls on files and folders.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use longhaul_darwin::io::Errno;
use longhaul_darwin::kernel::{Call, Node, reset, with};
use longhaul_darwin::parse::EntryKind;
use longhaul_darwin::platform::macos::{
    FINDER_INFO, TEST_XATTR, attributes_at, can_trust_link_counts, evict, exclude_from_backup, full_sync,
    getxattr_at, shared_file,
};
use longhaul_darwin::platform::macos_probe::{device_of, disable_read_ahead};
use longhaul_darwin::platform::unix::{ByteRange, resident_share, setxattr};
use longhaul_darwin::{
    ATTR_CMN_FNDRINFO, EINVAL, EIO, ELOOP, ENOATTR, ENOENT, ENOSPC, ENOTSUP, ENOTTY, EOPNOTSUPP, ERANGE,
    F_FULLFSYNC, F_NOCACHE, F_RDAHEAD, MNT_LOCAL, statfs,
};
use longhaul_model::SyncKind;

use crate::open;

fn code<T: std::fmt::Debug>(result: io::Result<T>) -> Option<i32> {
    result.unwrap_err().raw_os_error()
}

#[test]
fn attributes_of_a_name_have_the_types_of_macos() {
    reset();
    let file = Node { size: 7 << 40, modified: (-5, 9), mode: 0o4755, ..Node::new(c"file", 1) };
    let entries = vec![file, Node::new(c"folder", 2), Node::new(c"link", 5), Node::new(c"pipe", 7)];
    let folder = open(Node::folder(entries));
    let found = attributes_at(folder.as_fd(), c"file").unwrap();
    assert_eq!((found.kind, found.size, found.mode), (EntryKind::File, 7 << 40, 0o4755));
    assert_eq!(found.modified_ns, -4_999_999_991);
    assert_eq!(attributes_at(folder.as_fd(), c"folder").unwrap().kind, EntryKind::Folder);
    assert_eq!(attributes_at(folder.as_fd(), c"link").unwrap().kind, EntryKind::Symlink);
    assert_eq!(attributes_at(folder.as_fd(), c"pipe").unwrap().kind, EntryKind::Other);
    assert_eq!(code(attributes_at(folder.as_fd(), c"other")), Some(ENOENT));
    assert_eq!(device_of(folder.as_fd()).unwrap(), 16_777_234);
}

#[test]
fn finder_info_is_read_or_absent() {
    reset();
    let marked = Node { finder_info: [7; 32], ..Node::new(c"marked", 1) };
    let lacking = Node { unsupported: ATTR_CMN_FNDRINFO, finder_info: [7; 32], ..Node::new(c"lacking", 1) };
    let folder = open(Node::folder(vec![marked, lacking, Node::new(c"zeros", 1)]));
    let read = |name, room: &mut [u8]| getxattr_at(folder.as_fd(), name, FINDER_INFO, room);
    let mut room = [0; 40];
    assert_eq!(read(c"marked", &mut room).unwrap(), Some(32));
    assert_eq!((&room[..32], &room[32..]), (&[7; 32][..], &[0; 8][..]));
    assert_eq!(read(c"lacking", &mut room).unwrap(), None);
    assert_eq!(read(c"zeros", &mut room).unwrap(), None);
    assert_eq!(code(read(c"marked", &mut [0; 31])), Some(ERANGE));
    assert_eq!(code(read(c"other", &mut room)), Some(ENOENT));
}

#[test]
fn other_attributes_are_read_through_an_open_file() {
    reset();
    let noted = Node { xattrs: [(TEST_XATTR.to_owned(), b"note".to_vec())].into(), ..Node::new(c"noted", 1) };
    let folder = open(Node::folder(vec![noted, Node::new(c"link", 5), Node::new(c"plain", 1)]));
    let read = |name, room: &mut [u8]| getxattr_at(folder.as_fd(), name, TEST_XATTR, room);
    let mut room = [0; 8];
    assert_eq!((read(c"noted", &mut room).unwrap(), &room), (Some(4), b"note\0\0\0\0"));
    assert_eq!(read(c"plain", &mut room).unwrap(), None);
    assert_eq!(code(read(c"noted", &mut [0; 3])), Some(ERANGE));
    assert_eq!(code(read(c"link", &mut room)), Some(ELOOP));
}

#[test]
fn pipe_in_place_of_a_file_does_not_block() {
    reset();
    let folder = open(Node::folder(vec![Node::new(c"pipe", 7)]));
    assert_eq!(getxattr_at(folder.as_fd(), c"pipe", TEST_XATTR, &mut [0; 8]).unwrap(), None);
}

#[test]
fn only_own_disks_get_the_mark_of_time_machine() {
    const MARK: &std::ffi::CStr = c"com.apple.metadata:com_apple_backup_excludeItem";
    for (kind, flags, is_marked) in
        [("apfs", MNT_LOCAL, true), ("hfs", MNT_LOCAL, true), ("exfat", MNT_LOCAL, false), ("apfs", 0, false)]
    {
        reset();
        let folder = open(Node::folder(vec![]));
        let mount = statfs { f_flags: flags as u32, ..statfs::named(kind, "/dev/disk3s5", "/") };
        with(|kernel| kernel.put_on(folder.as_fd(), mount));
        exclude_from_backup(folder.as_fd()).unwrap();
        let value = with(|kernel| kernel.node(folder.as_fd()).unwrap().xattrs.get(MARK).cloned());
        assert_eq!(value.is_some(), is_marked, "{kind}");
        assert!(value.is_none_or(|value| value.starts_with(b"bplist00_\x10\x11com.apple.backupd")));
    }
}

#[test]
fn link_counts_are_trusted_on_own_disks_only() {
    for (kind, flags, is_trusted) in [("apfs", MNT_LOCAL, true), ("smbfs", 0, false), ("nfs", 0, false)] {
        reset();
        let folder = open(Node::folder(vec![]));
        let mount = statfs { f_flags: flags as u32, ..statfs::named(kind, "nas:/home", "/") };
        with(|kernel| kernel.put_on(folder.as_fd(), mount));
        assert_eq!(can_trust_link_counts(folder.as_fd()), is_trusted, "{kind}");
    }
}

#[cfg_attr(miri, ignore = "Miri cannot call `fcntl` through another signature")]
#[test]
fn full_sync_says_which_sync_was_used() {
    reset();
    let file = open(Node::new(c"file", 1));
    assert_eq!(full_sync(file.as_fd()).unwrap(), SyncKind::FullFsync);
    assert_eq!(with(|kernel| kernel.file_commands.clone()), [(F_FULLFSYNC, 0)]);
    for refusal in [ENOTSUP, EOPNOTSUPP, EINVAL, ENOTTY] {
        with(|kernel| kernel.fail(Call::Fcntl, refusal, 0..1));
        assert_eq!(full_sync(file.as_fd()).unwrap(), SyncKind::Fsync, "errno {refusal}");
        with(|kernel| kernel.heal());
    }
    for failure in [EIO, ENOSPC] {
        with(|kernel| kernel.fail(Call::Fcntl, failure, 0..1));
        assert_eq!(code(full_sync(file.as_fd())), Some(failure));
        with(|kernel| kernel.heal());
    }
    with(|kernel| {
        [Call::Fcntl, Call::Fsync]
            .map(|call| kernel.fail(call, if call == Call::Fsync { EIO } else { ENOTSUP }, ..))
    });
    assert_eq!(code(full_sync(file.as_fd())), Some(EIO), "a failed fsync after a refusal is not hidden");
}

#[cfg_attr(miri, ignore = "Miri cannot call `fcntl` through another signature")]
#[test]
fn read_ahead_and_cache_are_switched_off() {
    reset();
    let file = open(Node::new(c"file", 1));
    disable_read_ahead(file.as_fd()).unwrap();
    assert_eq!(with(|kernel| kernel.file_commands.clone()), [(F_RDAHEAD, 0), (F_NOCACHE, 1)]);
    with(|kernel| kernel.fail(Call::Fcntl, ENOTSUP, 1..));
    assert_eq!(code(disable_read_ahead(file.as_fd())), Some(ENOTSUP));
}

#[test]
fn shared_files_are_private_and_have_names_of_their_own() {
    use std::os::unix::fs::PermissionsExt;
    let [(file, path), (_, other)] = [shared_file().unwrap(), shared_file().unwrap()];
    for path in [&path, &other] {
        std::fs::remove_file(path).unwrap();
    }
    assert_ne!(path, other);
    assert_eq!(
        (file.metadata().unwrap().permissions().mode() & 0o777, file.metadata().unwrap().len()),
        (0o600, 0)
    );
}

/// Returns a real file of five pages and a half, because mappings are those of Linux.
fn real_file() -> (File, u64) {
    let mut file = tempfile::tempfile().unwrap();
    io::Write::write_all(&mut file, &[1; 22 << 10]).unwrap();
    (file, 22 << 10)
}

#[cfg_attr(miri, ignore = "Miri cannot map files")]
#[test]
fn any_range_of_a_file_is_evicted() {
    reset();
    let (file, length) = real_file();
    for (begin, length) in [(0, length), (1, 1), (4095, 2), (0, 0), (8192, 4096)] {
        evict(file.as_fd(), ByteRange { begin, length }).unwrap();
    }
    assert_eq!(with(|kernel| kernel.count(Call::Msync)), 4, "an empty range needs no call");
    with(|kernel| kernel.fail(Call::Msync, EIO, ..));
    assert_eq!(code(evict(file.as_fd(), ByteRange { begin: 0, length: 1 })), Some(EIO));
    assert_eq!(with(|kernel| kernel.count(Call::Munmap)), 5, "the mapping has ended");
}

#[cfg_attr(miri, ignore = "Miri cannot map files")]
#[test]
fn resident_share_counts_only_the_bit_for_memory() {
    reset();
    let (file, length) = real_file();
    // The stand-in holds pages 0, 2 and 4 of six, and sets another bit of the other pages.
    assert_eq!(resident_share(file.as_fd(), length).unwrap(), Some(0.5));
    assert_eq!(resident_share(file.as_fd(), 0).unwrap(), None);
}

#[test]
fn attribute_that_the_helper_of_macos_cannot_write_is_not_supported() {
    reset();
    let file = open(Node::new(c"file", 1));
    with(|kernel| kernel.fail(Call::Fsetxattr, ENOATTR, 0..1));
    // A number of Linux, for which `rustix` is built here.
    let not_supported = Errno::NOTSUP.raw_os_error();
    assert_eq!(code(setxattr(file.as_fd(), TEST_XATTR, b"x")), Some(not_supported));
    setxattr(file.as_fd(), TEST_XATTR, b"x").unwrap();
}
