//! Files and folders in memory, and what a Mac's kernel does beside them where a file system keeps no extended
//! attributes (xnu bsd/vfs/vfs_xattr.c, bsd/vfs/kpi_vfs.c).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, INodeNo};

use super::Quirk;
use super::apple_double::{self, Attributes, FINDER_INFO};
use super::names::{decomposed, key};

/// The number of the root.
pub const ROOT: u64 = 1;
/// Bytes of a block.
pub const BLOCK: u64 = 4096;
/// Bytes that fit.
pub const CAPACITY: u64 = 8 << 30;
/// The attribute that macOS 13 and later give to what a program makes.
const PROVENANCE: &str = "user.com.apple.provenance";
/// A twin that is older is no longer that of a file that is made (`AD_STALE_SECS`).
const STALE: Duration = Duration::from_secs(180);
const TWIN: &str = "._";

/// Everything in which a volume differs from the plainest one.
pub type Quirks = BTreeSet<Quirk>;
type Answer<T> = Result<T, Errno>;
/// A name in a folder.
pub type At<'a> = (u64, &'a str);

/// The entries of a folder. A place stays that of its entry for as long as it is there, so that listings go on after it.
#[derive(Default)]
pub struct Folder {
    places: BTreeMap<String, u64>,
    entries: BTreeMap<u64, (String, u64)>,
}

/// The content of a node.
pub enum Content {
    File(Vec<u8>),
    Folder(Folder),
}

/// A file or a folder.
pub struct Node {
    pub content: Content,
    pub mode: u16,
    pub accessed: SystemTime,
    pub modified: SystemTime,
    pub changed: SystemTime,
    /// Its names: the folder of each, and the place there.
    names: Vec<(u64, u64)>,
    /// The number of times that the kernel holds it.
    held: u64,
    /// Open handles.
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

    /// Names of a file; two of a folder, its own and `.`.
    pub fn links(&self) -> u32 {
        let own = u32::from(self.is_folder());
        self.names.len() as u32 + own
    }
}

/// A whole file system.
pub struct Volume {
    quirks: Quirks,
    nodes: HashMap<u64, Node>,
    next: u64,
    /// Bytes of all files.
    pub used: u64,
}

impl Volume {
    /// An empty one.
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

    /// The time, as finely as it is kept.
    pub fn now(&self) -> SystemTime {
        self.kept(SystemTime::now())
    }

    /// The part of a time that is kept.
    pub fn kept(&self, time: SystemTime) -> SystemTime {
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

    /// The kernel knows of a node from now on.
    pub fn hold(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.held += 1;
        }
    }

