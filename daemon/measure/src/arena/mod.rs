//! The sandbox on a target: the only folder in which longhaul writes there.
//!
//! `<target>/.longhaul-<machine id>-<target name>/` holds a marker (whose arena this is), a manifest (what each workload keeps
//! here), and one folder per workload. Set-up and deletion go through cap-std handles, so that no `..` and no link
//! leads out of it; measured operations go through handles opened below the one that this module hands out.

mod clean;
mod manifest;
mod own_file;

use std::cell::RefCell;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use clean::{CleanReport, Mode};
use manifest::Manifest;

use crate::context::{Context, Folder};
use crate::corpus::apple_double::twin_of;
use crate::error::RunError;
use crate::model::{Operation, TargetName};
use crate::platform::{self, Space};

/// Version of the arena's layout.
const SCHEMA: u32 = 1;
/// The file that says whose an arena is.
pub(crate) const MARKER: &str = "arena.json";
/// The small file of the doctor, there for a moment.
pub(crate) const PROBE: &str = "doctor";
/// A folder that holds a file of this name is not indexed by Spotlight (mds; as it is used on memory cards and by Apple's own
/// Time Machine images).
pub(crate) const NEVER_INDEX: &str = ".metadata_never_index";
/// The folder of the light probe. Every manifest has it: the probe and a run are two threads, and two that write a
/// manifest would lose what one of them wrote.
pub(crate) const POOL: &str = "probe";

/// Who wrote an arena.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    longhaul_arena: u32,
    machine: String,
    target: TargetName,
}

/// Which arena is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The target's folder.
    pub target_path: &'a Path,
    /// The target's name.
    pub target: &'a TargetName,
    /// The random id of this installation.
    pub machine: &'a str,
}

impl Claim<'_> {
    /// The name of the arena. The target's name is in it, as two targets often lead to one and the same folder: a share
    /// that is measured over two protocols.
    pub fn folder_name(&self) -> String {
        format!(".longhaul-{}-{}", self.machine, self.target)
    }

    fn arena_path(&self) -> PathBuf {
        self.target_path.join(self.folder_name())
    }
}

/// An arena that is ours, open.
pub struct Arena {
    path: PathBuf,
    target: Dir,
    directory: Dir,
    manifest: RefCell<Manifest>,
}

impl Arena {
    /// Opens this machine's arena, and makes it where it is missing.
    ///
    /// Refuses a target that is missing, no folder, a symbolic link, read-only, or not ours to write, and an arena
    /// that another machine made.
    pub fn open(claim: &Claim<'_>, context: &Context<'_>) -> Result<Self, RunError> {
        let target = open_target(claim.target_path, context)?;
        let (name, path) = (claim.folder_name(), claim.arena_path());
        context
            .timed(Operation::Mkdir, || match target.create_dir(&name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                other => other,
            })
            .map_err(|error| refused_to_write(claim.target_path, error))?;
        let arena = Self::enter(claim, target, context)?.ok_or_else(|| {
            RunError::operation(Operation::Open, &path, io::Error::from(ErrorKind::NotFound))
        })?;
        arena.keep_others_out(context)?;
        Ok(arena)
    }

    /// Asks Spotlight not to index the sandbox, and Time Machine not to back it up where it lies on a disk of this Mac: both
    /// would be at work on the share because of longhaul. Where that cannot be said, nothing is lost.
    fn keep_others_out(&self, context: &Context<'_>) -> Result<(), RunError> {
        use std::os::fd::AsFd;
        let create = || own_file::create_empty(&self.directory, NEVER_INDEX);
        context
            .timed(Operation::Create, create)
            .map_err(|error| RunError::operation(Operation::Create, &self.path.join(NEVER_INDEX), error))?;
        let _ = platform::exclude_from_backup(self.directory.as_fd());
        Ok(())
    }

