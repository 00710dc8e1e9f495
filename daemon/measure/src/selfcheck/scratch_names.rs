//! The names of the files that self-checks create, so that no other file is ever removed.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Name of the scratch folder in the sandbox and in the sandbox's manifest.
pub const FOLDER: &str = "selfcheck";
/// Names of the files of all checks except the numbered ones. Each check uses its own names, because over SMB a
/// file that was just removed may still exist for a moment.
const FILES: [&[u8]; 14] = [
    b"changed",
    b"moved",
    b"note",
    b"finder",
    b"time",
    b"mode",
    b"lock",
    b"over-old",
    b"over-new",
    b"linked",
    b"linked-2",
    b"synced",
    b"evicted",
    b"read-twice",
];
/// Prefixes of numbered files.
const NUMBERED_PREFIXES: [&str; 2] = ["entry-", "marked-"];
/// Upper limit for the number of numbered files with one prefix.
const MAX_NUMBERED: usize = 8;

/// Returns whether a path, relative to a folder of a sandbox, is a file of a self-check.
pub fn owns(folder: &str, path: &Path) -> bool {
    folder == FOLDER && is_own(path.as_os_str().as_bytes())
}

/// Returns whether a check creates files with this name. Names with a slash are never recognized.
pub fn is_own(name: &[u8]) -> bool {
    let is_numbered = || {
        let mut names =
            NUMBERED_PREFIXES.iter().flat_map(|kind| (0..MAX_NUMBERED).map(move |n| format!("{kind}{n}")));
        names.any(|numbered| numbered.as_bytes() == name)
    };
    FILES.contains(&name) || is_numbered()
}

/// Returns the name of a numbered file.
pub fn numbered_name(kind: &str, number: usize) -> CString {
    debug_assert!(NUMBERED_PREFIXES.contains(&kind) && number < MAX_NUMBERED);
    CString::new(format!("{kind}{number}")).expect("the name contains no NUL")
}
