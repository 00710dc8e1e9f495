//! The files of longhaul in a folder on the local disk, told from others by their names, and their removal.
//!
//! Everything goes through directory handles that refuse symbolic links: longhaul makes none, so a link is somebody's
//! own, and what it leads to even more so.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// The answer to the question whether longhaul gives this name to a file or a folder of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A file of longhaul.
    File,
    /// A folder of longhaul, which goes when it is empty.
    Folder,
    /// A folder that longhaul may have made: it goes only if something of longhaul is in it.
    PerhapsFolder,
    /// A folder that is removed by other means, as a sandbox is.
    Sandbox,
    /// Not longhaul.
    Other,
}

/// Tells the owner of a path, which is relative to the folder that is looked through.
pub type Recognize<'a> = &'a dyn Fn(&Path) -> Owner;

/// A file or folder of longhaul.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    File(OsString),
    Folder { name: OsString, items: Vec<Item>, fate: Fate },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The folder is removed after its items.
    Goes,
    /// Something else is in the folder.
    Stays,
}

/// Why something is left alone.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// Longhaul gives no such name to a file or folder of its own.
    #[error("it is not longhaul's")]
    Unrecognized,
    /// It is a symbolic link.
    #[error("it is a symbolic link, which longhaul neither makes nor follows")]
    Link,
    /// The system refuses.
    #[error("{0}")]
    Refused(#[from] io::Error),
}

/// Something that is left alone.
#[derive(Debug)]
pub struct Left {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub reason: Reason,
}

/// A path that goes, and how many files are in it if it is a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Going {
    /// The path.
    pub path: PathBuf,
    /// Files below it; `None`: it is a file.
    pub files: Option<usize>,
}

/// What is in a folder.
#[derive(Debug)]
pub struct Inventory {
    root: PathBuf,
    items: Vec<Item>,
    /// What longhaul does not remove.
    pub left: Vec<Left>,
}

impl Inventory {
    /// Looks through a folder, and into the folders in it that belong to longhaul. A folder that is not there is empty;
    /// one that is a symbolic link is not looked into.
    pub fn of(root: &Path, recognize: Recognize<'_>) -> Self {
        let mut inventory = Self { root: root.to_owned(), items: vec![], left: vec![] };
        match open(root).and_then(|directory| Ok(Listing::of(&directory, Path::new(""), recognize)?)) {
            Ok(listing) => {
                inventory.items = listing.items;
                let absolute = |(path, reason)| Left { path: root.join(path), reason };
                inventory.left = listing.left.into_iter().map(absolute).collect();
            }
            Err(Reason::Refused(error)) if error.kind() == ErrorKind::NotFound => {}
            Err(reason) => inventory.left.push(Left { path: root.to_owned(), reason }),
        }
        inventory
    }

    /// The paths that go. A folder stands for everything in it.
    pub fn going(&self) -> Vec<Going> {
        let mut going = vec![];
        list(&self.items, &self.root, &mut going);
        going
    }

    /// Removes what belongs to longhaul, and names what could not be removed. What is gone already is no failure.
    pub fn remove(&self) -> Vec<Left> {
        let mut failed = vec![];
        if self.items.is_empty() {
            return failed;
        }
        match open(&self.root) {
            Ok(directory) => remove(&directory, &self.items, &self.root, &mut failed),
            Err(Reason::Refused(error)) => note(&self.root, Err(error), &mut failed),
            Err(reason) => failed.push(Left { path: self.root.clone(), reason }),
        }
        failed
    }
}

/// Opens a folder that is not a symbolic link itself; links that lead to it are how the person names it.
fn open(path: &Path) -> Result<Dir, Reason> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Dir::open_ambient_dir(path, ambient_authority())?);
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = Dir::open_ambient_dir(parent, ambient_authority())?;
    if parent.symlink_metadata(name)?.is_symlink() {
        return Err(Reason::Link);
    }
    Ok(parent.open_dir_nofollow(name)?)
}

