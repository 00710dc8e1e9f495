//! Checks of file locks, renames over an existing file, and hard links.

use std::ffi::CStr;

use crate::error::RunError;
use crate::platform::{Access, ByteRange, LockAction, SYSTEM, System};
use longhaul_model::Protocol;

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
    TargetCheck::named("rename over an open file", TargetCheckMethod::Files(rename_over_open))
        .linux(
            "replaced, or refused as busy with both files unchanged; on SMB 2 and 3: ENOENT, and the old file is deleted",
            "rename(2); measured with Linux 6.1 and Samba 4.22",
        )
        .macos(
            "replaced, or refused as busy with both files unchanged",
            "man rename(2); SMBClient kernel/smbfs/smbfs_vnops.c:8370, smbfs_vnop_rename",
        ),
    TargetCheck::named("hard link", TargetCheckMethod::Files(hard_link))
        .linux("link count of 2, or refused", "link(2), statx(2)")
        .macos("link count of 2, or refused; on SMB always refused", "man link(2); SMBClient kernel/smbfs/smbfs_vnops.c:9119-9133"),
];

const OLD_CONTENT: &[u8] = b"old content";
const NEW_CONTENT: &[u8] = b"new content";

/// Errors that mean that a file system does not support locks, or has no lock server.
const UNSUPPORTED_ERRORS: [i32; 5] =
    [libc::ENOTSUP, libc::EOPNOTSUPP, libc::ENOSYS, libc::ENOLCK, libc::EINVAL];
/// Errors that mean that a server refuses to replace an open file.
const BUSY_ERRORS: [i32; 5] = [libc::EBUSY, libc::EACCES, libc::EPERM, libc::ETXTBSY, libc::EEXIST];
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

/// Names of a file and of the file that replaces it.
struct FilePair {
    old: &'static CStr,
    new: &'static CStr,
}

