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
    /// Its home and the folder of that, if it was opened to be created unless it exists, and nothing tells yet whether it did.
    perhaps_home: Option<(u32, FileNumber)>,
    sort: Sort,
    /// Size as far as known.
    size: u64,
    /// Size before the recording: the largest one seen before it was written.
    initial_size: u64,
    is_written: bool,
    /// Number of names in it now, as far as known.
    present: u64,
    /// Number of files found so far that were in it before the recording.
    homes: u64,
    /// Number of names in it before the recording, of the listing that shows most of them.
    listed: u64,
}

/// State of a name.
#[derive(Clone, Copy, PartialEq)]
enum Entry {
    /// Nothing was there when a program looked for it.
    Absent,
    /// The program removed or renamed it.
    Gone,
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

    /// Returns the node of a path; `None` if there are too many names, in all or in the path.
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
            let key = (file, component.name);
            if is_last && sort == Sort::Link && self.entries.get(&key) == Some(&Entry::Absent) {
                self.entries.remove(&key);
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
        self.files[folder as usize].homes += u64::from(home.is_some());
        self.set_entry(folder, component, Entry::File(file));
        Some(file)
    }

    fn set_entry(&mut self, folder: FileNumber, component: Component, entry: Entry) {
        let old = self.entries.insert((folder, component.name), entry);
        let is_file = |entry| matches!(entry, Entry::File(_));
        let present = &mut self.files[folder as usize].present;
        *present = *present + u64::from(is_file(entry)) - u64::from(old.is_some_and(is_file));
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

    /// Notes that a program found nothing at a path. A link may be there, without its target.
    pub(super) fn absent(&mut self, path: &[Component]) {
        let Some((last, folder)) = path.split_last() else { return };
        let Some(folder) = self.existing(folder) else { return };
        match self.entries.get(&(folder, last.name)) {
            None => self.set_entry(folder, *last, Entry::Absent),
            Some(Entry::File(file)) if self.files[*file as usize].sort != Sort::Link => {
                self.set_entry(folder, *last, Entry::Gone);
            }
            Some(_) => {}
        }
    }

    /// Removes the name at a path that existed until now.
    pub(super) fn remove(&mut self, path: &[Component], sort: Sort) -> Option<FileNumber> {
        let file = self.find(path, sort)?;
        let (last, folder) = path.split_last()?;
        if let Some(folder) = self.existing(folder) {
            self.set_entry(folder, *last, Entry::Gone);
        }
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
        let was_absent = self.entries.contains_key(&(folder, last.name));
        let parent = self.files[folder as usize].home.filter(|_| !was_absent);
        let perhaps_home = parent.and_then(|parent| Some((self.names.number(parent, *last)?, folder)));
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
            present: 0,
            homes: 0,
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
        if size > 0
            && state.home.is_none()
            && let Some((home, folder)) = state.perhaps_home.take()
        {
            // It has content that nothing has written since: it existed.
            state.home = Some(home);
            self.files[folder as usize].homes += 1;
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
        // The names that are not known yet were there before.
        state.listed = state.listed.max(names.saturating_sub(state.present).saturating_add(state.homes));
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
        let mut left = MAX_LISTED;
        for folder in 0..self.files.len() {
            let FileState { home: Some(home), listed, homes, .. } = self.files[folder] else { continue };
            let missing = listed.saturating_sub(homes).min(left as u64);
            left -= missing as usize;
            for _ in 0..missing {
                let Some(node) = self.names.add(NameNode { parent: home, kind: FileKind::Other }) else {
                    break;
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
