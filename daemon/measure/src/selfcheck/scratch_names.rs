//! The names of the files that self-checks create, so that no other file is ever removed.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Name of the scratch folder in the sandbox and in the sandbox's manifest.
pub const FOLDER: &str = "selfcheck";
/// Names of the files of all checks except the odd ones below and the numbered ones. Each check uses its own
/// names, because over SMB a file that was just removed may still exist for a moment.
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
    FILES.contains(&name) || is_numbered() || is_odd(name)
}

/// Returns the name of a numbered file.
pub fn numbered_name(kind: &str, number: usize) -> CString {
    debug_assert!(NUMBERED_PREFIXES.contains(&kind) && number < MAX_NUMBERED);
    CString::new(format!("{kind}{number}")).expect("the name contains no NUL")
}

/// Test name in two forms that differ in case.
pub const UPPER: &CStr = c"Case";
/// [`UPPER`] in lower case.
pub const LOWER: &CStr = c"case";
/// Composed form (NFC) of a test name: the letter and its accent are one character.
pub const COMPOSED: &CStr = c"caf\u{e9}";
/// Decomposed form (NFD) of the same test name: the letter and its accent are two characters.
pub const DECOMPOSED: &CStr = c"cafe\u{301}";

/// Names that some servers refuse or change, each with a description of its odd character.
pub const ODD_NAMES: [(&CStr, &str); 14] = [
    (c"a:b", "colon"),
    (c"a*b", "asterisk"),
    (c"a?b", "question mark"),
    (c"a\"b", "quotation mark"),
    (c"a<b", "less-than"),
    (c"a>b", "greater-than"),
    (c"a|b", "vertical bar"),
    (c"a\\b", "backslash"),
    (c"a ", "space at the end"),
    (c"a.", "dot at the end"),
    (c"a\nb", "line feed"),
    (c"a%41", "percent sign"),
    (c"a\u{1f600}", "emoji"),
    (c"a\xff", "byte that is not UTF-8"),
];

/// Letter of two bytes in UTF-8, for a name that has more bytes than characters.
pub const WIDE_LETTER: &str = "\u{e9}";

/// Returns whether the checks of file names create files with this name.
fn is_odd(name: &[u8]) -> bool {
    let fixed = [UPPER, LOWER, COMPOSED, DECOMPOSED];
    let is_long = !name.is_empty() && name.iter().all(|byte| *byte == b'n');
    let is_wide = !name.is_empty()
        && name.len().is_multiple_of(2)
        && name.chunks(2).all(|pair| pair == WIDE_LETTER.as_bytes());
    fixed.into_iter().chain(ODD_NAMES.map(|(name, _)| name)).any(|own| own.to_bytes() == name)
        || is_long
        || is_wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_odd_names_are_recognized_as_own() {
        let own = |name: &[u8]| is_own(name);
        assert!(own("n".repeat(255).as_bytes()) && own(WIDE_LETTER.repeat(255).as_bytes()));
        assert!(ODD_NAMES.iter().all(|(name, _)| own(name.to_bytes())));
        assert!(own(COMPOSED.to_bytes()) && own(DECOMPOSED.to_bytes()));
        assert!(!own(b"") && !own(b"name") && !own(b"a") && !own(b"letter.txt"));
    }
}
