//! Writing in place, only in files that have no second hard link.
//!
//! Tools for deduplication or snapshots with hard links (`cp -al`, `rsync --link-dest`, `jdupes -L`) may link a
//! file of the sandbox into a user's backup. Writing in place would then also change the backup. So such a file
//! is never written: it is recreated under its name, and the other link keeps the old content.

use std::ffi::CStr;

use super::context::TimedFs;
use super::files::{Folder, OpenFile};
use crate::error::RunError;
use crate::platform::{self, Access, EntryKind, FileFacts};
use longhaul_model::Operation;

/// The names of the temporary file and its hard link that [`TimedFs::has_reliable_link_counts`] creates.
pub const LINK_CHECK_FILES: [&CStr; 2] = [c"link-check", c"link-check-2"];

impl TimedFs<'_> {
    /// Opens a file for writing in place, and checks its attributes before anything is written.
    ///
    /// The attributes come from this machine's memory and are read untimed, so that the measurement has no
    /// additional request or clock read. `size` is the expected size in bytes; `None` skips the check of the
    /// size.
    ///
    /// # Errors
    ///
    /// [`RunError::NotExclusive`] if the file may also belong to something else, such as a backup,
    /// [`RunError::Damaged`] if its size is wrong, or the error of opening it.
    pub fn open_in_place(
        &self,
        folder: &Folder,
        name: &CStr,
        size: Option<u64>,
    ) -> Result<OpenFile, RunError> {
        let file = self.open(folder, name, Access::ReadWrite)?;
        self.require_exclusive(folder, &file, size)?;
        Ok(file)
    }

    pub(super) fn require_exclusive(
        &self,
        folder: &Folder,
        file: &OpenFile,
        size: Option<u64>,
    ) -> Result<(), RunError> {
        let found = platform::open_file_facts(file.fd())
            .map_err(|error| RunError::operation(Operation::Getattr, &file.path, error))?;
        match (not_exclusive_reason(&found, folder.device()?), size) {
            (Some(reason), _) => Err(RunError::NotExclusive { path: file.path.clone(), reason }),
            (None, Some(size)) if found.size != size => {
                let detail = format!("the file has {} bytes, but {size} were written", found.size);
                Err(RunError::damaged(&file.path, detail))
            }
            (None, _) => Ok(()),
        }
    }

    /// Returns the reason why a file must not be written in place; `None` if it may be.
    ///
    /// Queries the server instead of this machine's cache, so it must not be called in a phase.
    pub fn in_place_refusal(&self, folder: &Folder, name: &CStr) -> Result<Option<String>, RunError> {
        let query = || platform::server_facts_at(folder.fd(), name);
        let found = self.call(Operation::Getattr, || folder.join(name), query)?;
        Ok(not_exclusive_reason(&found, folder.device()?))
    }

    /// Returns whether link counts in this folder are reliable.
    ///
    /// Creates a file with a second hard link and queries the link count. If the target does not support links,
    /// the result is `false`, because another client may still be able to create them. It is `false` on all shares of a Mac.
    pub fn has_reliable_link_counts(&self, folder: &Folder) -> Result<bool, RunError> {
        if !platform::can_trust_link_counts(folder.fd()) {
            return Ok(false);
        }
        let [name, second] = LINK_CHECK_FILES;
        self.remove_link_check(folder)?;
        self.close(self.create(folder, name)?)?;
        let linked = self.timed(Operation::Create, || platform::link_at(folder.fd(), name, second));
        let answer = linked.and_then(|()| platform::server_facts_at(folder.fd(), name));
        self.remove_link_check(folder)?;
        Ok(answer.is_ok_and(|facts| facts.links == 2))
    }

    fn remove_link_check(&self, folder: &Folder) -> Result<(), RunError> {
        for name in LINK_CHECK_FILES {
            if self.lookup(folder, name)?.is_some() {
                self.unlink(folder, name)?;
            }
        }
        Ok(())
    }
}

/// Returns the reason, for the user, why a file must not be written in place; `None` if it may be.
fn not_exclusive_reason(found: &FileFacts, device: u64) -> Option<String> {
    match found {
        FileFacts { kind, .. } if *kind != EntryKind::File => Some("it is not a regular file".to_owned()),
        FileFacts { links, .. } if *links != 1 => Some(format!("it has {links} hard links")),
        found if found.device != device => Some("it is on another file system".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Site;

    #[test]
    fn only_a_regular_file_with_one_link_is_exclusive() {
        let ours = FileFacts {
            kind: EntryKind::File,
            size: 9,
            allocated_bytes: 4096,
            links: 1,
            device: 4,
            mode: 0o644,
            modified_ns: 0,
            created_ns: None,
        };
        assert_eq!(not_exclusive_reason(&ours, 4), None);
        let reason = |found: FileFacts| not_exclusive_reason(&found, 4).unwrap();
        assert!(reason(FileFacts { links: 2, ..ours }).contains("2 hard links"));
        assert!(reason(FileFacts { links: 0, ..ours }).contains("0 hard links"));
        assert!(reason(FileFacts { kind: EntryKind::Other, ..ours }).contains("regular"));
        assert!(reason(FileFacts { device: 5, ..ours }).contains("file system"));
    }

    #[test]
    fn a_second_hard_link_prevents_in_place_writes() {
        let site = Site::new();
        std::fs::write(site.path().join("band"), "123").unwrap();
        let context = site.context(0);
        let folder = context.open_folder_path(site.path()).unwrap();
        assert!(context.has_reliable_link_counts(&folder).unwrap());
        assert_eq!(std::fs::read_dir(site.path()).unwrap().count(), 1, "the check leaves no files");
        assert!(context.open_in_place(&folder, c"band", Some(3)).is_ok());
        let short = context.open_in_place(&folder, c"band", Some(4)).err().unwrap();
        assert!(matches!(short, RunError::Damaged { .. }), "a file that is too short is damaged: {short}");
        std::fs::hard_link(site.path().join("band"), site.path().join("backup")).unwrap();
        let refused = context.open_in_place(&folder, c"band", Some(3)).err().unwrap();
        assert!(matches!(refused, RunError::NotExclusive { .. }), "{refused}");
        let reason = context.in_place_refusal(&folder, c"band").unwrap().unwrap();
        assert!(reason.contains("2 hard links"), "{reason}");
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_refused_at_once() {
        let site = Site::new();
        let made = std::process::Command::new("mkfifo").arg(site.path().join("band")).status().unwrap();
        assert!(made.success());
        let context = site.context(0);
        let folder = context.open_folder_path(site.path()).unwrap();
        let opened = context.open(&folder, c"band", Access::Read).unwrap();
        assert!(context.read_at(&opened, &mut [0; 8], 0).is_err(), "a pipe has no offsets");
        let refused = context.open_in_place(&folder, c"band", None).err().unwrap();
        assert!(matches!(refused, RunError::NotExclusive { .. }), "{refused}");
    }
}
