//! The volumes of a Mac: which one a path really lies on, and how a folder there is marked.

use std::path::Path;

use crate::model::Mount;

/// Where the data volume is mounted since macOS 10.15; firmlinks lead there from `/Users`, `/Applications` and others
/// (man apfs; xnu bsd/vfs/vfs_lookup.c knows them below the paths that people use).
const DATA: &str = "/System/Volumes/Data";

/// The mount table with the data volume in the place of the sealed system volume, whose path people use, and without the
/// system's own volumes. `/` itself is read-only, and neither its space nor its device is that of anybody's files.
pub fn with_data_volume(mut mounts: Vec<Mount>) -> Vec<Mount> {
    let Some(data) = mounts.iter().find(|mount| mount.point == Path::new(DATA)).cloned() else {
        return mounts;
    };
    for root in mounts.iter_mut().filter(|mount| mount.point == Path::new("/")) {
        *root = Mount { point: "/".into(), ..data.clone() };
    }
    mounts.retain(|mount| mount.point.parent() != Path::new(DATA).parent());
    mounts
}

/// A binary property list of one short ASCII text (CoreFoundation CFBinaryPList.c: magic, the object, its offset, and a trailer
/// of 32 bytes). At most 255 bytes.
pub fn binary_plist_text(text: &str) -> Vec<u8> {
    const HEAD: &[u8] = b"bplist00";
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    let text = &text.as_bytes()[..usize::from(length)];
    // 0x5F: a text whose length is in the integer that follows, of one byte (0x10).
    let object = [&[0x5f, 0x10, length], text].concat();
    let offsets_at = (HEAD.len() + object.len()) as u64;
    let trailer = [
        &[0; 6][..],
        // One byte an offset and a reference; one object, the first is the root.
        &[1, 1],
        &1u64.to_be_bytes(),
        &0u64.to_be_bytes(),
        &offsets_at.to_be_bytes(),
    ];
    [HEAD, &object, &[HEAD.len() as u8], &trailer.concat()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Negotiated, Protocol};

    fn mount(point: &str, source: &str, read_only: bool) -> Mount {
        Mount {
            point: point.into(),
            source: source.into(),
            protocol: Protocol::Local("apfs".into()),
            negotiated: Negotiated::new(),
            read_only,
            free_bytes: Some(source.len() as u64),
            total_bytes: None,
            server: None,
            device: None,
        }
    }

    /// As a Mac with Apple silicon lists them (macOS 15).
    fn table() -> Vec<Mount> {
        vec![
            mount("/", "/dev/disk3s1s1", true),
            mount("/dev", "devfs", false),
            mount("/System/Volumes/VM", "/dev/disk3s6", false),
            mount("/System/Volumes/Preboot", "/dev/disk3s2", false),
            mount("/System/Volumes/Data", "/dev/disk3s5", false),
            mount("/System/Volumes/Data/home", "map auto_home", false),
            mount("/Volumes/media", "//nas/media", false),
        ]
    }

    #[test]
    fn a_path_of_a_user_lies_on_the_data_volume() {
        let mounts = with_data_volume(table());
        for path in ["/Users/ada/Documents", "/System/Volumes/Data/Users/ada", "/private/tmp"] {
            let found = Mount::of_path(&mounts, Path::new(path)).unwrap();
            assert_eq!((found.source.as_str(), found.read_only), ("/dev/disk3s5", false), "{path}");
        }
        let points: Vec<_> = mounts.iter().map(|mount| mount.point.to_str().unwrap()).collect();
        assert_eq!(points, ["/", "/dev", "/System/Volumes/Data/home", "/Volumes/media"]);
    }

    #[test]
    fn a_mac_without_a_data_volume_is_left_as_it_is() {
        let old = vec![mount("/", "/dev/disk1s1", false), mount("/Volumes/media", "//nas/media", false)];
        assert_eq!(with_data_volume(old.clone()), old);
    }

    /// The value that `xattr -px` shows of a folder after `tmutil addexclusion`, as it is in many public posts.
    #[test]
    fn the_mark_for_time_machine_is_the_one_that_tmutil_writes() {
        let known = [
            b"bplist00\x5f\x10\x11com.apple.backupd\x08".as_slice(),
            &[0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1c],
        ];
        assert_eq!(binary_plist_text("com.apple.backupd"), known.concat());
    }
}
