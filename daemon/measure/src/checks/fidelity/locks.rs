//! Checks of locks on ranges of bytes.

use std::ffi::CString;
use std::path::Path;

use super::answer::Answer;
use super::names::{FILE, FOLDER, folder_of};
use super::place::Place;
use crate::error::RunError;
use crate::platform::{Access, ByteRange, LockAction};
use crate::timed_fs::{OpenFile, TimedFs};
use longhaul_model::Property;

/// Range that both handles want.
const RANGE: ByteRange = ByteRange { begin: 0, length: 4 };

/// Locks a range through one handle, and tries to lock it through another one.
pub fn within_mount(place: &mut Place<'_>) -> Result<Answer, RunError> {
    let context = place.context;
    place.files.write(FILE, b"locked", context)?;
    let (holder, other) = (place.open(FILE)?, place.open(FILE)?);
    let taken = context.lock_handle(&holder, LockAction::Take, RANGE);
    let answer = match taken {
        Err(error) => Answer::refused(error),
        Ok(()) => judge_second(context.lock_handle(&other, LockAction::Take, RANGE)),
    };
    context.close(other)?;
    context.close(holder)?;
    answer
}

/// Locks the range of a new file for as long as the file is open. The error is the answer if the target refuses it.
pub fn hold(place: &Place<'_>) -> Result<Result<OpenFile, Answer>, RunError> {
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

    #[test]
    fn lock_that_two_handles_hold_is_lost() {
        let failed = |code| {
            let source = std::io::Error::from_raw_os_error(code);
            Err(RunError::operation(Operation::Lock, Path::new("file"), source))
        };
        assert_eq!(judge_second(Ok(())).unwrap().result, KeepResult::Lost);
        assert_eq!(judge_second(failed(libc::EAGAIN)).unwrap().result, KeepResult::Kept);
        assert_eq!(judge_second(failed(libc::ENOLCK)).unwrap().result, KeepResult::Refused);
    }
}