    /// Opens this machine's arena if there is one.
    pub fn open_existing(claim: &Claim<'_>, context: &Context<'_>) -> Result<Option<Self>, RunError> {
        let target = open_target(claim.target_path, context)?;
        Self::enter(claim, target, context)
    }

    fn enter(claim: &Claim<'_>, target: Dir, context: &Context<'_>) -> Result<Option<Self>, RunError> {
        let (name, path) = (claim.folder_name(), claim.arena_path());
        let failed = |error| RunError::operation(Operation::Open, &path, error);
        let directory = match context.timed(Operation::Open, || target.open_dir_nofollow(&name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if is_not_a_folder(&error) => {
                return Err(RunError::refused(
                    &path,
                    "in the place of the arena is something that is no folder",
                    "Look what it is and move it away",
                ));
            }
            other => other.map_err(failed)?,
        };
        check_marker(claim, &directory, context)?;
        let manifest = Manifest::load(&directory, &path, context)?;
        Ok(Some(Self { path, target, directory, manifest: RefCell::new(manifest) }))
    }

    /// Looks for this machine's arena and makes nothing; `None` if there is none yet. For the probe, which must not make
    /// one beside a run that does.
    pub fn look(claim: &Claim<'_>, context: &Context<'_>) -> Result<Option<Folder>, RunError> {
        let (name, path) = (claim.folder_name(), claim.arena_path());
        let target = open_target(claim.target_path, context)?;
        let directory = match context.timed(Operation::Open, || target.open_dir_nofollow(&name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| RunError::operation(Operation::Open, &path, error))?,
        };
        let is_there = read_marker(claim, &directory, context)?;
        Ok(is_there.then(|| Folder::from_handle(directory.into_std_file().into(), &path)))
    }

    /// Where it is, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The arena's handle, for timed operations below it.
    pub fn folder(&self) -> Result<Folder, RunError> {
        let failed = |error| RunError::operation(Operation::Open, &self.path, error);
        let handle = self.directory.try_clone().map_err(failed)?.into_std_file();
        Ok(Folder::from_handle(handle.into(), &self.path))
    }

    /// What a workload keeps here, as it last said with [`Arena::keep`]; `None` if it keeps nothing.
    pub fn holding<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RunError> {
        let manifest = self.manifest.borrow();
        let Some(value) = manifest.holdings.get(name) else { return Ok(None) };
        serde_json::from_value(value.clone()).map(Some).map_err(|error| {
            let path = self.path.join(manifest::FILE);
            RunError::refused(
                &path,
                format!("its entry `{name}` cannot be read ({error})"),
                "It was written by another longhaul: use that one, or move the arena away",
            )
        })
    }

    /// Writes down what a workload keeps here, **before** it is made: only what is written down is ever deleted.
    pub fn keep<T: Serialize>(&self, name: &str, state: &T, context: &Context<'_>) -> Result<(), RunError> {
        let value = serde_json::to_value(state).expect("the states of workloads are plain data");
        self.manifest.borrow_mut().holdings.insert(name.to_owned(), value);
        self.manifest.borrow().save(&self.directory, &self.path, context)
    }

    /// The space on the target.
    pub fn space(&self, context: &Context<'_>) -> Result<Space, RunError> {
        context
            .timed(Operation::Getattr, || platform::space(self.directory.as_fd()))
            .map_err(|error| RunError::operation(Operation::Getattr, &self.path, error))
    }
}

/// Opens the target's folder without following a link in its last component.
fn open_target(path: &Path, context: &Context<'_>) -> Result<Dir, RunError> {
    let facts = context.timed(Operation::Getattr, || std::fs::symlink_metadata(path));
    match facts {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(RunError::refused(
            path,
            "there is no such folder",
            "Mount the share, or correct the path of the target",
        )),
        Err(error) => Err(RunError::operation(Operation::Getattr, path, error)),
        Ok(facts) if facts.is_symlink() => Err(RunError::refused(
            path,
            match std::fs::canonicalize(path) {
                Ok(real) => format!("it is a symbolic link to {}", real.display()),
                Err(_) => "it is a symbolic link".to_owned(),
            },
            "Give the path that it leads to, so that it is certain what is measured",
        )),
        Ok(facts) if !facts.is_dir() => {
            Err(RunError::refused(path, "it is not a folder", "Give a folder on the share"))
        }
        Ok(_) => context
            .timed(Operation::Open, || platform::open_directory(path))
            .map(|handle| Dir::from_std_file(File::from(handle)))
            .map_err(|error| RunError::operation(Operation::Open, path, error)),
    }
}

/// What it means that the arena cannot be made.
fn refused_to_write(path: &Path, error: io::Error) -> RunError {
    let said = platform::error_name(&error).unwrap_or_else(|| error.to_string());
    match error.kind() {
        ErrorKind::ReadOnlyFilesystem => RunError::refused(
            path,
            format!("it is mounted read-only (mkdir: {said})"),
            "Mount it for writing, or choose another folder",
        ),
        ErrorKind::PermissionDenied => RunError::refused(
            path,
            format!("this user may not write in it (mkdir: {said})"),
            "Choose a folder that is yours; on a Mac look at Privacy & Security > Files & Folders",
        ),
        _ => RunError::operation(Operation::Mkdir, path, error),
    }
}

fn is_not_a_folder(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotADirectory) || error.raw_os_error() == Some(libc::ELOOP)
}

