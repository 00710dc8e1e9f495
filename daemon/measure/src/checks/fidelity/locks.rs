//! Checks of locks on ranges of bytes.

use std::ffi::CString;
use std::path::Path;

use super::answer::Answer;
use super::names::{FILE, FOLDER, folder_of};
use super::property_folder::PropertyFolder;
use crate::error::RunError;
use crate::platform::{Access, ByteRange, LockAction, SYSTEM, System};
use crate::timed_fs::{OpenFile, TimedFs};
use longhaul_model::{Property, Protocol, ProtocolFamily};

/// Range that both handles want.
const RANGE: ByteRange = ByteRange { begin: 0, length: 4 };

/// Owner of a lock of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockOwner {
    Handle,
    Process,
}

impl LockOwner {
    /// Returns the owner of locks. A Mac's NFS client finds the owner by process (NFS kext/nfs4_vnops.c:3612-3640, 5262), and what its
    /// other network clients do is not known.
    fn of(system: System, protocol: Option<&Protocol>) -> Self {
        match (system, protocol.map(Protocol::family)) {
            (System::Linux, _) | (System::MacOs, Some(ProtocolFamily::Local)) => Self::Handle,
            (System::MacOs, _) => Self::Process,
        }
    }
}

/// Locks a range through one handle, and tries to lock it through another one.
pub fn within_mount(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let context = place.context;
    place.files.write(FILE, b"locked", context)?;
    let (holder, other) = (place.open(FILE)?, place.open(FILE)?);
    let taken = context.lock_handle(&holder, LockAction::Take, RANGE);
    let answer = match taken {
        Err(error) => Answer::refused(error),
        Ok(()) => {
            let second = context.lock_handle(&other, LockAction::Take, RANGE);
            judge_in_process(second, LockOwner::of(SYSTEM, place.protocol()))
        }
    };
    context.close(other)?;
    context.close(holder)?;
    answer
}

/// Locks the range of a new file for as long as the file is open. The error is the answer if the target refuses it.
pub fn hold(place: &PropertyFolder<'_>) -> Result<Result<OpenFile, Answer>, RunError> {
    place.files.write(FILE, b"locked", place.context)?;
    let holder = place.open(FILE)?;
    match place.context.lock_handle(&holder, LockAction::Take, RANGE) {
        Ok(()) => Ok(Ok(holder)),
        Err(error) => Answer::refused(error).map(Err),
    }
}

/// Tries to lock the range that another target holds in its sandbox. Returns nothing if the file is not found.
pub fn try_elsewhere(
    context: &TimedFs<'_>,
    target: &Path,
    sandbox: &str,
) -> Result<Option<Answer>, RunError> {
    let file = match open_elsewhere(context, target, sandbox) {
        Err(error) if error.is_not_found() => return Ok(None),
        other => other?,
    };
    let answer = judge_second(context.lock_handle(&file, LockAction::Take, RANGE))?;
    context.close(file)?;
    Ok(Some(answer))
}

fn open_elsewhere(context: &TimedFs<'_>, target: &Path, sandbox: &str) -> Result<OpenFile, RunError> {
    let mut folder = context.open_folder_path(target)?;
    for name in [sandbox.as_bytes(), FOLDER.as_bytes()] {
        folder = context.open_folder(&folder, &CString::new(name).unwrap_or_default())?;
    }
    let folder = context.open_folder(&folder, &folder_of(Property::LockAcrossMounts))?;
    context.open(&folder, FILE, Access::ReadWrite)
}

/// Judges a second lock of this process. One that is given says nothing where locks belong to processes.
fn judge_in_process(second: Result<(), RunError>, owner: LockOwner) -> Result<Answer, RunError> {
    match (second, owner) {
        (Ok(()), LockOwner::Process) => {
            Ok(Answer::not_tested("locks belong to processes here, so that one process cannot check them"))
        }
        (second, _) => judge_second(second),
    }
}

fn judge_second(second: Result<(), RunError>) -> Result<Answer, RunError> {
    match second {
        Ok(()) => Ok(Answer::lost("two handles hold one lock")),
        Err(error) if error.is_lock_held_elsewhere() => Ok(Answer::kept("between programs on this machine")),
        Err(error) => Answer::refused(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{KeepResult, Operation};

    fn failed(code: i32) -> Result<(), RunError> {
        let source = std::io::Error::from_raw_os_error(code);
        Err(RunError::operation(Operation::Lock, Path::new("file"), source))
    }

    #[test]
    fn second_lock_says_nothing_where_processes_own_locks() {
        let [nfs, local] = [Protocol::Nfs(None), Protocol::Local("apfs".to_owned())];
        let judge = |system, protocol, second| {
            judge_in_process(second, LockOwner::of(system, Some(protocol))).unwrap().result
        };
        assert_eq!(judge(System::MacOs, &nfs, Ok(())), KeepResult::NotTested);
        assert_eq!(judge(System::MacOs, &nfs, failed(libc::EAGAIN)), KeepResult::Kept);
        assert_eq!(judge(System::MacOs, &nfs, failed(libc::ENOTSUP)), KeepResult::Refused);
        assert_eq!(judge(System::MacOs, &local, Ok(())), KeepResult::Lost);
        assert_eq!(judge(System::Linux, &nfs, Ok(())), KeepResult::Lost);
    }

    #[test]
    fn lock_that_two_handles_hold_is_lost() {
        assert_eq!(judge_second(Ok(())).unwrap().result, KeepResult::Lost);
        assert_eq!(judge_second(failed(libc::EAGAIN)).unwrap().result, KeepResult::Kept);
        assert_eq!(judge_second(failed(libc::ENOLCK)).unwrap().result, KeepResult::Refused);
    }
}
