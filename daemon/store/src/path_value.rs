//! Conversion between file system paths and SQLite values.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::types::{Value, ValueRef};

/// Converts a path to an SQLite value: text if the path is UTF-8, so that the table is readable, otherwise a
/// blob, so that no byte is lost.
pub(crate) fn path_value(path: &Path) -> Value {
    match path.to_str() {
        Some(text) => Value::Text(text.to_owned()),
        None => Value::Blob(path.as_os_str().as_bytes().to_vec()),
    }
}

/// Converts a value written by [`path_value`] back to a path. `None`: the value is neither text nor a blob.
pub(crate) fn path_from_value(value: ValueRef<'_>) -> Option<PathBuf> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(OsStr::from_bytes(bytes).into()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    }
}
