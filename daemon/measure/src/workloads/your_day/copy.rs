//! Copies from one open file to another.

use super::replay::{Open, Replay};
use crate::error::RunError;
use crate::platform::CopyRange;
use crate::timed_fs::{Buffer, OpenFile, TimedFs};
use longhaul_recording::Copying;
use longhaul_recording::plan::Slot;

/// Bytes that `cp` of GNU coreutils 9 moves at a time where the server does not copy (`ioblksize.h`).
const COPY_BYTES: u64 = 256 << 10;

/// Copies from one open file to another: on the server where the share offers that, else through this machine, as programs do.
pub fn copy(replay: &Replay<'_>, context: &TimedFs<'_>, copy: Copying<Slot>) -> Result<(), RunError> {
    let (from, to) = (replay.slots[copy.from.0 as usize].read(), replay.slots[copy.to.0 as usize].read());
    let (Some(Open::File(from)), Some(Open::File(to))) = (&*from, &*to) else { return Ok(()) };
    let (mut done, mut is_refused) = (0, false);
    while done < copy.length {
        let offsets = CopyRange {
            read_at: copy.read_at + done,
            write_at: copy.write_at + done,
            length: copy.length - done,
        };
        // As `cp` does, not asked again after a refusal: a question may be a round trip.
        let answer = if is_refused { None } else { context.copy_range(&from.file, &to.file, offsets)? };
        is_refused = answer.is_none();
        done += match answer {
            Some(0) => {
                return Err(RunError::damaged(from.file.path(), "the file is shorter than it was"));
            }
            Some(copied) => copied,
            None => copy_through(context, [&from.file, &to.file], offsets)?,
        };
    }
    Ok(())
}

/// Asks to share the blocks of a file, as `cp` does before it copies. Where a file system does, the copy that the recording has
/// writes the same bytes once more.
pub fn share_blocks(
    replay: &Replay<'_>,
    context: &TimedFs<'_>,
    [from, to]: [Slot; 2],
) -> Result<(), RunError> {
    let (from, to) = (replay.slots[from.0 as usize].read(), replay.slots[to.0 as usize].read());
    let (Some(Open::File(from)), Some(Open::File(to))) = (&*from, &*to) else { return Ok(()) };
    context.share_blocks(&from.file, &to.file).map(drop)
}

/// Copies as much as one read of `cp` moves, and returns the number of bytes.
fn copy_through(
    context: &TimedFs<'_>,
    [from, to]: [&OpenFile; 2],
    range: CopyRange,
) -> Result<u64, RunError> {
    let mut bytes = Buffer::new(range.length.min(COPY_BYTES) as usize);
    let length = context.read_at(from, &mut bytes, range.read_at)?;
    context.write_all(to, &bytes[..length], range.write_at)?;
    match length {
        0 => Err(RunError::damaged(from.path(), "the file is shorter than it was")),
        length => Ok(length as u64),
    }
}
