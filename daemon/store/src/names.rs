//! The stored names of enum values that have none of their own yet, and paths as SQLite values.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use longhaul_measure::model::Role;
use rusqlite::types::{Value, ValueRef};

pub(crate) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Share => "share",
        Role::Baseline => "baseline",
    }
}

pub(crate) fn role_from_name(name: &str) -> Option<Role> {
    [Role::Share, Role::Baseline].into_iter().find(|role| role_name(*role) == name)
}

/// A path as text, so that people can read the table; as bytes where it is not UTF-8, so that nothing is lost.
pub(crate) fn path_value(path: &Path) -> Value {
    match path.to_str() {
        Some(text) => Value::Text(text.to_owned()),
        None => Value::Blob(path.as_os_str().as_bytes().to_vec()),
    }
}

/// The path in a value that [`path_value`] made.
pub(crate) fn path_from_value(value: ValueRef<'_>) -> Option<PathBuf> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(OsStr::from_bytes(bytes).into()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    }
}
