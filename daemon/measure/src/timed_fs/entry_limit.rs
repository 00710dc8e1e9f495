//! The largest number of entries of a folder. Without a limit, the server of a share could fill the memory with names.

use std::io;
use std::path::Path;

use longhaul_model::Operation;

use crate::error::RunError;

/// Largest number of entries of any folder: the set of a preset may have ten million files in one, each with an AppleDouble file.
pub const MAX_ENTRIES: u64 = 20_000_000;
/// Largest number of bytes of all names in a folder. Longhaul's names are short where there are many.
const MAX_NAME_BYTES: u64 = 1 << 30;

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
pub fn collect_entries<T>(
    entries: impl IntoIterator<Item = io::Result<T>>,
    limit: u64,
    name_bytes: impl Fn(&T) -> usize,
) -> io::Result<Vec<T>> {
    let (mut found, mut bytes) = (vec![], 0);
    for entry in entries {
        let entry = entry?;
        bytes += name_bytes(&entry) as u64;
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
        assert_eq!(collect_entries(endless().take(3), 3, String::len).unwrap().len(), 3);
        let error = collect_entries(endless(), 3, String::len).unwrap_err().to_string();
        assert_eq!(error, "the folder has more than 3 entries");
    }

    #[test]
    fn names_that_are_too_long_together_are_an_error() {
        let half = usize::try_from(MAX_NAME_BYTES / 2).unwrap();
        let entries = || std::iter::repeat_with(|| Ok(()));
        assert_eq!(collect_entries(entries().take(2), MAX_ENTRIES, |()| half).unwrap().len(), 2);
        let collected = collect_entries(entries(), MAX_ENTRIES, |()| half).err().unwrap().to_string();
        let listed = limit_name_bytes(Path::new("/nas/a"), MAX_NAME_BYTES + 1).unwrap_err().to_string();
        assert!(limit_name_bytes(Path::new("/nas/a"), MAX_NAME_BYTES).is_ok());
        assert!(listed.ends_with(&collected), "{listed}, {collected}");
    }
}
