//! Reads the files below a folder, to compare two folders, or one folder before and after a command.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Content of a file, and its modification time in nanoseconds since 1970 UTC.
pub type Content = (Vec<u8>, i128);
/// Inode number of a file, and its modification time in nanoseconds since 1970 UTC.
pub type Identity = (u64, i128);

/// Returns every file below a folder with its content. Empty folders are not included.
pub fn contents(root: &Path) -> BTreeMap<PathBuf, Content> {
    collect(root, &|path| (fs::read(path).unwrap(), modified(path)))
}

/// Returns every file below a folder with its bytes.
pub fn contents_of_files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    collect(root, &|path| fs::read(path).unwrap())
}

/// Returns every file below a folder with its identity, which changes if the file is replaced or written.
pub fn identities(root: &Path) -> BTreeMap<PathBuf, Identity> {
    collect(root, &|path| (fs::symlink_metadata(path).unwrap().ino(), modified(path)))
}

/// Returns the path of every file below a folder, relative to it.
pub fn files(root: &Path) -> Vec<PathBuf> {
    collect(root, &|_| ()).into_keys().collect()
}

/// Returns true if there is nothing in a folder.
pub fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

/// Returns the absolute path of the first non-empty file below a folder.
pub fn some_file(root: &Path) -> PathBuf {
    let path = files(root).into_iter().map(|path| root.join(path));
    path.into_iter().find(|path| fs::metadata(path).unwrap().len() > 0).expect("a file that is not empty")
}

fn modified(path: &Path) -> i128 {
    let facts = fs::symlink_metadata(path).unwrap();
    i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec())
}

fn collect<T>(root: &Path, look: &dyn Fn(&Path) -> T) -> BTreeMap<PathBuf, T> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                pending.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), look(&path));
            }
        }
    }
    found
}
