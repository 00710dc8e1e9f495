//! Inventory of longhaul's files in a folder on the local disk, recognized by their names, and their removal.
//!
//! All access goes through directory handles that do not follow symbolic links. longhaul creates no links, so
//! a link and its destination belong to the user.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// Ownership of a file or folder, judged by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// File of longhaul.
    File,
    /// Folder of longhaul, which is removed if nothing else is in it.
    Folder,
    /// Folder that longhaul may have created: it is removed only if it contains something of longhaul.
    PossibleFolder,
    /// Folder that other code removes, such as a sandbox.
    Sandbox,
    /// File or folder that does not belong to longhaul.
    Other,
}

/// Function that returns the ownership of a path. The path is relative to the scanned folder.
pub type Recognizer<'a> = &'a dyn Fn(&Path) -> Ownership;

/// File or folder of longhaul.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    File(OsString),
    Folder { name: OsString, items: Vec<Item>, action: FolderAction },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FolderAction {
    /// The folder is removed after its items.
    Remove,
    /// The folder stays, because something else is in it.
    Keep,
}

/// Reason why an entry is not removed.
#[derive(Debug, thiserror::Error)]
pub enum NotRemovedReason {
    /// The name is not one that longhaul gives to its own files or folders.
    #[error("it is not longhaul's")]
    Unrecognized,
    /// The entry is a symbolic link.
    #[error("it is a symbolic link, which longhaul neither creates nor follows")]
    SymbolicLink,
    /// The operating system refused the operation.
    #[error("{0}")]
    Refused(#[from] io::Error),
}

/// Entry that is not removed.
#[derive(Debug)]
pub struct NotRemoved {
    /// Path of the entry.
    pub path: PathBuf,
    /// Reason why the entry is not removed.
    pub reason: NotRemovedReason,
}

/// Path that will be removed, with the number of files in it if it is a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovablePath {
    /// Path of the file or folder.
    pub path: PathBuf,
    /// Number of files below the folder; `None` for a file.
    pub files: Option<usize>,
}

/// Inventory of a folder: longhaul's items, and the entries that are not removed.
#[derive(Debug)]
pub struct Inventory {
    root: PathBuf,
    items: Vec<Item>,
    /// Entries that longhaul does not remove.
    pub not_removed: Vec<NotRemoved>,
}

impl Inventory {
    /// Scans a folder, and the folders in it that belong to longhaul. A missing folder counts as empty. A
    /// folder that is a symbolic link is not scanned.
    pub fn scan(root: &Path, recognize: Recognizer<'_>) -> Self {
        let mut inventory = Self { root: root.to_owned(), items: vec![], not_removed: vec![] };
        match open_folder(root)
            .and_then(|directory| Ok(FolderListing::scan(&directory, Path::new(""), recognize)?))
        {
            Ok(listing) => {
                inventory.items = listing.items;
                let absolute = |(path, reason)| NotRemoved { path: root.join(path), reason };
                inventory.not_removed = listing.not_removed.into_iter().map(absolute).collect();
            }
            Err(NotRemovedReason::Refused(error)) if error.kind() == ErrorKind::NotFound => {}
            Err(reason) => inventory.not_removed.push(NotRemoved { path: root.to_owned(), reason }),
        }
        inventory
    }

    /// Returns the paths that will be removed. A folder stands for everything in it.
    pub fn removable(&self) -> Vec<RemovablePath> {
        let mut removable = vec![];
        collect_removable(&self.items, &self.root, &mut removable);
        removable
    }

    /// Removes longhaul's items and returns those that could not be removed. An item that no longer exists is
    /// not a failure.
    pub fn remove(&self) -> Vec<NotRemoved> {
        let mut failed = vec![];
        if self.items.is_empty() {
            return failed;
        }
        match open_folder(&self.root) {
            Ok(directory) => remove_items(&directory, &self.items, &self.root, &mut failed),
            Err(NotRemovedReason::Refused(error)) => record_failure(&self.root, Err(error), &mut failed),
            Err(reason) => failed.push(NotRemoved { path: self.root.clone(), reason }),
        }
        failed
    }
}

/// Opens a folder that is not itself a symbolic link. Links in the path to it are followed, because the user
/// wrote the path that way.
fn open_folder(path: &Path) -> Result<Dir, NotRemovedReason> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Dir::open_ambient_dir(path, ambient_authority())?);
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = Dir::open_ambient_dir(parent, ambient_authority())?;
    if parent.symlink_metadata(name)?.is_symlink() {
        return Err(NotRemovedReason::SymbolicLink);
    }
    Ok(parent.open_dir_nofollow(name)?)
}

