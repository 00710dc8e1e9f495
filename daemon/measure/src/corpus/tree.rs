//! A large tree of folders and files, as people have them: known whole from a seed and a number.
//!
//! Nothing is listed anywhere: the path, size and content of file `n` follow from `(seed, n)`, and from a path follows
//! its number. So a tree of a million files is built as a stream, checked and deleted without memory for its names.

use std::ffi::{CStr, CString};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::apple_double::twin_of;
use super::draw::{draw_below, draw_home_size};

/// Files in the one folder that is shown.
const INBOX_FILES: u64 = 1000;
/// Its name.
pub const INBOX: &CStr = c"Inbox";
/// Widths of folders, in a pattern that repeats: most are narrow, some wide.
const WIDTHS: [u64; 10] = [3, 17, 1, 42, 8, 120, 5, 2, 30, 12];
const PATTERN_FILES: u64 = 240;
/// Folders in a folder.
const FANOUT: u64 = 3;
/// Largest number of files in one piece of work.
const CHUNK: u64 = 64;

/// First words of names. Those outside ASCII are made of characters that no file system decomposes (HFS+ and AFP
/// store names in Unicode form D), so that a name comes back as it was given.
const STEMS: [&str; 24] = [
    "scan",
    "IMG",
    "Rechnung",
    "notes",
    "Invoice",
    "Große Straße",
    "draft final",
    "Protokoll der Versammlung",
    "写真",
    "backup of backup",
    "Отчет",
    "mail",
    "Bjørn og søster",
    "presentation",
    "東京の資料",
    "Ελλαδα 2019",
    "Kopie von Kopie von Anlage 3 zum Schreiben an die Hausverwaltung wegen der Nebenkosten",
    "x",
    "letter",
    "Steuer",
    "screenshot",
    "recording",
    "contract signed",
    "a rather long name as people give them when nobody stops them",
];
/// The stem that the search phase looks for.
pub const SEARCHED: &str = "Rechnung";
const EXTENSIONS: [&str; 12] =
    [".pdf", ".jpg", ".txt", ".docx", ".xlsx", ".png", ".eml", ".md", ".html", ".key", ".mov", ".zip"];

mod stream {
    pub const STEM: u64 = 1;
    pub const EXTENSION: u64 = 2;
    pub const SIZE: u64 = 3;
    pub const FOLDER: u64 = 4;
}

/// One tree: one slice of the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// The seed of everything in it.
    pub seed: u64,
    /// How many files it has.
    pub files: u64,
}

/// What must be found in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Bytes of the files in the inbox.
    pub inbox_bytes: u64,
    /// Files outside the inbox, which a walk must find.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files in the whole tree whose name the search must find.
    pub matches: u64,
}

/// Neighbouring files of one folder: a piece of building or checking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The folder, as names from the root of the tree.
    pub folder: Vec<CString>,
    /// The first file.
    pub first: u64,
    /// One past the last file.
    pub end: u64,
}

impl Tree {
    /// The name of a file.
    pub fn name(&self, number: u64) -> CString {
        let stem = pick(&STEMS, draw_below(self.seed, stream::STEM, number, STEMS.len() as u64));
        let extension =
            pick(&EXTENSIONS, draw_below(self.seed, stream::EXTENSION, number, EXTENSIONS.len() as u64));
        text(format!("{stem} {number:06}{extension}"))
    }

    /// The size of a file in bytes.
    pub fn size(&self, number: u64) -> u64 {
        draw_home_size(self.seed, stream::SIZE, number)
    }

    /// Whether a file carries Finder info: one in sixteen does.
    pub fn has_finder_info(&self, number: u64) -> bool {
        number.is_multiple_of(16)
    }

    /// The names of the folders that lead to a file.
    pub fn folder(&self, number: u64) -> Vec<CString> {
        let Some((index, _)) = self.place(number) else { return vec![INBOX.to_owned()] };
        let mut names = vec![];
        let mut folder = index + 1;
        while folder > 0 {
            names.push(self.folder_name(folder - 1));
            folder = (folder - 1) / FANOUT;
        }
        names.reverse();
        names
    }

    fn folder_name(&self, index: u64) -> CString {
        let stem = pick(&STEMS, draw_below(self.seed, stream::FOLDER, index, STEMS.len() as u64));
        text(format!("{stem} {index:04}"))
    }

    /// The pieces of the tree from a file on, in order.
    pub fn chunks(&self, from: u64) -> impl Iterator<Item = Chunk> {
        let mut first = from;
        std::iter::from_fn(move || {
            let end = self.chunk_end(first).min(self.files);
            let chunk = (first < self.files).then(|| Chunk { folder: self.folder(first), first, end });
            first = end;
            chunk
        })
    }

    /// The number in a file's name, if it could be one of ours. An AppleDouble file has none: its name ends as that of the
    /// file that it belongs to.
    pub fn number_in(name: &[u8]) -> Option<u64> {
        if twin_of(name).is_some() {
            return None;
        }
        let dot = name.iter().rposition(|byte| *byte == b'.')?;
        let space = name[..dot].iter().rposition(|byte| *byte == b' ')?;
        let digits = &name[space + 1..dot];
        let number =
            std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
        number.parse().ok().filter(|_| digits.len() >= 6)
    }

