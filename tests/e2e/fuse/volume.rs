//! Files and folders in memory. With [`Quirk::AppleDouble`] the volume has the AppleDouble files that a Mac's kernel
//! maintains on a file system without extended attributes (xnu bsd/vfs/vfs_xattr.c, bsd/vfs/kpi_vfs.c). The
//! AppleDouble file `._NAME` is called the twin of `NAME`.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::Errno;

use super::Quirk;
use super::apple_double::{self, Attributes, FINDER_INFO};
use super::names::{Quirks, decomposed, key};

/// Inode number of the root folder.
pub const ROOT: u64 = 1;
/// Capacity in bytes.
pub const CAPACITY: u64 = 8 << 30;
/// Attribute that macOS 13 and later set on files and folders created by a program.
const PROVENANCE: &str = "user.com.apple.provenance";
/// Age above which an existing twin is stale and is removed when a file with its name is created (`AD_STALE_SECS`).
const STALE: Duration = Duration::from_secs(180);
/// Name prefix of a twin.
const TWIN: &str = "._";

type Answer<T> = Result<T, Errno>;
/// Name in a folder: inode number of the folder, and the name.
pub type At<'a> = (u64, &'a str);

/// Entries of a folder, by name and by place. Places never change, so that a listing survives changes.
#[derive(Default)]
pub struct Folder {
    places: BTreeMap<String, u64>,
    entries: BTreeMap<u64, (String, u64)>,
}

/// Entry of a listed folder.
pub struct Entry {
    pub place: u64,
    pub name: String,
    pub node: u64,
    pub is_folder: bool,
}

/// Content of a node.
pub enum Content {
    File(Vec<u8>),
    Folder(Folder),
}

/// File or folder.
pub struct Node {
    pub content: Content,
    pub mode: u16,
    pub accessed: SystemTime,
    pub modified: SystemTime,
    pub changed: SystemTime,
    /// Names of the node: inode number of the folder, and place in it.
    names: Vec<(u64, u64)>,
    /// Number of references that the kernel holds.
    held: u64,
    /// Number of open handles.
    pub open: u64,
}

impl Node {
    pub fn size(&self) -> u64 {
        match &self.content {
            Content::File(bytes) => bytes.len() as u64,
            Content::Folder(_) => 0,
        }
    }

    pub fn is_folder(&self) -> bool {
        matches!(self.content, Content::Folder(_))
    }

    /// Returns the link count: the number of names, plus one for the `.` of a folder.
    pub fn links(&self) -> u32 {
        let own = u32::from(self.is_folder());
        self.names.len() as u32 + own
    }
}

/// File system in memory.
pub struct Volume {
    quirks: Quirks,
    nodes: HashMap<u64, Node>,
    next: u64,
    /// Total size of all files in bytes.
    pub used: u64,
}

impl Volume {
    /// Creates an empty volume.
    pub fn new(quirks: Quirks) -> Self {
        let mut volume = Self { quirks, nodes: HashMap::new(), next: ROOT, used: 0 };
        let root = volume.add(Content::Folder(Folder::default()), 0o755);
        volume.hold(root);
        volume
    }

    fn add(&mut self, content: Content, mode: u16) -> u64 {
        let (number, now) = (self.next, self.now());
        self.next += 1;
        let node = Node {
            content,
            mode,
            accessed: now,
            modified: now,
            changed: now,
            names: vec![],
            held: 0,
            open: 0,
        };
        self.nodes.insert(number, node);
        number
    }

    /// Returns true if the volume has this quirk.
    pub fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    /// Returns the size in bytes of the largest file.
    pub fn largest_file(&self) -> u64 {
        self.nodes.values().map(Node::size).max().unwrap_or(0)
    }

    /// Returns true if a node is in a folder with this name.
    pub fn is_in(&self, number: u64, folder: &str) -> bool {
        let at = |number| self.nodes.get(&number)?.names.first().copied();
        let name = |(folder, place)| Some(self.folder(folder).ok()?.entries.get(&place)?.0.as_str());
        at(number).and_then(|(parent, _)| name(at(parent)?)) == Some(folder)
    }

    /// Returns the current time in the resolution of the volume.
    pub fn now(&self) -> SystemTime {
        self.rounded(SystemTime::now())
    }

