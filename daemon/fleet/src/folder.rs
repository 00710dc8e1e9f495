//! The folder of a collection. Other computers write to it, too, so it is read and changed through a handle: no link leads out of it.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::path::{Path as FilePath, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, FileType, ReadDir};
use object_store::path::Path;

/// Largest number of entries in one folder. A week of a table has one folder for each machine.
const MAX_FOLDER_ENTRIES: usize = 1_000_000;
/// Largest number of folders inside each other. A file of a table has four above it.
const MAX_DEPTH: usize = 32;

/// The opened folder of a collection.
#[derive(Debug)]
pub(crate) struct SharedFolder(Dir);

/// A file that was found in a collection.
#[derive(Debug)]
pub(crate) struct ListedFile {
    /// Path in the collection, as text for the user.
    pub(crate) path: String,
    /// Path by which it is read and moved, or the reason why it is neither.
    pub(crate) location: Result<Path, String>,
    /// Size in bytes. `None`: the listing does not tell it.
    pub(crate) size: Option<u64>,
}

impl SharedFolder {
    /// Opens a folder. Links in this path itself are followed, because the user has named it.
    pub(crate) fn open(path: &FilePath) -> io::Result<Self> {
        Dir::open_ambient_dir(path, ambient_authority()).map(Self)
    }

    /// Returns everything in the folder and in those below it except the folders themselves. No link is followed.
    pub(crate) fn walk(&self) -> io::Result<Walk<'_>> {
        let mut walk = Walk { folder: &self.0, pending: vec![] };
        walk.list(FilePath::new(""))?;
        Ok(walk)
    }

    /// Reads a file. `None`: it is larger than this.
    pub(crate) fn read(&self, path: &Path, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![];
        self.0.open(below(path))?.take(max_bytes + 1).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= max_bytes).then_some(bytes))
    }

    /// Returns the first folder above a path that is a symbolic link.
    pub(crate) fn linked_folder(&self, path: &Path) -> Option<String> {
        let is_link =
            |folder: &FilePath| self.0.symlink_metadata(folder).is_ok_and(|found| found.is_symlink());
        let folders: Vec<&FilePath> = below(path).ancestors().skip(1).collect();
        let mut from_top = folders.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty());
        from_top.find(|folder| is_link(folder)).map(|folder| folder.display().to_string())
    }

    /// Returns whether a name is taken, or may be.
    pub(crate) fn is_taken(&self, path: &Path) -> bool {
        !matches!(self.0.symlink_metadata(below(path)), Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Moves a file within the folder, and creates the folders above its new path.
    pub(crate) fn move_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (below(from), below(to));
        to.parent().map_or(Ok(()), |folder| self.0.create_dir_all(folder))?;
        self.0.rename(from, &self.0, to)
    }
}

/// Returns a path relative to the folder of the collection.
fn below(path: &Path) -> &FilePath {
    let text: &str = path.as_ref();
    FilePath::new(text)
}

/// A walk through a folder, sorted by path.
pub(crate) struct Walk<'a> {
    folder: &'a Dir,
    /// Entries that were listed and not visited, last first.
    pending: Vec<PendingEntry>,
}

struct PendingEntry {
    path: PathBuf,
    kind: io::Result<FileType>,
}

impl Walk<'_> {
    fn list(&mut self, path: &FilePath) -> io::Result<()> {
        if path.components().count() > MAX_DEPTH {
            return Err(io::Error::other(format!("more than {MAX_DEPTH} folders are inside each other")));
        }
        let mut found = vec![];
        for entry in self.entries(path)? {
            let entry = entry?;
            if found.len() == MAX_FOLDER_ENTRIES {
                return Err(io::Error::other(format!("it has more than {MAX_FOLDER_ENTRIES} entries")));
            }
            if !is_unfinished(&entry.file_name()) {
                let path = path.join(entry.file_name());
                found.push(PendingEntry { kind: self.kind_of(&entry, &path), path });
            }
        }
        found.sort_by(|one, other| other.path.cmp(&one.path));
        self.pending.append(&mut found);
        Ok(())
    }

    fn entries(&self, path: &FilePath) -> io::Result<ReadDir> {
        if path.as_os_str().is_empty() { self.folder.entries() } else { self.folder.read_dir(path) }
    }

    fn kind_of(&self, entry: &DirEntry, path: &FilePath) -> io::Result<FileType> {
        let listed = entry.file_type()?;
        // Not all file systems fill in `d_type`.
        if listed.is_dir() || listed.is_file() || listed.is_symlink() {
            return Ok(listed);
        }
        self.folder.symlink_metadata(path).map(|found| found.file_type())
    }
}

impl Iterator for Walk<'_> {
    type Item = ListedFile;

    fn next(&mut self) -> Option<ListedFile> {
        while let Some(PendingEntry { path, kind }) = self.pending.pop() {
            let location = match kind {
                Ok(kind) if kind.is_dir() => match self.list(&path) {
                    Ok(()) => continue,
                    Err(error) => Err(format!("it cannot be listed: {error}")),
                },
                Ok(kind) if kind.is_symlink() => {
                    Err("it is a symbolic link, which is neither read nor moved: remove it".to_owned())
                }
                Ok(kind) if kind.is_file() => location(&path),
                Ok(_) => Err("it is neither a file nor a folder: remove it".to_owned()),
                Err(error) => Err(format!("it cannot be looked at: {error}")),
            };
            return Some(ListedFile { path: path.to_string_lossy().into_owned(), location, size: None });
        }
        None
    }
}

fn location(path: &FilePath) -> Result<Path, String> {
    let parsed = path.to_str().and_then(|text| Path::parse(text).ok());
    parsed.ok_or_else(|| "it has a name that longhaul cannot use: rename or remove it".to_owned())
}

/// Returns whether `object_store` gives this name (`data.parquet#1`) to a file that is being written.
fn is_unfinished(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.split_once('#')).map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(folder: &FilePath) -> Vec<(String, bool)> {
        let shared = SharedFolder::open(folder).unwrap();
        shared.walk().unwrap().map(|listed| (listed.path, listed.location.is_ok())).collect()
    }

    #[test]
    fn walk_is_sorted_and_passes_over_unfinished_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        for name in ["c", "b/y", "b/x", "b/x#1", "a"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(walked(folder.path()), ["a", "b/x", "b/y", "c"].map(|path| (path.to_owned(), true)));
    }

    #[test]
    fn folders_that_are_too_deep_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let deep = "d/".repeat(MAX_DEPTH + 2);
        std::fs::create_dir_all(folder.path().join(deep)).unwrap();
        let found = walked(folder.path());
        assert!(matches!(found.as_slice(), [(_, false)]), "{found:?}");
    }

    #[test]
    fn names_that_cannot_be_used_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a\u{1b}b"), "").unwrap();
        assert_eq!(walked(folder.path()), [("a\u{1b}b".to_owned(), false)]);
    }

    #[test]
    fn linked_folders_are_found_from_the_top() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
        let shared = SharedFolder::open(folder.path()).unwrap();
        let linked = |path: &str| shared.linked_folder(&Path::from(path));
        assert_eq!(linked("link/a/b"), Some("link".to_owned()));
        assert_eq!(linked("real/a"), None);
        assert_eq!(linked("link"), None, "the file itself is replaced and not followed");
    }
}
