//! Files and folders in memory, by number.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

enum Node {
    File(Vec<u8>),
    Folder(BTreeMap<OsString, u64>),
}

/// All of them. What is asked for has to be there, as the kernel asks for nothing else.
pub struct Tree {
    nodes: BTreeMap<u64, Node>,
    next: u64,
}

impl Tree {
    /// An empty root, which has the number 1.
    pub fn new() -> Self {
        Self { nodes: BTreeMap::from([(1, Node::Folder(BTreeMap::new()))]), next: 2 }
    }

    /// The number of a name.
    pub fn find(&self, parent: u64, name: &OsStr) -> Option<u64> {
        self.folder(parent).get(name).copied()
    }

    /// Whether a file is in a folder with this name.
    pub fn is_in(&self, node: u64, folder: &str) -> bool {
        let folders = self.nodes.values().filter_map(|one| match one {
            Node::Folder(entries) => entries.get(OsStr::new(folder)),
            Node::File(_) => None,
        });
        folders.into_iter().any(|found| match &self.nodes[found] {
            Node::Folder(entries) => entries.values().any(|entry| *entry == node),
            Node::File(_) => false,
        })
    }

    /// The size of a file; `None` for a folder.
    pub fn size(&self, node: u64) -> Option<u64> {
        match self.nodes.get(&node)? {
            Node::File(bytes) => Some(bytes.len() as u64),
            Node::Folder(_) => None,
        }
    }

    /// Makes an empty file.
    pub fn make_file(&mut self, parent: u64, name: &OsStr) -> u64 {
        self.make(parent, name, Node::File(vec![]))
    }

    /// Makes an empty folder.
    pub fn make_folder(&mut self, parent: u64, name: &OsStr) -> u64 {
        self.make(parent, name, Node::Folder(BTreeMap::new()))
    }

    fn make(&mut self, parent: u64, name: &OsStr, node: Node) -> u64 {
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, node);
        self.folder_mut(parent).insert(name.to_owned(), number);
        number
    }

    /// What a folder holds: names, numbers, and whether it is a file.
    pub fn list(&self, node: u64) -> Vec<(OsString, u64, bool)> {
        let entries = self.folder(node).iter();
        entries.map(|(name, node)| (name.clone(), *node, self.size(*node).is_some())).collect()
    }

    /// Removes a name.
    pub fn remove(&mut self, parent: u64, name: &OsStr) -> Result<(), i32> {
        let node = self.find(parent, name).ok_or(2)?;
        if let Node::Folder(entries) = &self.nodes[&node]
            && !entries.is_empty()
        {
            return Err(39);
        }
        self.folder_mut(parent).remove(name);
        Ok(())
    }

    /// Renames, over an existing name too.
    pub fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) -> Result<(), i32> {
        let node = self.folder_mut(from.0).remove(from.1).ok_or(2)?;
        self.folder_mut(to.0).insert(to.1.to_owned(), node);
        Ok(())
    }

    /// Part of a file.
    pub fn read(&self, node: u64, offset: usize, length: usize) -> Vec<u8> {
        let bytes = self.bytes(node);
        let end = (offset + length).min(bytes.len());
        bytes.get(offset..end).unwrap_or_default().to_vec()
    }

    /// Writes into a file, which grows.
    pub fn write(&mut self, node: u64, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        self.resize(node, end.max(self.bytes(node).len()));
        self.bytes_mut(node)[offset..end].copy_from_slice(data);
    }

    /// Cuts or grows a file.
    pub fn resize(&mut self, node: u64, length: usize) {
        self.bytes_mut(node).resize(length, 0);
    }

    fn bytes(&self, node: u64) -> &Vec<u8> {
        match &self.nodes[&node] {
            Node::File(bytes) => bytes,
            Node::Folder(_) => panic!("{node} is a folder"),
        }
    }

    fn bytes_mut(&mut self, node: u64) -> &mut Vec<u8> {
        match self.nodes.get_mut(&node) {
            Some(Node::File(bytes)) => bytes,
            _ => panic!("{node} is no file"),
        }
    }

    fn folder(&self, node: u64) -> &BTreeMap<OsString, u64> {
        match &self.nodes[&node] {
            Node::Folder(entries) => entries,
            Node::File(_) => panic!("{node} is a file"),
        }
    }

    fn folder_mut(&mut self, node: u64) -> &mut BTreeMap<OsString, u64> {
        match self.nodes.get_mut(&node) {
            Some(Node::Folder(entries)) => entries,
            _ => panic!("{node} is no folder"),
        }
    }
}
