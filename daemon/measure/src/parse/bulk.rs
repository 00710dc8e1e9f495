//! Parser for the buffer of `getattrlistbulk` (xnu bsd/vfs/vfs_attrlist.c, bsd/sys/attr.h).
//!
//! An entry consists of its length (u32), the set of returned attributes (five u32), the error if there is
//! one, and then the returned attributes in ascending order of their bits, group by group, each on a 4-byte
//! boundary. Wider values are not aligned to their size, so everything is read by bytes.

use std::ffi::CStr;

use super::bytes::{chunk, u32_at, u64_at};
use super::entry::{Attributes, Entry, EntryKind};

/// Length of the Finder info of a file or folder, in bytes.
pub const FINDER_INFO_BYTES: usize = 32;

const NAME: u32 = 0x1;
const OBJECT_TYPE: u32 = 0x8;
const MODIFIED: u32 = 0x400;
const ACCESS_MASK: u32 = 0x2_0000;
/// Bit `ATTR_CMN_ERROR`. Its value is placed right after the set although its bit is high (xnu
/// bsd/vfs/vfs_attrlist.c:3982-4002).
pub const ERROR: u32 = 0x2000_0000;
/// Bit `ATTR_CMN_RETURNED_ATTRS` for the set itself.
const RETURNED: u32 = 0x8000_0000;
const DATA_LENGTH: u32 = 0x200;

/// Size of an entry's header (length and set), in bytes.
const HEADER: usize = 24;

/// Size in bytes of each common attribute, by bit (xnu bsd/sys/attr.h). The reading of an entry stops at an
/// attribute that is not listed here, because the positions of the following ones are unknown.
const COMMON: &[(u32, usize)] = &[
    (NAME, 8),
    (0x2, 4),
    (0x4, 8),
    (OBJECT_TYPE, 4),
    (0x10, 4),
    (0x20, 8),
    (0x200, 16),
    (MODIFIED, 16),
    (0x800, 16),
    (0x1000, 16),
    (0x2000, 16),
    (0x4000, 32),
    (0x8000, 4),
    (0x1_0000, 4),
    (ACCESS_MASK, 4),
    (0x4_0000, 4),
    (0x20_0000, 4),
    (0x200_0000, 8),
    (0x400_0000, 8),
    (0x1000_0000, 16),
];
/// Size in bytes of each folder attribute, by bit, like [`COMMON`].
const FOLDER: &[(u32, usize)] = &[(0x1, 4), (0x2, 4), (0x4, 4)];
/// Size in bytes of each file attribute, by bit, like [`COMMON`]. Everything except folders has file
/// attributes.
const FILE: &[(u32, usize)] =
    &[(0x1, 4), (0x2, 8), (0x4, 8), (0x8, 4), (DATA_LENGTH, 8), (0x400, 8), (0x1000, 8), (0x2000, 8)];

/// Returns the entries in a buffer. A damaged entry ends the iteration.
///
/// `attributes` is present if kind, modification time and permissions were returned, and for everything
/// except folders the size of the data too. A folder's size is 0, because the call returns none. An entry
/// that the system could not examine has its name, the kind `Unknown` and no attributes.
pub fn bulk(mut buffer: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    std::iter::from_fn(move || {
        let (entry, rest) = split_entry(buffer)?;
        buffer = rest;
        read_entry(entry)
    })
}

/// Returns the number of bytes that the first `count` entries take; `None` if they do not fit into the
/// buffer.
pub fn bulk_length(buffer: &[u8], count: usize) -> Option<usize> {
    let mut rest = buffer;
    for _ in 0..count {
        rest = split_entry(rest)?.1;
    }
    Some(buffer.len() - rest.len())
}

