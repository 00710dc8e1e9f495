//! Checks of file locks, renames over an existing file, and hard links.

use std::ffi::CStr;
use std::io::ErrorKind;

use crate::error::RunError;
use crate::platform::{Access, ByteRange, LockAction, SYSTEM, System};
use crate::timed_fs::{Folder, TimedFs};
use longhaul_model::{Operation, Protocol};

use super::check::{CheckAnswer, CheckOutcome, CheckedTarget, TargetCheck, TargetCheckMethod, error_text};
use super::scratch::ScratchFolder;

/// Checks of this module, in the order in which they run.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck::named("byte-range lock", TargetCheckMethod::Files(lock))
        .linux("acquired and released, or refused as not supported", "fcntl_locking(2)")
        .macos(
            "acquired and released; on SMB refused as not supported (ENOTSUP)",
            "SMBClient kernel/smbfs/smbfs_vnops.c:10771, smbfs_vnop_advlock",
        ),
    TargetCheck::named("rename over a file", TargetCheckMethod::Files(rename_over))
        .linux("replaced", "rename(2)")
        .macos("replaced", "man rename(2)"),
    TargetCheck::named("hard link", TargetCheckMethod::Files(hard_link))
        .linux("link count of 2, or refused", "link(2), statx(2)")
        .macos(
            "link count of 2, or refused; on SMB always refused",
            "man link(2); SMBClient kernel/smbfs/smbfs_vnops.c:9119-9133",
        ),
];

const OLD_CONTENT: &[u8] = b"old content";
const NEW_CONTENT: &[u8] = b"new content";

/// Errors that mean that a file system does not support locks, or has no lock server.
const UNSUPPORTED_ERRORS: [i32; 5] =
    [libc::ENOTSUP, libc::EOPNOTSUPP, libc::ENOSYS, libc::ENOLCK, libc::EINVAL];
/// Errors that mean that a file system refuses a hard link.
const LINK_REFUSED_ERRORS: [i32; 6] =
    [libc::ENOTSUP, libc::EOPNOTSUPP, libc::ENOSYS, libc::EPERM, libc::EACCES, libc::EMLINK];

/// Returns whether a call failed with one of these errors.
fn failed_with(error: &RunError, codes: &[i32]) -> bool {
    let RunError::Operation { source, .. } = error else { return false };
    source.raw_os_error().is_some_and(|code| codes.contains(&code))
}

fn lock(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    const FILE: &CStr = c"lock";
    const RANGE: ByteRange = ByteRange { begin: 0, length: 4 };
    let context = on.context;
    scratch.write(FILE, OLD_CONTENT, context)?;
    let file = context.open(scratch.folder(), FILE, Access::ReadWrite)?;
    let result = context.lock(&file, LockAction::Take, RANGE);
    let result = result.and_then(|()| context.lock(&file, LockAction::Release, RANGE));
    context.close(file)?;
    match result {
        Err(stopped @ RunError::Stopped(_)) => Err(stopped),
        result => Ok(judge_lock(SYSTEM, on.protocol(), &result)),
    }
}

fn judge_lock(system: System, protocol: Option<&Protocol>, result: &Result<(), RunError>) -> CheckAnswer {
    let never_locks = system == System::MacOs && matches!(protocol, Some(Protocol::Smb(_)));
    match result {
        Ok(()) => CheckAnswer::new(CheckOutcome::from(!never_locks), "acquired and released"),
        Err(error) => {
            let text = error_text(error);
            let may_refuse = never_locks || system == System::Linux;
            CheckAnswer::new(CheckOutcome::from(may_refuse && failed_with(error, &UNSUPPORTED_ERRORS)), text)
        }
    }
}

