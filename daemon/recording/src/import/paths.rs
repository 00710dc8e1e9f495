//! Paths of traces.

/// Returns an absolute, normalized path: `path` itself, or `path` in `folder`. `None` if it is relative and the folder is
/// unknown. `..` is resolved by text, as a trace does not show where symbolic links lead.
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
    Some(absolute)
}

fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::*;

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