    /// The kernel lets go of a node.
    pub fn forget(&mut self, number: u64, times: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.held = node.held.saturating_sub(times);
        }
        self.drop_unused(number);
    }

    /// Drops a node that has no name and that the kernel does not hold.
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

    /// Entries after a place: where each is, its name and its number.
    pub fn list(&self, folder: u64, after: u64) -> Answer<Vec<(u64, String, u64)>> {
        let entries = self.folder(folder)?.entries.range(after + 1..);
        Ok(entries.map(|(place, (name, node))| (*place, name.clone(), *node)).collect())
    }

    fn put(&mut self, (folder, name): At<'_>, node: u64) -> Answer<()> {
        let shown = match self.quirks.contains(&Quirk::DecomposedNames) {
            true => decomposed(name),
            false => name.to_owned(),
        };
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
        let twin = twin_of(at.1).and_then(|twin| self.find((at.0, &twin)).ok());
        let age = twin.and_then(|twin| self.node(twin).ok()?.modified.elapsed().ok());
        if age.is_some_and(|age| age > STALE) {
            self.remove_twin(at);
        }
        if self.quirks.contains(&Quirk::ProvenanceTwins) && twin_of(at.1).is_some() {
            self.set_attribute(node, PROVENANCE, &[1; 11])?;
        }
        Ok(node)
    }

    /// Makes an empty file.
    pub fn make_file(&mut self, at: At<'_>, mode: u16) -> Answer<u64> {
        self.make(at, Content::File(vec![]), mode)
    }

    /// Makes an empty folder.
    pub fn make_folder(&mut self, at: At<'_>, mode: u16) -> Answer<u64> {
        self.make(at, Content::Folder(Folder::default()), mode)
    }

    /// Gives a file one more name.
    pub fn link(&mut self, node: u64, at: At<'_>) -> Answer<()> {
        match self.find(at) {
            Ok(_) => Err(Errno::EEXIST),
            Err(_) => self.put(at, node),
        }
    }

    /// Removes the name of a file, and its twin.
    pub fn remove(&mut self, at: At<'_>) -> Answer<()> {
        if self.node(self.find(at)?)?.is_folder() {
            return Err(Errno::EISDIR);
        }
        let node = self.take(at)?;
        self.drop_unused(node);
        self.remove_twin(at);
        Ok(())
    }

    /// `xattrfile_remove`: only a regular file, and none of a name that begins as a twin's does.
    fn remove_twin(&mut self, (folder, name): At<'_>) {
        let Some(twin) = twin_of(name) else { return };
        let is_file = |node: u64| self.node(node).is_ok_and(|node| !node.is_folder());
        if self.find((folder, &twin)).is_ok_and(is_file)
            && let Ok(node) = self.take((folder, &twin))
        {
            self.drop_unused(node);
        }
    }

    /// Removes a folder. Twins that were left alone in it go with it (`rmdir_remove_orphaned_appleDouble`).
    pub fn remove_folder(&mut self, at: At<'_>) -> Answer<()> {
        let number = self.find(at)?;
        let names: Vec<String> =
            self.folder(number)?.entries.values().map(|(name, _)| name.clone()).collect();
        let is_orphan = |name: &String| name.starts_with(TWIN) && !name[TWIN.len()..].starts_with(TWIN);
        if !names.iter().all(is_orphan) {
            return Err(Errno::ENOTEMPTY);
        }
        names.iter().try_for_each(|name| self.remove((number, name)))?;
        self.take(at)?;
        self.drop_unused(number);
        self.remove_twin(at);
        Ok(())
    }

    /// Renames, over an existing file too; the twin goes along (`vn_rename`).
    pub fn rename(&mut self, from: At<'_>, to: At<'_>) -> Answer<()> {
        let moved = self.find(from)?;
        if let Ok(over) = self.find(to)
            && over != moved
        {
            self.make_way(over, to)?;
        }
        self.take(from)?;
        self.put(to, moved)?;
        let (Some(twin), Some(new)) = (twin_of(from.1), twin_of(to.1)) else { return Ok(()) };
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

    /// Removes what is renamed over.
    fn make_way(&mut self, over: u64, to: At<'_>) -> Answer<()> {
        let node = self.node(over)?;
        // The answer to a sharing violation: another client has it open (SMBClient kernel/netsmb/smb_subr.c).
        if node.open > 0 && self.quirks.contains(&Quirk::NoRenameOverOpen) {
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

    /// Cuts or grows a file.
    pub fn resize(&mut self, number: u64, length: usize) -> Answer<()> {
        let (now, size) = (self.now(), self.node(number)?.size());
        let used = self.used - size + length as u64;
        if used > CAPACITY {
            return Err(Errno::ENOSPC);
        }
        let node = self.node_mut(number)?;
        (node.modified, node.changed) = (now, now);
        match &mut node.content {
            Content::File(bytes) => bytes.resize(length, 0),
            Content::Folder(_) => return Err(Errno::EISDIR),
        }
        self.used = used;
        Ok(())
    }

    /// The twin of a node: its folder, and its name there. A twin has none (`open_xattrfile` answers EPERM), nor has what
    /// is nowhere any more.
    fn twin(&self, number: u64) -> Answer<(u64, String)> {
        let (folder, place) = *self.node(number)?.names.first().ok_or(Errno::NO_XATTR)?;
        let name = &self.folder(folder)?.entries.get(&place).ok_or(Errno::NO_XATTR)?.0;
        Ok((folder, twin_of(name).ok_or(Errno::EPERM)?))
    }

    /// The extended attributes of a node, read from its twin.
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
        self.keep_attributes(number, &attributes)
    }

    pub fn remove_attribute(&mut self, number: u64, name: &str) -> Answer<()> {
        let mut attributes = self.attributes(number)?;
        attributes.remove(name).ok_or(Errno::NO_XATTR)?;
        if attributes.is_empty() {
            let (folder, twin) = self.twin(number)?;
            return self.remove((folder, &twin));
        }
        self.keep_attributes(number, &attributes)
    }

    fn keep_attributes(&mut self, number: u64, attributes: &Attributes) -> Answer<()> {
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

/// The name of a name's twin; `None` for a twin, which has none.
fn twin_of(name: &str) -> Option<String> {
    (!name.starts_with(TWIN)).then(|| format!("{TWIN}{name}"))
}

/// The attributes of a node, as the kernel takes them.
pub fn facts(volume: &Volume, number: u64) -> Result<FileAttr, Errno> {
    let node = volume.node(number)?;
    let kind = if node.is_folder() { FileType::Directory } else { FileType::RegularFile };
    Ok(FileAttr {
        ino: INodeNo(number),
        size: node.size(),
        blocks: node.size().div_ceil(512),
        atime: node.accessed,
        mtime: node.modified,
        ctime: node.changed,
        crtime: node.modified,
        kind,
        perm: node.mode,
        nlink: node.links(),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize: BLOCK as u32,
        flags: 0,
    })
}
