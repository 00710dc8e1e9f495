//! Writing in place, only in files that are longhaul's alone.
//!
//! A tool that stores equal files once, or makes snapshots by hard links (`cp -al`, `rsync --link-dest`, `jdupes -L`), ties a
//! file of the sandbox to somebody's backup: writing in place would change both. So such a file is never written; it is made
//! anew under its name, and the other name keeps what it had.

use std::ffi::CStr;

use super::{Context, Folder, OpenFile};
use crate::error::RunError;
use crate::model::Operation;
use crate::platform::{self, Access, FileIdentity, Source};

/// The file that [`Context::reports_links`] makes for a moment, and its second name.
pub const LINK_CHECK: [&CStr; 2] = [c"link-check", c"link-check-2"];

impl Context<'_> {
    /// Opens a file for writing in place, after looking at the handle in this machine's memory: no request, and no clock, is
    /// added to what is measured. `size`: how large it has to be, in bytes, where that is known.
    ///
    /// # Errors
    ///
    /// [`RunError::NotOurs`] for a file that is not longhaul's alone, damage for one of another size; what opening says.
    pub fn open_in_place(
        &self,
        folder: &Folder,
        name: &CStr,
        size: Option<u64>,
    ) -> Result<OpenFile, RunError> {
        let file = self.open(folder, name, Access::Both)?;
        self.require_ours(folder, &file, size)?;
        Ok(file)
    }

    fn require_ours(&self, folder: &Folder, file: &OpenFile, size: Option<u64>) -> Result<(), RunError> {
        let found = platform::identity_of(file.fd(), Source::Client)
            .map_err(|error| RunError::operation(Operation::Getattr, &file.path, error))?;
        match (not_ours(&found, folder.device()?), size) {
            (Some(reason), _) => Err(RunError::NotOurs { path: file.path.clone(), reason }),
            (None, Some(size)) if found.size != size => {
                let detail = format!("it has {} bytes where {size} were written", found.size);
                Err(RunError::damaged(&file.path, detail))
            }
            (None, _) => Ok(()),
        }
    }

    /// Asks the server what a name is, and says why a file there must not be written in place; `None`: it may be.
    /// Not part of any phase.
    pub fn why_not_in_place(&self, folder: &Folder, name: &CStr) -> Result<Option<String>, RunError> {
        let ask = || platform::identity_at(folder.fd(), name, Source::Server);
        let found = self.call(Operation::Getattr, || folder.join(name), ask)?;
        Ok(not_ours(&found, folder.device()?))
    }

    /// Whether link counts can be trusted in this folder: makes a file, gives it a second name, and asks how many it has.
    /// Where links cannot be made, another client may still make them, so the answer is no.
    pub fn reports_links(&self, folder: &Folder) -> Result<bool, RunError> {
        let [name, second] = LINK_CHECK;
        self.remove_link_check(folder)?;
        self.close(self.create(folder, name)?)?;
        let linked = self.timed(Operation::Create, || platform::link_at(folder.fd(), name, second));
        let answer = linked.and_then(|()| platform::identity_at(folder.fd(), name, Source::Server));
        self.remove_link_check(folder)?;
        Ok(answer.is_ok_and(|identity| identity.links == 2))
    }

    fn remove_link_check(&self, folder: &Folder) -> Result<(), RunError> {
        for name in LINK_CHECK {
            if self.lookup(folder, name)?.is_some() {
                self.unlink(folder, name)?;
            }
        }
        Ok(())
    }
}

/// Why a file is not longhaul's alone, in words for a person; `None`: it is.
fn not_ours(found: &FileIdentity, device: u64) -> Option<String> {
    match found {
        FileIdentity { is_regular: false, .. } => Some("it is no regular file".to_owned()),
        FileIdentity { links, .. } if *links != 1 => Some(format!("it has {links} hard links")),
        found if found.device != device => Some("it lies on another file system".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::StopSwitch;
    use crate::recorder::Recorder;

    #[test]
    fn only_a_regular_file_with_one_name_is_ours() {
        let ours = FileIdentity { is_regular: true, links: 1, size: 9, device: 4 };
        assert_eq!(not_ours(&ours, 4), None);
        let reason = |found: FileIdentity| not_ours(&found, 4).unwrap();
        assert!(reason(FileIdentity { links: 2, ..ours }).contains("2 hard links"));
        assert!(reason(FileIdentity { links: 0, ..ours }).contains("0 hard links"));
        assert!(reason(FileIdentity { is_regular: false, ..ours }).contains("regular"));
        assert!(reason(FileIdentity { device: 5, ..ours }).contains("file system"));
    }

    #[test]
    fn a_second_name_stops_a_write_in_place() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("band"), "123").unwrap();
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        let folder = context.open_folder_path(place.path()).unwrap();
        assert!(context.reports_links(&folder).unwrap());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "the check leaves nothing");
        assert!(context.open_in_place(&folder, c"band", Some(3)).is_ok());
        let short = context.open_in_place(&folder, c"band", Some(4)).err().unwrap();
        assert!(matches!(short, RunError::Damaged { .. }), "a file that lost bytes is damaged: {short}");
        std::fs::hard_link(place.path().join("band"), place.path().join("backup")).unwrap();
        let refused = context.open_in_place(&folder, c"band", Some(3)).err().unwrap();
        assert!(matches!(refused, RunError::NotOurs { .. }), "{refused}");
        let reason = context.why_not_in_place(&folder, c"band").unwrap().unwrap();
        assert!(reason.contains("2 hard links"), "{reason}");
    }
}
