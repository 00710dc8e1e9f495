//! A folder on the target as the backup compares it.

use std::collections::BTreeSet;
use std::ffi::CString;

use crate::context::{Context, Folder, Listing};
use crate::corpus::apple_double::twin_of;
use crate::error::RunError;
use crate::platform::{EntryKind, Wanted};

/// The files in a folder on the target.
pub struct Found {
    /// Names of files.
    pub there: BTreeSet<CString>,
    /// The number of AppleDouble files.
    pub twins: u64,
    /// Those that belong to nothing.
    pub orphans: Vec<CString>,
}

/// Lists a folder on the target. An AppleDouble file of something that is there belongs to it: it is never compared, and goes
/// with it.
pub fn list_there(context: &Context<'_>, folder: &Folder, listing: &mut Listing) -> Result<Found, RunError> {
    let (mut there, mut folders, mut twins) = (BTreeSet::new(), BTreeSet::new(), vec![]);
    context.list(folder, Wanted::Names, listing, |entry| {
        let name = entry.name.to_owned();
        match entry.kind {
            _ if twin_of(name.to_bytes()).is_some() => twins.push(name),
            EntryKind::Folder => drop(folders.insert(name)),
            _ => drop(there.insert(name)),
        }
        Ok::<_, RunError>(())
    })?;
    let count = twins.len() as u64;
    let owned = |name: &CString| {
        let owner = twin_of(name.to_bytes()).and_then(|owner| CString::new(owner).ok());
        owner.is_some_and(|owner| there.contains(&owner) || folders.contains(&owner))
    };
    twins.retain(|name| !owned(name));
    Ok(Found { there, twins: count, orphans: twins })
}