fn rename_over(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    const OLD: &CStr = c"over-old";
    const NEW: &CStr = c"over-new";
    let (context, folder) = (on.context, scratch.folder());
    scratch.write(OLD, OLD_CONTENT, context)?;
    scratch.write(NEW, NEW_CONTENT, context)?;
    context.rename(folder, NEW, OLD)?;
    let found = scratch.read(OLD, 2 * NEW_CONTENT.len(), context)?;
    let new_remains = context.lookup(folder, NEW)?.is_some();
    Ok(match (found == NEW_CONTENT, new_remains) {
        (true, false) => CheckAnswer::ok("replaced"),
        (true, true) => CheckAnswer::differs("accepted, but the new name still exists"),
        (false, _) => CheckAnswer::differs("accepted, but the old name has another content"),
    })
}

fn hard_link(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    const FILE: &CStr = c"linked";
    const SECOND: &CStr = c"linked-2";
    let (context, folder) = (on.context, scratch.folder());
    scratch.write(FILE, OLD_CONTENT, context)?;
    match context.link(folder, FILE, SECOND) {
        Ok(()) => {}
        Err(error) if failed_with(&error, &LINK_REFUSED_ERRORS) => {
            return Ok(CheckAnswer::ok(error_text(&error)));
        }
        Err(error) => return Err(error),
    }
    let both = link_count(context, folder, FILE)?;
    scratch.unlink(SECOND, context)?;
    Ok(judge_links(both, link_count(context, folder, FILE)?))
}

/// Returns the link count of a file that must exist.
fn link_count(context: &TimedFs<'_>, folder: &Folder, name: &CStr) -> Result<u64, RunError> {
    let facts = context.server_facts(folder, name)?;
    facts.map(|facts| facts.links).ok_or_else(|| {
        RunError::operation(Operation::Getattr, &folder.join(name), ErrorKind::NotFound.into())
    })
}

/// Judges the link counts of a file with a second name and without it. The sandbox relies on them: a wrong link
/// count hides that a file also has a name outside the sandbox.
fn judge_links(both: u64, one: u64) -> CheckAnswer {
    let text = format!("link count {both} with a second name, {one} without");
    CheckAnswer::new(CheckOutcome::from((both, one) == (2, 1)), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Site;
    use std::io;
    use std::path::Path;

    fn refused(code: i32) -> Result<(), RunError> {
        let source = io::Error::from_raw_os_error(code);
        Err(RunError::operation(Operation::Lock, Path::new("/nas/anna/file"), source))
    }

    fn locked(system: System, protocol: &Protocol, result: Result<(), RunError>) -> CheckAnswer {
        judge_lock(system, Some(protocol), &result)
    }

    #[test]
    fn smb_lock_is_refused_on_a_mac_and_acquired_elsewhere() {
        let (smb, nfs) = (Protocol::Smb(None), Protocol::Nfs(None));
        let unsupported = || refused(libc::ENOTSUP);
        assert_eq!(locked(System::MacOs, &smb, unsupported()).verdict, CheckOutcome::Ok);
        assert_eq!(locked(System::MacOs, &smb, Ok(())).verdict, CheckOutcome::Differs);
        assert_eq!(locked(System::MacOs, &nfs, Ok(())).verdict, CheckOutcome::Ok);
        assert_eq!(locked(System::MacOs, &nfs, unsupported()).verdict, CheckOutcome::Differs);
        assert_eq!(locked(System::Linux, &smb, unsupported()).verdict, CheckOutcome::Ok);
        assert_eq!(locked(System::Linux, &smb, refused(libc::EIO)).verdict, CheckOutcome::Differs);
    }

    #[test]
    fn error_text_contains_no_path() {
        let answer = locked(System::Linux, &Protocol::Smb(None), refused(libc::EIO));
        assert_eq!(answer.text, "`lock` failed: EIO");
    }

    #[test]
    fn vanished_file_has_no_link_count() {
        let site = Site::new();
        let context = site.context(0);
        let folder = context.open_folder_path(site.path()).unwrap();
        assert!(link_count(&context, &folder, c"gone").unwrap_err().is_not_found());
    }

    #[test]
    fn wrong_link_count_differs() {
        assert_eq!(judge_links(2, 1).verdict, CheckOutcome::Ok);
        assert_eq!(judge_links(1, 1).verdict, CheckOutcome::Differs);
        assert_eq!(judge_links(2, 2).verdict, CheckOutcome::Differs);
    }
}
