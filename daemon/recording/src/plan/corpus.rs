//! The tree that exists before a replay begins.

use std::collections::{HashMap, HashSet};

use crate::{Action, ActionResult, FileKind, HandleNumber, InitialState, NodeNumber, Recording};

/// A name of the tree that a replay works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedNode {
    /// Folder that contains the name.
    pub parent: NodeNumber,
    /// Kind of file.
    pub kind: FileKind,
    /// State before the replay begins. The class of a file's size is not used: see `bytes`.
    pub initial: InitialState,
    /// Size of the file before the replay begins.
    pub bytes: u64,
    /// True if the replay changes the name or what it stands for, so that it is restored afterwards.
    pub changes: bool,
    /// True if the replay changes the file itself, its content or attributes, and not only whether there is one of this name.
    pub file_changes: bool,
}

/// Returns the tree at the beginning, with the size of each file: exact if it was read to its end before it was changed, otherwise
/// the mean of its class, or as much as was read.
pub fn initial(recording: &Recording) -> Vec<PlannedNode> {
    let mean = |initial: InitialState| match initial {
        InitialState::File(class) => {
            recording.mean_sizes.get(class.number() as usize).copied().unwrap_or(class.floor())
        }
        _ => 0,
    };
    let mut nodes: Vec<PlannedNode> = recording
        .nodes
        .iter()
        .map(|node| PlannedNode {
            parent: node.parent,
            kind: node.kind,
            initial: node.initial,
            bytes: mean(node.initial),
            changes: false,
            file_changes: false,
        })
        .collect();
    if let Some(root) = nodes.first_mut() {
        root.initial = InitialState::Folder;
    }
    for number in 1..nodes.len() {
        // A name below something that is no folder cannot exist.
        if nodes[nodes[number].parent.0 as usize].initial != InitialState::Folder {
            nodes[number].initial = InitialState::Absent;
            nodes[number].bytes = 0;
        }
    }
    let mut reads = Reads { sizes: vec![Size::Unknown; nodes.len()], open: HashMap::new() };
    recording.operations.iter().for_each(|operation| reads.follow(operation.action, operation.result));
    for (node, size) in nodes.iter_mut().zip(reads.sizes) {
        match (node.initial, size) {
            (InitialState::File(_), Size::AtLeast(bytes) | Size::Changed(bytes)) => {
                node.bytes = node.bytes.max(bytes);
            }
            (InitialState::File(_), Size::Exactly(bytes) | Size::Final(bytes)) => node.bytes = bytes,
            _ => {}
        }
    }
    nodes
}

/// Marks everything below renamed folders as changed.
pub fn touch_below(nodes: &mut [PlannedNode], renamed: &HashSet<NodeNumber>) {
    let mut is_below = vec![false; nodes.len()];
    for number in 1..nodes.len() {
        let parent = nodes[number].parent;
        is_below[number] = is_below[parent.0 as usize] || renamed.contains(&parent);
        nodes[number].changes |= is_below[number];
    }
}

/// Size of a file at the beginning, as reads tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Unknown,
    AtLeast(u64),
    Exactly(u64),
    /// The file was changed, and its end was not seen before: later reads need this many bytes, and do not tell its end.
    Changed(u64),
    /// The file was changed after its end was seen: later reads tell nothing.
    Final(u64),
}

/// A read that was done: where, how much was asked for, and how much came.
struct Transfer {
    offset: u64,
    length: u64,
    read: u64,
}

/// Reads of a recording.
struct Reads {
    sizes: Vec<Size>,
    open: HashMap<HandleNumber, NodeNumber>,
}

impl Reads {
    fn follow(&mut self, action: Action, result: ActionResult) {
        if result != ActionResult::Done {
            return;
        }
        match action {
            Action::Open { node, mode, handle: Some(handle) } => {
                self.open.insert(handle, node);
                if mode.truncate {
                    self.change(node);
                }
            }
            Action::Close { handle } => drop(self.open.remove(&handle)),
            Action::Write { handle, .. } => {
                self.open.get(&handle).copied().into_iter().for_each(|node| self.change(node));
            }
            Action::Copy(copy) => {
                if let Some(node) = self.open.get(&copy.from).copied() {
                    self.read(
                        node,
                        Transfer { offset: copy.read_at, length: copy.length.max(1), read: copy.length },
                    );
                }
                self.open.get(&copy.to).copied().into_iter().for_each(|node| self.change(node));
            }
            Action::Read { handle, offset, length, read } => {
                if let Some(node) = self.open.get(&handle).copied() {
                    self.read(node, Transfer { offset, length, read });
                }
            }
            Action::SetLength { node, .. } | Action::Remove { node } => self.change(node),
            Action::Rename { from, to } => [from, to].into_iter().for_each(|node| self.change(node)),
            _ => {}
        }
    }

    fn change(&mut self, node: NodeNumber) {
        let size = &mut self.sizes[node.0 as usize];
        *size = match *size {
            Size::Unknown => Size::Changed(0),
            Size::AtLeast(bytes) | Size::Changed(bytes) => Size::Changed(bytes),
            Size::Exactly(bytes) | Size::Final(bytes) => Size::Final(bytes),
        };
    }

    /// A read of nothing shows the end of the file only directly after what was read before: elsewhere it is behind the end.
    fn read(&mut self, node: NodeNumber, Transfer { offset, length, read }: Transfer) {
        let size = &mut self.sizes[node.0 as usize];
        let end = offset.saturating_add(read);
        *size = match *size {
            Size::AtLeast(bytes) if read == 0 && length > 0 && bytes == offset && bytes > 0 => {
                Size::Exactly(bytes)
            }
            other if read == 0 => other,
            Size::Final(bytes) => Size::Final(bytes),
            Size::Changed(bytes) => Size::Changed(bytes.max(end)),
            Size::Exactly(bytes) => Size::Exactly(bytes.max(end)),
            Size::Unknown if read == length => Size::AtLeast(end),
            Size::AtLeast(bytes) if read == length => Size::AtLeast(bytes.max(end)),
            Size::Unknown | Size::AtLeast(_) => Size::Exactly(end),
        };
    }
}
