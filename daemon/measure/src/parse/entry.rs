//! An entry of a folder listing.

use std::ffi::CStr;

/// Type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
    /// A device, socket or pipe.
    Other,
    /// Type that the file system did not report.
    Unknown,
}

/// Entry of a folder listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name of the entry.
    pub name: &'a CStr,
    /// Type of the entry.
    pub kind: EntryKind,
    /// Attributes of the entry, if the listing contains them.
    pub attributes: Option<Attributes>,
}

/// Attributes of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Type of the entry.
    pub kind: EntryKind,
    /// Size in bytes; 0 for a folder in a listing on macOS, which reports no size for folders.
    pub size: u64,
    /// Time at which the content last changed, in nanoseconds since 1970 UTC.
    pub modified_ns: i64,
    /// Permission bits of the entry.
    pub mode: u16,
}
