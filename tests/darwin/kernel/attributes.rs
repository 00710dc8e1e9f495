//! Packs attributes as `getattrlistbulk` and `getattrlistat` do (xnu bsd/vfs/vfs_attrlist.c:1749-2458).

use std::ffi::{CStr, c_int, c_ulong, c_void};

use super::{Call, Kernel, Node, answer, bytes_of, copy_out};
use crate::apple::*;
use crate::errno::*;

/// `ATTR_CMN_ERROR` (xnu bsd/sys/attr.h:458), which the libc crate lacks.
pub const ATTR_CMN_ERROR: u32 = 0x2000_0000;
/// Attributes that each `getattrlistbulk` call requests: `ATTR_BULK_REQUIRED` (xnu bsd/sys/attr.h:600).
const REQUIRED: u32 = ATTR_CMN_NAME | ATTR_CMN_RETURNED_ATTRS;
/// Room that the kernel wants to begin an entry: `MIN_BUF_SIZE_REQUIRED` (vfs_attrlist.c:4013).
const MIN_ENTRY: usize = 4 + 20 + 8;

/// Common attributes in the order in which `attr_pack_common` packs them, with their sizes.
const COMMON: [(u32, usize); 14] = [
    (ATTR_CMN_NAME, 8),
    (ATTR_CMN_FSID, 8),
    (ATTR_CMN_OBJTYPE, 4),
    (ATTR_CMN_CRTIME, 16),
    (ATTR_CMN_MODTIME, 16),
    (ATTR_CMN_CHGTIME, 16),
    (ATTR_CMN_FNDRINFO, 32),
    (ATTR_CMN_OWNERID, 4),
    (ATTR_CMN_GRPID, 4),
    (ATTR_CMN_ACCESSMASK, 4),
    (ATTR_CMN_FLAGS, 4),
    (ATTR_CMN_USERACCESS, 4),
    (ATTR_CMN_FILEID, 8),
    (ATTR_CMN_ADDEDTIME, 16),
];
/// Folder attributes, in the order of `attr_pack_dir`.
const FOLDER: [(u32, usize); 2] = [(ATTR_DIR_ENTRYCOUNT, 4), (ATTR_DIR_MOUNTSTATUS, 4)];
/// File attributes, in the order of `attr_pack_file`.
const FILE: [(u32, usize); 4] = [
    (ATTR_FILE_TOTALSIZE, 8),
    (ATTR_FILE_ALLOCSIZE, 8),
    (ATTR_FILE_DATALENGTH, 8),
    (ATTR_FILE_RSRCLENGTH, 8),
];

/// Fills a buffer with the next entries of a folder (vfs_attrlist.c:4254).
///
/// # Safety
///
/// `wanted` points to an `attrlist`, and `room` bytes can be written at `buffer`.
pub unsafe fn getattrlistbulk(
    folder: c_int,
    wanted: *mut c_void,
    buffer: *mut c_void,
    room: usize,
    _options: u64,
) -> c_int {
    // SAFETY: the caller passes an attrlist.
    let wanted = unsafe { *wanted.cast::<attrlist>() };
    answer(Call::Getattrlistbulk, |kernel| {
        let (entries, count) = kernel.list(folder, wanted, room)?;
        // SAFETY: the caller promises this room.
        unsafe { copy_out(&entries, buffer.cast(), room) };
        Ok(count + kernel.surplus_entries)
    })
}

/// Returns attributes of a name in a folder (vfs_attrlist.c:3650).
///
/// # Safety
///
/// `name` ends in NUL, `wanted` points to an `attrlist`, and `room` bytes can be written at `buffer`.
pub unsafe fn getattrlistat(
    folder: c_int,
    name: *const std::ffi::c_char,
    wanted: *mut c_void,
    buffer: *mut c_void,
    room: usize,
    _options: c_ulong,
) -> c_int {
    // SAFETY: the caller passes a name that ends in NUL, and an attrlist.
    let (name, wanted) = unsafe { (CStr::from_ptr(name), *wanted.cast::<attrlist>()) };
    answer(Call::Getattrlistat, |kernel| {
        if wanted.bitmapcount != ATTR_BIT_MAP_COUNT {
            return Err(EINVAL);
        }
        if room < 4 {
            // vfs_attrlist.c:3314: not even the length fits.
            return Err(ERANGE);
        }
        let mut entry = pack(&kernel.named(folder, name)?, wanted);
        // Without FSOPT_REPORT_FULLSIZE the length is that of what was copied.
        let copied = entry.len().min(room) as u32;
        entry[..4].copy_from_slice(&copied.to_ne_bytes());
        // SAFETY: the caller promises this room.
        unsafe { copy_out(&entry, buffer.cast(), room) };
        Ok(0)
    })
}

