//! Giving back what an arena holds: exactly what the manifest says was made, and nothing else.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, DirEntry, FileType};
use serde::{Deserialize, Serialize};

use super::{Arena, own_file};
use crate::context::Context;
use crate::corpus::apple_double::twin_of;
use crate::error::RunError;
use crate::model::Operation;

/// What to do with what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only say what would be removed.
    List,
    /// Remove it.
    Remove,
}

/// What was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CleanReport {
    /// Per folder of the arena: its name, files in it and their bytes.
    pub holdings: Vec<(String, u64, u64)>,
    /// Files in the arena that longhaul did not make, relative to the target. They stay.
    pub foreign: Vec<PathBuf>,
    /// Whether the arena itself is gone, or would be.
    pub arena_removed: bool,
}

/// How many foreign files a report names; the others are only kept.
const FOREIGN_NAMED: usize = 20;

/// The entries of a folder, in the order in which they are removed.
#[derive(Default)]
struct Sorted {
    files: Vec<DirEntry>,
    folders: BTreeSet<OsString>,
    /// AppleDouble files of the folders, which go with them.
    twins: Vec<Twin>,
}

/// The AppleDouble file of a folder.
struct Twin {
    entry: DirEntry,
    owner: OsString,
    bytes: u64,
}

/// A walk through one workload's folder.
struct Sweep<'a> {
    mode: Mode,
    context: &'a Context<'a>,
    owns: &'a dyn Fn(&Path) -> bool,
    place: PathBuf,
    files: u64,
    bytes: u64,
    foreign: Vec<PathBuf>,
}

impl Arena {
    /// Removes everything that `owns(folder, path in that folder)` recognises, then the arena if it is empty.
    pub fn clean(
        &self,
        mode: Mode,
        context: &Context<'_>,
        owns: &dyn Fn(&str, &Path) -> bool,
    ) -> Result<CleanReport, RunError> {
        let mut report = CleanReport::default();
        let is_holding = |name: &str| self.manifest.borrow().holdings.contains_key(name);
        let mut twins = vec![];
        for entry in self.entries(context)? {
            let name = entry.to_string_lossy().into_owned();
            if is_holding(&name) {
                let ours = |path: &Path| owns(&name, path);
                let Sweep { files, bytes, foreign, .. } = self.sweep(&name, mode, context, &ours)?;
                report.foreign.extend(foreign);
                report.holdings.push((name, files, bytes));
            } else if owner(&entry).and_then(OsStr::to_str).is_some_and(is_holding) {
                twins.push(entry);
            } else if !own_file::is_own(&entry) {
                report.foreign.push(self.path.join(&entry));
            }
        }
        report.arena_removed = report.foreign.is_empty();
        if mode == Mode::Remove {
            self.forget(&report, &twins, context)?;
        }
        report.foreign.truncate(FOREIGN_NAMED);
        Ok(report)
    }

    fn entries(&self, context: &Context<'_>) -> Result<Vec<OsString>, RunError> {
        let list =
            || self.directory.entries()?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
        let mut names = context
            .timed(Operation::Readdir, list)
            .map_err(|error| RunError::operation(Operation::Readdir, &self.path, error))?;
        names.sort();
        Ok(names)
    }

    fn sweep<'a>(
        &'a self,
        name: &str,
        mode: Mode,
        context: &'a Context<'a>,
        owns: &'a dyn Fn(&Path) -> bool,
    ) -> Result<Sweep<'a>, RunError> {
        let mut sweep =
            Sweep { mode, context, owns, place: self.path.join(name), files: 0, bytes: 0, foreign: vec![] };
        sweep.remove(&self.directory, OsStr::new(name), Path::new(""))?;
        Ok(sweep)
    }

    /// Takes the emptied holdings out of the manifest, and removes the arena when nothing foreign is in it. The AppleDouble
    /// files of holdings are gone with them, where a Mac made them.
    fn forget(
        &self,
        report: &CleanReport,
        twins: &[OsString],
        context: &Context<'_>,
    ) -> Result<(), RunError> {
        if !report.arena_removed {
            self.manifest.borrow_mut().holdings.clear();
            return self.manifest.borrow().save(&self.directory, &self.path, context);
        }
        let failed = |error| RunError::operation(Operation::Rmdir, &self.path, error);
        for name in twins.iter().cloned().chain(own_file::names().map(OsString::from)) {
            absent_is_fine(context.timed(Operation::Unlink, || self.directory.remove_file(&name)))
                .map_err(failed)?;
        }
        let name = self.path.file_name().expect("an arena has a name");
        context.timed(Operation::Rmdir, || self.target.remove_dir(name)).map_err(failed)
    }
}

