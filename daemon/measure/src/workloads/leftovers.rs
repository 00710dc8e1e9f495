//! Files that an interrupted preparation or run left, which workloads remove or replace.

use std::ffi::CStr;
use std::io::ErrorKind;

use crate::error::RunError;
use crate::timed_fs::{Folder, OpenFile, TimedFs};

/// Removes a file that an earlier run left. A missing file is not an error.
///
/// After a server lost power, a client may list for a while files that the server never wrote to its disk.
pub fn unlink_leftover(context: &TimedFs<'_>, folder: &Folder, name: &CStr) -> Result<(), RunError> {
    match context.unlink(folder, name) {
        Err(RunError::Operation { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Creates a file. If it exists, left by an interrupted preparation, it is removed first.
pub fn create_or_replace(context: &TimedFs<'_>, folder: &Folder, name: &CStr) -> Result<OpenFile, RunError> {
    match context.create(folder, name) {
        Err(RunError::Operation { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {
            unlink_leftover(context, folder, name)?;
            context.create(folder, name)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Site;

    #[test]
    fn unlinking_a_missing_leftover_succeeds() {
        let site = Site::new();
        std::fs::write(site.path().join("large"), "x").unwrap();
        let context = site.context(0);
        let folder = context.open_folder_path(site.path()).unwrap();
        unlink_leftover(&context, &folder, c"large").unwrap();
        assert!(!site.path().join("large").exists());
        unlink_leftover(&context, &folder, c"large").unwrap();
    }
}
