//! Listing of folders with `getattrlistbulk`.

use std::ffi::{CStr, CString, c_int};
use std::io;
use std::os::fd::AsFd;

use longhaul_darwin::kernel::{Node, reset, with};
use longhaul_darwin::parse::EntryKind;
use longhaul_darwin::platform::macos::{entries, list};
use longhaul_darwin::platform::types::ListingFields::{self, FinderAttributes, Names};
use longhaul_darwin::{ATTR_CMN_ACCESSMASK, ATTR_CMN_FSID, ATTR_CMN_MODTIME, EACCES, ERANGE};

use crate::open;

fn tree() -> Node {
    let photo = Node {
        size: 3_500_000,
        modified: (1_700_000_000, 5),
        mode: 0o640,
        finder_info: [9; 32],
        ..Node::new(c"IMG.JPG", 1)
    };
    let folder = Node { modified: (60, 0), ..Node::new(c"B\xc3\xbccher", 2) };
    Node::folder(vec![photo, folder, Node::new(c"l", 5), Node::new(c"pipe of a program", 7)])
}

/// Lists a folder to its end with buffers of this size, and returns the names.
fn names(folder: Node, wanted: ListingFields, room: usize) -> io::Result<Vec<CString>> {
    let folder = open(folder);
    let mut found = vec![];
    loop {
        // A fresh buffer of exactly this size, so that one byte too many is found.
        let mut buffer = vec![0; room].into_boxed_slice();
        let used = list(folder.as_fd(), wanted, &mut buffer)?;
        if used == 0 {
            return Ok(found);
        }
        found.extend(entries(&buffer[..used]).map(|entry| entry.name.to_owned()));
    }
}

#[test]
fn finder_attributes_are_read_from_packed_entries() {
    reset();
    let folder = open(tree());
    let mut buffer = vec![0; 4096];
    let used = list(folder.as_fd(), FinderAttributes, &mut buffer).unwrap();
    let found: Vec<_> = entries(&buffer[..used]).collect();
    assert_eq!(found.len(), 4);
    let photo = found[0].attributes.unwrap();
    assert_eq!((found[0].name, photo.kind, photo.size), (c"IMG.JPG", EntryKind::File, 3_500_000));
    assert_eq!((photo.modified_ns, photo.mode), (1_700_000_000_000_000_005, 0o640));
    let folder = found[1].attributes.unwrap();
    assert_eq!((folder.kind, folder.size, folder.modified_ns), (EntryKind::Folder, 0, 60_000_000_000));
    assert_eq!((found[2].kind, found[3].kind), (EntryKind::Symlink, EntryKind::Other));
}

#[test]
fn names_come_with_kinds_and_without_attributes() {
    reset();
    let folder = open(tree());
    let mut buffer = vec![0; 4096];
    let used = list(folder.as_fd(), Names, &mut buffer).unwrap();
    let found: Vec<_> = entries(&buffer[..used]).map(|entry| (entry.kind, entry.attributes)).collect();
    let kinds = [EntryKind::File, EntryKind::Folder, EntryKind::Symlink, EntryKind::Other];
    assert_eq!(found, kinds.map(|kind| (kind, None)));
}

#[test]
fn any_buffer_size_lists_everything_or_is_refused() {
    let all: Vec<CString> = tree().entries.into_iter().map(|entry| entry.name).collect();
    let mut listed = [0, 0];
    for room in (0..700).step_by(if cfg!(miri) { 23 } else { 1 }) {
        for (wanted, listed) in [Names, FinderAttributes].into_iter().zip(&mut listed) {
            reset();
            match names(tree(), wanted, room) {
                Ok(found) => {
                    assert_eq!(found, all, "{room} bytes");
                    *listed += 1;
                }
                Err(error) => assert_eq!(error.raw_os_error(), Some(ERANGE), "{room} bytes"),
            }
        }
    }
    assert!(listed[0] > listed[1] && listed[1] > 0, "{listed:?}");
}

