//! Parser for the buffer of `getdents64` (`linux_dirent64`, getdents(2)).

use std::ffi::CStr;

use super::bytes::u16_at;
use super::entry::{Entry, EntryKind};

/// Offset of the name in a record: inode u64, offset u64, record length u16, kind u8.
const NAME: usize = 19;

/// Returns the entries in a buffer, without `.` and `..`. A damaged record ends the iteration.
pub fn dirents(mut buffer: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    std::iter::from_fn(move || {
        let (entry, rest) = first(buffer)?;
        buffer = rest;
        Some(entry)
    })
    .filter(|entry| !matches!(entry.name.to_bytes(), b"." | b".."))
}

fn first(buffer: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let length = usize::from(u16_at(buffer, 16)?);
    let record = buffer.get(..length)?;
    let name = CStr::from_bytes_until_nul(record.get(NAME..)?).ok()?;
    Some((Entry { name, kind: kind(record[NAME - 1]), attributes: None }, &buffer[length..]))
}

/// Converts a `DT_*` value of dirent.h.
fn kind(number: u8) -> EntryKind {
    match number {
        0 => EntryKind::Unknown,
        4 => EntryKind::Folder,
        8 => EntryKind::File,
        10 => EntryKind::Symlink,
        _ => EntryKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, kind: u8) -> Vec<u8> {
        let length = (NAME + name.len() + 1).next_multiple_of(8);
        let mut bytes = vec![0u8; length];
        bytes[16..18].copy_from_slice(&(length as u16).to_ne_bytes());
        bytes[18] = kind;
        bytes[NAME..NAME + name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    #[test]
    fn the_folder_itself_and_its_parent_are_left_out() {
        let buffer = [record(".", 4), record("..", 4), record("Bücher", 4), record("a.jpg", 8)].concat();
        let found: Vec<_> = dirents(&buffer).map(|e| (e.name.to_str().unwrap().to_owned(), e.kind)).collect();
        assert_eq!(found, [("Bücher".to_owned(), EntryKind::Folder), ("a.jpg".to_owned(), EntryKind::File)]);
    }
}
