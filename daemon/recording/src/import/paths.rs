//! Paths of traces.

/// Longest path that is kept, in bytes: `PATH_MAX` of Linux, which is more than that of macOS. A longer one is no path, and a trace
/// with many of them would fill the memory.
pub(super) const MAX_PATH_BYTES: usize = 4096;

/// Returns an absolute, normalized path: `path` itself, or `path` in `folder`. `None` if it is relative and the folder is
/// unknown, or if it is too long. `..` is resolved by text, as a trace does not show where symbolic links lead.
pub(super) fn absolute(folder: Option<&[u8]>, path: &[u8]) -> Option<Vec<u8>> {
    let base = if path.starts_with(b"/") { &b""[..] } else { folder? };
    let mut absolute = Vec::with_capacity(base.len() + path.len() + 1);
    for name in base.split(is_slash).chain(path.split(is_slash)) {
        match name {
            b"" | b"." => {}
            b".." => absolute.truncate(absolute.iter().rposition(is_slash).unwrap_or(0)),
            name => {
                absolute.push(b'/');
                absolute.extend_from_slice(name);
            }
        }
    }
    if absolute.is_empty() {
        absolute.push(b'/');
    }
    (absolute.len() <= MAX_PATH_BYTES).then_some(absolute)
}

/// Mount point of the volume with the user's files on macOS. The same folders are also seen at `/`, as `/Users` (firmlinks), which is how
/// programs name them; traces have either (yottayoshida/sideeye, a capture of fs_usage on macOS 15.3.1).
const DATA_VOLUME: &[u8] = b"/System/Volumes/Data";

/// Returns the path on a Mac as programs name it.
pub(super) fn outside_data_volume(path: &[u8]) -> &[u8] {
    let below = path.strip_prefix(DATA_VOLUME).filter(|rest| rest.starts_with(b"/"));
    below.unwrap_or(path)
}

fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_volume_is_seen_at_the_root() {
        for (path, expected) in [
            ("/System/Volumes/Data/Users/a", "/Users/a"),
            ("/System/Volumes/Data", "/System/Volumes/Data"),
            ("/System/Volumes/Database/a", "/System/Volumes/Database/a"),
        ] {
            assert_eq!(outside_data_volume(path.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn longer_paths_than_a_kernel_takes_are_unknown() {
        let longest = [b"/".as_slice(), &[b'a'; MAX_PATH_BYTES - 1]].concat();
        assert_eq!(absolute(None, &longest), Some(longest.clone()));
        assert_eq!(absolute(Some(&longest), b"b"), None);
        assert_eq!(absolute(Some(&longest), b"../b"), Some(b"/b".to_vec()));
    }

    #[test]
    fn paths_are_absolute_and_normalized() {
        for (folder, path, expected) in [
            (Some("/a"), "b", Some("/a/b")),
            (Some("/a/b"), "../c/./d//e", Some("/a/c/d/e")),
            (Some("/"), "../..", Some("/")),
            (None, "/x/", Some("/x")),
            (None, "x", None),
        ] {
            let found = absolute(folder.map(str::as_bytes), path.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{folder:?} {path}");
        }
    }
}
