//! The scratch folder in a sandbox, in which a self-check creates its files.

use std::ffi::{CStr, CString};
use std::time::{Duration, Instant};

use super::scratch_names::{FOLDER, is_own};
use crate::error::RunError;
use crate::platform::{Access, EntryKind, ListingFields};
use crate::sandbox::Sandbox;
use crate::timed_fs::{Folder, ListingBuffer, TimedFs};
use crate::workloads::unlink_leftover;

/// [`FOLDER`] as a C string.
const FOLDER_NAME: &CStr = c"selfcheck";

/// Entry of the scratch folder, as reported by a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// Name of the entry.
    pub name: CString,
    /// Type of the entry.
    pub kind: EntryKind,
    /// Size in bytes; `None` if the listing does not report sizes.
    pub size: Option<u64>,
}

impl ListedEntry {
    /// Returns whether the entry is an AppleDouble file, in which a Mac stores extended attributes of another
    /// file.
    pub fn is_apple_double(&self) -> bool {
        self.name.to_bytes().starts_with(b"._")
    }
}

/// Open scratch folder of a self-check.
pub struct ScratchFolder {
    sandbox: Folder,
    folder: Folder,
}

/// Time within which a share must show that a file was created or removed. It is not zero because SMB clients
/// cache listings and close files late.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause between two listings while waiting for a change to become visible.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl ScratchFolder {
    /// Creates the scratch folder if it does not exist, opens it, and removes the files in it.
    pub fn create(sandbox: &Sandbox, context: &TimedFs<'_>) -> Result<Self, RunError> {
        // The manifest entry is written before the folder is created, because `longhaul targets clean` removes
        // only folders that are in the manifest.
        if sandbox.manifest_entry::<bool>(FOLDER)?.is_none() {
            sandbox.record_entry(FOLDER, &true, context)?;
        }
        let sandbox = sandbox.folder()?;
        let folder = context.create_and_open_folder(&sandbox, FOLDER_NAME)?;
        let scratch = Self { sandbox, folder };
        scratch.empty(context)?;
        Ok(scratch)
    }

    /// Wraps an open folder in which another check creates its files, and the folder that contains it. The caller
    /// removes the files.
    pub(crate) fn from_folders(parent: Folder, folder: Folder) -> Self {
        Self { sandbox: parent, folder }
    }

    /// Returns the folder that contains the scratch folder.
    pub(crate) fn parent(&self) -> &Folder {
        &self.sandbox
    }

    /// Replaces the handle of the scratch folder, after it was renamed.
    pub(crate) fn set_folder(&mut self, folder: Folder) {
        self.folder = folder;
    }

    /// Removes all files of self-checks from the folder. Foreign files remain.
    pub fn empty(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        for ListedEntry { name, .. } in self.list(context, ListingFields::Names)? {
            let bytes = name.to_bytes();
            if is_own(bytes.strip_prefix(b"._").unwrap_or(bytes)) {
                self.unlink(&name, context)?;
            }
        }
        Ok(())
    }

    /// Removes the folder and all files of self-checks in it. Fails if the folder contains a foreign file.
    pub fn remove(self, context: &TimedFs<'_>) -> Result<(), RunError> {
        let start = Instant::now();
        loop {
            self.empty(context)?;
            match context.remove_folder(&self.sandbox, FOLDER_NAME) {
                Err(error) if error.is_not_empty() && start.elapsed() < VISIBILITY_TIMEOUT => {
                    std::thread::sleep(POLL_INTERVAL);
                }
                other => return other,
            }
        }
    }

    /// Removes a file. A missing file is no error, because a Mac removes an AppleDouble file together with its
    /// owner.
    pub fn unlink(&self, name: &CStr, context: &TimedFs<'_>) -> Result<(), RunError> {
        unlink_leftover(context, &self.folder, name)
    }

    /// Returns the handle of the scratch folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Lists the folder through a new handle, because a listing continues at the position of its handle.
    pub fn list(&self, context: &TimedFs<'_>, wanted: ListingFields) -> Result<Vec<ListedEntry>, RunError> {
        let folder = context.open_folder(&self.folder, c".")?;
        let mut listed = vec![];
        context.list(&folder, wanted, &mut ListingBuffer::default(), |entry| {
            let size = entry.attributes.map(|attributes| attributes.size);
            listed.push(ListedEntry { name: entry.name.to_owned(), kind: entry.kind, size });
            Ok::<(), RunError>(())
        })?;
        Ok(listed)
    }

    /// Lists the folder repeatedly until the listing is complete or `VISIBILITY_TIMEOUT` has passed. Returns the
    /// last listing.
    pub fn list_until(
        &self,
        context: &TimedFs<'_>,
        wanted: ListingFields,
        is_complete: impl Fn(&[ListedEntry]) -> bool,
    ) -> Result<Vec<ListedEntry>, RunError> {
        let start = Instant::now();
        loop {
            let listed = self.list(context, wanted)?;
            if is_complete(&listed) || start.elapsed() >= VISIBILITY_TIMEOUT {
                return Ok(listed);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Creates a file with this content.
    pub fn write(&self, name: &CStr, content: &[u8], context: &TimedFs<'_>) -> Result<(), RunError> {
        let file = context.create(&self.folder, name)?;
        context.write_all(&file, content, 0)?;
        context.close(file)
    }

    /// Reads at most `max_bytes` bytes from the start of a file.
    pub fn read(&self, name: &CStr, max_bytes: usize, context: &TimedFs<'_>) -> Result<Vec<u8>, RunError> {
        let file = context.open(&self.folder, name, Access::Read)?;
        let mut content = vec![0; max_bytes];
        let length = context.read_full(&file, &mut content, 0)?;
        content.truncate(length);
        context.close(file)?;
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::testing::Site;

    #[test]
    fn manifest_is_written_for_the_first_scratch_folder_only() {
        let site = Site::new();
        let (sandbox, context) = (site.sandbox(), site.context(0));
        // Each write replaces the file by a new one.
        let create_and_find_manifest = || {
            ScratchFolder::create(&sandbox, &context).unwrap().remove(&context).unwrap();
            std::fs::metadata(sandbox.path().join("manifest.json")).unwrap().ino()
        };
        assert_eq!(create_and_find_manifest(), create_and_find_manifest());
    }
}
