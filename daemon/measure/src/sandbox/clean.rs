//! Removal of the data in a sandbox: exactly what the manifest says longhaul created, and nothing else.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, DirEntry, FileType};
use serde::{Deserialize, Serialize, Serializer};

use super::folder::Sandbox;
use super::names::{control_files, is_control_file};
use crate::error::RunError;
use crate::timed_fs::{MAX_ENTRIES, TimedFs, collect_entries};
use longhaul_corpus::apple_double::owner_name;
use longhaul_model::Operation;

/// Mode of a cleaning: list or remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CleanMode {
    /// Reports what would be removed, without removing anything.
    List,
    /// Removes longhaul's data.
    Remove,
}

/// Report of what a cleaning removed or, in [`CleanMode::List`], would remove.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CleanReport {
    /// Removed folders of the sandbox: name, number of files, and bytes of the files.
    pub folders: Vec<(String, u64, u64)>,
    /// Paths of files that longhaul did not create, at most [`MAX_FOREIGN_LISTED`] in the sandbox and as many on the local disk.
    /// They are not removed.
    #[serde(serialize_with = "paths_as_text")]
    pub foreign: Vec<PathBuf>,
    /// Number of files in the sandbox that longhaul did not create.
    pub foreign_count: u64,
    /// True if the sandbox itself was removed or, in [`CleanMode::List`], would be.
    pub sandbox_removed: bool,
}

/// Largest number of folders inside each other in the folder of a workload. Deeper ones are not longhaul's, and are left alone. Each
/// level has two descriptors open.
const MAX_DEPTH: usize = 256;
// The tree of a recording is the deepest; the folder of its slice is around it.
const _: () = assert!((longhaul_recording::MAX_DEPTH as usize) < MAX_DEPTH);

/// Maximum number of foreign files in a report. Further foreign files are not listed, and not removed either.
pub const MAX_FOREIGN_LISTED: usize = 20;

/// Entries of a folder, in the order in which they are removed.
#[derive(Default)]
struct SortedEntries {
    files: Vec<DirEntry>,
    folders: BTreeSet<OsString>,
    /// AppleDouble files that belong to subfolders, removed together with them.
    apple_doubles: Vec<AppleDouble>,
}

/// AppleDouble file that belongs to a folder.
struct AppleDouble {
    entry: DirEntry,
    owner: OsString,
    bytes: u64,
}

/// Recursive cleaning of one workload's folder.
struct FolderCleaner<'a> {
    mode: CleanMode,
    context: &'a TimedFs<'a>,
    owns: &'a dyn Fn(&Path) -> bool,
    root: PathBuf,
    files: u64,
    bytes: u64,
    foreign: Vec<PathBuf>,
}

impl Sandbox {
    /// Removes every file that `owns(folder, path in that folder)` recognizes, then the sandbox if no foreign file
    /// is left in it.
    pub fn clean(
        &self,
        mode: CleanMode,
        context: &TimedFs<'_>,
        owns: &dyn Fn(&str, &Path) -> bool,
    ) -> Result<CleanReport, RunError> {
        let mut report = CleanReport::default();
        let is_in_manifest = |name: &str| self.manifest.borrow().folders.contains_key(name);
        let mut apple_doubles = vec![];
        for entry in self.entries(context)? {
            let name = entry.to_string_lossy().into_owned();
            if is_in_manifest(&name) {
                let ours = |path: &Path| owns(&name, path);
                let FolderCleaner { files, bytes, foreign, .. } =
                    self.clean_folder(&name, mode, context, &ours)?;
                report.foreign.extend(foreign);
                report.folders.push((name, files, bytes));
            } else if apple_double_owner(&entry).and_then(OsStr::to_str).is_some_and(is_in_manifest) {
                apple_doubles.push(entry);
            } else if !is_control_file(&entry) {
                report.foreign.push(self.path.join(&entry));
            }
        }
        report.foreign_count = report.foreign.len() as u64;
        // The sandbox and its control files are kept if there is a foreign file, because the next run would refuse a
        // folder that contains files but no marker.
        report.sandbox_removed = report.foreign.is_empty();
        if mode == CleanMode::Remove {
            self.finish_cleaning(&report, &apple_doubles, context)?;
        }
        report.foreign.truncate(MAX_FOREIGN_LISTED);
        Ok(report)
    }

