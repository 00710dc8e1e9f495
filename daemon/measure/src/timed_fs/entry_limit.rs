//! The largest number of entries of a folder. Without a limit, the server of a share could fill the memory with names.

use std::io;
use std::path::Path;

use longhaul_model::Operation;

use crate::error::RunError;

/// Largest number of entries of any folder: a profile may have ten million files in one, each with an AppleDouble file.
pub const MAX_ENTRIES: u64 = 20_000_000;

/// Fails if a folder has more entries than the limit.
pub fn limit_entries(folder: &Path, entries: u64, limit: u64) -> Result<(), RunError> {
    match entries > limit {
        true => Err(RunError::operation(Operation::Readdir, folder, too_many(limit))),
        false => Ok(()),
    }
}

/// Collects the entries of a listing. More than the limit are an error.
pub fn collect_entries<T>(
    entries: impl IntoIterator<Item = io::Result<T>>,
    limit: u64,
) -> io::Result<Vec<T>> {
    let mut found = vec![];
    for entry in entries {
        if found.len() as u64 >= limit {
            return Err(too_many(limit));
        }
        found.push(entry?);
    }
    Ok(found)
}

fn too_many(limit: u64) -> io::Error {
    io::Error::other(format!("the folder has more than {limit} entries"))
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
        let endless = || std::iter::repeat_with(|| Ok(()));
        assert_eq!(collect_entries(endless().take(3), 3).unwrap().len(), 3);
        let error = collect_entries(endless(), 3).unwrap_err().to_string();
        assert_eq!(error, "the folder has more than 3 entries");
    }
}
