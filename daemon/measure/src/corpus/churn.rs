//! A source tree that changes from generation to generation, as a person's files do between two backups.
//!
//! The state at generation `g` follows from `(seed, files, g)` alone: it is replayed, never stored, so the source can be
//! brought to any generation on any day, and every file of it verified.

use std::ffi::CString;
use std::path::Path;

use super::draw::{draw, draw_below, draw_home_size};

/// Files of one folder.
const WIDTH: u64 = 48;
/// Modification time of generation 0, in seconds since 1970 (2024-01-01 UTC).
const BEGIN_SECONDS: i64 = 1_704_067_200;
/// Seconds between generations: even, since FAT keeps times to two seconds and AFP to one.
const GENERATION_SECONDS: i64 = 3600;
/// Share of the files that change in one generation: 1 in this many.
const CHANGED: u64 = 100;

/// What happens to files, and to how many of a hundred that change.
const KINDS: [(Change, u64); 6] = [
    (Change::Edit, 41),
    (Change::Append, 15),
    (Change::New, 12),
    (Change::Delete, 12),
    (Change::Rename, 10),
    (Change::Touch, 10),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Edit,
    Append,
    New,
    Delete,
    Rename,
    Touch,
}

/// One file of the source, as it is at one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFile {
    /// Which file: it stays the same when the file is renamed or changed.
    pub number: u64,
    /// How often it was renamed.
    pub renames: u32,
    /// How often its content was replaced.
    pub version: u32,
    /// Its size in bytes.
    pub size: u64,
    /// The generation of its last change, which is its modification time.
    pub changed: u64,
}

/// A source tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The seed of everything in it.
    pub seed: u64,
    /// How many files it begins with.
    pub files: u64,
}

impl Source {
    /// The files at a generation, in no particular order.
    pub fn at(&self, generation: u64) -> Vec<SourceFile> {
        let mut files: Vec<SourceFile> = (0..self.files).map(|number| self.begin(number, 0)).collect();
        let mut next = self.files;
        for generation in 1..=generation {
            for (place, (kind, percent)) in KINDS.iter().enumerate() {
                let count = (self.files / CHANGED * percent / 100).max(1);
                for turn in 0..count {
                    let pick = draw(self.seed, generation, place as u64 * 1_000_000 + turn);
                    self.change(&mut files, &mut next, (*kind, pick), generation);
                }
            }
        }
        files
    }

    fn begin(&self, number: u64, changed: u64) -> SourceFile {
        let size = draw_home_size(self.seed, 11, number);
        SourceFile { number, renames: 0, version: 0, size, changed }
    }

    fn change(
        &self,
        files: &mut Vec<SourceFile>,
        next: &mut u64,
        (kind, pick): (Change, u64),
        generation: u64,
    ) {
        let place = (pick % files.len().max(1) as u64) as usize;
        if kind == Change::New {
            files.push(self.begin(*next, generation));
            *next += 1;
        }
        let Some(file) = files.get_mut(place) else { return };
        match kind {
            Change::New => return,
            Change::Delete => {
                files.swap_remove(place);
                return;
            }
            Change::Edit => {
                file.version += 1;
                file.size = draw_home_size(self.seed, 12 + u64::from(file.version), file.number);
            }
            Change::Append => file.size += 1 + draw_below(self.seed, 13 + generation, file.number, 64 << 10),
            Change::Rename => file.renames += 1,
            Change::Touch => {}
        }
        file.changed = generation;
    }

    /// The folder of a file.
    pub fn folder(&self, number: u64) -> CString {
        text(format!("folder {:04}", number / WIDTH))
    }

    /// The name of a file.
    pub fn name(&self, number: u64, renames: u32) -> CString {
        text(format!("Dokument {number:06} r{renames}.dat"))
    }

    /// The seed of a file's content: appending goes on with the same content, an edit begins another.
    pub fn content_seed(&self, version: u32) -> u64 {
        draw(self.seed, 14, version.into())
    }

    /// Whether a path, relative to the root of the source, could be one of its files at any generation.
    pub fn owns(&self, path: &Path) -> bool {
        let Some((folder, name)) = path.to_str().and_then(|path| path.split_once('/')) else { return false };
        let Some((number, renames)) = Self::parse_name(name) else { return false };
        self.name(number, renames).as_bytes() == name.as_bytes()
            && self.folder(number).as_bytes() == folder.as_bytes()
    }

    fn parse_name(name: &str) -> Option<(u64, u32)> {
        let (number, renames) = name.strip_prefix("Dokument ")?.strip_suffix(".dat")?.split_once(" r")?;
        Some((number.parse().ok()?, renames.parse().ok()?))
    }
}

impl SourceFile {
    /// Its modification time in seconds since 1970.
    pub fn modified_seconds(&self) -> i64 {
        BEGIN_SECONDS + GENERATION_SECONDS * self.changed as i64
    }

    /// Whether it carries an extended attribute: one in sixteen does.
    pub fn has_note(&self) -> bool {
        self.number.is_multiple_of(16)
    }
}

fn text(name: String) -> CString {
    CString::new(name).expect("names are made without NUL")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SOURCE: Source = Source { seed: 4, files: 4000 };

    fn by_number(generation: u64) -> BTreeMap<u64, SourceFile> {
        SOURCE.at(generation).into_iter().map(|file| (file.number, file)).collect()
    }

    #[test]
    fn about_one_percent_changes_in_a_generation_and_in_every_way() {
        let (before, after) = (by_number(20), by_number(21));
        let both = || after.iter().filter_map(|(number, file)| Some((before.get(number)?, file)));
        let count =
            |kind: &dyn Fn(&SourceFile, &SourceFile) -> bool| both().filter(|(a, b)| kind(a, b)).count();
        let changed = count(&|a, b| a != b);
        let (new, deleted) = (
            after.keys().filter(|number| !before.contains_key(number)).count(),
            before.keys().filter(|number| !after.contains_key(number)).count(),
        );
        assert!((30..=45).contains(&(changed + new + deleted)), "{changed} {new} {deleted}");
        assert!(new >= 1 && deleted >= 1);
        assert!(count(&|a, b| b.version > a.version) >= 1);
        assert!(count(&|a, b| b.renames > a.renames) >= 1);
        assert!(count(&|a, b| b.version == a.version && b.size > a.size) >= 1, "appended");
        assert!(
            count(&|a, b| b.size == a.size && b.changed > a.changed && b.renames == a.renames) >= 1,
            "touched"
        );
    }

    #[test]
    fn a_generation_is_the_same_whenever_it_is_replayed() {
        assert_eq!(SOURCE.at(50), SOURCE.at(50));
        let sizes = |generation| SOURCE.at(generation).len();
        assert!((3950..=4050).contains(&sizes(200)), "{} files after 200 generations", sizes(200));
    }

    #[test]
    fn every_file_of_every_generation_is_recognised_and_no_other() {
        for file in SOURCE.at(30) {
            let path = format!(
                "{}/{}",
                SOURCE.folder(file.number).to_str().unwrap(),
                SOURCE.name(file.number, file.renames).to_str().unwrap()
            );
            assert!(SOURCE.owns(Path::new(&path)), "{path}");
        }
        for foreign in [
            "Dokument 000001 r0.dat",
            "folder 0000/Dokument 1 r0.dat",
            "folder 0001/Dokument 000001 r0.dat",
            "folder 0000/x",
        ] {
            assert!(!SOURCE.owns(Path::new(foreign)), "{foreign}");
        }
    }
}
