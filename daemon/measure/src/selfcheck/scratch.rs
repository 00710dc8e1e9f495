//! The folder in a sandbox in which a self-check makes its files, and the names of those.

use std::ffi::{CStr, CString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::context::{Context, Folder, Listing};
use crate::error::RunError;
use crate::platform::{Access, EntryKind, Wanted};

use super::names;

/// The name of the folder, in the sandbox and in its manifest.
pub const FOLDER: &str = "selfcheck";
const FOLDER_NAME: &CStr = c"selfcheck";

/// The names of files that no table of names holds. Each check has its own: over SMB a file that was just removed may be there
/// for a moment longer.
const FILES: [&[u8]; 16] = [
    b"changed",
    b"moved",
    b"note",
    b"finder",
    b"time",
    b"mode",
    b"lock",
    b"over-old",
    b"over-new",
    b"open-old",
    b"open-new",
    b"linked",
    b"linked-2",
    b"synced",
    b"evicted",
    b"read-twice",
];
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

/// The scratch folder.
pub struct Scratch {
    sandbox: Folder,
    folder: Folder,
}

/// How long a share may take to show what was just made or removed: SMB clients keep listings, and close files late.
const LAG: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

impl Scratch {
    /// Makes the folder, which may be there already, and empties it.
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

    /// Removes every file of a check. Another file stays.
    pub fn empty(&self, context: &Context<'_>) -> Result<(), RunError> {
        for Listed { name, .. } in self.list(context, Wanted::Names)? {
            let bytes = name.to_bytes();
            if is_own(bytes.strip_prefix(b"._").unwrap_or(bytes)) {
                self.unlink(&name, context)?;
            }
        }
        Ok(())
    }

    /// Removes the folder with every file of a check in it. Another file stays, and is an error.
    pub fn remove(self, context: &Context<'_>) -> Result<(), RunError> {
        let began = Instant::now();
        loop {
            self.empty(context)?;
            match context.remove_folder(&self.sandbox, FOLDER_NAME) {
                Err(error) if is_kind(&error, ErrorKind::DirectoryNotEmpty) && began.elapsed() < LAG => {
                    std::thread::sleep(BETWEEN_LOOKS);
                }
                other => return other,
            }
        }
    }

    /// Removes a file; its absence is fine, as the twin of a file goes with it.
    pub fn unlink(&self, name: &CStr, context: &Context<'_>) -> Result<(), RunError> {
        match context.unlink(&self.folder, name) {
            Err(error) if is_kind(&error, ErrorKind::NotFound) => Ok(()),
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

    /// Lists the folder until it shows what it must, for a second at most; then what it shows.
    pub fn list_until(
        &self,
        context: &Context<'_>,
        wanted: Wanted,
        is_whole: impl Fn(&[Listed]) -> bool,
    ) -> Result<Vec<Listed>, RunError> {
        let began = Instant::now();
        loop {
            let listed = self.list(context, wanted)?;
            if is_whole(&listed) || began.elapsed() >= LAG {
                return Ok(listed);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
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

/// Whether a call failed with an error of this kind.
fn is_kind(error: &RunError, kind: ErrorKind) -> bool {
    matches!(error, RunError::Operation { source, .. } if source.kind() == kind)
}
