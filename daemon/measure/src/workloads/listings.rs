//! Makes a client forget the listings of folders, so that the next ones are cold.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::folder_index::tree_walk::{self, EntryDetail, WalkOptions};
use super::job::Job;
use crate::error::RunError;
use crate::platform::EntryKind;
use crate::timed_fs::{Answer, Folder, TimedFs};

/// Name of the folder that is made and removed. A NAS and a person may see it for a moment.
const PASSING_NAME: &CStr = c".longhaul-passing";
/// Number of threads that change folders.
const THREADS: usize = 4;

/// Makes the client forget the listings of a folder and of all folders below it, where it keeps them
/// ([`Job::keeps_listings`]). Where it does not, nothing is done: a changed folder costs an NFS client other requests than
/// one at rest.
///
/// Done after the use of a folder and not before the next one, because finding the folders lists them.
///
/// # Errors
///
/// If a folder cannot be listed or changed.
pub fn evict_listings(job: &Job<'_>, root: &Folder) -> Result<(), RunError> {
    if !job.keeps_listings {
        return Ok(());
    }
    let context = job.untimed();
    let mut folders = vec![c".".to_owned()];
    let options = WalkOptions::whole_tree(EntryDetail::Names);
    tree_walk::walk(&context, root, options, |folder, name, attributes| {
        if attributes.kind == EntryKind::Folder {
            folders.extend(path_below(root, &folder.join(name)));
        }
    })?;
    context.run_parallel(THREADS, &folders, |context, path| change_for_a_moment(context, root, path))
}

fn path_below(root: &Folder, path: &Path) -> Option<CString> {
    let path = path.strip_prefix(root.path()).ok()?;
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// Makes and removes a folder in a folder below `root`, if there is one at this path. An SMB server then takes back the lease under
/// which a client keeps the listing: Linux 6.1 keeps those of the 16 folders that it listed first, with the attributes of the files
/// in them, and lists them without a request for as long as the lease lasts (`fs/cifs/cached_dir.c`). No program meets that in more
/// than 16 of its folders.
pub fn change_for_a_moment(context: &TimedFs<'_>, root: &Folder, path: &CStr) -> Result<(), RunError> {
    let Answer::Done(folder) = context.open_folder_below(root, path)? else { return Ok(()) };
    context.create_folder(&folder, PASSING_NAME)?;
    context.remove_folder(&folder, PASSING_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Site;

    #[test]
    fn change_leaves_nothing_even_if_one_before_it_was_interrupted() {
        let site = Site::new();
        let inside = site.path().join("a");
        std::fs::create_dir_all(inside.join(".longhaul-passing")).unwrap();
        let context = site.context(0);
        let root = context.open_folder_path(site.path()).unwrap();
        for path in [c"a", c"a", c"missing"] {
            change_for_a_moment(&context, &root, path).unwrap();
        }
        assert_eq!(std::fs::read_dir(inside).unwrap().count(), 0);
    }

    #[test]
    fn no_link_is_followed() {
        let (site, elsewhere) = (Site::new(), Site::new());
        std::fs::create_dir(elsewhere.path().join(".longhaul-passing")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), site.path().join("link")).unwrap();
        let context = site.context(0);
        let root = context.open_folder_path(site.path()).unwrap();
        assert!(change_for_a_moment(&context, &root, c"link").is_err());
        assert!(elsewhere.path().join(".longhaul-passing").exists());
    }
}