    /// Rounds a time down to the resolution of the volume.
    pub fn rounded(&self, time: SystemTime) -> SystemTime {
        let step = self.quirks.iter().find_map(|quirk| match quirk {
            Quirk::TimeStep(seconds) => Some(*seconds),
            _ => None,
        });
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        match step {
            Some(step) => UNIX_EPOCH + Duration::from_secs(since.as_secs() / step * step),
            None => time,
        }
    }

    pub fn node(&self, number: u64) -> Answer<&Node> {
        self.nodes.get(&number).ok_or(Errno::ESTALE)
    }

    pub fn node_mut(&mut self, number: u64) -> Answer<&mut Node> {
        self.nodes.get_mut(&number).ok_or(Errno::ESTALE)
    }

    fn folder(&self, number: u64) -> Answer<&Folder> {
        match &self.node(number)?.content {
            Content::Folder(folder) => Ok(folder),
            Content::File(_) => Err(Errno::ENOTDIR),
        }
    }

    fn folder_mut(&mut self, number: u64) -> Answer<&mut Folder> {
        let now = self.now();
        let node = self.node_mut(number)?;
        (node.modified, node.changed) = (now, now);
        match &mut node.content {
            Content::Folder(folder) => Ok(folder),
            Content::File(_) => Err(Errno::ENOTDIR),
        }
    }