/// Makes sure that the arena carries our marker; an empty arena without one gets it.
fn check_marker(claim: &Claim<'_>, directory: &Dir, context: &Context<'_>) -> Result<(), RunError> {
    match read_marker(claim, directory, context)? {
        true => Ok(()),
        false => write_marker(claim, directory, context),
    }
}

/// Whether there is a marker; refuses one that is not ours.
fn read_marker(claim: &Claim<'_>, directory: &Dir, context: &Context<'_>) -> Result<bool, RunError> {
    let path = claim.arena_path().join(MARKER);
    const ADVICE: &str = "It is left alone. Move it away, or choose another folder for this machine";
    let text = match context.timed(Operation::Read, || own_file::read(directory, MARKER)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            let reason = format!("it is not a marker of longhaul ({error})");
            return Err(RunError::refused(&path, reason, ADVICE));
        }
        other => other.map_err(|error| {
            let error = RunError::operation(Operation::Read, &path, error);
            let name = CString::new(MARKER).expect("the name holds no NUL");
            context.blocked_or(error, directory.as_fd(), &name)
        })?,
    };
    match serde_json::from_slice::<Marker>(&text) {
        Ok(marker) if marker.longhaul_arena > SCHEMA => {
            Err(RunError::refused(&path, "the arena was made by a newer longhaul", "Update longhaul"))
        }
        Ok(marker) if marker.machine != claim.machine => Err(RunError::refused(
            &path,
            format!("the arena belongs to another machine ({})", marker.machine),
            ADVICE,
        )),
        // On a server that does not tell upper from lower case.
        Ok(marker) if marker.target != *claim.target => Err(RunError::refused(
            &path,
            format!("the arena belongs to the target `{}`", marker.target),
            "Give the two targets names that differ in more than case",
        )),
        Ok(_) => Ok(true),
        Err(_) => Err(RunError::refused(&path, "it is not a marker of longhaul", ADVICE)),
    }
}

