//! Encodes and decodes AppleDouble files, which hold the extended attributes of `NAME` in a file `._NAME`.
//!
//! The layout follows xnu bsd/vfs/vfs_xattr.c (the comment above `apple_double_header_t`, `create_xattrfile`).

use std::collections::BTreeMap;

/// Size of a new file and step by which it grows, in bytes (`ATTR_BUF_SIZE`).
pub const FILE_BYTES: usize = 4096;
/// Attribute with a fixed position in the header. On Linux, `user.` precedes the names that a Mac uses.
pub const FINDER_INFO: &str = "user.com.apple.FinderInfo";
/// Maximum size of the header in bytes (`ATTR_MAX_HDR_SIZE`).
const LONGEST: usize = 65_536;

const MAGIC: u32 = 0x0005_1607;
const VERSION: u32 = 0x0002_0000;
const FILLER: &[u8; 16] = b"Mac OS X        ";
const FINDER_INFO_ENTRY: u32 = 9;
const RESOURCE_FORK_ENTRY: u32 = 2;
const FINDER_INFO_AT: usize = 50;
const FINDER_INFO_BYTES: usize = 32;
/// Size of the empty resource fork at the end of the file, in bytes.
const RESOURCE_FORK_BYTES: usize = 286;
const ATTRIBUTES_AT: usize = 84;
const ATTRIBUTES_MAGIC: &[u8; 4] = b"ATTR";
const COUNT_AT: usize = 118;
const ENTRIES_AT: usize = 120;

/// Extended attributes by name.
pub type Attributes = BTreeMap<String, Vec<u8>>;

/// Returns the content of an AppleDouble file with these attributes; `None` if they do not fit into the maximum size.
pub fn encode(attributes: &Attributes) -> Option<Vec<u8>> {
    let named: Vec<_> = attributes.iter().filter(|(name, _)| *name != FINDER_INFO).collect();
    let entries: usize = named.iter().map(|(name, _)| entry_bytes(name)).sum();
    let values: usize = named.iter().map(|(_, value)| value.len()).sum();
    let least = ENTRIES_AT + entries + values + RESOURCE_FORK_BYTES;
    let length = least.next_multiple_of(FILE_BYTES);
    if length > LONGEST {
        return None;
    }
    let mut file = vec![0; length];
    let fork_at = length - RESOURCE_FORK_BYTES;
    put(&mut file, 0, &[MAGIC, VERSION]);
    file[8..24].copy_from_slice(FILLER);
    file[24..26].copy_from_slice(&2u16.to_be_bytes());
    put(&mut file, 26, &[FINDER_INFO_ENTRY, FINDER_INFO_AT as u32, (fork_at - FINDER_INFO_AT) as u32]);
    put(&mut file, 38, &[RESOURCE_FORK_ENTRY, fork_at as u32, RESOURCE_FORK_BYTES as u32]);
    if let Some(info) = attributes.get(FINDER_INFO) {
        file[FINDER_INFO_AT..FINDER_INFO_AT + FINDER_INFO_BYTES].copy_from_slice(info);
    }
    file[ATTRIBUTES_AT..ATTRIBUTES_AT + 4].copy_from_slice(ATTRIBUTES_MAGIC);
    put(&mut file, 92, &[fork_at as u32, (ENTRIES_AT + entries) as u32, values as u32]);
    file[COUNT_AT..ENTRIES_AT].copy_from_slice(&(named.len() as u16).to_be_bytes());
    let (mut entry_at, mut value_at) = (ENTRIES_AT, ENTRIES_AT + entries);
    for (name, value) in named {
        put(&mut file, entry_at, &[value_at as u32, value.len() as u32]);
        file[entry_at + 10] = name.len() as u8 + 1;
        file[entry_at + 11..entry_at + 11 + name.len()].copy_from_slice(name.as_bytes());
        file[value_at..value_at + value.len()].copy_from_slice(value);
        entry_at += entry_bytes(name);
        value_at += value.len();
    }
    Some(file)
}

/// Returns the attributes in an AppleDouble file; empty if the file is not an AppleDouble file.
pub fn decode(file: &[u8]) -> Attributes {
    let mut attributes = Attributes::new();
    if file.len() < FILE_BYTES || number(file, 0) != MAGIC {
        return attributes;
    }
    let info = &file[FINDER_INFO_AT..FINDER_INFO_AT + FINDER_INFO_BYTES];
    // Finder info of all zeros counts as absent (`emptyfinfo`).
    if info.iter().any(|byte| *byte != 0) {
        attributes.insert(FINDER_INFO.to_owned(), info.to_vec());
    }
    let mut at = ENTRIES_AT;
    for _ in 0..u16::from_be_bytes([file[COUNT_AT], file[COUNT_AT + 1]]) {
        let (value_at, length) = (number(file, at) as usize, number(file, at + 4) as usize);
        let name = &file[at + 11..at + 10 + file[at + 10] as usize];
        let name = String::from_utf8(name.to_vec()).expect("attribute names are UTF-8");
        at += entry_bytes(&name);
        attributes.insert(name, file[value_at..value_at + length].to_vec());
    }
    attributes
}

/// Returns the size of an entry in bytes: 11 bytes, the name and a NUL, rounded up to a multiple of four.
fn entry_bytes(name: &str) -> usize {
    (12 + name.len()).next_multiple_of(4)
}

fn put(file: &mut [u8], at: usize, numbers: &[u32]) {
    for (place, number) in numbers.iter().enumerate() {
        file[at + 4 * place..][..4].copy_from_slice(&number.to_be_bytes());
    }
}

fn number(file: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(file[at..at + 4].try_into().expect("four bytes"))
}
