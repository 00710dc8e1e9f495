//! The folder of a sandbox: opens, checks and fills it.

use std::cell::RefCell;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, DirEntry};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::control_file;
use super::location::{FOLDER_PREFIX, SandboxLocation};
use super::manifest::Manifest;
use super::marker::{check_marker, read_marker};
use super::names::{MANIFEST_FILE, NEVER_INDEX_FILE, ROUND_TRIP_FILE};

use crate::error::RunError;
use crate::platform::{self, Space};
use crate::timed_fs::{Folder, TimedFs, collect_entries, folder_open_error};
use longhaul_model::Operation;

/// Largest number of other sandboxes in the folder of a target. A target has one for each machine and database.
const MAX_OTHERS: u64 = 100_000;
/// Bytes of the file of [`Sandbox::write_segments`]: enough for 20 ms at 100 Mbit/s, and not felt in a round.
const SEGMENTS_BYTES: usize = 256 << 10;

/// Open sandbox that belongs to this machine and target.
pub struct Sandbox {
    pub(super) path: PathBuf,
    pub(super) target: Dir,
    pub(super) directory: Dir,
    pub(super) manifest: RefCell<Manifest>,
}

impl Sandbox {
    /// Opens this machine's sandbox, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`] if the target is missing, not a folder, a symbolic link, read-only or not writable
    /// for this user, or if the sandbox belongs to another machine.
    pub fn open(location: &SandboxLocation<'_>, context: &TimedFs<'_>) -> Result<Self, RunError> {
        Self::open_if(location, context, || Ok(()))
    }

    /// Like [`Self::open`], but creates nothing if a check fails. The check runs while a handle of the target's folder is open:
    /// if the share is mounted then, nothing can be created in the folder below it.
    ///
    /// # Errors
    ///
    /// As for [`Self::open`], and those of the check.
    pub fn open_if(
        location: &SandboxLocation<'_>,
        context: &TimedFs<'_>,
        check: impl FnOnce() -> Result<(), RunError>,
    ) -> Result<Self, RunError> {
        let target = open_target(location.target_path, context)?;
        check()?;
        let (name, path) = (location.folder_name(), location.sandbox_path());
        context
            .timed(Operation::Mkdir, || match target.create_dir(&name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                other => other,
            })
            .map_err(|error| write_refusal(location.target_path, error))?;
        let sandbox = Self::open_in(location, target, context)?.ok_or_else(|| {
            RunError::operation(Operation::Open, &path, io::Error::from(ErrorKind::NotFound))
        })?;
        sandbox.exclude_from_indexing(context)?;
        Ok(sandbox)
    }

    /// Excludes the sandbox from Spotlight, and from Time Machine if the sandbox is on a local disk of a Mac. Both
    /// would otherwise access the target because of longhaul's files. A failed exclusion from Time Machine is
    /// ignored.
    fn exclude_from_indexing(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        use std::os::fd::AsFd;
        let create = || control_file::create_empty(&self.directory, NEVER_INDEX_FILE);
        context.timed(Operation::Create, create).map_err(|error| {
            RunError::operation(Operation::Create, &self.path.join(NEVER_INDEX_FILE), error)
        })?;
        let _ = platform::exclude_from_backup(self.directory.as_fd());
        Ok(())
    }

    /// Opens this machine's sandbox; returns `None` if it does not exist.
    pub fn open_existing(
        location: &SandboxLocation<'_>,
        context: &TimedFs<'_>,
    ) -> Result<Option<Self>, RunError> {
        let target = open_target(location.target_path, context)?;
        Self::open_in(location, target, context)
    }

