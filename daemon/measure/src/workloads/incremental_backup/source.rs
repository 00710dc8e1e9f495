//! Bringing the local source tree to a generation: idempotent, so that an interruption at any instant is mended by
//! doing it again.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::NOTE;
use crate::corpus::Content;
use crate::corpus::apple_double::twin_of;
use crate::corpus::churn::{Source, SourceFile};
use crate::error::RunError;
use crate::platform;

/// Makes the folder hold exactly the files of a generation.
pub fn bring_to(source: &Source, generation: u64, root: &Path) -> Result<(), RunError> {
    fs::create_dir_all(root).map_err(RunError::local("mkdir", root))?;
    let mut wanted: BTreeMap<PathBuf, SourceFile> =
        source.at(generation).into_iter().map(|file| (path_of(source, &file), file)).collect();
    for path in files_below(root).map_err(RunError::local("readdir", root))? {
        let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let is_current = wanted.get(&relative).is_some_and(|file| is_current(&path, file));
        if is_current {
            wanted.remove(&relative);
        } else {
            fs::remove_file(&path).map_err(RunError::local("unlink", &path))?;
        }
    }
    wanted.iter().try_for_each(|(relative, file)| {
        let path = root.join(relative);
        make(source, file, &path).map_err(RunError::local("write", &path))
    })
}

fn path_of(source: &Source, file: &SourceFile) -> PathBuf {
    let part = |name: &std::ffi::CStr| std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned();
    Path::new(&part(&source.folder(file.number))).join(part(&source.name(file.number, file.renames)))
}

/// The files in the folders of a source. Beside its folders there may be what others put there, as Finder does with
/// `.DS_Store`; beside its files AppleDouble files, which come and go with them.
fn files_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = vec![];
    for folder in fs::read_dir(root)? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path())? {
            let file = file?;
            if twin_of(file.file_name().as_bytes()).is_none() {
                files.push(file.path());
            }
        }
    }
    Ok(files)
}

/// Size and time tell: every change of a generation changes the time.
fn is_current(path: &Path, file: &SourceFile) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| {
        facts.is_file()
            && facts.len() == file.size
            && facts.modified().is_ok_and(|time| time == modified(file))
    })
}

fn modified(file: &SourceFile) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(file.modified_seconds().unsigned_abs())
}

fn make(source: &Source, file: &SourceFile, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let content = Content::new(source.content_seed(file.version), file.number);
    // New, never cut to nothing: a backup of this disk that works with hard links may hold the old file.
    let mut out = File::create_new(path)?;
    let mut buffer = vec![0u8; 256 << 10];
    let mut offset = 0;
    while offset < file.size {
        let length = buffer.len().min((file.size - offset) as usize);
        content.fill(offset, &mut buffer[..length]);
        out.write_all(&buffer[..length])?;
        offset += length as u64;
    }
    if file.has_note() {
        match platform::setxattr(out.as_fd(), NOTE, b"backed up with its file") {
            Err(error) if error.raw_os_error().is_some_and(platform::is_unsupported) => {}
            other => other?,
        }
    }
    out.set_times(FileTimes::new().set_modified(modified(file)).set_accessed(modified(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source = Source { seed: 8, files: 200 };

    fn snapshot(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
        let read = |path: PathBuf| {
            let facts = fs::metadata(&path).unwrap();
            (
                path.strip_prefix(root).unwrap().to_owned(),
                (fs::read(&path).unwrap(), facts.modified().unwrap()),
            )
        };
        files_below(root).unwrap().into_iter().map(read).collect()
    }

    #[test]
    fn a_generation_is_the_same_whether_reached_step_by_step_or_at_once() {
        let (step, leap) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        (0..=5).for_each(|generation| bring_to(&SOURCE, generation, step.path()).unwrap());
        bring_to(&SOURCE, 5, leap.path()).unwrap();
        let (step, leap) = (snapshot(step.path()), snapshot(leap.path()));
        assert!(!step.is_empty() && step == leap);
    }

    #[test]
    fn a_file_beside_the_folders_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        bring_to(&SOURCE, 0, folder.path()).unwrap();
        fs::write(folder.path().join(".DS_Store"), "Finder was here").unwrap();
        bring_to(&SOURCE, 1, folder.path()).unwrap();
        assert!(folder.path().join(".DS_Store").exists());
    }

    #[test]
    fn what_an_interruption_left_is_mended() {
        let folder = tempfile::tempdir().unwrap();
        bring_to(&SOURCE, 3, folder.path()).unwrap();
        let whole = snapshot(folder.path());
        let (first, last) = (whole.keys().next().unwrap(), whole.keys().next_back().unwrap());
        fs::write(folder.path().join(first), "half").unwrap();
        fs::remove_file(folder.path().join(last)).unwrap();
        fs::write(folder.path().join("folder 0000/stray"), "x").unwrap();
        bring_to(&SOURCE, 3, folder.path()).unwrap();
        assert!(snapshot(folder.path()) == whole);
    }
}