/// Returns the Finder info in the answer to `getattrlist` for `RETURNED_ATTRS | FNDRINFO`; `None` if it was
/// not returned.
pub fn finder_info(answer: &[u8]) -> Option<&[u8; 32]> {
    const FINDER_INFO: u32 = 0x4000;
    let entry = split_entry(answer)?.0;
    (u32_at(entry, 4)? & FINDER_INFO != 0).then(|| entry.get(HEADER..)?.first_chunk()).flatten()
}

fn split_entry(buffer: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(u32_at(buffer, 0)?).ok()?;
    if length < HEADER { None } else { buffer.split_at_checked(length) }
}

fn read_entry(entry: &[u8]) -> Option<Entry<'_>> {
    let set = Returned { common: u32_at(entry, 4)?, folder: u32_at(entry, 12)?, file: u32_at(entry, 16)? };
    let name = name(entry, set.offset(NAME, Group::Common)?)?;
    if set.common & ERROR != 0 && u32_at(entry, HEADER)? != 0 {
        return Some(Entry { name, kind: EntryKind::Unknown, attributes: None });
    }
    let attributes = attributes(entry, set);
    let object_type = set.offset(OBJECT_TYPE, Group::Common).and_then(|at| u32_at(entry, at));
    Some(Entry { name, kind: object_type.map_or(EntryKind::Unknown, kind), attributes })
}

fn attributes(entry: &[u8], set: Returned) -> Option<Attributes> {
    let kind = kind(u32_at(entry, set.offset(OBJECT_TYPE, Group::Common)?)?);
    let modified = set.offset(MODIFIED, Group::Common)?;
    let seconds = i64::from_ne_bytes(chunk(entry, modified)?);
    let nanoseconds = i64::from_ne_bytes(chunk(entry, modified + 8)?);
    let mode = u32_at(entry, set.offset(ACCESS_MASK, Group::Common)?)?;
    let size = match kind {
        EntryKind::Folder => 0,
        EntryKind::File | EntryKind::Symlink | EntryKind::Other | EntryKind::Unknown => {
            u64_at(entry, set.offset(DATA_LENGTH, Group::File)?)?
        }
    };
    Some(Attributes {
        kind,
        size,
        modified_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds),
        mode: (mode & 0o7777) as u16,
    })
}

/// Returns the name that an `attrreference` points to. The reference holds an offset from itself, and a
/// length with the final NUL.
fn name(entry: &[u8], at: usize) -> Option<&CStr> {
    let offset = usize::try_from(i32::from_ne_bytes(chunk(entry, at)?)).ok()?;
    let length = usize::try_from(u32_at(entry, at + 4)?).ok()?;
    let begin = at.checked_add(offset)?;
    CStr::from_bytes_until_nul(entry.get(begin..begin.checked_add(length)?)?).ok()
}

/// Sets of bits for the attributes that an entry contains.
#[derive(Clone, Copy)]
struct Returned {
    common: u32,
    folder: u32,
    file: u32,
}

/// Group of attributes: the word of the set that a bit is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Common,
    File,
}

impl Returned {
    /// Returns the offset of an attribute in the entry; `None` if it was not returned or if an unknown
    /// attribute precedes it.
    fn offset(self, bit: u32, group: Group) -> Option<usize> {
        let error = if self.common & ERROR != 0 { 4 } else { 0 };
        let common = self.common & !(ERROR | RETURNED);
        if group == Group::Common {
            return (common & bit != 0).then_some(HEADER + error + before(common, bit, COMMON)?);
        }
        let groups = before(common, 0, COMMON)? + before(self.folder, 0, FOLDER)?;
        (self.file & bit != 0).then_some(HEADER + error + groups + before(self.file, bit, FILE)?)
    }
}

/// Returns the number of bytes that the returned attributes below a bit take, or all of them for bit 0;
/// `None` if one of them is unknown.
fn before(returned: u32, bit: u32, sizes: &[(u32, usize)]) -> Option<usize> {
    let mut unread = returned & bit.wrapping_sub(1);
    let mut bytes = 0;
    for (known, size) in sizes.iter().filter(|(known, _)| returned & known & bit.wrapping_sub(1) != 0) {
        unread &= !known;
        bytes += size;
    }
    (unread == 0).then_some(bytes)
}

