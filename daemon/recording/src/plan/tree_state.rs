//! The tree while a recording is followed: which names exist, and which file each of them stands for.

use std::collections::{HashMap, HashSet};

use super::action::{FileNumber, Slot};
use crate::{Access, HandleNumber, InitialState, MAX_DEPTH, Node, NodeNumber, Recording};

/// State of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameState {
    /// There is nothing.
    Absent,
    /// A folder.
    Folder,
    /// A file.
    File(FileNumber),
    /// A symbolic link.
    Link,
}

/// A file that is followed.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileState {
    /// Length in bytes; only an estimate for files that exist at the beginning and were not read to their end.
    pub length: u64,
    /// True if parts of it may never have been written, so that its content is not known.
    pub is_sparse: bool,
    /// True if it was given a second name, so that the replay refuses to open it for writing.
    pub is_linked: bool,
}

/// State of an open file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenState {
    /// Place of the open file.
    pub slot: Slot,
    /// Name that was opened.
    pub node: NodeNumber,
    /// The file; `None` for a folder.
    pub file: Option<FileNumber>,
    /// Work for which it was opened.
    pub access: Access,
}

impl OpenState {
    /// Tells whether it can be written.
    pub fn is_writable(self) -> bool {
        writes(self.access)
    }

    /// Tells whether it is more than a path (`O_PATH`).
    pub fn is_open(self) -> bool {
        self.access != Access::PathOnly
    }
}

/// The tree.
pub struct TreeState<'a> {
    nodes: &'a [Node],
    names: Names,
    pub states: Vec<NameState>,
    /// Number of names that exist in each folder.
    children: Vec<u32>,
    /// Largest number of names that may be inside each other below each name.
    heights: Vec<u8>,
    pub files: Vec<FileState>,
    /// Open files and folders, by the number of the handle.
    open: HashMap<HandleNumber, OpenState>,
    /// Open files and folders, by slot.
    slots: Vec<Option<OpenState>>,
    /// Slots of the open folders that still have the name under which they were opened.
    open_folders: HashMap<NodeNumber, Vec<Slot>>,
    /// Earlier names of each folder that was renamed.
    earlier_names: HashMap<NodeNumber, HashSet<NodeNumber>>,
}

impl<'a> TreeState<'a> {
    /// Returns the tree before the first operation. Files have these lengths.
    pub fn new(recording: &'a Recording, lengths: &[u64]) -> Self {
        let nodes = &recording.nodes[..];
        let state = |(number, node): (u32, &Node)| match node.initial {
            InitialState::Absent => NameState::Absent,
            InitialState::Folder => NameState::Folder,
            InitialState::File(_) => NameState::File(FileNumber(number)),
            InitialState::Link => NameState::Link,
        };
        let mut tree = Self {
            nodes,
            names: Names::of(nodes),
            states: (0..).zip(nodes).map(state).collect(),
            children: vec![0; nodes.len()],
            heights: heights(nodes),
            files: lengths
                .iter()
                .map(|length| FileState { length: *length, ..FileState::default() })
                .collect(),
            open: HashMap::new(),
            slots: vec![],
            open_folders: HashMap::new(),
            earlier_names: HashMap::new(),
        };
        if let Some(root) = tree.states.first_mut() {
            *root = NameState::Folder;
        }
        for (number, node) in nodes.iter().enumerate().skip(1) {
            // A name below something that is no folder cannot exist.
            if tree.states[node.parent.0 as usize] != NameState::Folder {
                tree.states[number] = NameState::Absent;
            }
            if tree.states[number] != NameState::Absent {
                tree.children[node.parent.0 as usize] += 1;
            }
        }
        tree
    }

    /// Returns the state of a name.
    pub fn state(&self, node: NodeNumber) -> NameState {
        self.states.get(node.0 as usize).copied().unwrap_or(NameState::Absent)
    }

    /// Returns the folder of a name; `None` for the recorded folder itself and for numbers that stand for nothing.
    pub fn parent(&self, node: NodeNumber) -> Option<NodeNumber> {
        self.nodes.get(node.0 as usize).filter(|_| node.0 > 0).map(|found| found.parent)
    }

