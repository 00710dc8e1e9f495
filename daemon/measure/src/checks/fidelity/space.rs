//! Checks of the space that files take: holes, reserved space, files above 4 GiB.

use std::ffi::CStr;

use super::answer::Answer;
use super::names::{FILE, OTHER};
use super::property_folder::PropertyFolder;
use crate::error::RunError;
use crate::platform::{Access, FileFacts};

/// Length of the hole in a sparse file, in bytes.
const HOLE_BYTES: u64 = 16 << 20;
/// Space that a file with a hole may take, in bytes: servers round up to as much as 1 MiB (Samba's `allocation
/// roundup size`).
const MAX_SPARSE_BYTES: u64 = 4 << 20;
/// Space that is reserved, in bytes.
const RESERVED_BYTES: u64 = 1 << 20;
/// Limit of a file whose size is stored in 32 bits.
const FOUR_GIB: u64 = 4 << 30;
/// Byte that is written after a hole.
const BYTE: u8 = 0x5a;

pub fn sparse_file(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    if let Some(refused) = write_after_hole(place, FILE, HOLE_BYTES)? {
        return Ok(refused);
    }
    place.reopen()?;
    let facts = place.facts(FILE)?;
    let (hole, _) = place.read_evicted(FILE, HOLE_BYTES / 2, 64)?;
    let is_empty = hole.iter().all(|byte| *byte == 0);
    Ok(judge_sparse(&facts, is_empty).read_from(place.facts_source()))
}

fn judge_sparse(facts: &FileFacts, is_empty: bool) -> Answer {
    match facts {
        FileFacts { size, .. } if *size != HOLE_BYTES + 1 => {
            Answer::lost(format!("{size} bytes instead of {}", HOLE_BYTES + 1))
        }
        _ if !is_empty => Answer::lost("the hole contains other bytes than zeros"),
        FileFacts { allocated_bytes, .. } if *allocated_bytes <= MAX_SPARSE_BYTES => Answer::kept(""),
        FileFacts { .. } => Answer::changed("the hole takes space like data, as the mount reports it"),
    }
}

/// Writes one byte after a hole. Returns the answer if this is refused.
fn write_after_hole(
    place: &PropertyFolder<'_>,
    name: &CStr,
    hole_bytes: u64,
) -> Result<Option<Answer>, RunError> {
    let context = place.context;
    let file = context.create(place.folder(), name)?;
    let written = context.write_all(&file, &[BYTE], hole_bytes);
    let closed = context.close(file);
    written.and(closed).err().map(Answer::refused).transpose()
}

pub fn preallocation(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let context = place.context;
    let file = context.create_with_access(place.folder(), FILE, Access::ReadWrite)?;
    let reserved = context.preallocate(&file, RESERVED_BYTES);
    context.close(file)?;
    if let Err(error) = reserved {
        return Answer::refused(error);
    }
    place.reopen()?;
    Ok(judge_reserved(&place.facts(FILE)?).read_from(place.facts_source()))
}

fn judge_reserved(facts: &FileFacts) -> Answer {
    match facts {
        FileFacts { size, .. } if *size != RESERVED_BYTES => {
            Answer::lost(format!("the file has {size} bytes instead of {RESERVED_BYTES}"))
        }
        FileFacts { allocated_bytes, .. } if *allocated_bytes >= RESERVED_BYTES => Answer::kept(""),
        FileFacts { .. } => Answer::lost("accepted, but no space is reserved"),
    }
}

pub fn large_file(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    // Without holes, 4 GiB would be written: too much for the budgets, and perhaps for the free space.
    if let Some(refused) = write_after_hole(place, OTHER, HOLE_BYTES)? {
        return Ok(Answer::not_tested(format!("a file with a hole is refused: {}", refused.detail)));
    }
    // An SMB client reports the space that a file takes only after it has closed it on the server.
    place.reopen()?;
    if place.facts(OTHER)?.allocated_bytes > MAX_SPARSE_BYTES {
        return Ok(Answer::not_tested("holes take space here, so that 4 GiB would be written"));
    }
    if let Some(refused) = write_after_hole(place, FILE, FOUR_GIB)? {
        return Ok(refused);
    }
    place.reopen()?;
    let size = place.facts(FILE)?.size;
    let (found, source) = place.read_evicted(FILE, FOUR_GIB, 1)?;
    Ok(match (size == FOUR_GIB + 1, found == [BYTE]) {
        (true, true) => Answer::kept(""),
        (false, _) => Answer::lost(format!("{size} bytes instead of {}", FOUR_GIB + 1)),
        (true, false) => Answer::lost("the byte behind 4 GiB is another one"),
    }
    .read_from(source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::EntryKind;
    use longhaul_model::KeepResult;

    fn facts(size: u64, allocated_bytes: u64) -> FileFacts {
        let (kind, created_ns) = (EntryKind::File, None);
        FileFacts {
            kind,
            size,
            allocated_bytes,
            links: 1,
            device: 4,
            mode: 0o644,
            modified_ns: 0,
            created_ns,
        }
    }

    #[test]
    fn hole_that_takes_space_is_changed() {
        assert_eq!(judge_sparse(&facts(HOLE_BYTES + 1, 4096), true).result, KeepResult::Kept);
        assert_eq!(judge_sparse(&facts(HOLE_BYTES + 1, HOLE_BYTES + 1), true).result, KeepResult::Changed);
        assert_eq!(judge_sparse(&facts(HOLE_BYTES, 4096), true).result, KeepResult::Lost);
        assert_eq!(judge_sparse(&facts(HOLE_BYTES + 1, 4096), false).result, KeepResult::Lost);
    }

    #[test]
    fn reservation_without_space_is_lost() {
        assert_eq!(judge_reserved(&facts(RESERVED_BYTES, RESERVED_BYTES)).result, KeepResult::Kept);
        assert_eq!(judge_reserved(&facts(RESERVED_BYTES, 0)).result, KeepResult::Lost);
        assert_eq!(judge_reserved(&facts(0, RESERVED_BYTES)).result, KeepResult::Lost);
    }
}
