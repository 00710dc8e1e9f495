//! Checks of locks on ranges of bytes.

use super::answer::Answer;
use super::names::FILE;
use super::place::Place;
use crate::error::RunError;
use crate::platform::{ByteRange, LockAction};

/// Range that both handles want.
const RANGE: ByteRange = ByteRange { begin: 0, length: 4 };
/// Errors that mean that another handle holds a lock (fcntl(2), F_SETLK).
const HELD_ERRORS: [i32; 2] = [libc::EAGAIN, libc::EACCES];

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

fn judge_second(second: Result<(), RunError>) -> Result<Answer, RunError> {
    match second {
        Ok(()) => Ok(Answer::lost("two handles hold one lock")),
        Err(RunError::Operation { source, .. })
            if source.raw_os_error().is_some_and(|code| HELD_ERRORS.contains(&code)) =>
        {
            Ok(Answer::kept("between programs on this machine"))
        }
        Err(error) => Answer::refused(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{KeepResult, Operation};
    use std::path::Path;

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
