//! Files and folders of the stand-in. A descriptor of any real file stands for one of them.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};
use std::os::fd::{AsRawFd, BorrowedFd};

use super::Kernel;
use crate::errno::*;

/// File or folder.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Name in the folder.
    pub name: CString,
    /// Kind, as `enum vtype` (xnu bsd/sys/vnode.h:91): 1 for a file, 2 for a folder, 5 for a symbolic link.
    pub kind: u32,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change: seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Permission bits.
    pub mode: u16,
    /// Finder info.
    pub finder_info: [u8; 32],
    /// Error that the file system returns for the attributes of the node; 0 for none.
    pub error: c_int,
    /// Common attributes that the file system does not support.
    pub unsupported: u32,
    /// Extended attributes.
    pub xattrs: BTreeMap<CString, Vec<u8>>,
    /// Nodes in a folder.
    pub entries: Vec<Node>,
}

impl Node {
    /// Returns a node with a name and a kind.
    pub fn new(name: &CStr, kind: u32) -> Self {
        Self { name: name.to_owned(), kind, mode: 0o644, ..Self::default() }
    }

    /// Returns a folder with entries.
    pub fn folder(entries: Vec<Node>) -> Self {
        Self { kind: 2, mode: 0o755, entries, ..Self::default() }
    }

    /// Returns the mode with the bits of the type (xnu bsd/sys/stat.h).
    pub(crate) fn mode_with_type(&self) -> u16 {
        let kind = match self.kind {
            1 => 0o100_000,
            2 => 0o040_000,
            5 => 0o120_000,
            _ => 0o010_000,
        };
        kind | self.mode
    }
}

/// Open file: its node, the position of a listing, and the mount that it is on.
pub(super) struct OpenFile {
    pub node: Node,
    pub position: usize,
    pub mount: Option<crate::statfs>,
}

impl Kernel {
    /// Lets a descriptor stand for a node.
    pub fn open(&mut self, at: BorrowedFd<'_>, node: Node) {
        self.files.insert(at.as_raw_fd(), OpenFile { node, position: 0, mount: None });
    }

    /// Sets the mount that an open node is on.
    pub fn put_on(&mut self, at: BorrowedFd<'_>, mount: crate::statfs) {
        if let Some(file) = self.files.get_mut(&at.as_raw_fd()) {
            file.mount = Some(mount);
        }
    }

    /// Returns the node that a descriptor stands for.
    pub fn node(&self, at: BorrowedFd<'_>) -> Option<&Node> {
        Some(&self.files.get(&at.as_raw_fd())?.node)
    }

    pub(super) fn file(&mut self, number: c_int) -> Result<&mut OpenFile, c_int> {
        self.files.get_mut(&number).ok_or(EBADF)
    }

    /// Returns the node with a name in an open folder.
    pub(crate) fn named(&mut self, folder: c_int, name: &CStr) -> Result<Node, c_int> {
        let folder = &self.file(folder)?.node;
        if folder.kind != 2 {
            return Err(ENOTDIR);
        }
        let found = folder.entries.iter().find(|node| node.name.as_c_str() == name).ok_or(ENOENT)?;
        if found.error == 0 { Ok(found.clone()) } else { Err(found.error) }
    }

    pub(crate) fn is_open(&self, number: c_int) -> bool {
        self.files.contains_key(&number)
    }

    pub(crate) fn node_mut(&mut self, number: c_int) -> Result<&mut Node, c_int> {
        Ok(&mut self.file(number)?.node)
    }

    pub(crate) fn mount_of(&mut self, number: c_int) -> Result<crate::statfs, c_int> {
        self.file(number)?.mount.ok_or(EIO)
    }
}