#[test]
fn entry_without_its_padding_is_read() {
    reset();
    let folder = || Node::folder(vec![Node::new(c"abcdefgh", 1)]);
    // 24 bytes of header, 8 of reference, 4 of kind, 4 for the error that is left out, 12 of name: 52, padded to 56.
    for room in [52, 55, 56] {
        assert_eq!(names(folder(), Names, room).unwrap(), [c"abcdefgh".to_owned()], "{room} bytes");
    }
    assert_eq!(names(folder(), Names, 51).unwrap_err().raw_os_error(), Some(ERANGE));
}

#[test]
fn entry_that_the_system_could_not_examine_has_its_name_only() {
    for wanted in [Names, FinderAttributes] {
        reset();
        let secret = Node { error: EACCES, ..Node::new(c"secret", 1) };
        let folder = open(Node::folder(vec![secret, Node::new(c"file", 1)]));
        let mut buffer = vec![0; 4096];
        let used = list(folder.as_fd(), wanted, &mut buffer).unwrap();
        let found: Vec<_> = entries(&buffer[..used])
            .map(|entry| (entry.name, entry.kind, entry.attributes.is_some()))
            .collect();
        let has_attributes = wanted == FinderAttributes;
        let expected = [(c"secret", EntryKind::Unknown, false), (c"file", EntryKind::File, has_attributes)];
        assert_eq!(found, expected);
    }
}

#[test]
fn attributes_that_a_server_lacks_are_not_made_up() {
    for (missing, has_attributes) in
        [(ATTR_CMN_FSID, true), (ATTR_CMN_MODTIME, false), (ATTR_CMN_ACCESSMASK, false)]
    {
        reset();
        let file = Node { unsupported: missing, size: 7, ..Node::new(c"file", 1) };
        let folder = open(Node::folder(vec![file]));
        let mut buffer = vec![0; 512];
        let used = list(folder.as_fd(), FinderAttributes, &mut buffer).unwrap();
        let found = entries(&buffer[..used]).next().unwrap();
        assert_eq!((found.name, found.kind), (c"file", EntryKind::File));
        assert_eq!(found.attributes.map(|attributes| attributes.size), has_attributes.then_some(7));
    }
}

#[test]
fn large_folder_with_long_names_is_listed_once() {
    reset();
    // The longest name: 255 characters of three bytes (xnu bsd/sys/dirent.h:106).
    let name = |number: usize| CString::new(format!("{number:04}{}", "\u{3042}".repeat(251))).unwrap();
    let entries: Vec<Node> =
        (0..if cfg!(miri) { 200 } else { 3000 }).map(|number| Node::new(&name(number), 1)).collect();
    let all: Vec<CString> = entries.iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(names(Node::folder(entries), FinderAttributes, 128 << 10).unwrap(), all);
}

#[test]
fn file_and_closed_descriptor_are_refused() {
    reset();
    let error = |error: io::Result<usize>| error.unwrap_err().raw_os_error();
    let file = open(Node::new(c"file", 1));
    let refused: Option<c_int> = error(list(file.as_fd(), Names, &mut [0; 512]));
    assert_eq!(refused, Some(longhaul_darwin::ENOTDIR));
    reset();
    assert_eq!(error(list(file.as_fd(), Names, &mut [0; 512])), Some(longhaul_darwin::EBADF));
}

#[test]
fn count_beyond_the_entries_is_refused() {
    for room in [52, 56, 4096] {
        reset();
        let folder = open(Node::folder(vec![Node::new(c"abcdefgh", 1)]));
        with(|kernel| kernel.surplus_entries = 1);
        let mut buffer = vec![0; room].into_boxed_slice();
        let error = list(folder.as_fd(), Names, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{room} bytes");
    }
}

#[test]
fn empty_folder_ends_at_once_with_any_buffer() {
    for room in [0, 1, 40] {
        reset();
        let expected: [&CStr; 0] = [];
        assert_eq!(names(Node::folder(vec![]), Names, room).unwrap(), expected.map(CStr::to_owned));
    }
}
