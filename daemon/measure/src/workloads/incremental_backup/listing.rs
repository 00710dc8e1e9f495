//! The listing of a folder on the target, for the comparison with the source of a backup.

use std::collections::BTreeSet;
use std::ffi::CString;

use crate::error::RunError;
use crate::platform::{EntryKind, ListingFields};
use crate::timed_fs::{Folder, ListingBuffer, TimedFs};
use longhaul_corpus::apple_double::owner_name;

/// The files in a folder on the target, without AppleDouble files.
pub struct DestinationListing {
    /// Names of files, and of entries whose kind the listing does not include.
    pub files: BTreeSet<CString>,
    /// Number of AppleDouble files in the folder.
    pub apple_double_files: u64,
    /// Names of AppleDouble files whose file or folder does not exist.
    pub orphans: Vec<CString>,
}

/// Lists a folder on the target.
///
/// An AppleDouble file whose file or folder exists is never compared or deleted: the system deletes it together
/// with its file.
pub fn list_destination(
    context: &TimedFs<'_>,
    folder: &Folder,
    listing: &mut ListingBuffer,
) -> Result<DestinationListing, RunError> {
    let (mut files, mut folders, mut apple_double_files) = (BTreeSet::new(), BTreeSet::new(), vec![]);
    context.list(folder, ListingFields::Names, listing, |entry| {
        let name = entry.name.to_owned();
        match entry.kind {
            _ if owner_name(name.to_bytes()).is_some() => apple_double_files.push(name),
            EntryKind::Folder => drop(folders.insert(name)),
            _ => drop(files.insert(name)),
        }
        Ok::<_, RunError>(())
    })?;
    let count = apple_double_files.len() as u64;
    let owned = |name: &CString| {
        let owner = owner_name(name.to_bytes()).and_then(|owner| CString::new(owner).ok());
        owner.is_some_and(|owner| files.contains(&owner) || folders.contains(&owner))
    };
    apple_double_files.retain(|name| !owned(name));
    Ok(DestinationListing { files, apple_double_files: count, orphans: apple_double_files })
}
