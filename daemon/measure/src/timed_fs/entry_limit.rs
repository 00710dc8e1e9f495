//! The largest number of entries of a folder. Without a limit, the server of a share could fill the memory with names.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use cap_std::fs::DirEntry;
use longhaul_model::Operation;

use crate::error::RunError;

/// Largest number of entries of any folder: the set of a preset may have ten million files in one, each with an AppleDouble file.
pub const MAX_ENTRIES: u64 = 20_000_000;
/// Largest number of bytes of all names in a folder. Longhaul's names are short where there are many.
const MAX_NAME_BYTES: u64 = 1 << 30;

/// An entry that is collected, with its name.
pub trait NamedEntry {
    /// Returns the length of the name in bytes.
    fn name_bytes(&self) -> u64;
}

impl NamedEntry for String {
    fn name_bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl NamedEntry for OsString {
    fn name_bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl NamedEntry for DirEntry {
    fn name_bytes(&self) -> u64 {
        self.file_name().len() as u64
    }
}

/// Fails if a folder has more entries than the limit.
pub fn limit_entries(folder: &Path, entries: u64, limit: u64) -> Result<(), RunError> {
    match entries > limit {
        true => Err(RunError::operation(Operation::Readdir, folder, too_many(limit))),
        false => Ok(()),
    }
}

/// Fails if the names in a folder are too long together.
pub fn limit_name_bytes(folder: &Path, bytes: u64) -> Result<(), RunError> {
    match bytes > MAX_NAME_BYTES {
        true => Err(RunError::operation(Operation::Readdir, folder, too_long())),
        false => Ok(()),
    }
}

/// Collects the entries of a listing. More than the limit are an error, and so are names that are too long together.
pub fn collect_entries<T: NamedEntry>(
    entries: impl IntoIterator<Item = io::Result<T>>,
    limit: u64,
) -> io::Result<Vec<T>> {
    let (mut found, mut bytes) = (vec![], 0);
    for entry in entries {
        let entry = entry?;
        bytes += entry.name_bytes();
        if found.len() as u64 >= limit {
            return Err(too_many(limit));
        }
        if bytes > MAX_NAME_BYTES {
            return Err(too_long());
        }
        found.push(entry);
    }
    Ok(found)
}

fn too_many(limit: u64) -> io::Error {
    io::Error::other(format!("the folder has more than {limit} entries"))
}

fn too_long() -> io::Error {
    io::Error::other(format!("the names in the folder have more than {MAX_NAME_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_with_too_many_entries_is_an_error_that_names_it() {
        assert!(limit_entries(Path::new("/nas/a"), 3, 3).is_ok());
        let error = limit_entries(Path::new("/nas/a"), 4, 3).unwrap_err().to_string();
        assert!(error.contains("/nas/a") && error.ends_with("the folder has more than 3 entries"), "{error}");
    }

    #[test]
    fn endless_listing_is_ended_at_the_limit() {
        let endless = || std::iter::repeat_with(|| Ok(String::new()));
        assert_eq!(collect_entries(endless().take(3), 3).unwrap().len(), 3);
        let error = collect_entries(endless(), 3).unwrap_err().to_string();
        assert_eq!(error, "the folder has more than 3 entries");
    }

    #[test]
    fn names_that_are_too_long_together_are_an_error() {
        struct Long;
        impl NamedEntry for Long {
            fn name_bytes(&self) -> u64 {
                MAX_NAME_BYTES / 2
            }
        }
        let entries = || std::iter::repeat_with(|| Ok(Long));
        assert_eq!(collect_entries(entries().take(2), MAX_ENTRIES).unwrap().len(), 2);
        let collected = collect_entries(entries(), MAX_ENTRIES).err().unwrap().to_string();
        let listed = limit_name_bytes(Path::new("/nas/a"), MAX_NAME_BYTES + 1).unwrap_err().to_string();
        assert!(limit_name_bytes(Path::new("/nas/a"), MAX_NAME_BYTES).is_ok());
        assert!(listed.ends_with(&collected), "{listed}, {collected}");
    }
}
