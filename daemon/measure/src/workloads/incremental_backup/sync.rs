//! The rsync-like engine: list a local tree, compare it with a folder on the target, copy, delete, compare.
//!
//! The local side is read with plain calls and is not recorded: what is measured is the target.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::NOTE;
use super::listing::{Found, list_there};
use crate::context::{Buffer, Context, Folder, Listing, OpenFile};
use crate::corpus::apple_double::twin_of;
use crate::corpus::draw::shuffled;
use crate::error::RunError;
use crate::model::SyncKind;
use crate::platform::{self, Access};
use crate::workloads::{create_anew, unlink_left_over};

/// How many files are copied at the same time.
const WIDTH: usize = 4;
/// Bytes of one write call, and of one read call when comparing.
const BLOCK: usize = 1 << 20;
/// How many files one piece of work holds at most.
const PIECE: usize = 16;
/// Begins the name of a file that is not whole yet.
const PARTIAL: &str = ".partial-";

/// A file of the local tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFile {
    /// Its name.
    pub name: CString,
    /// Its size in bytes.
    pub size: u64,
    modified_ns: i64,
    mode: u16,
    path: PathBuf,
}

/// A folder of the local tree, by the names that lead to it.
struct LocalFolder {
    names: Vec<CString>,
    files: Vec<LocalFile>,
}

/// A local tree, listed.
pub struct Tree {
    folders: Vec<LocalFolder>,
}

impl Tree {
    /// Lists a local tree. Links and special files are left out, as they cannot be compared across protocols; so are
    /// AppleDouble files, which hold attributes of other files.
    pub fn of(root: &Path) -> Result<Self, RunError> {
        let mut tree = Self { folders: vec![] };
        let mut pending = vec![(root.to_owned(), vec![])];
        while let Some((path, names)) = pending.pop() {
            let listed = list_local(&path).map_err(RunError::local("readdir", &path))?;
            for folder in listed.folders {
                pending.push((path.join(os(&folder)), [&names[..], &[folder]].concat()));
            }
            tree.folders.push(LocalFolder { names, files: listed.files });
        }
        Ok(tree)
    }

    /// How many files it has.
    pub fn files(&self) -> u64 {
        self.folders.iter().map(|folder| folder.files.len() as u64).sum()
    }

    /// Files to read back: up to half of them just copied, the others drawn from the whole tree.
    pub fn sample<'tree>(
        &'tree self,
        seed: u64,
        count: usize,
        differences: &Differences<'tree>,
    ) -> Vec<(&'tree [CString], &'tree LocalFile)> {
        let whole: Vec<_> =
            self.folders.iter().flat_map(|f| f.files.iter().map(|file| (&f.names[..], file))).collect();
        let copied: Vec<_> =
            differences.pieces.iter().flat_map(|p| p.files.iter().map(|file| (p.folder, *file))).collect();
        let drawn = |from: &[(&'tree [CString], &'tree LocalFile)], stream: u64, count: usize| {
            let order = shuffled(seed, stream, from.len() as u64);
            order.into_iter().take(count).map(|place| from[place as usize]).collect::<Vec<_>>()
        };
        let mut sample = drawn(&copied, 1, count / 2);
        sample.extend(drawn(&whole, 2, count - sample.len()));
        sample
    }
}

/// What one local folder holds.
struct Listed {
    folders: Vec<CString>,
    files: Vec<LocalFile>,
}

fn list_local(path: &Path) -> io::Result<Listed> {
    let mut listed = Listed { folders: vec![], files: vec![] };
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = CString::new(entry.file_name().into_vec()).map_err(io::Error::other)?;
        let facts = entry.metadata()?;
        if twin_of(name.to_bytes()).is_some() {
            continue;
        }
        if facts.is_dir() {
            listed.folders.push(name);
        } else if facts.is_file() {
            listed.files.push(LocalFile {
                name,
                size: facts.len(),
                modified_ns: facts.mtime().saturating_mul(1_000_000_000).saturating_add(facts.mtime_nsec()),
                mode: (facts.mode() & 0o7777) as u16,
                path: entry.path(),
            });
        }
    }
    Ok(listed)
}

/// Files of one folder that have to be copied.
pub struct Piece<'tree> {
    folder: &'tree [CString],
    files: Vec<&'tree LocalFile>,
}

/// What differs between a local tree and a folder on the target.
#[derive(Default)]
pub struct Differences<'tree> {
    pieces: Vec<Piece<'tree>>,
    gone: Vec<(&'tree [CString], CString)>,
    /// The first path that differs in more than its time.
    unlike: Option<PathBuf>,
    /// The number of AppleDouble files that the folders on the target showed.
    pub twins: u64,
}

