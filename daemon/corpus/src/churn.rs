//! A source tree of a backup that changes from generation to generation, as a user's files do between two backups.
//!
//! The state at generation `g` is derived from `(seed, files, g)` alone. It is replayed and never stored, so the
//! source can be brought to any generation on any day, and every file in it can be verified.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use super::names::{as_os_str, to_cstring};
use longhaul_model::draw::{draw, draw_below, draw_home_size};

/// Number of files in one folder.
const FILES_PER_FOLDER: u64 = 48;
/// Modification time of generation 0, in seconds since 1970 (2024-01-01 UTC).
const BEGIN_SECONDS: i64 = 1_704_067_200;
/// Time between two generations in seconds. It is even, because FAT stores times with a resolution of two seconds
/// and AFP of one second.
const GENERATION_SECONDS: i64 = 3600;
/// Number of files per changed file: in one generation, one file in a hundred changes.
const FILES_PER_CHANGE: u64 = 100;

/// Kinds of changes, each with its share of all changes in percent.
const CHANGE_PERCENTAGES: [(Change, u64); 6] = [
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

/// Change of one file in one generation. The random number `pick` selects the file.
struct PickedChange {
    kind: Change,
    pick: u64,
    generation: u64,
}

/// State of one file of the source at one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFile {
    /// Number of the file. It does not change when the file is renamed or edited.
    pub number: u64,
    /// Number of times that the file was renamed.
    pub renames: u32,
    /// Number of times that the content of the file was replaced.
    pub version: u32,
    /// Size of the file in bytes.
    pub size: u64,
    /// Generation of the last change, which determines the modification time.
    pub changed_generation: u64,
}

/// Source tree of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceTree {
    /// Seed of all names, sizes, contents and changes.
    pub seed: u64,
    /// Number of files at generation 0.
    pub files: u64,
}

impl SourceTree {
    /// Returns the files at a generation, in no particular order.
    pub fn files_at(&self, generation: u64) -> Vec<SourceFile> {
        let mut files: Vec<SourceFile> = (0..self.files).map(|number| self.initial_file(number, 0)).collect();
        let mut next = self.files;
        for generation in 1..=generation {
            for (index, (kind, percent)) in CHANGE_PERCENTAGES.iter().enumerate() {
                let count = (self.files / FILES_PER_CHANGE * percent / 100).max(1);
                for number in 0..count {
                    let pick = draw(self.seed, generation, index as u64 * 1_000_000 + number);
                    let change = PickedChange { kind: *kind, pick, generation };
                    self.apply_change(&mut files, &mut next, change);
                }
            }
        }
        files
    }

    fn initial_file(&self, number: u64, changed: u64) -> SourceFile {
        let size = draw_home_size(self.seed, 11, number);
        SourceFile { number, renames: 0, version: 0, size, changed_generation: changed }
    }

    fn apply_change(&self, files: &mut Vec<SourceFile>, next: &mut u64, change: PickedChange) {
        let PickedChange { kind, pick, generation } = change;
        let index = (pick % files.len().max(1) as u64) as usize;
        if kind == Change::New {
            files.push(self.initial_file(*next, generation));
            *next += 1;
        }
        let Some(file) = files.get_mut(index) else { return };
        match kind {
            Change::New => return,
            Change::Delete => {
                files.swap_remove(index);
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
        file.changed_generation = generation;
    }

    /// Returns the generation whose files have a modification time, in seconds since 1970 UTC.
    pub fn generation_at(modified_seconds: i64) -> u64 {
        modified_seconds.saturating_sub(BEGIN_SECONDS).max(0).unsigned_abs()
            / GENERATION_SECONDS.unsigned_abs()
    }

    /// Returns the name of the folder of a file.
    pub fn folder(number: u64) -> CString {
        to_cstring(format!("folder {:04}", number / FILES_PER_FOLDER))
    }

    /// Returns the name of a file after this number of renames.
    pub fn name(number: u64, renames: u32) -> CString {
        to_cstring(format!("Dokument {number:06} r{renames}.dat"))
    }

    /// Returns the seed of a file's content. Appending continues the same content; an edit increments the version
    /// and so starts a different content.
    pub fn content_seed(&self, version: u32) -> u64 {
        draw(self.seed, 14, version.into())
    }

    /// Returns whether a path, relative to the root of a source, can be a file of it at some generation.
    pub fn owns(path: &Path) -> bool {
        Self::parse_path(path).is_some()
    }

    /// Returns the number of the file that has a path, relative to the root of a source, at some generation; `None` if no file
    /// can have it.
    pub fn parse_path(path: &Path) -> Option<u64> {
        let (folder, name) = path.to_str()?.split_once('/')?;
        let (number, renames) = Self::parse_name(name)?;
        let is_ours = Self::name(number, renames).as_bytes() == name.as_bytes()
            && Self::folder(number).as_bytes() == folder.as_bytes();
        is_ours.then_some(number)
    }

    fn parse_name(name: &str) -> Option<(u64, u32)> {
        let (number, renames) = name.strip_prefix("Dokument ")?.strip_suffix(".dat")?.split_once(" r")?;
        Some((number.parse().ok()?, renames.parse().ok()?))
    }
}

impl SourceFile {
    /// Returns the path of the file, relative to the root of its source.
    pub fn path(&self) -> PathBuf {
        let names = [SourceTree::folder(self.number), SourceTree::name(self.number, self.renames)];
        names.iter().map(|name| as_os_str(name)).collect()
    }

    /// Returns the modification time of the file in seconds since 1970 UTC.
    pub fn modified_seconds(&self) -> i64 {
        BEGIN_SECONDS + GENERATION_SECONDS * self.changed_generation as i64
    }

    /// Returns whether the file has an extended attribute, as one file in sixteen does.
    pub fn has_xattr(&self) -> bool {
        self.number.is_multiple_of(16)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SOURCE: SourceTree = SourceTree { seed: 4, files: 4000 };

    fn by_number(generation: u64) -> BTreeMap<u64, SourceFile> {
        SOURCE.files_at(generation).into_iter().map(|file| (file.number, file)).collect()
    }

    #[test]
    fn one_percent_of_files_change_per_generation_in_every_way() {
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
            count(&|a, b| b.size == a.size
                && b.changed_generation > a.changed_generation
                && b.renames == a.renames)
                >= 1,
            "touched"
        );
    }

    #[test]
    fn replay_of_a_generation_is_deterministic() {
        assert_eq!(SOURCE.files_at(50), SOURCE.files_at(50));
        let sizes = |generation| SOURCE.files_at(generation).len();
        assert!((3950..=4050).contains(&sizes(200)), "{} files after 200 generations", sizes(200));
    }

    #[test]
    fn exactly_the_files_of_the_source_are_recognized() {
        for file in SOURCE.files_at(30) {
            let path = file.path();
            assert_eq!(SourceTree::parse_path(&path), Some(file.number), "{}", path.display());
        }
        for foreign in [
            "Dokument 000001 r0.dat",
            "folder 0000/Dokument 1 r0.dat",
            "folder 0001/Dokument 000001 r0.dat",
            "folder 0000/x",
        ] {
            assert!(!SourceTree::owns(Path::new(foreign)), "{foreign}");
        }
    }
}
