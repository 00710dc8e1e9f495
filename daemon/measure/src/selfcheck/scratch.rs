//! The folder in a sandbox in which a self-check makes its files, and the names of those.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::arena::Arena;
use crate::context::{Context, Folder, Listing};
use crate::error::RunError;
use crate::model::Operation;
use crate::platform::{Access, EntryKind, Wanted};

use super::names;

/// The name of the folder, in the sandbox and in its manifest.
pub const FOLDER: &str = "selfcheck";
const FOLDER_NAME: &CStr = c"selfcheck";

/// The names of files that no table of names holds.
const FILES: [&[u8]; 5] = [b"file", b"new", b"second", b"moved", b"changed"];
/// What the names of numbered files begin with.
const NUMBERED: [&str; 2] = ["entry-", "marked-"];
/// More files of one kind than any check makes.
const MOST_NUMBERED: usize = 8;

/// Whether a path below a folder of a sandbox is a file of a self-check.
pub fn owns(folder: &str, path: &Path) -> bool {
    folder == FOLDER && is_own(path.as_os_str().as_bytes())
}

/// Whether a file has a name that a check gives. A name with a slash is none.
fn is_own(name: &[u8]) -> bool {
    let is_numbered = || {
        let mut names =
            NUMBERED.iter().flat_map(|kind| (0..MOST_NUMBERED).map(move |n| format!("{kind}{n}")));
        names.any(|numbered| numbered.as_bytes() == name)
    };
    FILES.contains(&name) || is_numbered() || names::is_own(name)
}

/// The name of a numbered file.
pub fn numbered(kind: &str, number: usize) -> CString {
    debug_assert!(NUMBERED.contains(&kind) && number < MOST_NUMBERED);
    CString::new(format!("{kind}{number}")).expect("the name holds no NUL")
}

/// One name of the scratch folder, as a listing tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: CString,
    /// What it stands for.
    pub kind: EntryKind,
    /// Its size in bytes, where the listing brings it along.
    pub size: Option<u64>,
}

impl Listed {
    /// Whether it is where a Mac keeps the extended attributes of another file.
    pub fn is_twin(&self) -> bool {
        self.name.to_bytes().starts_with(b"._")
    }
}

/// The scratch folder, there for one check.
pub struct Scratch {
    sandbox: Folder,
    folder: Folder,
}

impl Scratch {
    /// Makes the folder, and removes what an earlier check left in it.
    pub fn make(arena: &Arena, context: &Context<'_>) -> Result<Self, RunError> {
        // Only what the manifest names is ever removed by `longhaul clean`, so it comes first.
        if arena.holding::<()>(FOLDER)?.is_none() {
            arena.keep(FOLDER, &(), context)?;
        }
        let sandbox = arena.folder()?;
        let folder = context.make_folder(&sandbox, FOLDER_NAME)?;
        let scratch = Self { sandbox, folder };
        scratch.empty(context)?;
        Ok(scratch)
    }

    /// Removes the folder and every file of a check in it. Another file stays, and is an error.
    pub fn remove(self, context: &Context<'_>) -> Result<(), RunError> {
        self.empty(context)?;
        context.remove_folder(&self.sandbox, FOLDER_NAME)
    }

    fn empty(&self, context: &Context<'_>) -> Result<(), RunError> {
        for Listed { name, .. } in self.list(context, Wanted::Names)? {
            let bytes = name.to_bytes();
            if is_own(bytes.strip_prefix(b"._").unwrap_or(bytes)) {
                self.unlink(&name, context)?;
            }
        }
        Ok(())
    }

    /// Removes a file; its absence is fine, as the twin of a file goes with it.
    pub fn unlink(&self, name: &CStr, context: &Context<'_>) -> Result<(), RunError> {
        match context.unlink(&self.folder, name) {
            Err(error) if is_absence(&error) => Ok(()),
            other => other,
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Lists the folder through a handle of its own, as a listing goes on where its handle stands.
    pub fn list(&self, context: &Context<'_>, wanted: Wanted) -> Result<Vec<Listed>, RunError> {
        let folder = context.open_folder(&self.folder, c".")?;
        let mut listed = vec![];
        context.list(&folder, wanted, &mut Listing::default(), |entry| {
            let size = entry.attributes.map(|attributes| attributes.size);
            listed.push(Listed { name: entry.name.to_owned(), kind: entry.kind, size });
            Ok::<(), RunError>(())
        })?;
        Ok(listed)
    }

    /// Makes a file with this content.
    pub fn write(&self, name: &CStr, content: &[u8], context: &Context<'_>) -> Result<(), RunError> {
        let file = context.create(&self.folder, name)?;
        context.write_all(&file, content, 0)?;
        context.close(file)
    }

    /// Reads a file of at most this many bytes.
    pub fn read(&self, name: &CStr, most: usize, context: &Context<'_>) -> Result<Vec<u8>, RunError> {
        let file = context.open(&self.folder, name, Access::Read)?;
        let mut content = vec![0; most];
        let length = context.read_full(&file, &mut content, 0)?;
        content.truncate(length);
        context.close(file)?;
        Ok(content)
    }
}

/// Whether an error says that there is no such file.
fn is_absence(error: &RunError) -> bool {
    let RunError::Operation { operation: Operation::Unlink, source, .. } = error else { return false };
    source.kind() == std::io::ErrorKind::NotFound
}