impl<'tree> Differences<'tree> {
    /// How many files have to be copied.
    pub fn files(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.files.len() as u64).sum()
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().flat_map(|piece| &piece.files).map(|file| file.size).sum()
    }

    /// How many files have to be deleted.
    pub fn gone(&self) -> u64 {
        self.gone.len() as u64
    }

    /// Everything that has to be copied.
    pub fn all(&self) -> &[Piece<'tree>] {
        &self.pieces
    }

    /// The same, a few pieces at a time.
    pub fn parts(&self, pieces: usize) -> impl Iterator<Item = &[Piece<'tree>]> {
        self.pieces.chunks(pieces)
    }

    /// The first path that differs in more than its time: it is missing, too many, or of another size.
    pub fn unlike(&self) -> Option<&Path> {
        self.unlike.as_deref()
    }

    fn note_unlike(&mut self, folder: &[CString], name: &CStr) {
        let path = || folder.iter().map(CString::as_c_str).chain([name]).map(os).collect();
        self.unlike.get_or_insert_with(path);
    }
}

/// Compares size and modification time, to the second: some protocols keep no finer times.
pub fn scan<'tree>(
    context: &Context<'_>,
    tree: &'tree Tree,
    root: &Folder,
) -> Result<Differences<'tree>, RunError> {
    let mut differences = Differences::default();
    let mut listing = Listing::default();
    for local in &tree.folders {
        let folder = make_below(context, root, &local.names)?;
        let Found { mut there, twins, orphans } = list_there(context, &folder, &mut listing)?;
        differences.twins += twins;
        let mut changed = vec![];
        for file in &local.files {
            let found = match there.remove(&file.name) {
                true => likeness(context, &folder, file)?,
                false => Likeness::None,
            };
            match found {
                Likeness::Full => {}
                Likeness::AllButTime => changed.push(file),
                Likeness::None => {
                    differences.note_unlike(&local.names, &file.name);
                    changed.push(file);
                }
            }
        }
        // What an interrupted copy left of these is overwritten by the copy, and gone before anything is deleted.
        for file in &changed {
            there.remove(&partial_name(&file.name));
        }
        let pieces = changed.chunks(PIECE).map(|files| Piece { folder: &local.names, files: files.to_vec() });
        differences.pieces.extend(pieces);
        for name in there.into_iter().filter(|name| !is_folder(tree, &local.names, name)) {
            differences.note_unlike(&local.names, &name);
            differences.gone.push((&local.names, name));
        }
        differences.gone.extend(orphans.into_iter().map(|name| (&local.names[..], name)));
    }
    Ok(differences)
}

/// Where a listing does not tell files from folders, the source does.
fn is_folder(tree: &Tree, names: &[CString], name: &CString) -> bool {
    tree.folders
        .iter()
        .any(|folder| folder.names.split_last().is_some_and(|(last, rest)| last == name && rest == names))
}

/// How far the attributes of a copy are those of its source.
enum Likeness {
    Full,
    AllButTime,
    None,
}

fn likeness(context: &Context<'_>, folder: &Folder, file: &LocalFile) -> Result<Likeness, RunError> {
    let found = context.getattr(folder, &file.name)?;
    let seconds = |ns: i64| ns.div_euclid(1_000_000_000);
    Ok(match (found.size == file.size, seconds(found.modified_ns) == seconds(file.modified_ns)) {
        (true, true) => Likeness::Full,
        (true, false) => Likeness::AllButTime,
        (false, _) => Likeness::None,
    })
}

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How they were synced; `None` if there was none.
    pub sync: Option<SyncKind>,
}

/// Copies files to the target, several at a time.
pub fn copy(context: &Context<'_>, root: &Folder, pieces: &[Piece<'_>]) -> Result<Copied, RunError> {
    let sync = OnceLock::new();
    context.spread(WIDTH, pieces, |context, piece| {
        let folder = make_below(context, root, piece.folder)?;
        let largest = piece.files.iter().map(|file| file.size).max().unwrap_or(0);
        let mut buffer = Buffer::new(largest.clamp(1, BLOCK as u64) as usize);
        for file in &piece.files {
            let kind = copy_file(context, &folder, file, &mut buffer)?;
            sync.get_or_init(|| kind);
        }
        Ok(())
    })?;
    let files = pieces.iter().flat_map(|piece| &piece.files);
    Ok(Copied {
        files: files.clone().count() as u64,
        bytes: files.map(|file| file.size).sum(),
        sync: sync.get().copied(),
    })
}

/// Copies one file under a temporary name and renames it over the old one, so that there is always a whole one.
fn copy_file(
    context: &Context<'_>,
    folder: &Folder,
    file: &LocalFile,
    buffer: &mut [u8],
) -> Result<SyncKind, RunError> {
    let partial = partial_name(&file.name);
    let local = RunError::local;
    let mut source = File::open(&file.path).map_err(local("open", &file.path))?;
    let copy = create_anew(context, folder, &partial)?;
    let mut offset = 0;
    loop {
        let length = source.read(buffer).map_err(local("read", &file.path))?;
        if length == 0 {
            break;
        }
        context.write_all(&copy, &buffer[..length], offset)?;
        offset += length as u64;
    }
    copy_note(context, &source, &copy, &file.path)?;
    context.set_mode(&copy, file.mode)?;
    let sync = context.sync(&copy)?;
    context.close(copy)?;
    // As rsync does, after closing: Linux's SMB client takes the time of closing for the time of modification.
    context.set_times(folder, &partial, file.modified_ns)?;
    context.rename((folder, &partial), (folder, &file.name))?;
    Ok(sync)
}