/// What is in one folder, by paths relative to the root.
#[derive(Default)]
struct Listing {
    items: Vec<Item>,
    left: Vec<(PathBuf, Reason)>,
    sandboxes: usize,
}

impl Listing {
    fn of(directory: &Dir, at: &Path, recognize: Recognize<'_>) -> io::Result<Self> {
        let mut listing = Self::default();
        let names = directory.entries()?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
        let mut names = names?;
        names.sort();
        for name in names {
            let path = at.join(&name);
            if let Err(reason) = listing.add(directory, (&name, &path), recognize) {
                listing.left.push((path, reason));
            }
        }
        Ok(listing)
    }

    /// Takes in one entry, or says why it is left alone.
    fn add(
        &mut self,
        directory: &Dir,
        (name, path): (&OsStr, &Path),
        recognize: Recognize<'_>,
    ) -> Result<(), Reason> {
        let kind = directory.symlink_metadata(name)?.file_type();
        match recognize(path) {
            _ if kind.is_symlink() => return Err(Reason::Link),
            Owner::File if kind.is_file() => self.items.push(Item::File(name.to_owned())),
            Owner::Sandbox if kind.is_dir() => self.sandboxes += 1,
            owner @ (Owner::Folder | Owner::PerhapsFolder) if kind.is_dir() => {
                let below = Self::of(&directory.open_dir_nofollow(name)?, path, recognize)?;
                self.add_folder(name, owner, below)?;
            }
            _ => return Err(Reason::Unrecognized),
        }
        Ok(())
    }

    fn add_folder(&mut self, name: &OsStr, owner: Owner, below: Self) -> Result<(), Reason> {
        let is_used = !below.items.is_empty() || below.sandboxes > 0;
        let is_empty = below.left.is_empty();
        let is_ours = is_used || (owner == Owner::Folder && is_empty);
        let has_link = below.left.iter().any(|(_, reason)| !matches!(reason, Reason::Unrecognized));
        if !is_ours && !has_link {
            return Err(Reason::Unrecognized);
        }
        let fate = if is_ours && is_empty { Fate::Goes } else { Fate::Stays };
        self.left.extend(below.left);
        self.items.push(Item::Folder { name: name.to_owned(), items: below.items, fate });
        Ok(())
    }
}

fn list(items: &[Item], at: &Path, going: &mut Vec<Going>) {
    for item in items {
        match item {
            Item::File(name) => going.push(Going { path: at.join(name), files: None }),
            Item::Folder { name, items, fate: Fate::Goes } => {
                going.push(Going { path: at.join(name), files: Some(count(items)) });
            }
            Item::Folder { name, items, fate: Fate::Stays } => list(items, &at.join(name), going),
        }
    }
}

fn count(items: &[Item]) -> usize {
    let files = |item: &Item| match item {
        Item::File(_) => 1,
        Item::Folder { items, .. } => count(items),
    };
    items.iter().map(files).sum()
}

fn remove(directory: &Dir, items: &[Item], at: &Path, failed: &mut Vec<Left>) {
    for item in items {
        match item {
            Item::File(name) => note(&at.join(name), directory.remove_file(name), failed),
            Item::Folder { name, items, fate } => {
                let path = at.join(name);
                match directory.open_dir_nofollow(name) {
                    Ok(below) => remove(&below, items, &path, failed),
                    Err(error) => note(&path, Err(error), failed),
                }
                if *fate == Fate::Goes {
                    note(&path, directory.remove_dir(name), failed);
                }
            }
        }
    }
}