    fn entries(&self, context: &TimedFs<'_>) -> Result<Vec<OsString>, RunError> {
        let name = |entry: io::Result<DirEntry>| Ok(entry?.file_name());
        let list = || {
            collect_entries(self.directory.entries()?.map(name), MAX_ENTRIES, |name: &OsString| name.len())
        };
        let mut names = context
            .timed(Operation::Readdir, list)
            .map_err(|error| RunError::operation(Operation::Readdir, &self.path, error))?;
        names.sort();
        Ok(names)
    }

    fn clean_folder<'a>(
        &'a self,
        name: &str,
        mode: CleanMode,
        context: &'a TimedFs<'a>,
        owns: &'a dyn Fn(&Path) -> bool,
    ) -> Result<FolderCleaner<'a>, RunError> {
        let mut cleaner = FolderCleaner {
            mode,
            context,
            owns,
            root: self.path.join(name),
            files: 0,
            bytes: 0,
            foreign: vec![],
        };
        cleaner.remove_folder(&self.directory, OsStr::new(name), Path::new(""))?;
        Ok(cleaner)
    }

    /// Removes every file that `owns` recognizes in a folder of the sandbox, and the folder if nothing is left in it.
    /// Returns the number of foreign files, which remain. A missing folder is no error.
    pub fn remove_folder(
        &self,
        name: &str,
        context: &TimedFs<'_>,
        owns: &dyn Fn(&Path) -> bool,
    ) -> Result<usize, RunError> {
        Ok(self.clean_folder(name, CleanMode::Remove, context, owns)?.foreign.len())
    }

    /// Removes the control files and the sandbox if there is no foreign file; otherwise only removes all entries
    /// from the manifest.
    fn finish_cleaning(
        &self,
        report: &CleanReport,
        apple_doubles: &[OsString],
        context: &TimedFs<'_>,
    ) -> Result<(), RunError> {
        if !report.sandbox_removed {
            // A folder that is kept for a foreign file stays known as ours, so that a later cleaning removes it; what it
            // held is gone.
            self.manifest.borrow_mut().folders.retain(|name, entry| {
                *entry = serde_json::Value::Null;
                let folder = self.path.join(name);
                report.foreign.iter().any(|path| path.starts_with(&folder))
            });
            return self.manifest.borrow().save(&self.directory, &self.path, context);
        }
        let failed = |error| RunError::operation(Operation::Rmdir, &self.path, error);
        for name in apple_doubles.iter().cloned().chain(control_files().map(OsString::from)) {
            // A Mac removes the AppleDouble file of a folder together with the folder, so the file may be missing.
            ignore_not_found(context.timed(Operation::Unlink, || self.directory.remove_file(&name)))
                .map_err(failed)?;
        }
        let name = self.path.file_name().expect("a sandbox has a name");
        context.timed(Operation::Rmdir, || self.target.remove_dir(name)).map_err(failed)
    }
}

