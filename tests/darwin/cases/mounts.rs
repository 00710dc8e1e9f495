//! The mount table, read with `getfsstat`.

use std::path::Path;

use longhaul_darwin::kernel::{Call, reset, with};
use longhaul_darwin::platform::macos::mounts;
use longhaul_darwin::{MNT_LOCAL, MNT_RDONLY, statfs};
use longhaul_model::Protocol;

fn set(tables: impl IntoIterator<Item = Vec<statfs>>) {
    reset();
    with(|kernel| kernel.mounts = tables.into_iter().collect());
}

fn share(number: usize) -> statfs {
    statfs::named("smbfs", "//ada@nas.local/media", &format!("/Volumes/media-{number}"))
}

#[test]
fn mounts_have_protocol_source_and_space() {
    let root =
        statfs { f_flags: (MNT_LOCAL | MNT_RDONLY) as u32, ..statfs::named("apfs", "/dev/disk3s1s1", "/") };
    let empty = statfs { f_blocks: 0, ..statfs::named("nfs", "nas:/media", "/Volumes/nfs") };
    set([vec![root, share(1), empty]]);
    let found = mounts().unwrap();
    assert_eq!((found[0].point.as_path(), found[0].read_only), (Path::new("/"), true));
    assert_eq!(found[0].protocol, Protocol::Local("apfs".into()));
    assert_eq!((found[1].source.as_str(), found[1].read_only), ("//nas.local/media", false));
    assert_eq!(found[1].owner, Some(501));
    assert_eq!((found[1].free_bytes, found[1].total_bytes), (Some(200 * 4096), Some(1000 * 4096)));
    assert_eq!((&found[2].protocol, found[2].free_bytes), (&Protocol::Nfs(None), None));
}

#[test]
fn share_that_time_machine_mounted_is_not_one_of_the_users() {
    let point = "/Volumes/.timemachine/nas.local/1B2C/tm-studio";
    let of_backup = statfs { f_owner: 0, ..statfs::named("smbfs", "//guest:@nas.local/tm-studio", point) };
    set([vec![of_backup, statfs::named("smbfs", "//ada@nas.local/tm-studio", "/Volumes/tm-studio")]]);
    let found = mounts().unwrap();
    assert_eq!(found[0].protocol, Protocol::Other("mount of Time Machine".into()));
    assert_eq!(found[1].protocol, Protocol::Smb(None));
}

#[test]
fn table_that_grows_between_two_calls_is_read_whole() {
    let table = |count: usize| (0..count).map(share).collect::<Vec<_>>();
    // The first call sees one mount and asks for room for nine; then there are more each time.
    set([table(1), table(9), table(40), table(40)]);
    assert_eq!(mounts().unwrap().len(), 40);
    assert_eq!(with(|kernel| kernel.count(Call::Getfsstat)), 5);
}

#[test]
fn names_that_fill_their_field_end_there() {
    let mut mount = statfs::named("smbfs", &format!("//nas/{}", "s".repeat(2000)), &"/".repeat(2000));
    mount.f_fstypename = [b'x' as std::ffi::c_char; 16];
    set([vec![mount]]);
    let found = mounts().unwrap();
    assert_eq!(found[0].protocol, Protocol::Other("x".repeat(16)));
    assert_eq!((found[0].source.len(), found[0].point.as_os_str().len()), (1024, 1024));
}

#[test]
fn empty_table_is_no_error() {
    set([]);
    assert!(mounts().unwrap().is_empty());
}

#[test]
fn sizes_at_the_limit_do_not_overflow() {
    set([vec![statfs { f_blocks: u64::MAX, f_bavail: u64::MAX, ..share(1) }]]);
    let found = mounts().unwrap();
    assert_eq!((found[0].free_bytes, found[0].total_bytes), (Some(u64::MAX), Some(u64::MAX)));
}
