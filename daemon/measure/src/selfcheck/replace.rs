//! Locks, renames over what is there, and second names.

use std::ffi::CStr;

use crate::error::RunError;
use crate::model::Protocol;
use crate::platform::{Access, RangeLock, SYSTEM, System};

use super::{Answer, Ask, CheckedTarget, Expectation, Expectations, Scratch, TargetCheck, error_text};

/// The calls of this group.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck {
        call: "byte-range lock",
        expected: Expectations {
            linux: Expectation {
                text: "taken and given back, or refused as not supported",
                source: "fcntl_locking(2)",
            },
            macos: Expectation {
                text: "taken and given back; on SMB refused as not supported (ENOTSUP)",
                source: "SMBClient kernel/smbfs/smbfs_vnops.c, smbfs_vnop_advlock",
            },
        },
        ask: Ask::Files(lock),
    },
    TargetCheck {
        call: "rename over a file",
        expected: Expectations {
            linux: Expectation { text: "replaced", source: "rename(2)" },
            macos: Expectation { text: "replaced", source: "man rename(2)" },
        },
        ask: Ask::Files(rename_over),
    },
    TargetCheck {
        call: "rename over an open file",
        expected: Expectations {
            linux: Expectation { text: "replaced, or refused as busy", source: "rename(2), mount.cifs(8)" },
            macos: Expectation {
                text: "replaced, or refused as busy",
                source: "man rename(2); SMBClient kernel/smbfs/smbfs_vnops.c, smbfs_vnop_rename",
            },
        },
        ask: Ask::Files(rename_over_open),
    },
    TargetCheck {
        call: "hard link",
        expected: Expectations {
            linux: Expectation { text: "counted as a second name, or refused", source: "link(2), statx(2)" },
            macos: Expectation {
                text: "counted as a second name, or refused",
                source: "man link(2), stat(2)",
            },
        },
        ask: Ask::Files(hard_link),
    },
];

const FILE: &CStr = c"file";
const NEW: &CStr = c"new";
const SECOND: &CStr = c"second";
const OLD_CONTENT: &[u8] = b"old content";
const NEW_CONTENT: &[u8] = b"new content";

/// The errors with which file systems say that they have no such operation, or no lock server.
const UNSUPPORTED: [i32; 5] = [libc::ENOTSUP, libc::EOPNOTSUPP, libc::ENOSYS, libc::ENOLCK, libc::EINVAL];
/// The errors with which a server refuses to replace a file that is open.
const BUSY: [i32; 5] = [libc::EBUSY, libc::EACCES, libc::EPERM, libc::ETXTBSY, libc::EEXIST];
/// The errors with which a file system refuses a second name.
const NO_LINKS: [i32; 6] =
    [libc::ENOTSUP, libc::EOPNOTSUPP, libc::ENOSYS, libc::EPERM, libc::EACCES, libc::EMLINK];

/// Whether a call failed with one of these errors.
fn failed_with(error: &RunError, codes: &[i32]) -> bool {
    let RunError::Operation { source, .. } = error else { return false };
    source.raw_os_error().is_some_and(|code| codes.contains(&code))
}

fn lock(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    const RANGE: (u64, u64) = (0, 4);
    let context = on.context;
    scratch.write(FILE, OLD_CONTENT, context)?;
    let file = context.open(scratch.folder(), FILE, Access::Both)?;
    let taken = context.lock(&file, RangeLock::Take, RANGE);
    let taken = taken.and_then(|()| context.lock(&file, RangeLock::Release, RANGE));
    context.close(file)?;
    match taken {
        Err(stopped @ RunError::Stopped(_)) => Err(stopped),
        taken => Ok(judge_lock(SYSTEM, on.protocol(), &taken)),
    }
}

fn judge_lock(system: System, protocol: Option<&Protocol>, taken: &Result<(), RunError>) -> Answer {
    let never_locks = system == System::MacOs && matches!(protocol, Some(Protocol::Smb(_)));
    match taken {
        Ok(()) => Answer::expect(!never_locks, "taken and given back"),
        Err(error) => {
            let text = error_text(error);
            let may_refuse = never_locks || system == System::Linux;
            Answer::expect(may_refuse && failed_with(error, &UNSUPPORTED), text)
        }
    }
}

