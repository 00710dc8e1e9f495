//! A large tree of folders and files that resembles a home directory, derived from a seed and a number of files.
//!
//! The tree is not stored as a list: path, size and content of file `n` are derived from `(seed, n)`, and the
//! number of a file is derived from its path. So a tree of a million files is created, checked and deleted without
//! memory for names.

use std::ffi::{CStr, CString};
use std::path::Path;

use super::apple_double::owner_name;
use super::names::{plain_names, to_cstring};
use longhaul_model::draw::{draw_below, draw_home_size};

/// Number of files in the inbox: the one large folder that workloads open.
const INBOX_FILES: u64 = 1000;
/// Name of the inbox folder.
pub const INBOX: &CStr = c"Inbox";
/// Numbers of files per folder, in a repeating pattern: most folders have few files, some have many.
const FOLDER_WIDTHS: [u64; 10] = [3, 17, 1, 42, 8, 120, 5, 2, 30, 12];
/// Number of files in one repetition of [`FOLDER_WIDTHS`].
const PATTERN_FILES: u64 = 240;
/// Number of subfolders in a folder.
const SUBFOLDERS_PER_FOLDER: u64 = 3;
/// Maximum number of files in one chunk of work.
const MAX_CHUNK_FILES: u64 = 64;

/// First words of file and folder names. The non-ASCII ones use only characters that no file system decomposes
/// (HFS+ and AFP store names in Unicode form D), so that listings return the names unchanged.
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
    "a rather long name as people give them when no one stops them",
];
/// First words of the names that the search phase looks for.
pub const SEARCH_STEM: &str = "Rechnung";
const EXTENSIONS: [&str; 12] =
    [".pdf", ".jpg", ".txt", ".docx", ".xlsx", ".png", ".eml", ".md", ".html", ".key", ".mov", ".zip"];

mod stream {
    pub const STEM: u64 = 1;
    pub const EXTENSION: u64 = 2;
    pub const SIZE: u64 = 3;
    pub const FOLDER: u64 = 4;
}

/// Tree of files: one slice of the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    /// Seed of all names and sizes.
    pub seed: u64,
    /// Number of files in the tree.
    pub files: u64,
}

/// Totals that a complete walk of a tree must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Total size of the files in the inbox, in bytes.
    pub inbox_bytes: u64,
    /// Number of files outside the inbox.
    pub files: u64,
    /// Total size of the files outside the inbox, in bytes.
    pub bytes: u64,
    /// Number of files in the whole tree whose names match the search.
    pub search_matches: u64,
}

/// Consecutive files of one folder, created or checked as one unit of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Path of the folder, as names from the root of the tree.
    pub folder: Vec<CString>,
    /// Number of the first file.
    pub first: u64,
    /// Number of the last file plus one.
    pub end: u64,
}

impl Tree {
    /// Returns the name of a file.
    pub fn name(&self, number: u64) -> CString {
        let stem = pick(&STEMS, draw_below(self.seed, stream::STEM, number, STEMS.len() as u64));
        let extension =
            pick(&EXTENSIONS, draw_below(self.seed, stream::EXTENSION, number, EXTENSIONS.len() as u64));
        to_cstring(format!("{stem} {number:06}{extension}"))
    }

    /// Returns the size of a file in bytes.
    pub fn size(&self, number: u64) -> u64 {
        draw_home_size(self.seed, stream::SIZE, number)
    }

    /// Returns whether a file has Finder info, as one file in sixteen does.
    pub fn has_finder_info(&self, number: u64) -> bool {
        number.is_multiple_of(16)
    }

    /// Returns the path of a file's folder, as names from the root of the tree.
    pub fn folder(&self, number: u64) -> Vec<CString> {
        let Some((index, _)) = self.folder_position(number) else { return vec![INBOX.to_owned()] };
        // Folders form a tree like a binary heap, but with three children each: the parent of folder `n` (counted
        // from 1, 0 is the root) is `(n - 1) / 3`.
        let mut names = vec![];
        let mut folder = index + 1;
        while folder > 0 {
            names.push(self.folder_name(folder - 1));
            folder = (folder - 1) / SUBFOLDERS_PER_FOLDER;
        }
        names.reverse();
        names
    }

    fn folder_name(&self, index: u64) -> CString {
        let stem = pick(&STEMS, draw_below(self.seed, stream::FOLDER, index, STEMS.len() as u64));
        to_cstring(format!("{stem} {index:04}"))
    }

    /// Returns the chunks of the tree from a file on, in order.
    pub fn chunks(&self, from: u64) -> impl Iterator<Item = Chunk> {
        let mut first = from;
        std::iter::from_fn(move || {
            let end = self.chunk_end(first).min(self.files);
            let chunk = (first < self.files).then(|| Chunk { folder: self.folder(first), first, end });
            first = end;
            chunk
        })
    }

