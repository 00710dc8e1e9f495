//! The folder while it is recorded, and what it was before.
//!
//! A name and the file behind it are two things, because files are renamed. What is found without having been created existed
//! before, at the place that its folder had then.

use std::collections::HashMap;

use super::means::ClassMeans;
use super::names::{Component, NameHash, NameNode, Names};
use crate::{FileKind, InitialState, Node, NodeNumber};

/// Largest number of names that listings add to the tree without an operation on them.
const MAX_LISTED: usize = 200_000;

/// Number of a file or folder.
pub(super) type FileNumber = u32;

/// The recorded folder.
const ROOT: FileNumber = 0;

/// Sort of a file, as far as the trace shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Unknown,
    File,
    Folder,
    Link,
}

/// A file or folder, whatever its name is now.
struct FileState {
    /// Node of its name before the recording; `None` if it was created since.
    home: Option<u32>,
    /// Node of its name if it was opened to be created unless it exists, and nothing tells yet whether it did.
    perhaps_home: Option<u32>,
    sort: Sort,
    /// Size as far as known.
    size: u64,
    /// Size before the recording: the largest one seen before it was written.
    initial_size: u64,
    is_written: bool,
    /// Folder that its newest name is in.
    folder: FileNumber,
    /// Number of names in it now that were elsewhere, or nowhere, before the recording.
    new_names: u64,
    /// Number of names in it without the new ones, of the listing with most of them.
    listed: u64,
}

/// State of a name.
#[derive(Clone, Copy)]
enum Entry {
    Absent,
    File(FileNumber),
}

/// The folder while it is recorded.
pub(super) struct Tree {
    pub(super) names: Names,
    entries: HashMap<(FileNumber, NameHash), Entry>,
    files: Vec<FileState>,
}

impl Tree {
    pub(super) fn new() -> Self {
        let mut tree = Self { names: Names::new(), entries: HashMap::new(), files: vec![] };
        tree.new_file(Sort::Folder, Some(0));
        tree
    }

    /// Returns the node of a path; `None` if there are too many names.
    pub(super) fn node(&mut self, path: &[Component]) -> Option<NodeNumber> {
        let mut node = 0;
        for component in path {
            node = self.names.number(node, *component)?;
        }
        Some(NodeNumber(node))
    }

    /// Returns the file at a path that exists now. Folders on the way, and the file, existed before if nothing created them.
    pub(super) fn find(&mut self, path: &[Component], sort: Sort) -> Option<FileNumber> {
        let mut file = ROOT;
        for (index, component) in path.iter().enumerate() {
            let is_last = index + 1 == path.len();
            // A question for the target of a link says that nothing is there if the target is missing.
            if is_last && sort == Sort::Link && self.is_absent(file, *component) {
                self.entries.remove(&(file, component.name));
            }
            file = self.find_in(file, *component)?;
            self.set_sort(file, if is_last { sort } else { Sort::Folder });
        }
        Some(file)
    }

    fn find_in(&mut self, folder: FileNumber, component: Component) -> Option<FileNumber> {
        let key = (folder, component.name);
        if let Some(Entry::File(file)) = self.entries.get(&key) {
            return Some(*file);
        }
        // What was absent and is there now was created where the trace does not see it.
        let home = match (self.entries.get(&key), self.files[folder as usize].home) {
            (None, Some(parent)) => Some(self.names.number(parent, component)?),
            _ => None,
        };
        let file = self.new_file(Sort::Unknown, home);
        self.set_entry(folder, component, Entry::File(file));
        Some(file)
    }

    fn is_absent(&self, folder: FileNumber, component: Component) -> bool {
        matches!(self.entries.get(&(folder, component.name)), Some(Entry::Absent))
    }

    fn set_entry(&mut self, folder: FileNumber, component: Component, entry: Entry) {
        let old = self.entries.insert((folder, component.name), entry);
        let is_new = |entry| matches!(entry, Entry::File(file) if self.is_new_in(folder, file));
        let (goes, comes) = (old.is_some_and(is_new), is_new(entry));
        let names = &mut self.files[folder as usize].new_names;
        *names = (*names + u64::from(comes)).saturating_sub(u64::from(goes));
        if let Entry::File(file) = entry {
            self.files[file as usize].folder = folder;
        }
    }

    /// Tells whether a file was not in a folder before the recording.
    fn is_new_in(&self, folder: FileNumber, file: FileNumber) -> bool {
        let parent = self.files[file as usize].home.map(|home| self.names.nodes()[home as usize].parent);
        parent.is_none() || parent != self.files[folder as usize].home
    }

    /// Returns the file at a path without adding anything.
    fn existing(&self, path: &[Component]) -> Option<FileNumber> {
        let mut file = ROOT;
        for component in path {
            let Some(Entry::File(next)) = self.entries.get(&(file, component.name)) else { return None };
            file = *next;
        }
        Some(file)
    }

    /// Notes that there is nothing at a path.
    pub(super) fn absent(&mut self, path: &[Component]) {
        let Some((last, folder)) = path.split_last() else { return };
        if let Some(folder) = self.existing(folder) {
            self.set_entry(folder, *last, Entry::Absent);
        }
    }

    /// Removes the name at a path that existed until now.
    pub(super) fn remove(&mut self, path: &[Component], sort: Sort) -> Option<FileNumber> {
        let file = self.find(path, sort)?;
        self.absent(path);
        Some(file)
    }

