//! Conversions of file names: generated as text, passed to the system as C strings, joined to paths.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// Converts a generated name to the form of system calls.
pub fn to_cstring(name: String) -> CString {
    CString::new(name).expect("generated names contain no NUL")
}

/// Converts a name to the form of a part of a path.
pub fn as_os_str(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}