fn note(path: &Path, result: io::Result<()>, failed: &mut Vec<Left>) {
    match result {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            failed.push(Left { path: path.to_owned(), reason: Reason::Refused(error) });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Files called `own`, folders called `folder` and `perhaps`.
    fn recognize(path: &Path) -> Owner {
        match path.file_name().and_then(OsStr::to_str) {
            Some("own") => Owner::File,
            Some("folder") => Owner::Folder,
            Some("perhaps") => Owner::PerhapsFolder,
            _ => Owner::Other,
        }
    }

    /// A folder with these files; a name that ends with a slash is that of a folder.
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

    fn going(root: &Path) -> Vec<PathBuf> {
        let relative = |going: Going| going.path.strip_prefix(root).unwrap().to_owned();
        Inventory::of(root, &recognize).going().into_iter().map(relative).collect()
    }

    #[test]
    fn a_folder_goes_whole_or_by_its_files() {
        let root = folder(&["folder/own", "folder/folder/own", "own", "other"]);
        assert_eq!(going(root.path()), [Path::new("folder"), Path::new("own")]);
        fs::write(root.path().join("folder/folder/mine"), "x").unwrap();
        assert_eq!(going(root.path()), ["folder/folder/own", "folder/own", "own"].map(Path::new));
    }

    #[test]
    fn removal_leaves_exactly_what_was_not_recognized() {
        let root = folder(&["folder/own", "folder/folder/own", "folder/mine", "own", "mine/own"]);
        let inventory = Inventory::of(root.path(), &recognize);
        let left: Vec<_> = inventory.left.iter().map(|left| left.path.clone()).collect();
        assert_eq!(left, ["folder/mine", "mine"].map(|name| root.path().join(name)));
        assert!(inventory.remove().is_empty());
        assert!(root.path().join("mine/own").exists() && root.path().join("folder/mine").exists());
        assert!(!root.path().join("own").exists() && !root.path().join("folder/folder").exists());
    }

    #[test]
    fn a_folder_with_a_common_name_needs_a_file_of_ours() {
        let root = folder(&["folder/", "perhaps/", "folder/perhaps/own"]);
        assert_eq!(going(root.path()), [Path::new("folder")]);
        let root = folder(&["perhaps/mine", "folder/mine"]);
        assert_eq!(going(root.path()), Vec::<PathBuf>::new());
        let left = Inventory::of(root.path(), &recognize).left;
        assert_eq!(left.len(), 2, "as wholes: {left:?}");
    }

    #[test]
    fn no_link_is_followed_or_removed() {
        let elsewhere = folder(&["own", "folder/own"]);
        let root = folder(&["folder/"]);
        for (name, to) in [("own", "own"), ("folder/folder", "folder"), ("folder/own", "nowhere")] {
            symlink(elsewhere.path().join(to), root.path().join(name)).unwrap();
        }
        let inventory = Inventory::of(root.path(), &recognize);
        assert!(inventory.going().is_empty() && inventory.remove().is_empty());
        let links = inventory.left.iter().filter(|left| matches!(left.reason, Reason::Link));
        assert_eq!(links.count(), 3);
        assert!(elsewhere.path().join("folder/own").exists() && elsewhere.path().join("own").exists());
    }

    #[test]
    fn a_folder_swapped_for_a_link_is_not_entered() {
        let elsewhere = folder(&["own"]);
        let root = folder(&["folder/own"]);
        let inventory = Inventory::of(root.path(), &recognize);
        fs::rename(root.path().join("folder"), root.path().join("aside")).unwrap();
        symlink(elsewhere.path(), root.path().join("folder")).unwrap();
        assert!(!inventory.remove().is_empty());
        assert!(elsewhere.path().join("own").exists());
        let link = root.path().join("root");
        symlink(elsewhere.path(), &link).unwrap();
        let through = Inventory::of(&link, &recognize);
        assert!(through.going().is_empty() && matches!(through.left[0].reason, Reason::Link));
    }

    #[test]
    fn what_is_only_called_like_a_file_stays() {
        let root = folder(&["own/x"]);
        fs::write(root.path().join("folder"), "x").unwrap();
        let inventory = Inventory::of(root.path(), &recognize);
        assert!(inventory.going().is_empty());
        assert_eq!(inventory.left.len(), 2);
    }

    #[test]
    fn a_folder_that_is_not_there_is_empty() {
        let inventory = Inventory::of(Path::new("/nowhere/at/all"), &recognize);
        assert!(inventory.left.is_empty() && inventory.going().is_empty() && inventory.remove().is_empty());
    }
}
