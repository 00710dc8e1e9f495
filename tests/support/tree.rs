//! What is in a folder, to compare it with another or with itself later.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a file holds and when it was changed, in nanoseconds.
pub type Content = (Vec<u8>, i128);
/// Which file it is, and when it was changed.
pub type Identity = (u64, i128);

/// Every file below a folder with its content; folders are there as the parents of files only.
pub fn contents(root: &Path) -> BTreeMap<PathBuf, Content> {
    collect(root, &|path| (fs::read(path).unwrap(), modified(path)))
}

/// Every file below a folder with its identity: the same if it was neither replaced nor written.
pub fn identities(root: &Path) -> BTreeMap<PathBuf, Identity> {
    collect(root, &|path| (fs::symlink_metadata(path).unwrap().ino(), modified(path)))
}

/// Every file below a folder, relative to it.
pub fn files(root: &Path) -> Vec<PathBuf> {
    collect(root, &|_| ()).into_keys().collect()
}

/// A whole path of the first file below a folder that is not empty.
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