    /// Tells whether the folder of a name exists, so that the name can be created.
    pub fn has_folder(&self, node: NodeNumber) -> bool {
        self.parent(node).is_some_and(|parent| self.state(parent) == NameState::Folder)
    }

    /// Tells whether no name in a folder exists.
    pub fn is_empty(&self, folder: NodeNumber) -> bool {
        self.children[folder.0 as usize] == 0
    }

    /// Sets the state of a name.
    pub fn set(&mut self, node: NodeNumber, state: NameState) {
        let Some(parent) = self.parent(node) else { return };
        let was = std::mem::replace(&mut self.states[node.0 as usize], state);
        if was == NameState::Folder {
            self.open_folders.remove(&node);
        }
        if state != NameState::Folder {
            self.earlier_names.remove(&node);
        }
        let count = &mut self.children[parent.0 as usize];
        match (was == NameState::Absent, state == NameState::Absent) {
            (true, false) => *count += 1,
            (false, true) => *count = count.saturating_sub(1),
            _ => {}
        }
    }

    /// Adds a file of no length.
    pub fn new_file(&mut self) -> FileNumber {
        self.files.push(FileState::default());
        FileNumber(self.files.len() as u32 - 1)
    }

    /// Notes that bytes of a file were written.
    pub fn write(&mut self, file: FileNumber, offset: u64, length: u64) {
        let state = &mut self.files[file.0 as usize];
        state.is_sparse |= offset > state.length;
        state.length = state.length.max(offset.saturating_add(length));
    }

    /// Notes that bytes of another file were copied to a file: its content is not what longhaul would have written.
    pub fn copy(&mut self, file: FileNumber, offset: u64, length: u64) {
        self.write(file, offset, length);
        self.files[file.0 as usize].is_sparse |= length > 0;
    }

    /// Notes that a file may have the content of another one.
    pub fn replace(&mut self, file: FileNumber) {
        self.files[file.0 as usize].is_sparse = true;
    }

    /// Notes that the length of a file was set.
    pub fn set_length(&mut self, file: FileNumber, length: u64) {
        let state = &mut self.files[file.0 as usize];
        state.is_sparse |= length > state.length;
        state.length = length;
    }

    /// Renames a folder. Everything that is known below it is moved away, because its names are not known under the new one.
    pub fn rename_folder(&mut self, from: NodeNumber, to: NodeNumber) {
        let mut earlier = self.earlier_names.remove(&from).unwrap_or_default();
        earlier.insert(from);
        self.set(from, NameState::Absent);
        self.set(to, NameState::Folder);
        self.earlier_names.insert(to, earlier);
        let mut folders = vec![from];
        while let Some(folder) = folders.pop() {
            for name in self.names.below(folder) {
                let was = std::mem::replace(&mut self.states[name.0 as usize], NameState::Absent);
                folders.extend((was == NameState::Folder).then_some(name));
            }
        }
        self.raise_heights(to, self.heights[from.0 as usize]);
        self.open_folders.clear();
        self.children[to.0 as usize] = std::mem::take(&mut self.children[from.0 as usize]);
    }

    /// Notes the height that a name has now, for it and the folders above it.
    fn raise_heights(&mut self, name: NodeNumber, mut height: u8) {
        let mut above = Some(name);
        while let Some(folder) = above {
            let known = &mut self.heights[folder.0 as usize];
            *known = height.max(*known);
            height = height.saturating_add(1);
            above = self.parent(folder);
        }
    }

    /// Tells whether no path would be too deep if a name was renamed, whatever is below it by then.
    pub fn stays_removable(&self, from: NodeNumber, to: NodeNumber) -> bool {
        let depth = std::iter::successors(self.parent(to), |folder| self.parent(*folder)).count();
        depth + usize::from(self.heights[from.0 as usize]) <= usize::from(MAX_DEPTH)
    }

