//! The mount table.

use std::ffi::{c_char, c_int};

use super::{Call, answer, bytes_of, copy_out, next};
use crate::apple::{MNT_NOWAIT, statfs};
use crate::errno::EINVAL;

/// Returns the mount table, or only the number of mounts for a null buffer (xnu bsd/vfs/vfs_syscalls.c:4201,
/// `getfsstat64`). Like a Mac whose servers are dead it refuses to wait for them: a call without `MNT_NOWAIT` fails.
///
/// # Safety
///
/// `table` is null, or `bytes` bytes can be written there.
pub unsafe fn getfsstat(table: *mut statfs, bytes: c_int, flags: c_int) -> c_int {
    answer(Call::Getfsstat, |kernel| {
        let (Ok(bytes), MNT_NOWAIT) = (usize::try_from(bytes), flags) else { return Err(EINVAL) };
        let mounts = next(&mut kernel.mounts).unwrap_or_default();
        if table.is_null() {
            return Ok(mounts.len() as c_int);
        }
        let count = mounts.len().min(bytes / size_of::<statfs>());
        let answer: Vec<u8> = mounts[..count].iter().flat_map(bytes_of).collect();
        // SAFETY: the caller promises this room.
        unsafe { copy_out(&answer, table.cast(), bytes) };
        Ok(count as c_int)
    })
}

impl statfs {
    /// Returns a mount with a type, a source and a mount point, whose names are cut to their room.
    pub fn named(kind: &str, from: &str, on: &str) -> Self {
        let mut mount = Self {
            f_bsize: 4096,
            f_iosize: 1 << 20,
            f_blocks: 1000,
            f_bfree: 300,
            f_bavail: 200,
            f_files: 0,
            f_ffree: 0,
            f_fsid: [1, 2],
            f_owner: 501,
            f_type: 25,
            f_flags: 0,
            f_fssubtype: 0,
            f_fstypename: [0; 16],
            f_mntonname: [0; 1024],
            f_mntfromname: [0; 1024],
            f_flags_ext: 0,
            f_reserved: [0; 7],
        };
        fill(&mut mount.f_fstypename, kind);
        fill(&mut mount.f_mntonname, on);
        fill(&mut mount.f_mntfromname, from);
        mount
    }
}

/// Fills a field with a text; a text that is as long as the field has no NUL.
fn fill(field: &mut [c_char], text: &str) {
    for (place, byte) in field.iter_mut().zip(text.bytes()) {
        *place = byte as c_char;
    }
}
