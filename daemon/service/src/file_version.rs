//! Detects that a file was replaced or modified, without reading its content.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The identity of a file's content. Equal values mean that the file was neither
/// replaced nor modified in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
}

impl FileVersion {
    /// Returns the version of the file at `path`, following symbolic links. `None`: it
    /// does not exist or cannot be examined.
    pub fn of(path: &Path) -> Option<Self> {
        let facts = std::fs::metadata(path).ok()?;
        Some(Self {
            device: facts.dev(),
            inode: facts.ino(),
            size: facts.size(),
            modified_ns: i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn write_replacement_and_new_link_target_are_detected() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other, link) =
            (folder.path().join("file"), folder.path().join("other"), folder.path().join("link"));
        assert_eq!(FileVersion::of(&link), None);
        fs::write(&file, "a").unwrap();
        fs::write(&other, "b").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let mut versions = vec![FileVersion::of(&link)];
        assert_eq!(versions[0], FileVersion::of(&file));
        fs::write(&file, "ab").unwrap();
        versions.push(FileVersion::of(&link));
        fs::rename(&other, &file).unwrap();
        versions.push(FileVersion::of(&link));
        fs::remove_file(&file).unwrap();
        versions.push(FileVersion::of(&link));
        versions.dedup();
        assert_eq!(versions.len(), 4, "{versions:?}");
    }
}