impl FilePair {
    fn write(&self, on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<(), RunError> {
        scratch.write(self.old, OLD_CONTENT, on.context)?;
        scratch.write(self.new, NEW_CONTENT, on.context)
    }

    fn rename(&self, on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<(), RunError> {
        on.context.rename(scratch.folder(), self.new, self.old)
    }

    /// Returns the content of the file under each of the two names.
    fn contents(&self, on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<PairContents, RunError> {
        let read = |name| match on.context.lookup(scratch.folder(), name)? {
            Some(_) => scratch.read(name, 2 * NEW_CONTENT.len(), on.context).map(Some),
            None => Ok(None),
        };
        Ok(PairContents { old: read(self.old)?, new: read(self.new)? })
    }
}

/// Contents of the files under the old and the new name; `None` if there is no such file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PairContents {
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
}

impl PairContents {
    fn is_replaced(&self) -> bool {
        self.old.as_deref() == Some(NEW_CONTENT) && self.new.is_none()
    }

    fn is_untouched(&self) -> bool {
        self.old.as_deref() == Some(OLD_CONTENT) && self.new.as_deref() == Some(NEW_CONTENT)
    }

    fn description(&self) -> String {
        let under = |name: &str, content: &Option<Vec<u8>>| match content.as_deref() {
            None => format!("nothing under the {name} name"),
            Some(OLD_CONTENT) => format!("the old file under the {name} name"),
            Some(NEW_CONTENT) => format!("the new file under the {name} name"),
            Some(_) => format!("another file under the {name} name"),
        };
        format!("{}, {}", under("old", &self.old), under("new", &self.new))
    }
}

fn rename_over(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    const PAIR: FilePair = FilePair { old: c"over-old", new: c"over-new" };
    PAIR.write(on, scratch)?;
    PAIR.rename(on, scratch)?;
    let found = PAIR.contents(on, scratch)?;
    Ok(match found.is_replaced() {
        true => CheckAnswer::ok("replaced"),
        false => CheckAnswer::differs(format!("accepted, but found {}", found.description())),
    })
}

fn rename_over_open(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    const PAIR: FilePair = FilePair { old: c"open-old", new: c"open-new" };
    PAIR.write(on, scratch)?;
    let context = on.context;
    let open = context.open(scratch.folder(), PAIR.old, Access::Read)?;
    let result = PAIR.rename(on, scratch);
    let mut content = [0; OLD_CONTENT.len()];
    let through_handle = context.read_full(&open, &mut content, 0);
    context.close(open)?;
    let handle = match &through_handle {
        Ok(_) if content == OLD_CONTENT => "the open handle reads the old content".to_owned(),
        Ok(_) => "the open handle reads the new content".to_owned(),
        Err(error) => format!("the open handle cannot be read: {}", error_text(error)),
    };
    let found = PAIR.contents(on, scratch)?;
    Ok(judge_rename(SYSTEM, on.protocol(), &RenameResult { result, found, handle }))
}

/// Result of a rename over an open file.
struct RenameResult {
    result: Result<(), RunError>,
    found: PairContents,
    /// Description of the content read through the handle that was open during the rename.
    handle: String,
}

/// Judges a rename over an open file. Success must replace the file, and a refusal must leave both files
/// unchanged.
fn judge_rename(system: System, protocol: Option<&Protocol>, renamed: &RenameResult) -> CheckAnswer {
    // The SMB 2 client of Linux deletes the open old file first, and then fails to rename the new one: measured
    // with Linux 6.1 and Samba 4.22.
    let deletes_first = system == System::Linux && matches!(protocol, Some(Protocol::Smb(_)));
    let RenameResult { result, found, handle } = renamed;
    match result {
        Ok(()) => {
            let text = if found.is_replaced() { "replaced".to_owned() } else { found.description() };
            CheckAnswer::new(CheckOutcome::from(found.is_replaced()), format!("{text}; {handle}"))
        }
        Err(error) => {
            let is_refused = failed_with(error, &BUSY_ERRORS) && found.is_untouched();
            let is_known = is_refused || (deletes_first && failed_with(error, &[libc::ENOENT]));
            CheckAnswer::new(
                CheckOutcome::from(is_known),
                format!("{}; then {}; {handle}", error_text(error), found.description()),
            )
        }
    }
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
    let both = context.server_identity(folder, FILE)?.links;
    scratch.unlink(SECOND, context)?;
    let one = context.server_identity(folder, FILE)?.links;
    Ok(judge_links(both, one))
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
    use longhaul_model::Operation;
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

    fn renamed(
        system: System,
        result: Result<(), RunError>,
        found: (Option<&[u8]>, Option<&[u8]>),
    ) -> CheckAnswer {
        let found = PairContents { old: found.0.map(<[u8]>::to_vec), new: found.1.map(<[u8]>::to_vec) };
        let renamed = RenameResult { result, found, handle: "the open handle".to_owned() };
        judge_rename(system, Some(&Protocol::Smb(None)), &renamed)
    }

    #[test]
    fn rename_that_loses_a_file_differs_except_on_linux_smb() {
        let untouched: (Option<&[u8]>, Option<&[u8]>) = (Some(OLD_CONTENT), Some(NEW_CONTENT));
        let lost: (Option<&[u8]>, Option<&[u8]>) = (None, Some(NEW_CONTENT));
        let verdict = |system, result, found| renamed(system, result, found).verdict;
        assert_eq!(verdict(System::MacOs, Ok(()), (Some(NEW_CONTENT), None)), CheckOutcome::Ok);
        assert_eq!(verdict(System::MacOs, Ok(()), untouched), CheckOutcome::Differs);
        assert_eq!(verdict(System::MacOs, refused(libc::EBUSY), untouched), CheckOutcome::Ok);
        assert_eq!(verdict(System::MacOs, refused(libc::EBUSY), lost), CheckOutcome::Differs);
        assert_eq!(verdict(System::MacOs, refused(libc::ENOENT), lost), CheckOutcome::Differs);
        assert_eq!(verdict(System::Linux, refused(libc::ENOENT), lost), CheckOutcome::Ok);
        let text = renamed(System::Linux, refused(libc::ENOENT), lost).text;
        assert!(text.contains("nothing under the old name, the new file under the new name"), "{text}");
    }

    #[test]
    fn error_text_contains_no_path() {
        let answer = locked(System::Linux, &Protocol::Smb(None), refused(libc::EIO));
        assert_eq!(answer.text, "`lock` failed: EIO");
    }

    #[test]
    fn wrong_link_count_differs() {
        assert_eq!(judge_links(2, 1).verdict, CheckOutcome::Ok);
        assert_eq!(judge_links(1, 1).verdict, CheckOutcome::Differs);
        assert_eq!(judge_links(2, 2).verdict, CheckOutcome::Differs);
    }
}