    fn open_in(
        location: &SandboxLocation<'_>,
        target: Dir,
        context: &TimedFs<'_>,
    ) -> Result<Option<Self>, RunError> {
        let (name, path) = (location.folder_name(), location.sandbox_path());
        let directory = match context.timed(Operation::Open, || target.open_dir_nofollow(&name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if is_not_folder_error(&error) => {
                return Err(RunError::refused(
                    &path,
                    "something that is not a folder has the name of the sandbox",
                    "Check what it is and move it away",
                ));
            }
            other => other.map_err(|error| folder_open_error(&path, error))?,
        };
        check_marker(location, &directory, context)?;
        let manifest = Manifest::load(&directory, &path, context)?;
        Ok(Some(Self { path, target, directory, manifest: RefCell::new(manifest) }))
    }

    /// Opens the folder of this machine's sandbox without creating anything; returns `None` if there is no sandbox
    /// yet. Used by the latency probe, which must not create a sandbox while a run may be creating it.
    pub fn find(location: &SandboxLocation<'_>, context: &TimedFs<'_>) -> Result<Option<Folder>, RunError> {
        let (name, path) = (location.folder_name(), location.sandbox_path());
        let target = open_target(location.target_path, context)?;
        let directory = match context.timed(Operation::Open, || target.open_dir_nofollow(&name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| folder_open_error(&path, error))?,
        };
        let is_there = read_marker(location, &directory, context)?;
        Ok(is_there.then(|| Folder::from_handle(directory.into_std_file().into(), &path)))
    }

    /// Returns the names of the sandboxes of other targets and machines in the target's folder, sorted. They may be in use, so
    /// they are only named.
    pub fn others(location: &SandboxLocation<'_>, context: &TimedFs<'_>) -> Result<Vec<String>, RunError> {
        let target = open_target(location.target_path, context)?;
        let own = location.folder_name();
        let name = |entry: io::Result<DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let is_sandbox = |name: &String| *name != own && name.starts_with(FOLDER_PREFIX);
        let is_other = |name: &io::Result<String>| name.is_err() || name.as_ref().is_ok_and(is_sandbox);
        let list = || collect_entries(target.entries()?.map(name).filter(is_other), MAX_OTHERS, String::len);
        let mut names = context
            .timed(Operation::Readdir, list)
            .map_err(|error| RunError::operation(Operation::Readdir, location.target_path, error))?;
        names.sort();
        Ok(names)
    }

    /// Returns the path of the sandbox, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a handle of the sandbox, for timed operations in it.
    pub fn folder(&self) -> Result<Folder, RunError> {
        let failed = |error| RunError::operation(Operation::Open, &self.path, error);
        let handle = self.directory.try_clone().map_err(failed)?.into_std_file();
        Ok(Folder::from_handle(handle.into(), &self.path))
    }

    /// Returns the manifest entry of a workload, as last written by [`Sandbox::record_entry`]; `None` if there is
    /// none.
    pub fn manifest_entry<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RunError> {
        let manifest = self.manifest.borrow();
        let Some(value) = manifest.folders.get(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        serde_json::from_value(value.clone()).map(Some).map_err(|error| {
            let path = self.path.join(MANIFEST_FILE);
            RunError::refused(
                &path,
                format!("its entry `{name}` cannot be read ({error})"),
                "Another version of longhaul wrote it: use that version, or move the sandbox away",
            )
        })
    }

    /// Writes a workload's manifest entry. Must be called **before** the workload creates its files, because only
    /// files that a manifest entry describes are ever deleted.
    pub fn record_entry<T: Serialize>(
        &self,
        name: &str,
        state: &T,
        context: &TimedFs<'_>,
    ) -> Result<(), RunError> {
        let value = serde_json::to_value(state).expect("the states of workloads are plain data");
        self.manifest.borrow_mut().folders.insert(name.to_owned(), value);
        self.manifest.borrow().save(&self.directory, &self.path, context)
    }

    /// Writes, syncs and removes a file of many network segments.
    pub fn write_segments(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        let write = || control_file::write_and_remove(&self.directory, ROUND_TRIP_FILE, &[0; SEGMENTS_BYTES]);
        let failed = |error| RunError::operation(Operation::Write, &self.path.join(ROUND_TRIP_FILE), error);
        context.timed(Operation::Write, write).map_err(failed)?;
        // Otherwise the counters of the mount would show them as written by the user.
        context.add_written(SEGMENTS_BYTES as u64);
        Ok(())
    }

    /// Looks up a name that nothing has and that was never looked up before, so that no client has the answer in memory.
    pub fn look_up_unused_name(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        let name = CString::new(format!("unused {}", platform::monotonic_ns())).unwrap_or_default();
        let look = || match platform::attributes_at(self.directory.as_fd(), &name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            answer => answer.map(drop),
        };
        context
            .timed(Operation::Lookup, look)
            .map_err(|error| RunError::operation(Operation::Lookup, &self.path, error))
    }

    /// Returns the free and the total space on the target.
    pub fn space(&self, context: &TimedFs<'_>) -> Result<Space, RunError> {
        context
            .timed(Operation::Getattr, || platform::space(self.directory.as_fd()))
            .map_err(|error| RunError::operation(Operation::Getattr, &self.path, error))
    }
}

/// Opens the target's folder without following a link in its last component.
fn open_target(path: &Path, context: &TimedFs<'_>) -> Result<Dir, RunError> {
    let facts = context.timed(Operation::Getattr, || std::fs::symlink_metadata(path));
    match facts {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(RunError::refused(
            path,
            "there is no such folder",
            "Mount the share, or correct the path of the target",
        )),
        Err(error) => Err(with_denied_access(RunError::operation(Operation::Getattr, path, error))),
        Ok(facts) if facts.is_symlink() => Err(RunError::refused(
            path,
            match std::fs::canonicalize(path) {
                Ok(real) => format!("it is a symbolic link to {}", real.display()),
                Err(_) => "it is a symbolic link".to_owned(),
            },
            "Give the path that it leads to: a link could later lead to another folder",
        )),
        Ok(facts) if !facts.is_dir() => {
            Err(RunError::refused(path, "it is not a folder", "Give a folder on the share"))
        }
        Ok(_) => context
            .timed(Operation::Open, || platform::open_directory(path))
            .map(|handle| Dir::from_std_file(File::from(handle)))
            .map_err(|error| with_denied_access(folder_open_error(path, error))),
    }
}

/// Tells a missing permission to open the target's folder from other errors, which stay as they are.
fn with_denied_access(error: RunError) -> RunError {
    match error {
        RunError::Operation { operation, path, source } if source.kind() == ErrorKind::PermissionDenied => {
            RunError::AccessDenied { operation, path, source }
        }
        other => other,
    }
}

/// Returns the error for a sandbox that cannot be created, with its likely cause.
fn write_refusal(path: &Path, error: io::Error) -> RunError {
    let name = platform::error_name(&error).unwrap_or_else(|| error.to_string());
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem => RunError::refused(
            path,
            format!("it is mounted read-only (mkdir: {name})"),
            "Mount it for writing, or choose another folder",
        ),
        ErrorKind::PermissionDenied => RunError::refused(
            path,
            format!("this user may not write to it (mkdir: {name})"),
            "Choose a folder that is yours; on a Mac, also check Privacy & Security > Files & Folders",
        ),
        _ => RunError::operation(Operation::Mkdir, path, error),
    }
}

fn is_not_folder_error(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotADirectory) || error.raw_os_error() == Some(libc::ELOOP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Recorder;
    use crate::timed_fs::StopSwitch;

    /// Opens a sandbox in a folder and passes the result to a check.
    fn open(path: &Path, machine: &str, check: impl FnOnce(Result<Sandbox, RunError>)) {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let target = "nas".parse().unwrap();
        let location = SandboxLocation { target_path: path, target: &target, machine };
        check(Sandbox::open(&location, &TimedFs::new(&recorder, 0, &stop)));
    }

    fn refusal(path: &Path, machine: &str) -> String {
        let mut message = String::new();
        open(path, machine, |result| message = result.err().expect("must be refused").to_string());
        message
    }

    #[test]
    fn file_link_and_missing_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(refusal(&file, "m").contains("not a folder"));
        assert!(refusal(&link, "m").contains("symbolic link"));
        assert!(refusal(&folder.path().join("missing"), "m").contains("no such folder"));
    }

