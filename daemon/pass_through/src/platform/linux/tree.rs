//! The files that the kernel knows, with their names. Pure: nothing here touches a file system.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Number of the root.
pub const ROOT: u64 = 1;
/// Lowest number of files whose own inode number cannot be used.
const FIRST_OTHER: u64 = 1 << 62;

/// Identity of a file on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NameIn {
    /// Number of the folder.
    pub folder: u64,
    /// The name.
    pub name: OsString,
}

impl NameIn {
    /// Creates a name in a folder.
    pub fn new(folder: u64, name: &OsStr) -> Self {
        Self { folder, name: name.to_owned() }
    }
}

/// A file as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Number of the file.
    pub number: u64,
    /// Number of earlier files with the same number.
    pub generation: u64,
}

#[derive(Debug, Default)]
struct Node {
    /// Known names, the latest last.
    names: Vec<NameIn>,
    /// Number of references that the kernel holds.
    references: u64,
    generation: u64,
}

/// The files that the kernel knows.
#[derive(Debug)]
pub struct Tree {
    root: Identity,
    nodes: HashMap<u64, Node>,
    numbers: HashMap<NameIn, u64>,
    others: HashMap<Identity, u64>,
}

impl Tree {
    /// Creates a tree with this root.
    pub fn new(root: Identity) -> Self {
        let nodes = HashMap::from([(ROOT, Node { references: 1, ..Node::default() })]);
        Self { root, nodes, numbers: HashMap::new(), others: HashMap::new() }
    }

    /// Returns the number of a file: its inode number, so that it stays the same after the kernel forgot the file, and programs
    /// such as git do not take it for another one. Files of other devices, and an inode 1, get numbers of their own.
    pub fn number(&mut self, file: Identity) -> u64 {
        if file == self.root {
            return ROOT;
        }
        if file.device == self.root.device && file.inode > ROOT && file.inode < FIRST_OTHER {
            return file.inode;
        }
        let next = FIRST_OTHER + self.others.len() as u64;
        *self.others.entry(file).or_insert(next)
    }

    /// Returns the path of a file relative to the root, `.` for the root itself; `None` if it has no name any more.
    pub fn path(&self, number: u64) -> Option<PathBuf> {
        if number == ROOT {
            return Some(PathBuf::from("."));
        }
        self.nodes.get(&number)?.names.iter().rev().find_map(|name| self.path_of_name(name))
    }

    /// Returns the path of a name, which need not exist, relative to the root.
    pub fn path_of_name(&self, name: &NameIn) -> Option<PathBuf> {
        let mut parts = vec![name.name.as_os_str()];
        let mut folder = name.folder;
        while folder != ROOT {
            // A folder has one name, and a name that leads back to a folder below it cannot exist on a file system.
            let above = self.nodes.get(&folder)?.names.last()?;
            parts.push(&above.name);
            folder = above.folder;
        }
        Some(parts.into_iter().rev().collect())
    }

    /// Notes that the kernel was told of a file.
    pub fn found(&mut self, name: NameIn, file: Identity) -> Entry {
        let number = self.number(file);
        self.name(name, number);
        let node = self.nodes.entry(number).or_default();
        node.references += 1;
        Entry { number, generation: node.generation }
    }

    /// Notes that the kernel dropped references to a file.
    pub fn forget(&mut self, number: u64, references: u64) {
        let Some(node) = self.nodes.get_mut(&number).filter(|_| number != ROOT) else { return };
        node.references = node.references.saturating_sub(references);
        if node.references == 0 {
            let names = self.nodes.remove(&number).map_or(vec![], |node| node.names);
            for name in &names {
                self.numbers.remove(name);
            }
        }
    }

    /// Notes that a name does not exist any more. The next file with the number of its file is another one, unless that file
    /// has a second name.
    pub fn removed(&mut self, name: &NameIn) {
        let Some(number) = self.numbers.remove(name) else { return };
        if let Some(node) = self.nodes.get_mut(&number) {
            node.names.retain(|known| known != name);
            node.generation += u64::from(node.names.is_empty());
        }
    }

    /// Notes that a file was renamed.
    pub fn renamed(&mut self, from: &NameIn, to: NameIn) {
        let Some(number) = self.numbers.remove(from) else { return self.removed(&to) };
        if let Some(node) = self.nodes.get_mut(&number) {
            node.names.retain(|known| known != from);
        }
        self.name(to, number);
    }