/// Contents of one folder, with paths relative to the root.
#[derive(Default)]
struct FolderListing {
    items: Vec<Item>,
    not_removed: Vec<(PathBuf, NotRemovedReason)>,
    sandboxes: usize,
}

impl FolderListing {
    fn scan(directory: &Dir, at: &Path, recognize: Recognizer<'_>) -> io::Result<Self> {
        let mut listing = Self::default();
        let names = directory.entries()?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
        let mut names = names?;
        names.sort();
        for name in names {
            let path = at.join(&name);
            if let Err(reason) = listing.add(directory, &name, &path, recognize) {
                listing.not_removed.push((path, reason));
            }
        }
        Ok(listing)
    }

    /// Adds one entry, or returns the reason why it is not removed.
    fn add(
        &mut self,
        directory: &Dir,
        name: &OsStr,
        path: &Path,
        recognize: Recognizer<'_>,
    ) -> Result<(), NotRemovedReason> {
        let kind = directory.symlink_metadata(name)?.file_type();
        match recognize(path) {
            _ if kind.is_symlink() => return Err(NotRemovedReason::SymbolicLink),
            Ownership::File if kind.is_file() => self.items.push(Item::File(name.to_owned())),
            Ownership::Sandbox if kind.is_dir() => self.sandboxes += 1,
            owner @ (Ownership::Folder | Ownership::PossibleFolder) if kind.is_dir() => {
                let below = Self::scan(&directory.open_dir_nofollow(name)?, path, recognize)?;
                self.add_folder(name, owner, below)?;
            }
            _ => return Err(NotRemovedReason::Unrecognized),
        }
        Ok(())
    }

    fn add_folder(&mut self, name: &OsStr, owner: Ownership, below: Self) -> Result<(), NotRemovedReason> {
        let is_used = !below.items.is_empty() || below.sandboxes > 0;
        let is_empty = below.not_removed.is_empty();
        let is_ours = is_used || (owner == Ownership::Folder && is_empty);
        let has_link_or_error =
            below.not_removed.iter().any(|(_, reason)| !matches!(reason, NotRemovedReason::Unrecognized));
        // A folder of the user is reported as a whole, unless a link or an error in it needs a line of its own.
        if !is_ours && !has_link_or_error {
            return Err(NotRemovedReason::Unrecognized);
        }
        let action = if is_ours && is_empty { FolderAction::Remove } else { FolderAction::Keep };
        self.not_removed.extend(below.not_removed);
        self.items.push(Item::Folder { name: name.to_owned(), items: below.items, action });
        Ok(())
    }
}

fn collect_removable(items: &[Item], at: &Path, removable: &mut Vec<RemovablePath>) {
    for item in items {
        match item {
            Item::File(name) => removable.push(RemovablePath { path: at.join(name), files: None }),
            Item::Folder { name, items, action: FolderAction::Remove } => {
                removable.push(RemovablePath { path: at.join(name), files: Some(count_files(items)) });
            }
            Item::Folder { name, items, action: FolderAction::Keep } => {
                collect_removable(items, &at.join(name), removable)
            }
        }
    }
}

fn count_files(items: &[Item]) -> usize {
    let files = |item: &Item| match item {
        Item::File(_) => 1,
        Item::Folder { items, .. } => count_files(items),
    };
    items.iter().map(files).sum()
}

fn remove_items(directory: &Dir, items: &[Item], at: &Path, failed: &mut Vec<NotRemoved>) {
    for item in items {
        match item {
            Item::File(name) => record_failure(&at.join(name), directory.remove_file(name), failed),
            Item::Folder { name, items, action } => {
                let path = at.join(name);
                match directory.open_dir_nofollow(name) {
                    Ok(below) => remove_items(&below, items, &path, failed),
                    Err(error) => record_failure(&path, Err(error), failed),
                }
                if *action == FolderAction::Remove {
                    record_failure(&path, directory.remove_dir(name), failed);
                }
            }
        }
    }
}