    /// Tells whether a folder had a name before: what is known of the names below it would be wrong if it got it back.
    pub fn had_name(&self, folder: NodeNumber, name: NodeNumber) -> bool {
        self.earlier_names.get(&folder).is_some_and(|names| names.contains(&name))
    }

    /// Notes that a file has a second name.
    pub fn link(&mut self, file: FileNumber) {
        self.files[file.0 as usize].is_linked = true;
    }

    /// Tells whether a file was given a second name.
    pub fn is_linked(&self, file: FileNumber) -> bool {
        self.files[file.0 as usize].is_linked
    }

    /// Notes that a handle was opened.
    pub fn open(&mut self, handle: HandleNumber, open: OpenState) {
        let index = open.slot.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, None);
        }
        self.slots[index] = Some(open);
        self.open.insert(handle, open);
        if open.file.is_none() {
            self.open_folders.entry(open.node).or_default().push(open.slot);
        }
    }

    /// Returns the slot of a folder, if it is open and has not been renamed or removed since.
    pub fn open_folder(&self, folder: NodeNumber) -> Option<Slot> {
        self.open_folders.get(&folder)?.first().copied()
    }

    /// Returns what a handle stands for; `None` if it is not open.
    pub fn handle(&self, handle: HandleNumber) -> Option<OpenState> {
        self.open.get(&handle).copied()
    }

    /// Notes that a handle was closed.
    pub fn close(&mut self, handle: HandleNumber) {
        if let Some(open) = self.open.remove(&handle) {
            self.slots[open.slot.0 as usize] = None;
            self.forget_open_folder(open);
        }
    }

    fn forget_open_folder(&mut self, open: OpenState) {
        let Some(slots) = self.open_folders.get_mut(&open.node) else { return };
        slots.retain(|slot| *slot != open.slot);
        if slots.is_empty() {
            self.open_folders.remove(&open.node);
        }
    }

    /// Returns the handles that are open.
    pub fn handles(&self) -> Vec<HandleNumber> {
        let mut handles: Vec<_> = self.open.keys().copied().collect();
        handles.sort_unstable();
        handles
    }

    /// Returns what is open in a slot.
    pub fn in_slot(&self, slot: Slot) -> Option<OpenState> {
        self.slots.get(slot.0 as usize).copied().flatten()
    }

    /// Returns what is open for writing of a file.
    pub fn writable(&self, file: FileNumber) -> Option<OpenState> {
        self.slots.iter().flatten().find(|open| open.file == Some(file) && open.is_writable()).copied()
    }
}

/// The names in each folder, as chains of numbers; 0, which is in no folder, ends a chain.
struct Names {
    /// First name in each folder.
    first: Vec<u32>,
    /// Name that follows each name in its folder.
    next: Vec<u32>,
}

impl Names {
    fn of(nodes: &[Node]) -> Self {
        let mut names = Self { first: vec![0; nodes.len()], next: vec![0; nodes.len()] };
        for (number, node) in (0..).zip(nodes).skip(1) {
            names.next[number as usize] = std::mem::replace(&mut names.first[node.parent.0 as usize], number);
        }
        names
    }

    fn below(&self, folder: NodeNumber) -> impl Iterator<Item = NodeNumber> + '_ {
        let following = |number: u32| Some(number).filter(|number| *number > 0);
        std::iter::successors(following(self.first[folder.0 as usize]), move |number| {
            following(self.next[*number as usize])
        })
        .map(NodeNumber)
    }
}

/// Returns the largest number of names that are inside each other below each node.
fn heights(nodes: &[Node]) -> Vec<u8> {
    let mut heights = vec![0u8; nodes.len()];
    for (number, node) in nodes.iter().enumerate().skip(1).rev() {
        let height = heights[number].saturating_add(1);
        let above = &mut heights[node.parent.0 as usize];
        *above = height.max(*above);
    }
    heights
}

/// Tells whether an access allows to write.
pub fn writes(access: Access) -> bool {
    matches!(access, Access::Write | Access::ReadWrite)
}