    /// Puts a file at a path, in place of what was there.
    pub(super) fn put(&mut self, path: &[Component], file: FileNumber) {
        let Some((last, folder)) = path.split_last() else { return };
        if let Some(folder) = self.find(folder, Sort::Folder) {
            self.set_entry(folder, *last, Entry::File(file));
        }
    }

    /// Creates a file at a path.
    pub(super) fn create(&mut self, path: &[Component], sort: Sort) -> FileNumber {
        let file = self.new_file(sort, None);
        self.put(path, file);
        file
    }

    /// Returns the file that was opened to be created if it did not exist.
    pub(super) fn open_or_create(&mut self, path: &[Component]) -> Option<FileNumber> {
        if let Some(file) = self.existing(path) {
            return Some(file);
        }
        let (last, folder) = path.split_last()?;
        let folder = self.find(folder, Sort::Folder)?;
        let was_absent = self.is_absent(folder, *last);
        let parent = self.files[folder as usize].home.filter(|_| !was_absent);
        let perhaps_home = parent.and_then(|parent| self.names.number(parent, *last));
        let file = self.create(path, Sort::File);
        self.files[file as usize].perhaps_home = perhaps_home;
        Some(file)
    }

    fn new_file(&mut self, sort: Sort, home: Option<u32>) -> FileNumber {
        self.files.push(FileState {
            home,
            perhaps_home: None,
            sort,
            size: 0,
            initial_size: 0,
            is_written: false,
            folder: ROOT,
            new_names: 0,
            listed: 0,
        });
        self.files.len() as FileNumber - 1
    }

    /// Notes the sort of a file.
    pub(super) fn set_sort(&mut self, file: FileNumber, sort: Sort) {
        let state = &mut self.files[file as usize];
        if sort != Sort::Unknown && file != ROOT {
            state.sort = sort;
        }
    }

    /// Notes that a file has at least this many bytes now.
    pub(super) fn seen_size(&mut self, file: FileNumber, size: u64) {
        let state = &mut self.files[file as usize];
        state.size = state.size.max(size);
        if state.is_written {
            return;
        }
        state.initial_size = state.initial_size.max(size);
        if size > 0 && state.home.is_none() && state.perhaps_home.is_some() {
            // It has content that nothing has written since: it existed.
            state.home = state.perhaps_home.take();
            let folder = state.folder;
            let names = &mut self.files[folder as usize].new_names;
            *names = names.saturating_sub(1);
        }
    }

    /// Notes that bytes up to `end` were written.
    pub(super) fn written(&mut self, file: FileNumber, end: u64) {
        let state = &mut self.files[file as usize];
        state.is_written = true;
        state.size = state.size.max(end);
    }

    /// Notes that a file has this length now.
    pub(super) fn set_length(&mut self, file: FileNumber, length: u64) {
        let state = &mut self.files[file as usize];
        state.is_written = true;
        state.size = length;
    }

    /// Returns the size of a file as far as known.
    pub(super) fn size(&self, file: FileNumber) -> u64 {
        self.files[file as usize].size
    }

    /// Notes the number of names in a folder.
    pub(super) fn listed(&mut self, file: FileNumber, names: u64) {
        self.set_sort(file, Sort::Folder);
        let state = &mut self.files[file as usize];
        state.listed = state.listed.max(names.saturating_sub(state.new_names));
    }

    /// Returns the tree before the recording. `sizes` becomes the means of its files' sizes.
    pub(super) fn initial(mut self, sizes: &mut ClassMeans) -> Vec<Node> {
        self.add_listed();
        let nodes = self.names.nodes().iter();
        let absent = |node: &NameNode| Node {
            parent: NodeNumber(node.parent),
            kind: node.kind,
            initial: InitialState::Absent,
        };
        let mut nodes: Vec<Node> = nodes.map(absent).collect();
        for file in &self.files {
            if let Some(home) = file.home {
                nodes[home as usize].initial = initial_state(file, sizes);
            }
        }
        nodes
    }

    /// Adds the names that a listing had and no operation touched, as empty files: a listing of a large folder stays one.
    fn add_listed(&mut self) {
        let mut known: HashMap<u32, u64> = HashMap::new();
        for file in &self.files {
            if let Some(home) = file.home.filter(|home| *home != 0) {
                *known.entry(self.names.nodes()[home as usize].parent).or_default() += 1;
            }
        }
        let mut left = MAX_LISTED;
        for folder in 0..self.files.len() {
            let FileState { home: Some(home), listed, .. } = self.files[folder] else { continue };
            let missing = listed.saturating_sub(known.get(&home).copied().unwrap_or(0)).min(left as u64);
            left -= missing as usize;
            for _ in 0..missing {
                let Some(node) = self.names.add(NameNode { parent: home, kind: FileKind::Other }) else {
                    return;
                };
                self.new_file(Sort::File, Some(node));
            }
        }
    }
}

fn initial_state(file: &FileState, sizes: &mut ClassMeans) -> InitialState {
    match file.sort {
        Sort::Folder => InitialState::Folder,
        Sort::Link => InitialState::Link,
        Sort::File | Sort::Unknown => InitialState::File(sizes.add_size(file.initial_size)),
    }
}
