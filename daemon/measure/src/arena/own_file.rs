//! The small files that longhaul keeps at the top of a sandbox, read and replaced without trust in what lies there: another
//! client of the share may have put a pipe, a link or a giant in their place.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};

use super::{MARKER, NEVER_INDEX, PROBE, manifest};
use crate::context::LINK_CHECK;

/// The most that is read of one, in bytes: a thousand times what a manifest takes.
const MOST_BYTES: u64 = 1 << 20;

/// The name under which a file is written before it is whole.
pub fn partial_name(name: &str) -> String {
    format!("{name}.partial")
}

/// Every name that longhaul gives a file at the top of a sandbox, the one that goes last at the end.
pub fn names() -> impl Iterator<Item = String> {
    let checks = LINK_CHECK.into_iter().filter_map(|name| name.to_str().ok());
    let files = checks.chain([PROBE, NEVER_INDEX, manifest::FILE, MARKER]);
    let whole = files.flat_map(|file| [partial_name(file), file.to_owned()]);
    whole.flat_map(|name| [format!("._{name}"), name])
}

/// Whether a name is one of those.
pub fn is_own(name: &OsStr) -> bool {
    names().any(|own| name == own.as_str())
}

/// Reads one whole. Where another name leads to it, it is made anew first, so that nothing outside is ever changed with it.
///
/// # Errors
///
/// `NotFound` if there is none; `InvalidData`, with the reason, for what is no regular file of at most 1 MiB.
pub fn read(directory: &Dir, name: &str) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    // Neither a pipe without a writer nor a link is waited for or followed.
    options.read(true).custom_flags(libc::O_NONBLOCK).follow(FollowSymlinks::No);
    let file = match directory.open_with(name, &options) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Err(invalid("it is a symbolic link"));
        }
        opened => opened?,
    };
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(invalid("it is no regular file"));
    }
    let mut bytes = vec![];
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(invalid("it is larger than 1 MiB"));
    }
    if facts.nlink() > 1 {
        replace(directory, name, &bytes)?;
    }
    Ok(bytes)
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

/// Makes an empty file; one that is there already is as good.
pub fn create_empty(directory: &Dir, name: &str) -> io::Result<()> {
    match directory.open_with(name, OpenOptions::new().write(true).create_new(true)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Writes a new file beside the old one, syncs it, and renames it over the old one: there is always a whole one, and
/// nothing that was there is written to.
pub fn replace(directory: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let partial = partial_name(name);
    match directory.remove_file(&partial) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = directory.open_with(&partial, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(bytes)?;
    crate::platform::full_sync(file.as_fd())?;
    drop(file);
    directory.rename(&partial, directory, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use std::fs;
    use std::path::Path;

    /// A folder of the test, and its handle.
    fn folder() -> (tempfile::TempDir, Dir) {
        let folder = tempfile::tempdir().unwrap();
        let handle = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        (folder, handle)
    }

    fn refusal(directory: &Dir) -> String {
        let error = read(directory, "arena.json").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        error.to_string()
    }

    fn make_pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    #[test]
    fn a_planted_pipe_link_folder_or_giant_is_refused() {
        let (place, directory) = folder();
        let at = place.path().join("arena.json");
        assert_eq!(read(&directory, "arena.json").unwrap_err().kind(), ErrorKind::NotFound);
        make_pipe(&at);
        assert!(refusal(&directory).contains("no regular file"));
        fs::remove_file(&at).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &at).unwrap();
        assert!(refusal(&directory).contains("symbolic link"));
        fs::remove_file(&at).unwrap();
        fs::create_dir(&at).unwrap();
        assert!(refusal(&directory).contains("no regular file"));
        fs::remove_dir(&at).unwrap();
        fs::File::create(&at).unwrap().set_len(6 << 30).unwrap();
        assert!(refusal(&directory).contains("larger than 1 MiB"));
    }

    #[test]
    fn a_planted_hard_link_is_never_written_through() {
        let (place, directory) = folder();
        let victim = place.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        for name in ["arena.json.partial", "arena.json"] {
            fs::hard_link(&victim, place.path().join(name)).unwrap();
        }
        assert_eq!(read(&directory, "arena.json").unwrap(), b"mine");
        replace(&directory, "arena.json", b"ours").unwrap();
        assert_eq!(read(&directory, "arena.json").unwrap(), b"ours");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        use std::os::unix::fs::MetadataExt;
        assert_eq!(fs::metadata(&victim).unwrap().nlink(), 1, "nothing of the sandbox leads to it any more");
    }
}