impl Sweep<'_> {
    /// Removes the folder `name` of `parent`, whose path in the workload's folder is `path`, as far as it is ours.
    fn remove(&mut self, parent: &Dir, name: &OsStr, path: &Path) -> Result<(), RunError> {
        let opened = self.context.timed(Operation::Open, || parent.open_dir_nofollow(name));
        let directory = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|error| self.at(Operation::Open, path, error))?,
        };
        let before = self.foreign.len();
        let Sorted { files, folders, twins } = self.sorted(&directory, path)?;
        for file in &files {
            self.remove_file(&directory, file, &path.join(file.file_name()))?;
        }
        let mut left = BTreeSet::new();
        for folder in folders {
            let before = self.foreign.len();
            self.remove(&directory, &folder, &path.join(&folder))?;
            left.extend((self.foreign.len() > before).then_some(folder));
        }
        for Twin { entry, owner, bytes } in twins {
            if !left.contains(&owner) {
                self.give_back(&directory, &entry, (&path.join(entry.file_name()), bytes))?;
            }
        }
        if self.mode == Mode::Remove && self.foreign.len() == before {
            let removed = self.context.timed(Operation::Rmdir, || parent.remove_dir(name));
            absent_is_fine(removed).map_err(|error| self.at(Operation::Rmdir, path, error))?;
        }
        Ok(())
    }

    fn remove_file(&mut self, directory: &Dir, entry: &DirEntry, path: &Path) -> Result<(), RunError> {
        if !(self.owns)(path) && !self.is_sibling_of_ours(path) {
            self.foreign.push(self.place.join(path));
            return Ok(());
        }
        let bytes = self.bytes_of(entry);
        self.give_back(directory, entry, (path, bytes))
    }

    fn bytes_of(&self, entry: &DirEntry) -> u64 {
        let facts = self.context.timed(Operation::Getattr, || entry.metadata());
        facts.map(|facts| facts.len()).unwrap_or_default()
    }

    fn give_back(
        &mut self,
        directory: &Dir,
        entry: &DirEntry,
        (path, bytes): (&Path, u64),
    ) -> Result<(), RunError> {
        self.bytes += bytes;
        self.files += 1;
        if self.mode == Mode::Remove {
            let removed = self.context.timed(Operation::Unlink, || directory.remove_file(entry.file_name()));
            absent_is_fine(removed).map_err(|error| self.at(Operation::Unlink, path, error))?;
        }
        Ok(())
    }

    /// `._name` beside a file of ours.
    fn is_sibling_of_ours(&self, path: &Path) -> bool {
        let owner = path.file_name().and_then(owner);
        owner.is_some_and(|name| (self.owns)(&path.with_file_name(name)))
    }

    /// Lists a folder. Collected first: removing while listing makes some servers skip names.
    fn sorted(&self, directory: &Dir, path: &Path) -> Result<Sorted, RunError> {
        let list = || directory.entries()?.collect::<io::Result<Vec<_>>>();
        let entries = self
            .context
            .timed(Operation::Readdir, list)
            .map_err(|error| self.at(Operation::Readdir, path, error))?;
        let mut sorted = Sorted::default();
        for entry in entries {
            let kind = kind_of(directory, &entry)
                .map_err(|error| self.at(Operation::Getattr, &path.join(entry.file_name()), error))?;
            match kind.is_dir() {
                true => drop(sorted.folders.insert(entry.file_name())),
                false => sorted.files.push(entry),
            }
        }
        let folders = &sorted.folders;
        let of_folder =
            |entry: &mut DirEntry| owner(&entry.file_name()).is_some_and(|name| folders.contains(name));
        let twins: Vec<DirEntry> = sorted.files.extract_if(.., of_folder).collect();
        let twin = |entry: DirEntry| {
            let owner = owner(&entry.file_name()).unwrap_or_default().to_owned();
            Twin { bytes: self.bytes_of(&entry), entry, owner }
        };
        sorted.twins = twins.into_iter().map(twin).collect();
        // Twins first: the removal of a file takes its twin along, which then cannot be counted any more.
        sorted.files.sort_by_key(|entry| owner(&entry.file_name()).is_none());
        Ok(sorted)
    }

    fn at(&self, operation: Operation, path: &Path, error: io::Error) -> RunError {
        RunError::operation(operation, &self.place.join(path), error)
    }
}

/// The name of what an AppleDouble file belongs to: a Mac keeps extended attributes there where the share keeps none.
fn owner(name: &OsStr) -> Option<&OsStr> {
    twin_of(name.as_bytes()).map(OsStr::from_bytes)
}

/// What an entry is, asked for where the listing does not say: not all file systems fill in `d_type`, gvfs does not.
fn kind_of(directory: &Dir, entry: &DirEntry) -> io::Result<FileType> {
    let listed = entry.file_type()?;
    if listed.is_dir() || listed.is_file() || listed.is_symlink() {
        return Ok(listed);
    }
    directory.symlink_metadata(entry.file_name()).map(|facts| facts.file_type())
}

