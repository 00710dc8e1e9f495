//! Conversions of file names: generated as text, passed to the system as C strings, joined to paths, taken from paths.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Converts a generated name to the form of system calls.
pub fn to_cstring(name: String) -> CString {
    CString::new(name).expect("generated names contain no NUL")
}

/// Converts a name to the form of a part of a path.
pub fn as_os_str(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

/// Returns the names that a path consists of; `None` if it has another part, such as `..`.
pub fn plain_names(path: &Path) -> Option<Vec<&[u8]>> {
    let names = path.components().map(|part| match part {
        Component::Normal(name) => Some(name.as_bytes()),
        _ => None,
    });
    names.collect()
}