impl FolderCleaner<'_> {
    /// Removes longhaul's files in the folder `name` of `parent`, and the folder if no foreign file is left in it.
    /// `path` is the folder's path relative to the workload's folder.
    fn remove_folder(&mut self, parent: &Dir, name: &OsStr, path: &Path) -> Result<(), RunError> {
        if path.components().count() > MAX_DEPTH {
            self.foreign.push(self.root.join(path));
            return Ok(());
        }
        let opened = self.context.timed(Operation::Open, || parent.open_dir_nofollow(name));
        let directory = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|error| self.operation_error(Operation::Open, path, error))?,
        };
        let before = self.foreign.len();
        let SortedEntries { files, folders, apple_doubles } = self.sorted_entries(&directory, path)?;
        for file in &files {
            self.remove_file(&directory, file, &path.join(file.file_name()))?;
        }
        // The AppleDouble file of a subfolder that remains is kept, because it contains attributes of that folder.
        let mut remaining = BTreeSet::new();
        for folder in folders {
            let before = self.foreign.len();
            self.remove_folder(&directory, &folder, &path.join(&folder))?;
            remaining.extend((self.foreign.len() > before).then_some(folder));
        }
        for AppleDouble { entry, owner, bytes } in apple_doubles {
            if !remaining.contains(&owner) {
                self.remove_entry(&directory, &entry, &path.join(entry.file_name()), bytes)?;
            }
        }
        if self.mode == CleanMode::Remove && self.foreign.len() == before {
            let removed = self.context.timed(Operation::Rmdir, || parent.remove_dir(name));
            ignore_not_found(removed).map_err(|error| self.operation_error(Operation::Rmdir, path, error))?;
        }
        Ok(())
    }

    fn remove_file(&mut self, directory: &Dir, entry: &DirEntry, path: &Path) -> Result<(), RunError> {
        if !(self.owns)(path) && !self.is_own_apple_double(path) {
            self.foreign.push(self.root.join(path));
            return Ok(());
        }
        let bytes = self.entry_bytes(entry);
        self.remove_entry(directory, entry, path, bytes)
    }

    fn entry_bytes(&self, entry: &DirEntry) -> u64 {
        let facts = self.context.timed(Operation::Getattr, || entry.metadata());
        facts.map(|facts| facts.len()).unwrap_or_default()
    }

    fn remove_entry(
        &mut self,
        directory: &Dir,
        entry: &DirEntry,
        path: &Path,
        bytes: u64,
    ) -> Result<(), RunError> {
        self.bytes += bytes;
        self.files += 1;
        if self.mode == CleanMode::Remove {
            let removed = self.context.timed(Operation::Unlink, || directory.remove_file(entry.file_name()));
            ignore_not_found(removed)
                .map_err(|error| self.operation_error(Operation::Unlink, path, error))?;
        }
        Ok(())
    }

    /// Returns whether a path is the AppleDouble file (`._name`) of a file that longhaul created.
    fn is_own_apple_double(&self, path: &Path) -> bool {
        let owner = path.file_name().and_then(apple_double_owner);
        owner.is_some_and(|name| (self.owns)(&path.with_file_name(name)))
    }

    /// Lists a folder and sorts its entries into files, subfolders and AppleDouble files of subfolders.
    fn sorted_entries(&self, directory: &Dir, path: &Path) -> Result<SortedEntries, RunError> {
        // All entries are collected before the first removal, because some servers skip names if files are removed
        // while the folder is being listed.
        let name_bytes = |entry: &DirEntry| entry.file_name().len();
        let list = || collect_entries(directory.entries()?, MAX_ENTRIES, name_bytes);
        let entries = self
            .context
            .timed(Operation::Readdir, list)
            .map_err(|error| self.operation_error(Operation::Readdir, path, error))?;
        let mut sorted = SortedEntries::default();
        for entry in entries {
            let kind = kind_of(directory, &entry).map_err(|error| {
                self.operation_error(Operation::Getattr, &path.join(entry.file_name()), error)
            })?;
            match kind.is_dir() {
                true => drop(sorted.folders.insert(entry.file_name())),
                false => sorted.files.push(entry),
            }
        }
        let folders = &sorted.folders;
        let of_folder = |entry: &mut DirEntry| {
            apple_double_owner(&entry.file_name()).is_some_and(|name| folders.contains(name))
        };
        let entries: Vec<DirEntry> = sorted.files.extract_if(.., of_folder).collect();
        let apple_double = |entry: DirEntry| {
            let owner = apple_double_owner(&entry.file_name()).unwrap_or_default().to_owned();
            AppleDouble { bytes: self.entry_bytes(&entry), entry, owner }
        };
        sorted.apple_doubles = entries.into_iter().map(apple_double).collect();
        // AppleDouble files come first: removing a file also removes its AppleDouble file, which could then no
        // longer be counted.
        sorted.files.sort_by_key(|entry| apple_double_owner(&entry.file_name()).is_none());
        Ok(sorted)
    }

    fn operation_error(&self, operation: Operation, path: &Path, error: io::Error) -> RunError {
        RunError::operation(operation, &self.root.join(path), error)
    }
}

/// Returns the name of the file or folder that an AppleDouble file belongs to; `None` for any other name. A Mac
/// stores extended attributes in an AppleDouble file if the share does not support them.
fn apple_double_owner(name: &OsStr) -> Option<&OsStr> {
    owner_name(name.as_bytes()).map(OsStr::from_bytes)
}

/// Returns the type of an entry of a directory.
fn kind_of(directory: &Dir, entry: &DirEntry) -> io::Result<FileType> {
    let listed = entry.file_type()?;
    // Not all file systems fill in `d_type` (gvfs does not), so the type may need a separate call.
    if listed.is_dir() || listed.is_file() || listed.is_symlink() {
        return Ok(listed);
    }
    directory.symlink_metadata(entry.file_name()).map(|facts| facts.file_type())
}

/// Serializes paths as texts. Bytes that are not UTF-8 are replaced, because JSON cannot hold them.
fn paths_as_text<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// Treats a missing entry as removed: another client, or a Mac that removed an AppleDouble file together with its
/// owner, may have removed the entry first.
fn ignore_not_found(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
