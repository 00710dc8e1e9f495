//! The pass-through on Linux, with FUSE.

mod answers;
mod attributes;
mod file_answers;
mod folder;
mod locks;
mod named_answers;
mod node_answers;
mod open_files;
mod programs;
mod recorder;
mod replies;
mod requests;
mod tree;
mod unmount;

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fuser::{BackgroundSession, Config, FopenFlags, MountOption, SessionACL};
use longhaul_model::Mount;
use parking_lot::RwLock;
use rustix::fs::Mode;

use answers::Answers;
use folder::Folder;
use open_files::OpenFiles;
use recorder::Recorder;
use requests::Requests;
use tree::Tree;

use crate::{End, MountPaths, PassThroughError, Receiver, SOURCE, serving_process};

/// Number of threads that answer requests: as many calls of programs can wait for the share at the same time.
const THREADS: usize = 16;

/// A mounted pass-through file system.
pub struct PassThrough {
    session: BackgroundSession,
    recorder: Arc<Recorder>,
    place: MountPaths,
    was_created: bool,
}

impl PassThrough {
    /// Tells whether it was unmounted by another process.
    pub fn has_ended(&self) -> bool {
        self.session.guard.is_finished()
    }

    /// Unmounts it, unless a user has done so, and hands over the operations that still wait. If programs use it, it is detached. A
    /// share that does not answer is not waited for.
    pub fn end(self) -> End {
        self.end_within(unmount::GRACE)
    }

    /// As [`Self::end`], if programs may use it for this long.
    fn end_within(self, grace: Duration) -> End {
        let unmount = || unmount::unmount(&self.place.mount_point, grace);
        let end = if self.has_ended() { End::Unmounted } else { unmount() };
        self.recorder.finish();
        if self.was_created && end != End::StillMounted {
            // Not empty only if someone wrote into it meanwhile; then it stays.
            let _ = fs::remove_dir(&self.place.mount_point);
        }
        // The session's threads may hang in calls to the share: they end with the process.
        std::mem::forget(self.session);
        end
    }
}

/// Mounts a pass-through file system. A mount that a killed process left at the same place is removed first. From now on this
/// process has no umask.
///
/// # Errors
///
/// [`PassThroughError`], which says what is missing.
pub fn mount(
    place: &MountPaths,
    mounts: &[Mount],
    receiver: Receiver,
) -> Result<PassThrough, PassThroughError> {
    let helper_is_missing = !rustix::process::geteuid().is_root() && !is_in_path("fusermount3");
    if !Path::new("/dev/fuse").exists() {
        return Err(PassThroughError::NoDevice);
    }
    if helper_is_missing {
        return Err(PassThroughError::NoHelper);
    }
    let place = MountPaths { mount_point: resolved(place)?, folder: place.folder.clone() };
    remove_stale(&place.mount_point, mounts)?;
    let was_created = prepare(&place.mount_point)?;
    let recorder = Arc::new(Recorder::new(receiver));
    let started = serve(&place, Arc::clone(&recorder));
    let session = started.inspect_err(|_| {
        if was_created {
            let _ = fs::remove_dir(&place.mount_point);
        }
    })?;
    Ok(PassThrough { session, recorder, place, was_created })
}

/// Returns the path of the mount point as the system names it. Its last part is not touched: it may be a mount that does not answer.
fn resolved(place: &MountPaths) -> Result<PathBuf, PassThroughError> {
    let MountPaths { folder, mount_point } = place;
    let (Some(parent), Some(name)) = (mount_point.parent(), mount_point.file_name()) else {
        return Err(PassThroughError::NotEmpty { mount_point: mount_point.clone() });
    };
    let resolved = fs::canonicalize(parent).map_err(refused("create", mount_point))?.join(name);
    match resolved.starts_with(fs::canonicalize(folder).map_err(refused("open", folder))?) {
        true => Err(PassThroughError::Inside { mount_point: mount_point.clone() }),
        false => Ok(resolved),
    }
}

fn serve(place: &MountPaths, recorder: Arc<Recorder>) -> Result<BackgroundSession, PassThroughError> {
    let folder = Folder::open(&place.folder).map_err(refused("open", &place.folder))?;
    let here = Path::new(".");
    let root = folder.handle(here).and_then(|root| Ok(rustix::fs::fstat(&root)?));
    let root = root.map_err(refused("look at", &place.folder))?;
    let answers = Answers {
        tree: RwLock::new(Tree::new(folder::identity(&root))),
        folder,
        shown: place.folder.clone(),
        renames: RwLock::new(()),
        files: OpenFiles::default(),
        recorder,
    };
    let requests = Requests { answers: Arc::new(answers), opened: FopenFlags::empty() };
    // The kernel has applied the mask of the program to the mode of each new file.
    rustix::process::umask(Mode::empty());
    fuser::spawn_mount(requests, &place.mount_point, &config()).map_err(refused("mount", &place.mount_point))
}

fn config() -> Config {
    let mut config = Config::default();
    let source = format!("{SOURCE}{}", std::process::id());
    config.mount_options = vec![MountOption::FSName(source), MountOption::Subtype("longhaul".to_owned())];
    config.acl = SessionACL::Owner;
    config.n_threads = Some(THREADS);
    config
}

/// Removes the mount of a process that does not run any more.
fn remove_stale(mount_point: &Path, mounts: &[Mount]) -> Result<(), PassThroughError> {
    let own = mounts.iter().filter(|mount| mount.point == mount_point).filter_map(serving_process);
    for process in own {
        if programs::is_running(process) {
            return Err(PassThroughError::InUse { mount_point: mount_point.to_owned(), process });
        }
        unmount::detach(mount_point).map_err(refused("unmount", mount_point))?;
    }
    Ok(())
}

/// Creates the mount point. Returns true if it did not exist.
fn prepare(mount_point: &Path) -> Result<bool, PassThroughError> {
    match fs::create_dir(mount_point) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let is_empty = !mount_point.is_symlink()
                && fs::read_dir(mount_point).is_ok_and(|mut entries| entries.next().is_none());
            let not_empty = || PassThroughError::NotEmpty { mount_point: mount_point.to_owned() };
            is_empty.then_some(false).ok_or_else(not_empty)
        }
        Err(error) => Err(refused("create", mount_point)(error)),
    }
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder: PathBuf| folder.join(program).exists())
}

fn refused(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PassThroughError {
    let path = path.to_owned();
    move |source| PassThroughError::Refused { operation, path, source }
}