    /// Notes that two names changed places.
    pub fn exchanged(&mut self, one: &NameIn, other: &NameIn) {
        let numbers = [one, other].map(|name| self.numbers.get(name).copied());
        for (name, number) in [one, other].into_iter().zip(numbers.into_iter().rev()) {
            self.detach(name);
            if let Some(number) = number {
                self.name(name.clone(), number);
            }
        }
    }

    /// Gives a name to a file. Another file that had it loses it.
    fn name(&mut self, name: NameIn, number: u64) {
        if self.numbers.get(&name) == Some(&number) {
            return;
        }
        self.removed(&name);
        self.numbers.insert(name.clone(), number);
        let node = self.nodes.entry(number).or_default();
        node.names.push(name);
    }

    fn detach(&mut self, name: &NameIn) {
        let number = self.numbers.remove(name);
        if let Some(node) = number.and_then(|number| self.nodes.get_mut(&number)) {
            node.names.retain(|known| known != name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: u64 = 5;

    fn file(inode: u64) -> Identity {
        Identity { device: DEVICE, inode }
    }

    fn name(folder: u64, name: &str) -> NameIn {
        NameIn::new(folder, OsStr::new(name))
    }

    fn tree() -> Tree {
        let mut tree = Tree::new(file(100));
        tree.found(name(ROOT, "a"), file(7));
        tree.found(name(7, "b"), file(8));
        tree
    }

    fn path(tree: &Tree, number: u64) -> Option<String> {
        tree.path(number).map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn renaming_a_folder_moves_what_is_in_it() {
        let mut tree = tree();
        assert_eq!(path(&tree, 8).as_deref(), Some("a/b"));
        tree.renamed(&name(ROOT, "a"), name(ROOT, "z"));
        assert_eq!([path(&tree, 7), path(&tree, 8)].map(Option::unwrap), ["z", "z/b"]);
        assert_eq!(path(&tree, ROOT).as_deref(), Some("."));
    }

    #[test]
    fn file_with_two_names_keeps_the_other_one() {
        let mut tree = tree();
        tree.found(name(ROOT, "link"), file(8));
        assert_eq!(path(&tree, 8).as_deref(), Some("link"));
        tree.removed(&name(ROOT, "link"));
        assert_eq!(path(&tree, 8).as_deref(), Some("a/b"));
        tree.removed(&name(7, "b"));
        assert_eq!(path(&tree, 8), None);
    }

    #[test]
    fn new_file_with_an_old_number_is_another_generation() {
        let mut tree = tree();
        tree.removed(&name(7, "b"));
        let again = tree.found(name(7, "c"), file(8));
        assert_eq!(again, Entry { number: 8, generation: 1 });
    }

    #[test]
    fn rename_over_a_file_takes_its_name() {
        let mut tree = tree();
        tree.found(name(ROOT, "c"), file(9));
        tree.renamed(&name(7, "b"), name(ROOT, "c"));
        assert_eq!((path(&tree, 8).as_deref(), path(&tree, 9)), (Some("c"), None));
    }

    #[test]
    fn exchanged_names_lead_to_the_other_file() {
        let mut tree = tree();
        tree.found(name(ROOT, "c"), file(9));
        tree.exchanged(&name(7, "b"), &name(ROOT, "c"));
        assert_eq!([path(&tree, 8), path(&tree, 9)].map(Option::unwrap), ["c", "a/b"]);
    }

    #[test]
    fn forgotten_file_has_no_path_until_it_is_found_again() {
        let mut tree = tree();
        tree.forget(8, 1);
        assert_eq!(path(&tree, 8), None);
        tree.found(name(7, "b"), file(8));
        assert_eq!(path(&tree, 8).as_deref(), Some("a/b"));
        tree.forget(ROOT, 9);
        assert_eq!(path(&tree, ROOT).as_deref(), Some("."));
    }

    #[test]
    fn files_of_other_devices_get_other_numbers() {
        let mut tree = tree();
        let other = Identity { device: 6, inode: 8 };
        let number = tree.number(other);
        assert!(number >= FIRST_OTHER && tree.number(file(1)) > number);
        assert_eq!((tree.number(other), tree.number(file(8))), (number, 8));
    }
}