impl Kernel {
    /// Returns the entries from the position of a listing that fit into the room, and their number (vfs_attrlist.c:4020,
    /// `readdirattr`).
    fn list(&mut self, folder: c_int, wanted: attrlist, room: usize) -> Result<(Vec<u8>, c_int), c_int> {
        let file = self.file(folder)?;
        if file.node.kind != 2 {
            return Err(ENOTDIR);
        }
        if wanted.volattr != 0 || wanted.commonattr & REQUIRED != REQUIRED {
            return Err(EINVAL);
        }
        let (mut entries, mut count) = (vec![], 0);
        while let Some(node) = file.node.entries.get(file.position) {
            let entry = pack(node, wanted);
            let left = room - entries.len();
            if left <= MIN_ENTRY || entry.len() > left {
                break;
            }
            append(&mut entries, entry, left);
            file.position += 1;
            count += 1;
        }
        let is_at_end = file.position == file.node.entries.len();
        if count == 0 && !is_at_end { Err(ERANGE) } else { Ok((entries, count)) }
    }
}

/// Appends an entry, padded to eight bytes if the padding fits too (vfs_attrlist.c:4171).
fn append(entries: &mut Vec<u8>, mut entry: Vec<u8>, left: usize) {
    let padded = entry.len().next_multiple_of(8);
    if padded <= left {
        entry.resize(padded, 0);
    }
    let length = entry.len() as u32;
    entry[..4].copy_from_slice(&length.to_ne_bytes());
    entries.extend(entry);
}

/// Packs the attributes of a node: length, set of returned attributes, attributes of fixed size, name.
fn pack(node: &Node, wanted: attrlist) -> Vec<u8> {
    let failed = node.error != 0;
    // `get_error_attributes` (vfs_attrlist.c:3900) returns the error and the name only; without an error, the attribute
    // ATTR_CMN_ERROR is left out (vfs_attrlist.c:1758) although its room is kept.
    let common = wanted.commonattr & if failed { REQUIRED | ATTR_CMN_ERROR } else { !node.unsupported };
    let is_folder = node.kind == 2;
    let folder = if is_folder && !failed { wanted.dirattr } else { 0 };
    let file = if is_folder || failed { 0 } else { wanted.fileattr };
    let mut returned =
        attribute_set_t { commonattr: common, dirattr: folder, fileattr: file, ..Default::default() };
    let mut fixed = vec![];
    if common & ATTR_CMN_ERROR != 0 && failed {
        fixed.extend(node.error.to_ne_bytes());
    } else {
        returned.commonattr &= !ATTR_CMN_ERROR;
    }
    let name_at = fixed.len();
    for (bit, size) in COMMON.into_iter().filter(|(bit, _)| common & bit != 0) {
        fixed.extend(common_value(node, bit, size));
    }
    for (_, size) in FOLDER.into_iter().filter(|(bit, _)| folder & bit != 0) {
        fixed.extend(vec![0; size]);
    }
    for (bit, size) in FILE.into_iter().filter(|(bit, _)| file & bit != 0) {
        let size_of_data = node.size.to_ne_bytes();
        fixed.extend(if bit == ATTR_FILE_RSRCLENGTH { vec![0; size] } else { size_of_data.to_vec() });
    }
    if wanted.commonattr & ATTR_CMN_ERROR != 0 && !failed {
        fixed.extend([0; 4]);
    }
    join(returned, fixed, (common & ATTR_CMN_NAME != 0).then_some((name_at, &*node.name)))
}

/// Joins the parts of an entry. The name follows the attributes of fixed size, and an `attrreference` at `name_at` leads to
/// it (vfs_attrlist.c:255, `attrlist_pack_string`).
fn join(returned: attribute_set_t, mut fixed: Vec<u8>, name: Option<(usize, &CStr)>) -> Vec<u8> {
    let mut text = vec![];
    if let Some((at, name)) = name {
        text.extend(name.to_bytes_with_nul());
        let reference =
            attrreference_t { attr_dataoffset: (fixed.len() - at) as i32, attr_length: text.len() as u32 };
        fixed[at..at + 8].copy_from_slice(&bytes_of(&reference));
        text.resize(text.len().next_multiple_of(4), 0);
    }
    let length = 4 + size_of::<attribute_set_t>() + fixed.len() + text.len();
    [&(length as u32).to_ne_bytes()[..], &bytes_of(&returned), &fixed, &text].concat()
}

fn common_value(node: &Node, bit: u32, size: usize) -> Vec<u8> {
    match bit {
        ATTR_CMN_OBJTYPE => node.kind.to_ne_bytes().to_vec(),
        ATTR_CMN_MODTIME => [node.modified.0.to_ne_bytes(), node.modified.1.to_ne_bytes()].concat(),
        ATTR_CMN_FNDRINFO => node.finder_info.to_vec(),
        // With the bits of the type (vfs_attrlist.c:3046).
        ATTR_CMN_ACCESSMASK => u32::from(node.mode_with_type()).to_ne_bytes().to_vec(),
        // Any value that is recognized if it is taken for another attribute; the name's is written later.
        _ => vec![0x77; size],
    }
}