    #[test]
    fn missing_permission_for_the_target_is_no_failure() {
        let failed = |code| {
            RunError::operation(Operation::Open, Path::new("/nas"), io::Error::from_raw_os_error(code))
        };
        let denied = with_denied_access(failed(libc::EACCES));
        assert_eq!(denied.outcome(), longhaul_model::Outcome::Unavailable);
        // The service knows a missing Kerberos ticket by it.
        assert_eq!(denied.failure().error.as_deref(), Some("EACCES"));
        assert!(denied.failure().message.contains("Check the folder's owner"));
        assert_eq!(with_denied_access(failed(libc::EIO)).outcome(), longhaul_model::Outcome::Error);
    }

    #[test]
    fn sandbox_of_another_machine_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path(), "one", |sandbox| assert!(sandbox.is_ok()));
        std::fs::rename(folder.path().join(".longhaul-one-nas"), folder.path().join(".longhaul-two-nas"))
            .unwrap();
        assert!(refusal(folder.path(), "two").contains("another machine"));
    }

    #[test]
    fn folder_with_foreign_files_is_not_used_as_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(".longhaul-m-nas");
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("letter.txt"), "mine").unwrap();
        assert!(refusal(folder.path(), "m").contains("no marker"));
        std::fs::remove_file(place.join("letter.txt")).unwrap();
        std::fs::write(place.join("._sandbox.json.partial"), "attributes of an unfinished marker").unwrap();
        open(folder.path(), "m", |sandbox| assert!(sandbox.is_ok(), "an empty folder is used"));
    }

    #[test]
    fn link_with_the_name_of_the_sandbox_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(".longhaul-m-nas")).unwrap();
        assert!(refusal(folder.path(), "m").contains("not a folder"));
        let written = std::fs::read_dir(elsewhere.path()).unwrap().count();
        assert_eq!(written, 0, "nothing is written through the link");
    }

    #[test]
    fn two_targets_with_one_folder_have_separate_sandboxes() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = TimedFs::new(&recorder, 0, &stop);
        for name in ["smb", "nfs"] {
            let target = name.parse().unwrap();
            let location = SandboxLocation { target_path: folder.path(), target: &target, machine: "m" };
            let sandbox = Sandbox::open(&location, &context).ok().unwrap();
            assert_eq!(
                sandbox.manifest_entry::<String>("tree").unwrap(),
                None,
                "{name} must not see the entry of the other target"
            );
            sandbox.record_entry("tree", &name, &context).unwrap();
        }
    }

    #[test]
    fn manifest_entry_is_read_back_by_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = TimedFs::new(&recorder, 0, &stop);
        open(folder.path(), "m", |sandbox| {
            let sandbox = sandbox.ok().unwrap();
            assert_eq!(sandbox.manifest_entry::<Vec<u32>>("tree").unwrap(), None);
            sandbox.record_entry("tree", &vec![1u32, 2], &context).unwrap();
        });
        open(folder.path(), "m", |sandbox| {
            let sandbox = sandbox.ok().unwrap();
            assert_eq!(sandbox.manifest_entry::<Vec<u32>>("tree").unwrap(), Some(vec![1, 2]));
            assert!(sandbox.manifest_entry::<String>("tree").unwrap_err().to_string().contains("`tree`"));
        });
    }
}