/// Marks a new arena as ours. A folder that holds something already is not new, and not ours.
fn write_marker(claim: &Claim<'_>, directory: &Dir, context: &Context<'_>) -> Result<(), RunError> {
    let path = claim.arena_path();
    let failed = |error| RunError::operation(Operation::Write, &path.join(MARKER), error);
    let mut entries = context.timed(Operation::Readdir, || directory.entries()).map_err(failed)?;
    let unfinished = |name: &OsStr| {
        let name = twin_of(name.as_bytes()).map_or(name, OsStr::from_bytes);
        name == own_file::partial_name(MARKER).as_str()
    };
    if entries.any(|entry| entry.is_ok_and(|entry| !unfinished(&entry.file_name()))) {
        return Err(RunError::refused(
            &path,
            "there are files in it, but no marker says that longhaul made it",
            "Look what they are and move them away",
        ));
    }
    let marker =
        Marker { longhaul_arena: SCHEMA, machine: claim.machine.to_owned(), target: claim.target.clone() };
    let text = serde_json::to_vec_pretty(&marker).expect("a marker is plain data");
    let written = context.timed(Operation::Write, || own_file::replace(directory, MARKER, &text));
    written.map_err(|error| match error.raw_os_error() {
        // This user made the folder: it carries the name of this installation, and it is empty.
        Some(libc::EPERM) => RunError::Blocked { operation: Operation::Create, path: path.join(MARKER) },
        _ => failed(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::StopSwitch;
    use crate::recorder::Recorder;

    /// Opens an arena on a folder and gives the result to a check.
    fn open(path: &Path, machine: &str, check: impl FnOnce(Result<Arena, RunError>)) {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let target = "nas".parse().unwrap();
        let claim = Claim { target_path: path, target: &target, machine };
        check(Arena::open(&claim, &Context::new(&recorder, 0, &stop)));
    }

    fn refusal(path: &Path, machine: &str) -> String {
        let mut said = String::new();
        open(path, machine, |result| said = result.err().expect("was not refused").to_string());
        said
    }

    #[test]
    fn what_is_no_folder_of_ours_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(refusal(&file, "m").contains("not a folder"));
        assert!(refusal(&link, "m").contains("symbolic link"));
        assert!(refusal(&folder.path().join("missing"), "m").contains("no such folder"));
    }

    #[test]
    fn an_arena_of_another_machine_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path(), "one", |arena| assert!(arena.is_ok()));
        std::fs::rename(folder.path().join(".longhaul-one-nas"), folder.path().join(".longhaul-two-nas"))
            .unwrap();
        assert!(refusal(folder.path(), "two").contains("another machine"));
    }

    #[test]
    fn a_folder_with_foreign_files_in_the_place_of_the_arena_is_not_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(".longhaul-m-nas");
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("letter.txt"), "mine").unwrap();
        assert!(refusal(folder.path(), "m").contains("no marker"));
        std::fs::remove_file(place.join("letter.txt")).unwrap();
        std::fs::write(place.join("._arena.json.partial"), "attributes of an unfinished marker").unwrap();
        open(folder.path(), "m", |arena| assert!(arena.is_ok(), "an empty one is"));
    }

    #[test]
    fn a_link_in_the_place_of_the_arena_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(".longhaul-m-nas")).unwrap();
        assert!(refusal(folder.path(), "m").contains("no folder"));
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0, "nothing was written through it");
    }

    #[test]
    fn two_targets_that_lead_to_one_folder_have_an_arena_each() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        for name in ["smb", "nfs"] {
            let target = name.parse().unwrap();
            let claim = Claim { target_path: folder.path(), target: &target, machine: "m" };
            let arena = Arena::open(&claim, &context).ok().unwrap();
            assert_eq!(arena.holding::<String>("tree").unwrap(), None, "{name} meets nothing of the other");
            arena.keep("tree", &name, &context).unwrap();
        }
    }

    #[test]
    fn what_a_workload_keeps_is_read_back_by_the_next_longhaul() {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        open(folder.path(), "m", |arena| {
            let arena = arena.ok().unwrap();
            assert_eq!(arena.holding::<Vec<u32>>("tree").unwrap(), None);
            arena.keep("tree", &vec![1u32, 2], &context).unwrap();
        });
        open(folder.path(), "m", |arena| {
            let arena = arena.ok().unwrap();
            assert_eq!(arena.holding::<Vec<u32>>("tree").unwrap(), Some(vec![1, 2]));
            assert!(arena.holding::<String>("tree").unwrap_err().to_string().contains("`tree`"));
        });
    }
}
