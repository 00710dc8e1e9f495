//! Numbers for names. No name is kept: a name is known by a hash under a random key that ends with the trace.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::kinds::kind_of;
use crate::{FileKind, MAX_DEPTH, MAX_NODES};

/// A name in a folder, as a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NameHash(u64);

/// A component of a path: hash of the name, and kind of file that it stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Component {
    pub(super) name: NameHash,
    pub(super) kind: FileKind,
}

/// A node before its initial state is known.
pub(super) struct NameNode {
    pub(super) parent: u32,
    pub(super) kind: FileKind,
}

/// The numbers of all names of a recording.
pub(super) struct Names {
    key: RandomState,
    numbers: HashMap<(u32, NameHash), u32>,
    nodes: Vec<NameNode>,
    /// Number of names in the path of each node.
    depths: Vec<u8>,
}

impl Names {
    /// Creates a table with the recorded folder as its only node.
    pub(super) fn new() -> Self {
        let root = NameNode { parent: 0, kind: FileKind::Other };
        Self { key: RandomState::new(), numbers: HashMap::new(), nodes: vec![root], depths: vec![0] }
    }

    /// Splits a path below the recorded folder into its components.
    pub(super) fn components(&self, path: &[u8]) -> Vec<Component> {
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
        names.map(|name| Component { name: NameHash(self.key.hash_one(name)), kind: kind_of(name) }).collect()
    }

    /// Returns the number of a name in a folder; `None` if there are too many names, or too many folders above it.
    pub(super) fn number(&mut self, parent: u32, component: Component) -> Option<u32> {
        let key = (parent, component.name);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let number = self.add(NameNode { parent, kind: component.kind })?;
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Adds a node that no operation names; `None` if there are too many, or too many above it.
    pub(super) fn add(&mut self, node: NameNode) -> Option<u32> {
        let depth = self.depths.get(node.parent as usize)? + 1;
        if self.nodes.len() as u64 >= MAX_NODES || depth > MAX_DEPTH {
            return None;
        }
        self.depths.push(depth);
        self.nodes.push(node);
        Some(self.nodes.len() as u32 - 1)
    }

    /// Returns all nodes.
    pub(super) fn nodes(&self) -> &[NameNode] {
        &self.nodes
    }
}