fn rename_over(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    write_both(on, scratch)?;
    let folder = scratch.folder();
    on.context.rename((folder, NEW), (folder, FILE))?;
    let content = scratch.read(FILE, 2 * NEW_CONTENT.len(), on.context)?;
    let is_gone = on.context.lookup(folder, NEW)?.is_none();
    Ok(match (content == NEW_CONTENT, is_gone) {
        (true, true) => Answer::ok("replaced"),
        (true, false) => Answer::differs("replaced, but the first name is still there"),
        (false, _) => Answer::differs("accepted, but the old content is read"),
    })
}

fn write_both(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<(), RunError> {
    scratch.write(FILE, OLD_CONTENT, on.context)?;
    scratch.write(NEW, NEW_CONTENT, on.context)
}

fn rename_over_open(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    write_both(on, scratch)?;
    let (context, folder) = (on.context, scratch.folder());
    let open = context.open(folder, FILE, Access::Read)?;
    let renamed = context.rename((folder, NEW), (folder, FILE));
    let mut content = [0; OLD_CONTENT.len()];
    let through_handle = context.read_full(&open, &mut content, 0);
    context.close(open)?;
    let handle = match &through_handle {
        Ok(_) if content == OLD_CONTENT => "the open handle reads the old content".to_owned(),
        Ok(_) => "the open handle reads the new content".to_owned(),
        Err(stopped @ RunError::Stopped(_)) => return Ok(Answer::failed(stopped)),
        Err(error) => format!("the open handle is lost: {}", error_text(error)),
    };
    Ok(match renamed {
        Ok(()) => {
            let is_new = scratch.read(FILE, 2 * NEW_CONTENT.len(), context)? == NEW_CONTENT;
            Answer::expect(
                is_new,
                if is_new { format!("replaced; {handle}") } else { format!("not replaced; {handle}") },
            )
        }
        Err(error) => Answer::expect(failed_with(&error, &BUSY), error_text(&error)),
    })
}

fn hard_link(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    let (context, folder) = (on.context, scratch.folder());
    scratch.write(FILE, OLD_CONTENT, context)?;
    match context.link(folder, FILE, SECOND) {
        Ok(()) => {}
        Err(error) if failed_with(&error, &NO_LINKS) => return Ok(Answer::ok(error_text(&error))),
        Err(error) => return Err(error),
    }
    let both = context.identity(folder, FILE)?.links;
    scratch.unlink(SECOND, context)?;
    let one = context.identity(folder, FILE)?.links;
    Ok(judge_links(both, one))
}

/// A server that counts one name while there are two hides that a file is not longhaul's alone.
fn judge_links(both: u64, one: u64) -> Answer {
    Answer::expect((both, one) == (2, 1), format!("{both} names counted with it, {one} without it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Operation;
    use crate::selfcheck::Verdict;
    use std::io;
    use std::path::Path;

    fn refused(code: i32) -> Result<(), RunError> {
        let source = io::Error::from_raw_os_error(code);
        Err(RunError::operation(Operation::Lock, Path::new("/nas/anna/file"), source))
    }

    fn locked(system: System, protocol: &Protocol, taken: Result<(), RunError>) -> Answer {
        judge_lock(system, Some(protocol), &taken)
    }

    #[test]
    fn a_lock_on_smb_is_refused_on_a_mac_and_taken_elsewhere() {
        let (smb, nfs) = (Protocol::Smb(None), Protocol::Nfs(None));
        let not_there = || refused(libc::ENOTSUP);
        assert_eq!(locked(System::MacOs, &smb, not_there()).verdict, Verdict::Ok);
        assert_eq!(locked(System::MacOs, &smb, Ok(())).verdict, Verdict::Differs);
        assert_eq!(locked(System::MacOs, &nfs, Ok(())).verdict, Verdict::Ok);
        assert_eq!(locked(System::MacOs, &nfs, not_there()).verdict, Verdict::Differs);
        assert_eq!(locked(System::Linux, &smb, not_there()).verdict, Verdict::Ok);
        assert_eq!(locked(System::Linux, &smb, refused(libc::EIO)).verdict, Verdict::Differs);
    }

    #[test]
    fn an_error_names_no_path() {
        let answer = locked(System::Linux, &Protocol::Smb(None), refused(libc::EIO));
        assert_eq!(answer.text, "`lock` failed: EIO");
    }

    #[test]
    fn a_second_name_that_is_not_counted_differs() {
        assert_eq!(judge_links(2, 1).verdict, Verdict::Ok);
        assert_eq!(judge_links(1, 1).verdict, Verdict::Differs);
        assert_eq!(judge_links(2, 2).verdict, Verdict::Differs);
    }
}
