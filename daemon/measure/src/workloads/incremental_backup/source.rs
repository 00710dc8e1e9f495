//! Brings the local source tree to a generation.
//!
//! The operation is idempotent: after an interruption at any point, running it again completes it.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::RunError;
use crate::platform::{self, TEST_XATTR};
use longhaul_corpus::Content;
use longhaul_corpus::apple_double::owner_name;
use longhaul_corpus::churn::{SourceFile, SourceTree};
use longhaul_model::FreeSpaceReserve;

/// Creates, replaces and removes files so that the folder has exactly the files of a generation. Refuses if the local disk would
/// have less than the reserve left: the database and other programs need it, too.
pub fn apply_generation(
    source: &SourceTree,
    generation: u64,
    root: &Path,
    reserve: FreeSpaceReserve,
) -> Result<(), RunError> {
    fs::create_dir_all(root).map_err(RunError::local("mkdir", root))?;
    let mut wanted: BTreeMap<PathBuf, SourceFile> =
        source.files_at(generation).into_iter().map(|file| (file.path(), file)).collect();
    for path in files_below(root).map_err(RunError::local("readdir", root))? {
        let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let is_current = wanted.get(&relative).is_some_and(|file| is_current(&path, file));
        if is_current {
            wanted.remove(&relative);
        } else {
            fs::remove_file(&path).map_err(RunError::local("unlink", &path))?;
        }
    }
    require_space(root, wanted.values().map(|file| file.size).sum(), reserve)?;
    wanted.iter().try_for_each(|(relative, file)| {
        let path = root.join(relative);
        make_file(source, file, &path).map_err(RunError::local("write", &path))
    })
}

fn require_space(root: &Path, bytes: u64, reserve: FreeSpaceReserve) -> Result<(), RunError> {
    if bytes == 0 {
        return Ok(());
    }
    let space = File::open(root).and_then(|folder| platform::space(folder.as_fd()));
    let space = space.map_err(RunError::local("statfs", root))?;
    let reason = reserve.refusal(bytes, space.free_bytes, space.total_bytes);
    let full = |reason: String| io::Error::new(io::ErrorKind::StorageFull, reason);
    reason.map_or(Ok(()), |reason| Err(RunError::local("write", root)(full(reason))))
}

/// Returns the paths of all files in the subfolders of a source.
///
/// Skips files next to the subfolders, such as Finder's `.DS_Store`, and AppleDouble files, which the system
/// moves and deletes together with their file.
fn files_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = vec![];
    for folder in fs::read_dir(root)? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path())? {
            let file = file?;
            if owner_name(file.file_name().as_bytes()).is_none() {
                files.push(file.path());
            }
        }
    }
    Ok(files)
}

/// Returns whether the file at this path is the file of the generation.
///
/// Size and modification time are enough to decide, because every change in a generation changes the time.
fn is_current(path: &Path, file: &SourceFile) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| {
        metadata.is_file()
            && metadata.len() == file.size
            && metadata.modified().is_ok_and(|time| time == modified_time(file))
    })
}

fn modified_time(file: &SourceFile) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(file.modified_seconds().unsigned_abs())
}

fn make_file(source: &SourceTree, file: &SourceFile, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let content = Content::new(source.content_seed(file.version), file.number);
    // A new file is created and the old one is never truncated: it may be hard-linked into a backup of this disk.
    let mut out = File::create_new(path)?;
    let mut buffer = vec![0u8; 256 << 10];
    let mut offset = 0;
    while offset < file.size {
        let length = buffer.len().min((file.size - offset) as usize);
        content.fill(offset, &mut buffer[..length]);
        out.write_all(&buffer[..length])?;
        offset += length as u64;
    }
    if file.has_xattr() {
        match platform::setxattr(out.as_fd(), TEST_XATTR, b"backed up with its file") {
            Err(error) if error.raw_os_error().is_some_and(platform::is_unsupported) => {}
            other => other?,
        }
    }
    out.set_times(FileTimes::new().set_modified(modified_time(file)).set_accessed(modified_time(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: SourceTree = SourceTree { seed: 8, files: 200 };

    fn snapshot(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
        let read = |path: PathBuf| {
            let metadata = fs::metadata(&path).unwrap();
            (
                path.strip_prefix(root).unwrap().to_owned(),
                (fs::read(&path).unwrap(), metadata.modified().unwrap()),
            )
        };
        files_below(root).unwrap().into_iter().map(read).collect()
    }

    #[test]
    fn space_of_the_local_disk_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let everything = FreeSpaceReserve::share(1.0);
        let error = apply_generation(&SOURCE, 0, folder.path(), everything).unwrap_err();
        assert!(error.to_string().contains("must stay free"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_step_and_many_steps_give_the_same_generation() {
        let (step, leap) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        (0..=5).for_each(|generation| {
            apply_generation(&SOURCE, generation, step.path(), FreeSpaceReserve::NONE).unwrap()
        });
        apply_generation(&SOURCE, 5, leap.path(), FreeSpaceReserve::NONE).unwrap();
        let (step, leap) = (snapshot(step.path()), snapshot(leap.path()));
        assert!(!step.is_empty() && step == leap);
    }

    #[test]
    fn foreign_files_in_the_source_root_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        apply_generation(&SOURCE, 0, folder.path(), FreeSpaceReserve::NONE).unwrap();
        fs::write(folder.path().join(".DS_Store"), "Finder was here").unwrap();
        apply_generation(&SOURCE, 1, folder.path(), FreeSpaceReserve::NONE).unwrap();
        assert!(folder.path().join(".DS_Store").exists());
    }

    #[test]
    fn an_interrupted_generation_is_repaired() {
        let folder = tempfile::tempdir().unwrap();
        apply_generation(&SOURCE, 3, folder.path(), FreeSpaceReserve::NONE).unwrap();
        let whole = snapshot(folder.path());
        let (first, last) = (whole.keys().next().unwrap(), whole.keys().next_back().unwrap());
        fs::write(folder.path().join(first), "half").unwrap();
        fs::remove_file(folder.path().join(last)).unwrap();
        fs::write(folder.path().join("folder 0000/stray"), "x").unwrap();
        apply_generation(&SOURCE, 3, folder.path(), FreeSpaceReserve::NONE).unwrap();
        assert!(snapshot(folder.path()) == whole);
    }
}