    /// Returns the number in the name of a file; `None` if the name cannot belong to a tree. AppleDouble names
    /// give `None`, because they end like the name of the file that they belong to.
    pub fn parse_number(name: &[u8]) -> Option<u64> {
        if owner_name(name).is_some() {
            return None;
        }
        let dot = name.iter().rposition(|byte| *byte == b'.')?;
        let space = name[..dot].iter().rposition(|byte| *byte == b' ')?;
        let digits = &name[space + 1..dot];
        let number =
            std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
        number.parse().ok().filter(|_| digits.len() >= 6)
    }

    /// Returns whether a path, relative to the root of the tree, is the path of a file in this tree.
    pub fn owns(&self, path: &Path) -> bool {
        let names = plain_names(path).unwrap_or_default();
        let Some((name, folder)) = names.split_last() else { return false };
        let Some(number) = Self::parse_number(name).filter(|number| *number < self.files) else {
            return false;
        };
        let ours = self.folder(number);
        self.name(number).as_bytes() == *name
            && ours.iter().map(|name| name.as_bytes()).eq(folder.iter().copied())
    }

    /// Returns the totals that a complete walk of the tree must find.
    pub fn totals(&self) -> Totals {
        let matches_search = |number: &u64| {
            pick(&STEMS, draw_below(self.seed, stream::STEM, *number, STEMS.len() as u64)) == SEARCH_STEM
        };
        let bytes = |numbers: std::ops::Range<u64>| numbers.map(|number| self.size(number)).sum();
        let inbox = self.inbox_files();
        Totals {
            inbox_bytes: bytes(0..inbox),
            files: self.files - inbox,
            bytes: bytes(inbox..self.files),
            search_matches: (0..self.files).filter(matches_search).count() as u64,
        }
    }

    /// Returns the number of files in the inbox: 1,000, or two thirds of the files of a small tree.
    pub fn inbox_files(&self) -> u64 {
        INBOX_FILES.min((self.files * 2).div_ceil(3))
    }

    /// Returns the index of the folder of a file outside the inbox, and the number of files before that folder;
    /// `None` if the file is in the inbox.
    fn folder_position(&self, number: u64) -> Option<(u64, u64)> {
        let rest = number.checked_sub(self.inbox_files())?;
        let (pattern, mut within) = (rest / PATTERN_FILES, rest % PATTERN_FILES);
        let mut before = self.inbox_files() + pattern * PATTERN_FILES;
        for (index, width) in FOLDER_WIDTHS.iter().enumerate() {
            if within < *width {
                return Some((pattern * FOLDER_WIDTHS.len() as u64 + index as u64, before));
            }
            within -= width;
            before += width;
        }
        unreachable!("the widths add up to the pattern")
    }

    /// Returns the end of the chunk that starts with this file: the end of the folder, or the maximum chunk size.
    fn chunk_end(&self, first: u64) -> u64 {
        let folder_end = match self.folder_position(first) {
            None => self.inbox_files(),
            Some((index, before)) => before + FOLDER_WIDTHS[index as usize % FOLDER_WIDTHS.len()],
        };
        folder_end.min(first + MAX_CHUNK_FILES)
    }
}

fn pick<'a>(list: &[&'a str], index: u64) -> &'a str {
    list[index as usize]
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
    fn exactly_the_files_of_the_tree_are_recognized() {
        let tree = Tree { seed: 3, files: 2500 };
        for number in 0..tree.files {
            assert!(tree.owns(&path(&tree, number)), "{number}");
        }
        assert!(!tree.owns(&path(&Tree { seed: 3, files: 2501 }, 2500)), "number beyond the end of the tree");
        for foreign in
            ["", "x", "Inbox/a 000001.txt", "../scan 000001.pdf", "Inbox/IMG 99999999999999999999.jpg"]
        {
            assert!(!tree.owns(Path::new(foreign)), "{foreign}");
        }
    }

    #[test]
    fn tree_resembles_a_home_directory() {
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
            "many folders have few files"
        );
        assert!((0.1..0.4).contains(&(non_ascii as f64 / 25_000.0)));
        assert!((80..=255).contains(&longest), "longest name {longest} bytes");
    }

    #[test]
    fn folder_paths_are_unique() {
        let tree = Tree { seed: 1, files: 60_000 };
        let folders: std::collections::BTreeSet<_> =
            (1000..tree.files).map(|number| tree.folder(number)).collect();
        let expected: std::collections::BTreeSet<_> =
            (1000..tree.files).map(|n| tree.folder_position(n).unwrap().0).collect();
        assert_eq!(folders.len(), expected.len());
    }

    proptest! {
        #[test]
        fn chunks_cover_the_remaining_files_exactly_once(files in 1u64..5000, from in 0u64..5000) {
            let tree = Tree { seed: 5, files };
            let mut next = from;
            for chunk in tree.chunks(from) {
                prop_assert!(chunk.first == next && chunk.end > next && chunk.end - next <= MAX_CHUNK_FILES);
                prop_assert!((chunk.first..chunk.end).all(|number| tree.folder(number) == chunk.folder));
                next = chunk.end;
            }
            prop_assert_eq!(next.max(files), from.max(files));
        }

        #[test]
        fn parsing_any_name_does_not_panic(name in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Tree::parse_number(&name);
        }
    }
}
