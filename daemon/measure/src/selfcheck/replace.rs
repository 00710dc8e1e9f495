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
            linux: Expectation {
                text: "replaced, or refused as busy without a change; over SMB 2 and 3 ENOENT after the old file is deleted",
                source: "rename(2); measured with Linux 6.1 and Samba 4.22",
            },
            macos: Expectation {
                text: "replaced, or refused as busy without a change",
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
    const FILE: &CStr = c"lock";
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

/// A file and the one that replaces it.
struct Pair {
    old: &'static CStr,
    new: &'static CStr,
}

impl Pair {
    fn write(&self, on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<(), RunError> {
        scratch.write(self.old, OLD_CONTENT, on.context)?;
        scratch.write(self.new, NEW_CONTENT, on.context)
    }

    fn rename(&self, on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<(), RunError> {
        on.context.rename((scratch.folder(), self.new), (scratch.folder(), self.old))
    }

    /// What is under each of the two names.
    fn found(&self, on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Found, RunError> {
        let read = |name| match on.context.lookup(scratch.folder(), name)? {
            Some(_) => scratch.read(name, 2 * NEW_CONTENT.len(), on.context).map(Some),
            None => Ok(None),
        };
        Ok(Found { old: read(self.old)?, new: read(self.new)? })
    }
}

/// The content of two files; `None` for one that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
}

impl Found {
    fn is_replaced(&self) -> bool {
        self.old.as_deref() == Some(NEW_CONTENT) && self.new.is_none()
    }

    fn is_untouched(&self) -> bool {
        self.old.as_deref() == Some(OLD_CONTENT) && self.new.as_deref() == Some(NEW_CONTENT)
    }

    fn words(&self) -> String {
        let under = |name: &str, content: &Option<Vec<u8>>| match content.as_deref() {
            None => format!("nothing under the {name} name"),
            Some(OLD_CONTENT) => format!("the old file under the {name} name"),
            Some(NEW_CONTENT) => format!("the new file under the {name} name"),
            Some(_) => format!("another file under the {name} name"),
        };
        format!("{}, {}", under("old", &self.old), under("new", &self.new))
    }
}

fn rename_over(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    const PAIR: Pair = Pair { old: c"over-old", new: c"over-new" };
    PAIR.write(on, scratch)?;
    PAIR.rename(on, scratch)?;
    let found = PAIR.found(on, scratch)?;
    Ok(match found.is_replaced() {
        true => Answer::ok("replaced"),
        false => Answer::differs(format!("accepted, but there is {}", found.words())),
    })
}

fn rename_over_open(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    const PAIR: Pair = Pair { old: c"open-old", new: c"open-new" };
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
        Err(error) => format!("the open handle is lost, {}", error_text(error)),
    };
    let found = PAIR.found(on, scratch)?;
    Ok(judge_rename(SYSTEM, on.protocol(), &Renamed { result, found, handle }))
}

/// What came of a rename over an open file.
struct Renamed {
    result: Result<(), RunError>,
    found: Found,
    /// What the handle that was open before reads.
    handle: String,
}

/// Linux sends SMB 2 a deletion of the old file when it is open, and then cannot rename: measured with Linux 6.1 and Samba 4.22.
fn judge_rename(system: System, protocol: Option<&Protocol>, renamed: &Renamed) -> Answer {
    let deletes_first = system == System::Linux && matches!(protocol, Some(Protocol::Smb(_)));
    let Renamed { result, found, handle } = renamed;
    match result {
        Ok(()) => {
            let text = if found.is_replaced() { "replaced".to_owned() } else { found.words() };
            Answer::expect(found.is_replaced(), format!("{text}; {handle}"))
        }
        Err(error) => {
            let is_refused = failed_with(error, &BUSY) && found.is_untouched();
            let is_known = is_refused || (deletes_first && failed_with(error, &[libc::ENOENT]));
            Answer::expect(is_known, format!("{}; then {}; {handle}", error_text(error), found.words()))
        }
    }
}

fn hard_link(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    const FILE: &CStr = c"linked";
    const SECOND: &CStr = c"linked-2";
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

    fn renamed(
        system: System,
        result: Result<(), RunError>,
        found: (Option<&[u8]>, Option<&[u8]>),
    ) -> Answer {
        let found = Found { old: found.0.map(<[u8]>::to_vec), new: found.1.map(<[u8]>::to_vec) };
        let renamed = Renamed { result, found, handle: "the open handle".to_owned() };
        judge_rename(system, Some(&Protocol::Smb(None)), &renamed)
    }

    #[test]
    fn a_rename_that_loses_a_file_differs_but_where_it_is_known() {
        let untouched: (Option<&[u8]>, Option<&[u8]>) = (Some(OLD_CONTENT), Some(NEW_CONTENT));
        let lost: (Option<&[u8]>, Option<&[u8]>) = (None, Some(NEW_CONTENT));
        let verdict = |system, result, found| renamed(system, result, found).verdict;
        assert_eq!(verdict(System::MacOs, Ok(()), (Some(NEW_CONTENT), None)), Verdict::Ok);
        assert_eq!(verdict(System::MacOs, Ok(()), untouched), Verdict::Differs);
        assert_eq!(verdict(System::MacOs, refused(libc::EBUSY), untouched), Verdict::Ok);
        assert_eq!(verdict(System::MacOs, refused(libc::EBUSY), lost), Verdict::Differs);
        assert_eq!(verdict(System::MacOs, refused(libc::ENOENT), lost), Verdict::Differs);
        assert_eq!(verdict(System::Linux, refused(libc::ENOENT), lost), Verdict::Ok);
        let text = renamed(System::Linux, refused(libc::ENOENT), lost).text;
        assert!(text.contains("nothing under the old name, the new file under the new name"), "{text}");
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