/// Someone else, or the removal of its `._` twin, was faster.
fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::Claim;
    use super::*;
    use crate::context::StopSwitch;
    use crate::recorder::Recorder;

    /// An arena on a new folder with `tree/a/ours-1`, `tree/ours-2`, handed to a check.
    fn with_arena(check: impl FnOnce(&Path, &Arena, &Context<'_>)) {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        let target = "nas".parse().unwrap();
        let claim = Claim { target_path: folder.path(), target: &target, machine: "m" };
        let arena = Arena::open(&claim, &context).unwrap();
        arena.keep("tree", &1, &context).unwrap();
        let place = folder.path().join(".longhaul-m-nas/tree");
        std::fs::create_dir_all(place.join("a")).unwrap();
        std::fs::write(place.join("a/ours-1"), "12345").unwrap();
        std::fs::write(place.join("ours-2"), "123").unwrap();
        check(folder.path(), &arena, &context);
    }

    fn ours(_: &str, path: &Path) -> bool {
        path.file_name().unwrap().to_str().unwrap().starts_with("ours")
    }

    #[test]
    fn a_clean_arena_leaves_nothing_behind() {
        with_arena(|target, arena, context| {
            let listed = arena.clean(Mode::List, context, &ours).unwrap();
            assert_eq!(listed.holdings, [("tree".to_owned(), 2, 8)]);
            assert!(target.join(".longhaul-m-nas/tree/ours-2").exists(), "listing removes nothing");
            let removed = arena.clean(Mode::Remove, context, &ours).unwrap();
            assert_eq!(removed, listed);
            assert_eq!(std::fs::read_dir(target).unwrap().count(), 0);
        });
    }

    #[test]
    fn a_foreign_file_stays_with_the_folders_that_lead_to_it() {
        with_arena(|target, arena, context| {
            let foreign = target.join(".longhaul-m-nas/tree/a/diary.txt");
            std::fs::write(&foreign, "mine").unwrap();
            let report = arena.clean(Mode::Remove, context, &ours).unwrap();
            assert_eq!((report.foreign.len(), report.arena_removed), (1, false));
            assert_eq!(std::fs::read_to_string(foreign).unwrap(), "mine");
            assert!(!target.join(".longhaul-m-nas/tree/ours-2").exists());
        });
    }

    #[test]
    fn a_link_in_the_arena_is_foreign_and_never_followed() {
        with_arena(|target, arena, context| {
            let elsewhere = tempfile::tempdir().unwrap();
            std::fs::write(elsewhere.path().join("ours-3"), "not in the arena").unwrap();
            std::os::unix::fs::symlink(elsewhere.path(), target.join(".longhaul-m-nas/tree/link")).unwrap();
            let report = arena.clean(Mode::Remove, context, &ours).unwrap();
            assert_eq!(report.foreign.len(), 1);
            assert!(elsewhere.path().join("ours-3").exists());
        });
    }

    #[test]
    fn a_folder_that_the_manifest_does_not_list_is_foreign() {
        with_arena(|target, arena, context| {
            std::fs::create_dir(target.join(".longhaul-m-nas/other")).unwrap();
            std::fs::write(target.join(".longhaul-m-nas/other/ours-4"), "x").unwrap();
            let report = arena.clean(Mode::Remove, context, &ours).unwrap();
            assert!(!report.arena_removed);
            assert!(target.join(".longhaul-m-nas/other/ours-4").exists());
        });
    }

    #[test]
    fn a_macs_twin_of_our_file_goes_with_it() {
        with_arena(|target, arena, context| {
            for twin in ["tree/._ours-2", "tree/._a", "._tree", "._arena.json.partial"] {
                std::fs::write(target.join(".longhaul-m-nas").join(twin), "xattrs").unwrap();
            }
            let listed = arena.clean(Mode::List, context, &ours).unwrap();
            assert_eq!(listed.holdings, [("tree".to_owned(), 4, 20)]);
            assert!(arena.clean(Mode::Remove, context, &ours).unwrap().arena_removed);
            assert!(!target.join(".longhaul-m-nas").exists());
        });
    }

    /// Every file below a folder, relative to it.
    fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        let mut pending = vec![folder.to_owned()];
        while let Some(at) = pending.pop() {
            for entry in std::fs::read_dir(&at).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    pending.push(entry.path());
                } else {
                    files.insert(entry.path().strip_prefix(folder).unwrap().to_owned());
                }
            }
        }
        files
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn exactly_what_is_ours_goes_whatever_lies_beside_it(
            paths in proptest::collection::btree_set("[ab]/[cd]/(ours|other)-[0-9]|(ours|other)-[a-z]", 0..25),
        ) {
            with_arena(|target, arena, context| {
                let place = target.join(".longhaul-m-nas/tree");
                for path in &paths {
                    let path = place.join(path);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, "x").unwrap();
                }
                let before = files_below(&place);
                let foreign: BTreeSet<PathBuf> = before.into_iter().filter(|path| !ours("tree", path)).collect();
                let report = arena.clean(Mode::Remove, context, &ours).unwrap();
                assert_eq!(report.arena_removed, foreign.is_empty());
                let left = if place.exists() { files_below(&place) } else { BTreeSet::new() };
                assert_eq!(left, foreign);
            });
        }
    }
}
