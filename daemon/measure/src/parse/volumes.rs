//! Volumes of a Mac: the volume that a path really lies on, and the mark that excludes a folder from backups.

use std::path::Path;

use longhaul_model::Mount;

/// Mount point of the data volume since macOS 10.15. Firmlinks lead to it from `/Users`, `/Applications` and
/// others; the kernel names files by the paths that people use (xnu bsd/vfs/vfs_cache.c:581).
const DATA_VOLUME: &str = "/System/Volumes/Data";

/// Returns the mount table with the data volume in place of the sealed system volume, under the path that
/// people use, and without the system's own volumes. The system volume is read-only, and its space and device
/// are not those of any user's files.
pub fn with_data_volume(mut mounts: Vec<Mount>) -> Vec<Mount> {
    let Some(data) = mounts.iter().find(|mount| mount.point == Path::new(DATA_VOLUME)).cloned() else {
        return mounts;
    };
    for root in mounts.iter_mut().filter(|mount| mount.point == Path::new("/")) {
        *root = Mount { point: "/".into(), ..data.clone() };
    }
    mounts.retain(|mount| mount.point.parent() != Path::new(DATA_VOLUME).parent());
    mounts
}

/// Returns a binary property list of one short ASCII string (CoreFoundation CFBinaryPList.c: magic, the
/// object, its offset, and a trailer of 32 bytes). The string is cut to 255 bytes.
pub fn binary_plist_text(text: &str) -> Vec<u8> {
    const HEAD: &[u8] = b"bplist00";
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    let text = &text.as_bytes()[..usize::from(length)];
    // 0x5F: a string whose length is in the integer that follows, of one byte (0x10).
    let object = [&[0x5f, 0x10, length], text].concat();
    let offsets_at = (HEAD.len() + object.len()) as u64;
    let trailer = [
        &[0; 6][..],
        // One byte per offset and per reference; one object; the first object is the root.
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
    use longhaul_model::Protocol;

    fn mount(point: &str, source: &str) -> Mount {
        Mount {
            free_bytes: Some(source.len() as u64),
            ..Mount::new(point, source, Protocol::Local("apfs".into()))
        }
    }

    /// Returns the mount table of a Mac with Apple silicon (macOS 15).
    fn table() -> Vec<Mount> {
        vec![
            Mount { read_only: true, ..mount("/", "/dev/disk3s1s1") },
            mount("/dev", "devfs"),
            mount("/System/Volumes/VM", "/dev/disk3s6"),
            mount("/System/Volumes/Preboot", "/dev/disk3s2"),
            mount("/System/Volumes/Data", "/dev/disk3s5"),
            mount("/System/Volumes/Data/home", "map auto_home"),
            mount("/Volumes/media", "//nas/media"),
        ]
    }

    #[test]
    fn paths_of_users_lie_on_the_data_volume() {
        let mounts = with_data_volume(table());
        for path in ["/Users/ada/Documents", "/System/Volumes/Data/Users/ada", "/private/tmp"] {
            let found = Mount::for_path(&mounts, Path::new(path)).unwrap();
            assert_eq!((found.source.as_str(), found.read_only), ("/dev/disk3s5", false), "{path}");
        }
        let points: Vec<_> = mounts.iter().map(|mount| mount.point.to_str().unwrap()).collect();
        assert_eq!(points, ["/", "/dev", "/System/Volumes/Data/home", "/Volumes/media"]);
    }

    #[test]
    fn a_mac_without_a_data_volume_is_left_as_it_is() {
        let old = vec![mount("/", "/dev/disk1s1"), mount("/Volumes/media", "//nas/media")];
        assert_eq!(with_data_volume(old.clone()), old);
    }

    /// Compares with the value that `xattr -px` shows of a folder after `tmutil addexclusion`, as found in
    /// many public posts.
    #[test]
    fn the_time_machine_mark_is_that_of_tmutil() {
        let known = [
            b"bplist00\x5f\x10\x11com.apple.backupd\x08".as_slice(),
            &[0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1c],
        ];
        assert_eq!(binary_plist_text("com.apple.backupd"), known.concat());
    }
}