fn copy_note(context: &Context<'_>, from: &File, to: &OpenFile, path: &Path) -> Result<(), RunError> {
    let mut value = [0u8; 256];
    let note =
        platform::getxattr(from.as_fd(), NOTE, &mut value).map_err(RunError::local("getxattr", path))?;
    if let Some(length) = note {
        context.setxattr(to, NOTE, &value[..length])?;
    }
    Ok(())
}

/// Deletes what the source has no more.
pub fn delete(context: &Context<'_>, root: &Folder, differences: &Differences<'_>) -> Result<(), RunError> {
    for (folder, name) in &differences.gone {
        let folder = open_below(context, root, folder)?;
        match twin_of(name.to_bytes()) {
            None => context.unlink(&folder, name)?,
            // Meanwhile its file may have been made, and moved together with it.
            Some(_) => unlink_left_over(context, &folder, name)?,
        }
    }
    Ok(())
}

/// Makes a folder on the target equal to a local tree: scan, copy, delete.
pub fn copy_tree(context: &Context<'_>, from: &Path, root: &Folder) -> Result<Copied, RunError> {
    let tree = Tree::of(from)?;
    let differences = scan(context, &tree, root)?;
    let copied = copy(context, root, differences.all())?;
    delete(context, root, &differences)?;
    Ok(copied)
}

/// What survived the way to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    mode: Option<bool>,
    note: Option<bool>,
}

impl Kept {
    /// What is known, as facts of a run.
    pub fn facts(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let word = |kept: bool| if kept { "kept" } else { "lost" };
        [("mode", self.mode), ("extended-attributes", self.note)]
            .into_iter()
            .filter_map(move |(name, kept)| Some((name, word(kept?))))
    }
}

/// One loss is a loss.
fn note_kept(answer: &mut Option<bool>, kept: bool) {
    *answer = Some(answer.unwrap_or(true) && kept);
}

/// Reads a copy back and compares it with its source; returns its bytes.
pub fn compare(
    context: &Context<'_>,
    folder: &Folder,
    file: &LocalFile,
    kept: &mut Kept,
) -> Result<u64, RunError> {
    let copy = context.open(folder, &file.name, Access::Read)?;
    let mut source = File::open(&file.path).map_err(RunError::local("open", &file.path))?;
    let (mut ours, mut theirs) = (Buffer::new(BLOCK), Buffer::new(BLOCK));
    let mut offset = 0;
    loop {
        let length = context.read_full(&copy, &mut theirs, offset)?;
        let expected = read_full(&mut source, &mut ours).map_err(RunError::local("read", &file.path))?;
        if ours[..expected] != theirs[..length] {
            let differing =
                ours.iter().zip(&*theirs).position(|(a, b)| a != b).unwrap_or(expected.min(length));
            let place = offset + differing as u64;
            return Err(RunError::damaged(copy.path(), format!("byte {place} differs from the source")));
        }
        offset += length as u64;
        if length < BLOCK {
            break;
        }
    }
    note_kept(&mut kept.mode, context.getattr(folder, &file.name)?.mode == file.mode);
    let (mut mine, mut there) = ([0u8; 256], [0u8; 256]);
    let note = platform::getxattr(source.as_fd(), NOTE, &mut mine)
        .map_err(RunError::local("getxattr", &file.path))?;
    if let Some(length) = note {
        let answer = context.getxattr(&copy, NOTE, &mut there)?;
        note_kept(&mut kept.note, answer == Some(length) && mine[..length] == there[..length]);
    }
    context.close(copy)?;
    Ok(offset)
}

fn read_full(source: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match source.read(&mut buffer[done..])? {
            0 => break,
            length => done += length,
        }
    }
    Ok(done)
}

/// Opens a folder below the root.
pub fn open_below(context: &Context<'_>, root: &Folder, names: &[CString]) -> Result<Folder, RunError> {
    match names.split_first() {
        None => context.open_folder(root, c"."),
        Some((first, rest)) => {
            let first = context.open_folder(root, first)?;
            rest.iter().try_fold(first, |folder, name| context.open_folder(&folder, name))
        }
    }
}

/// Opens a folder below the root, and makes what is missing of it.
fn make_below(context: &Context<'_>, root: &Folder, names: &[CString]) -> Result<Folder, RunError> {
    match open_below(context, root, names) {
        Err(RunError::Operation { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let mut folder = context.open_folder(root, c".")?;
    for name in names {
        folder = context.make_folder(&folder, name)?;
    }
    Ok(folder)
}

fn partial_name(name: &CStr) -> CString {
    CString::new([PARTIAL.as_bytes(), name.to_bytes()].concat()).expect("a name holds no NUL")
}

/// The path that a partial file is about to become; other paths as they are.
pub fn without_partial_prefix(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix(PARTIAL));
    name.map_or_else(|| path.to_owned(), |name| path.with_file_name(name))
}

fn os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}