fn record_failure(path: &Path, result: io::Result<()>, failed: &mut Vec<NotRemoved>) {
    match result {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            failed.push(NotRemoved { path: path.to_owned(), reason: NotRemovedReason::Refused(error) });
        }
        // An item that no longer exists is not a failure.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Recognizes files named `own` and folders named `folder` and `perhaps`.
    fn recognize(path: &Path) -> Ownership {
        match path.file_name().and_then(OsStr::to_str) {
            Some("own") => Ownership::File,
            Some("folder") => Ownership::Folder,
            Some("perhaps") => Ownership::PossibleFolder,
            _ => Ownership::Other,
        }
    }

    /// Creates a folder with these files; a name that ends with a slash is a folder.
    fn folder(names: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for name in names {
            let path = root.path().join(name);
            fs::create_dir_all(if name.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
            if !name.ends_with('/') {
                fs::write(path, "x").unwrap();
            }
        }
        root
    }

    fn removable(root: &Path) -> Vec<PathBuf> {
        let relative = |removable: RemovablePath| removable.path.strip_prefix(root).unwrap().to_owned();
        Inventory::scan(root, &recognize).removable().into_iter().map(relative).collect()
    }

    #[test]
    fn a_folder_is_removed_whole_or_file_by_file() {
        let root = folder(&["folder/own", "folder/folder/own", "own", "other"]);
        assert_eq!(removable(root.path()), [Path::new("folder"), Path::new("own")]);
        fs::write(root.path().join("folder/folder/mine"), "x").unwrap();
        assert_eq!(removable(root.path()), ["folder/folder/own", "folder/own", "own"].map(Path::new));
    }

    #[test]
    fn removal_leaves_exactly_the_unrecognized_entries() {
        let root = folder(&["folder/own", "folder/folder/own", "folder/mine", "own", "mine/own"]);
        let inventory = Inventory::scan(root.path(), &recognize);
        let left: Vec<_> = inventory.not_removed.iter().map(|left| left.path.clone()).collect();
        assert_eq!(left, ["folder/mine", "mine"].map(|name| root.path().join(name)));
        assert!(inventory.remove().is_empty());
        assert!(root.path().join("mine/own").exists() && root.path().join("folder/mine").exists());
        assert!(!root.path().join("own").exists() && !root.path().join("folder/folder").exists());
    }

    #[test]
    fn a_common_folder_name_needs_a_file_of_longhaul() {
        let root = folder(&["folder/", "perhaps/", "folder/perhaps/own"]);
        assert_eq!(removable(root.path()), [Path::new("folder")]);
        let root = folder(&["perhaps/mine", "folder/mine"]);
        assert_eq!(removable(root.path()), Vec::<PathBuf>::new());
        let left = Inventory::scan(root.path(), &recognize).not_removed;
        assert_eq!(left.len(), 2, "each folder is listed as a whole: {left:?}");
    }

    #[test]
    fn no_link_is_followed_or_removed() {
        let elsewhere = folder(&["own", "folder/own"]);
        let root = folder(&["folder/"]);
        for (name, to) in [("own", "own"), ("folder/folder", "folder"), ("folder/own", "nowhere")] {
            symlink(elsewhere.path().join(to), root.path().join(name)).unwrap();
        }
        let inventory = Inventory::scan(root.path(), &recognize);
        assert!(inventory.removable().is_empty() && inventory.remove().is_empty());
        let links =
            inventory.not_removed.iter().filter(|left| matches!(left.reason, NotRemovedReason::SymbolicLink));
        assert_eq!(links.count(), 3);
        assert!(elsewhere.path().join("folder/own").exists() && elsewhere.path().join("own").exists());
    }

    #[test]
    fn a_folder_swapped_for_a_link_is_not_entered() {
        let elsewhere = folder(&["own"]);
        let root = folder(&["folder/own"]);
        let inventory = Inventory::scan(root.path(), &recognize);
        fs::rename(root.path().join("folder"), root.path().join("aside")).unwrap();
        symlink(elsewhere.path(), root.path().join("folder")).unwrap();
        assert!(!inventory.remove().is_empty());
        assert!(elsewhere.path().join("own").exists());
        let link = root.path().join("root");
        symlink(elsewhere.path(), &link).unwrap();
        let through = Inventory::scan(&link, &recognize);
        assert!(
            through.removable().is_empty()
                && matches!(through.not_removed[0].reason, NotRemovedReason::SymbolicLink)
        );
    }

    #[test]
    fn an_entry_of_the_wrong_type_is_not_removed() {
        let root = folder(&["own/x"]);
        fs::write(root.path().join("folder"), "x").unwrap();
        let inventory = Inventory::scan(root.path(), &recognize);
        assert!(inventory.removable().is_empty());
        assert_eq!(inventory.not_removed.len(), 2);
    }

    #[test]
    fn a_missing_folder_is_empty() {
        let inventory = Inventory::scan(Path::new("/nowhere/at/all"), &recognize);
        assert!(
            inventory.not_removed.is_empty()
                && inventory.removable().is_empty()
                && inventory.remove().is_empty()
        );
    }
}