    /// Records that the kernel holds one more reference to a node.
    pub fn hold(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.held += 1;
        }
    }

    /// Records that the kernel drops references to a node, and removes the node if it is unused.
    pub fn forget(&mut self, number: u64, times: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.held = node.held.saturating_sub(times);
        }
        self.drop_unused(number);
    }

    /// Removes a node that has no name and to which the kernel holds no reference.
    fn drop_unused(&mut self, number: u64) {
        if self.nodes.get(&number).is_some_and(|node| node.names.is_empty() && node.held == 0) {
            let node = self.nodes.remove(&number);
            self.used -= node.map_or(0, |node| node.size());
        }
    }

    pub fn find(&self, (folder, name): At<'_>) -> Answer<u64> {
        let folder = self.folder(folder)?;
        let place = folder.places.get(&key(name, &self.quirks)).ok_or(Errno::ENOENT)?;
        Ok(folder.entries[place].1)
    }

    /// Returns the entries after a place.
    pub fn list(&self, folder: u64, after: u64) -> Answer<Vec<Entry>> {
        let entry = |(place, (name, node)): (&u64, &(String, u64))| {
            let is_folder = self.node(*node).is_ok_and(Node::is_folder);
            Entry { place: *place, name: name.clone(), node: *node, is_folder }
        };
        Ok(self.folder(folder)?.entries.range(after + 1..).map(entry).collect())
    }

    fn put(&mut self, (folder, name): At<'_>, node: u64) -> Answer<()> {
        let shown = if self.has(Quirk::DecomposedNames) { decomposed(name) } else { name.to_owned() };
        let (key, place) = (key(name, &self.quirks), self.next);
        self.next += 1;
        let entries = self.folder_mut(folder)?;
        entries.places.insert(key, place);
        entries.entries.insert(place, (shown, node));
        self.node_mut(node)?.names.push((folder, place));
        Ok(())
    }

    fn take(&mut self, (folder, name): At<'_>) -> Answer<u64> {
        let key = key(name, &self.quirks);
        let entries = self.folder_mut(folder)?;
        let place = entries.places.remove(&key).ok_or(Errno::ENOENT)?;
        let (_, number) = entries.entries.remove(&place).ok_or(Errno::ENOENT)?;
        let now = self.now();
        let node = self.node_mut(number)?;
        node.names.retain(|name| *name != (folder, place));
        node.changed = now;
        Ok(number)
    }

    fn make(&mut self, at: At<'_>, content: Content, mode: u16) -> Answer<u64> {
        if self.find(at).is_ok() {
            return Err(Errno::EEXIST);
        }
        let node = self.add(content, mode);
        self.put(at, node)?;
        // VNOP_CREATE: "Remove stale Apple Double file (if any)".
        let twin = self.twin_of(at.1).and_then(|twin| self.find((at.0, &twin)).ok());
        let age = twin.and_then(|twin| self.node(twin).ok()?.modified.elapsed().ok());
        if age.is_some_and(|age| age > STALE) {
            self.remove_twin(at);
        }
        if self.has(Quirk::ProvenanceTwins) && self.twin_of(at.1).is_some() {
            self.set_attribute(node, PROVENANCE, &[1; 11])?;
        }
        Ok(node)
    }

    /// Creates an empty file and returns its inode number.
    pub fn make_file(&mut self, at: At<'_>, mode: u16) -> Answer<u64> {
        self.make(at, Content::File(vec![]), mode)
    }

    /// Creates an empty folder and returns its inode number.
    pub fn make_folder(&mut self, at: At<'_>, mode: u16) -> Answer<u64> {
        self.make(at, Content::Folder(Folder::default()), mode)
    }

    /// Adds a name to a file.
    pub fn link(&mut self, node: u64, at: At<'_>) -> Answer<()> {
        match self.find(at) {
            Ok(_) => Err(Errno::EEXIST),
            Err(_) => self.put(at, node),
        }
    }

    /// Removes the name of a file, and the twin of that name.
    pub fn remove(&mut self, at: At<'_>) -> Answer<()> {
        if self.node(self.find(at)?)?.is_folder() {
            return Err(Errno::EISDIR);
        }
        let node = self.take(at)?;
        self.drop_unused(node);
        self.remove_twin(at);
        Ok(())
    }

    /// Removes the twin of a name, as `xattrfile_remove` does: only a regular file, and not if the name itself starts
    /// with `._`.
    fn remove_twin(&mut self, (folder, name): At<'_>) {
        let Some(twin) = self.twin_of(name) else { return };
        let is_file = |node: u64| self.node(node).is_ok_and(|node| !node.is_folder());
        if self.find((folder, &twin)).is_ok_and(is_file)
            && let Ok(node) = self.take((folder, &twin))
        {
            self.drop_unused(node);
        }
    }

    /// Removes a folder. Orphaned twins in it are removed too (`rmdir_remove_orphaned_appleDouble`).
    pub fn remove_folder(&mut self, at: At<'_>) -> Answer<()> {
        let number = self.find(at)?;
        let names: Vec<String> =
            self.folder(number)?.entries.values().map(|(name, _)| name.clone()).collect();
        let is_orphan =
            |name: &String| name.strip_prefix(TWIN).is_some_and(|name| self.twin_of(name).is_some());
        if !names.iter().all(is_orphan) {
            return Err(Errno::ENOTEMPTY);
        }
        names.iter().try_for_each(|name| self.remove((number, name)))?;
        self.take(at)?;
        self.drop_unused(number);
        self.remove_twin(at);
        Ok(())
    }

    /// Renames an entry, replacing an existing one. The twin is renamed as well (`vn_rename`).
    pub fn rename(&mut self, from: At<'_>, to: At<'_>) -> Answer<()> {
        let moved = self.find(from)?;
        if let Ok(over) = self.find(to)
            && over != moved
        {
            self.make_way(over, to)?;
        }
        self.take(from)?;
        self.put(to, moved)?;
        let (Some(twin), Some(new)) = (self.twin_of(from.1), self.twin_of(to.1)) else { return Ok(()) };
        if let Ok(old) = self.find((to.0, &new))
            && Ok(old) != self.find((from.0, &twin))
        {
            self.remove((to.0, &new))?;
        }
        match self.find((from.0, &twin)) {
            Ok(node) => {
                self.take((from.0, &twin))?;
                self.put((to.0, &new), node)
            }
            Err(_) => Ok(()),
        }
    }

    /// Removes the entry that a rename replaces.
    fn make_way(&mut self, over: u64, to: At<'_>) -> Answer<()> {
        let node = self.node(over)?;
        // EBUSY is how smbfs maps a sharing violation: another client has the file open (SMBClient
        // kernel/netsmb/smb_subr.c:164).
        if node.open > 0 && self.has(Quirk::NoRenameOverOpen) {
            return Err(Errno::EBUSY);
        }
        if node.is_folder() && !self.folder(over)?.entries.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.take(to)?;
        self.drop_unused(over);
        Ok(())
    }

    pub fn read(&self, number: u64, offset: usize, length: usize) -> Answer<&[u8]> {
        match &self.node(number)?.content {
            Content::File(bytes) => {
                let end = offset.saturating_add(length).min(bytes.len());
                Ok(bytes.get(offset..end).unwrap_or_default())
            }
            Content::Folder(_) => Err(Errno::EISDIR),
        }
    }

    pub fn write(&mut self, number: u64, offset: usize, data: &[u8]) -> Answer<()> {
        let end = offset + data.len();
        let size = self.node(number)?.size() as usize;
        self.resize(number, end.max(size))?;
        match &mut self.node_mut(number)?.content {
            Content::File(bytes) => bytes[offset..end].copy_from_slice(data),
            Content::Folder(_) => return Err(Errno::EISDIR),
        }
        Ok(())
    }

    /// Truncates a file, or extends it with zeros; `Vec::resize` is slow unless optimized. Fails with ENOSPC above the capacity.
    pub fn resize(&mut self, number: u64, length: usize) -> Answer<()> {
        let (now, size) = (self.now(), self.node(number)?.size());
        let used = self.used - size + length as u64;
        if used > CAPACITY {
            return Err(Errno::ENOSPC);
        }
        let node = self.node_mut(number)?;
        (node.modified, node.changed) = (now, now);
        match &mut node.content {
            Content::File(bytes) => {
                bytes.extend_from_slice(&vec![0; length.saturating_sub(bytes.len())]);
                bytes.truncate(length);
            }
            Content::Folder(_) => return Err(Errno::EISDIR),
        }
        self.used = used;
        Ok(())
    }

    /// Returns the name of the twin of a name; `None` if the name is itself that of a twin, or without AppleDouble files.
    fn twin_of(&self, name: &str) -> Option<String> {
        let has_twin = self.has(Quirk::AppleDouble) && !name.starts_with(TWIN);
        has_twin.then(|| format!("{TWIN}{name}"))
    }

    /// Returns folder and name of a node's twin. Fails with EPERM for a twin, which has none (`open_xattrfile`), and
    /// with `NO_XATTR` for a node without a name.
    fn twin(&self, number: u64) -> Answer<(u64, String)> {
        let (folder, place) = *self.node(number)?.names.first().ok_or(Errno::NO_XATTR)?;
        let name = &self.folder(folder)?.entries.get(&place).ok_or(Errno::NO_XATTR)?.0;
        Ok((folder, self.twin_of(name).ok_or(Errno::EPERM)?))
    }

    /// Returns the extended attributes of a node, read from its twin.
    pub fn attributes(&self, number: u64) -> Answer<Attributes> {
        let (folder, twin) = self.twin(number)?;
        let Ok(twin) = self.find((folder, &twin)) else { return Ok(Attributes::new()) };
        Ok(apple_double::decode(self.read(twin, 0, usize::MAX)?))
    }

    pub fn set_attribute(&mut self, number: u64, name: &str, value: &[u8]) -> Answer<()> {
        if name == FINDER_INFO && value.len() != 32 {
            return Err(Errno::ERANGE);
        }
        let mut attributes = self.attributes(number)?;
        attributes.insert(name.to_owned(), value.to_vec());
        self.store_attributes(number, &attributes)
    }

    pub fn remove_attribute(&mut self, number: u64, name: &str) -> Answer<()> {
        let mut attributes = self.attributes(number)?;
        attributes.remove(name).ok_or(Errno::NO_XATTR)?;
        if attributes.is_empty() {
            let (folder, twin) = self.twin(number)?;
            return self.remove((folder, &twin));
        }
        self.store_attributes(number, &attributes)
    }

    fn store_attributes(&mut self, number: u64, attributes: &Attributes) -> Answer<()> {
        let (folder, name) = self.twin(number)?;
        let mode = self.node(number)?.mode & 0o666;
        let twin = match self.find((folder, &name)) {
            Ok(twin) => twin,
            Err(_) => self.make_file((folder, &name), mode)?,
        };
        let file = apple_double::encode(attributes).ok_or(Errno::E2BIG)?;
        self.resize(twin, file.len())?;
        self.write(twin, 0, &file)
    }
}