/// Converts an `fsobj_type_t`, whose values are those of `enum vtype` (xnu bsd/sys/vnode.h:91).
fn kind(object_type: u32) -> EntryKind {
    match object_type {
        1 => EntryKind::File,
        2 => EntryKind::Folder,
        5 => EntryKind::Symlink,
        3 | 4 | 6 | 7 => EntryKind::Other,
        _ => EntryKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds an entry as the kernel does: header, fixed attributes, name, padding to 8 bytes.
    fn entry(set: [u32; 3], before_name: &[u8], after_name: &[u8], name: &str) -> Vec<u8> {
        let fixed = HEADER + before_name.len() + 8 + after_name.len();
        let length = (fixed + name.len() + 1).next_multiple_of(8);
        let mut bytes = Vec::new();
        for word in [length as u32, set[0], 0, set[1], set[2], 0] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(before_name);
        bytes.extend((fixed as i32 - (HEADER + before_name.len()) as i32).to_ne_bytes());
        bytes.extend((name.len() as u32 + 1).to_ne_bytes());
        bytes.extend(after_name);
        bytes.extend(name.as_bytes());
        bytes.resize(length, 0);
        bytes
    }

    fn photo() -> Vec<u8> {
        let mut fixed = vec![7u8; 8]; // file system id
        fixed.extend(1u32.to_ne_bytes()); // a regular file
        fixed.extend([9; 16]); // created
        fixed.extend(1_700_000_000i64.to_ne_bytes());
        fixed.extend(5i64.to_ne_bytes());
        fixed.extend([3; 32]); // Finder info
        fixed.extend(0o100644u32.to_ne_bytes());
        fixed.extend([1; 8]); // total size
        fixed.extend(3_500_000u64.to_ne_bytes());
        entry(
            [RETURNED | NAME | 0x4 | 0x8 | 0x200 | 0x400 | 0x4000 | ACCESS_MASK, 0, 0x2 | 0x200],
            &[],
            &fixed,
            "IMG.JPG",
        )
    }

    fn folder() -> Vec<u8> {
        let mut fixed = 2u32.to_ne_bytes().to_vec();
        fixed.extend(60i64.to_ne_bytes());
        fixed.extend(0i64.to_ne_bytes());
        fixed.extend(0o040755u32.to_ne_bytes());
        fixed.extend(12u32.to_ne_bytes()); // entries in it
        entry([RETURNED | NAME | 0x8 | 0x400 | ACCESS_MASK, 0x2, 0], &[], &fixed, "Bücher")
    }

    #[test]
    fn attributes_after_skipped_ones_are_found() {
        let buffer = [photo(), folder()].concat();
        let found: Vec<_> = bulk(&buffer).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name, found[0].kind), (c"IMG.JPG", EntryKind::File));
        let modified_ns = 1_700_000_000_000_000_005;
        let photo = Attributes { kind: EntryKind::File, size: 3_500_000, modified_ns, mode: 0o644 };
        assert_eq!(found[0].attributes, Some(photo));
        assert_eq!((found[1].name.to_str(), found[1].kind), (Ok("Bücher"), EntryKind::Folder));
        let modified_ns = 60_000_000_000;
        let folder = Attributes { kind: EntryKind::Folder, size: 0, modified_ns, mode: 0o755 };
        assert_eq!(found[1].attributes, Some(folder));
    }

    #[test]
    fn a_listing_of_names_has_kinds_and_no_attributes() {
        let buffer = entry([RETURNED | NAME | OBJECT_TYPE, 0, 0], &[], &5u32.to_ne_bytes(), "link");
        let found: Vec<_> = bulk(&buffer).collect();
        assert_eq!(found, [Entry { name: c"link", kind: EntryKind::Symlink, attributes: None }]);
    }

    #[test]
    fn an_entry_with_an_error_has_its_name_and_nothing_else() {
        let failed = entry([RETURNED | ERROR | NAME, 0, 0], &13u32.to_ne_bytes(), &[], "secret");
        let fine =
            entry([RETURNED | ERROR | NAME | 0x8, 0, 0], &0u32.to_ne_bytes(), &1u32.to_ne_bytes(), "a");
        let buffer = [failed, fine].concat();
        let found: Vec<_> = bulk(&buffer).map(|e| (e.name, e.kind, e.attributes)).collect();
        assert_eq!(found, [(c"secret", EntryKind::Unknown, None), (c"a", EntryKind::File, None)]);
    }

    #[test]
    fn attributes_after_an_unknown_one_are_not_guessed() {
        let set = [RETURNED | NAME | 0x100 | 0x400, 0, 0];
        let buffer = entry(set, &[], &[0; 40], "a");
        assert_eq!(bulk(&buffer).next().map(|e| (e.kind, e.attributes)), Some((EntryKind::Unknown, None)));
    }

    #[test]
    fn a_file_whose_size_was_not_returned_has_no_attributes() {
        let mut fixed = 1u32.to_ne_bytes().to_vec();
        fixed.extend([0; 20]);
        let buffer = entry([RETURNED | NAME | 0x8 | 0x400 | ACCESS_MASK, 0, 0], &[], &fixed, "a");
        assert_eq!(bulk(&buffer).next().map(|e| (e.kind, e.attributes)), Some((EntryKind::File, None)));
    }

    #[test]
    fn damage_ends_the_listing() {
        let good = folder();
        let mut outside = folder();
        outside[HEADER..HEADER + 4].copy_from_slice(&4000i32.to_ne_bytes());
        let mut negative = folder();
        negative[HEADER..HEADER + 4].copy_from_slice(&(-8i32).to_ne_bytes());
        let mut long = folder();
        long[..4].copy_from_slice(&9000u32.to_ne_bytes());
        for damaged in [outside, negative, long, vec![0; 64]] {
            assert_eq!(bulk(&[good.clone(), damaged, good.clone()].concat()[..]).count(), 1);
        }
        assert_eq!(bulk(&good[..good.len() - 1]).count(), 0);
    }

    #[test]
    fn the_length_of_the_first_entries_is_returned() {
        let buffer = [photo(), folder(), vec![0xff; 100]].concat();
        assert_eq!(bulk_length(&buffer, 2), Some(photo().len() + folder().len()));
        assert_eq!(bulk_length(&buffer, 0), Some(0));
        assert_eq!(bulk_length(&buffer, 3), None);
    }

    #[test]
    fn finder_info_is_read_only_if_it_was_returned() {
        let mut answer = Vec::new();
        for word in [56u32, RETURNED | 0x4000, 0, 0, 0, 0] {
            answer.extend(word.to_ne_bytes());
        }
        answer.extend([8; 32]);
        assert_eq!(finder_info(&answer), Some(&[8; 32]));
        answer[4..8].copy_from_slice(&RETURNED.to_ne_bytes());
        assert_eq!(finder_info(&answer), None);
    }

    proptest! {
        #[test]
        fn any_damage_to_a_good_buffer_ends_without_panic(at in 0usize..200, byte in any::<u8>()) {
            let mut buffer = [photo(), folder()].concat();
            let at = at % buffer.len();
            buffer[at] = byte;
            prop_assert!(bulk(&buffer).count() <= 2);
        }

        #[test]
        fn any_name_is_read_as_it_was_written(name in "[^\0]{1,60}") {
            let buffer = entry([RETURNED | NAME, 0, 0], &[], &[], &name);
            let found = bulk(&buffer).next().map(|e| e.name.to_bytes().to_vec());
            prop_assert_eq!(found, Some(name.into_bytes()));
        }
    }
}