    /// Whether a path, relative to the root of the tree, is that of a file of this tree.
    pub fn owns(&self, path: &Path) -> bool {
        let names: Option<Vec<&[u8]>> = path
            .components()
            .map(|component| match component {
                Component::Normal(name) => Some(name.as_encoded_bytes()),
                _ => None,
            })
            .collect();
        let Some((name, folder)) = names.as_deref().and_then(<[_]>::split_last) else { return false };
        let Some(number) = Self::number_in(name).filter(|number| *number < self.files) else { return false };
        let ours = self.folder(number);
        self.name(number).as_bytes() == *name
            && ours.iter().map(|name| name.as_bytes()).eq(folder.iter().copied())
    }

    /// What must be found in it.
    pub fn totals(&self) -> Totals {
        let searched = |number: &u64| {
            pick(&STEMS, draw_below(self.seed, stream::STEM, *number, STEMS.len() as u64)) == SEARCHED
        };
        let bytes = |numbers: std::ops::Range<u64>| numbers.map(|number| self.size(number)).sum();
        let inbox = self.inbox_files();
        Totals {
            inbox_bytes: bytes(0..inbox),
            files: self.files - inbox,
            bytes: bytes(inbox..self.files),
            matches: (0..self.files).filter(searched).count() as u64,
        }
    }

    /// How many files the shown folder has: 1,000, or two thirds of a small tree.
    pub fn inbox_files(&self) -> u64 {
        INBOX_FILES.min((self.files * 2).div_ceil(3))
    }

    /// The folder of a file outside the inbox, with the number of files before that folder; `None` for the inbox.
    fn place(&self, number: u64) -> Option<(u64, u64)> {
        let rest = number.checked_sub(self.inbox_files())?;
        let (pattern, mut within) = (rest / PATTERN_FILES, rest % PATTERN_FILES);
        let mut before = self.inbox_files() + pattern * PATTERN_FILES;
        for (index, width) in WIDTHS.iter().enumerate() {
            if within < *width {
                return Some((pattern * WIDTHS.len() as u64 + index as u64, before));
            }
            within -= width;
            before += width;
        }
        unreachable!("the widths add up to the pattern")
    }

    /// Where the chunk that begins with this file ends at the latest: with its folder, or when it is full.
    fn chunk_end(&self, first: u64) -> u64 {
        let folder_end = match self.place(first) {
            None => self.inbox_files(),
            Some((index, before)) => before + WIDTHS[index as usize % WIDTHS.len()],
        };
        folder_end.min(first + CHUNK)
    }
}

fn pick<'a>(list: &[&'a str], index: u64) -> &'a str {
    list[index as usize]
}

fn text(name: String) -> CString {
    CString::new(name).expect("names are made without NUL")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    use super::*;
    use proptest::prelude::*;

    fn path(tree: &Tree, number: u64) -> PathBuf {
        let names = tree.folder(number).into_iter().chain([tree.name(number)]);
        names.map(|name| OsStr::from_bytes(name.as_bytes()).to_owned()).collect()
    }

    #[test]
    fn every_file_is_recognised_and_no_other() {
        let tree = Tree { seed: 3, files: 2500 };
        for number in 0..tree.files {
            assert!(tree.owns(&path(&tree, number)), "{number}");
        }
        assert!(!tree.owns(&path(&Tree { seed: 3, files: 2501 }, 2500)), "beyond the end");
        for foreign in
            ["", "x", "Inbox/a 000001.txt", "../scan 000001.pdf", "Inbox/IMG 99999999999999999999.jpg"]
        {
            assert!(!tree.owns(Path::new(foreign)), "{foreign}");
        }
    }

    #[test]
    fn the_tree_has_the_shape_of_a_home_directory() {
        let tree = Tree { seed: 9, files: 25_000 };
        let mut widths: BTreeMap<PathBuf, u64> = BTreeMap::new();
        let mut non_ascii = 0;
        let mut longest = 0;
        for number in 0..tree.files {
            let path = path(&tree, number);
            let name = path.file_name().unwrap().to_str().unwrap();
            non_ascii += u64::from(!name.is_ascii());
            longest = longest.max(name.len());
            *widths.entry(path.parent().unwrap().to_owned()).or_default() += 1;
        }
        let depth = widths.keys().map(|folder| folder.components().count()).max().unwrap();
        assert_eq!(widths[Path::new("Inbox")], 1000);
        assert!((5..=9).contains(&depth), "depth {depth}");
        assert!(
            widths.values().filter(|width| **width <= 5).count() * 3 > widths.len(),
            "many narrow folders"
        );
        assert!((0.1..0.4).contains(&(non_ascii as f64 / 25_000.0)));
        assert!((80..=255).contains(&longest), "longest name {longest} bytes");
    }

    #[test]
    fn no_two_folders_of_a_folder_share_a_name() {
        let tree = Tree { seed: 1, files: 60_000 };
        let folders: std::collections::BTreeSet<_> =
            (1000..tree.files).map(|number| tree.folder(number)).collect();
        let expected: std::collections::BTreeSet<_> =
            (1000..tree.files).map(|n| tree.place(n).unwrap().0).collect();
        assert_eq!(folders.len(), expected.len());
    }

    proptest! {
        #[test]
        fn chunks_cover_the_rest_of_the_tree_once(files in 1u64..5000, from in 0u64..5000) {
            let tree = Tree { seed: 5, files };
            let mut next = from;
            for chunk in tree.chunks(from) {
                prop_assert!(chunk.first == next && chunk.end > next && chunk.end - next <= CHUNK);
                prop_assert!((chunk.first..chunk.end).all(|number| tree.folder(number) == chunk.folder));
                next = chunk.end;
            }
            prop_assert_eq!(next.max(files), from.max(files));
        }

        #[test]
        fn any_name_is_read_without_panic(name in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Tree::number_in(&name);
        }
    }
}
