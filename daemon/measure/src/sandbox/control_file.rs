//! Reads and replaces control files: small files of longhaul at the top of a sandbox. This is done defensively,
//! because another client of the share may have replaced one with a pipe, a link or a huge file.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};

use super::names::partial_name;

/// Maximum size of a control file in bytes. It is about a thousand times the size of a manifest.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a whole control file. Never changes the file, because the latency probe reads the marker while a run may
/// be replacing it.
///
/// # Errors
///
/// `NotFound` if the file does not exist; `InvalidData`, with the reason, if it is not a regular file of at most 1
/// MiB.
pub fn read(directory: &Dir, name: &str) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    // O_NONBLOCK: opening a pipe that has no writer must not block. Symbolic links are not followed.
    options.read(true).custom_flags(libc::O_NONBLOCK).follow(FollowSymlinks::No);
    let file = match directory.open_with(name, &options) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Err(invalid("it is a symbolic link"));
        }
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(invalid("it is not a regular file"));
    }
    let mut bytes = vec![];
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(invalid("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

/// Reads a control file like [`read`], and replaces it with a copy if it has further hard links, so that a later
/// write cannot change a file outside the sandbox.
///
/// # Errors
///
/// The errors of [`read`] and of [`replace`].
pub fn read_unshared(directory: &Dir, name: &str) -> io::Result<Vec<u8>> {
    let bytes = read(directory, name)?;
    if directory.symlink_metadata(name)?.nlink() > 1 {
        replace(directory, name, &bytes)?;
    }
    Ok(bytes)
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

/// Creates an empty file; does nothing if there is a file with this name.
pub fn create_empty(directory: &Dir, name: &str) -> io::Result<()> {
    match directory.open_with(name, OpenOptions::new().write(true).create_new(true)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Replaces a control file atomically: writes a new file under a temporary name, syncs it, and renames it over the
/// old file. Existing files are never written to.
pub fn replace(directory: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let partial = write_partial(directory, name, bytes)?;
    directory.rename(&partial, directory, name)
}

/// Writes a new file under the temporary name of a control file, syncs it, and removes it.
pub fn write_and_remove(directory: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let partial = write_partial(directory, name, bytes)?;
    directory.remove_file(&partial)
}

/// Writes a new file under the temporary name of a control file and syncs it. Returns the temporary name.
fn write_partial(directory: &Dir, name: &str, bytes: &[u8]) -> io::Result<String> {
    let partial = partial_name(name);
    match directory.remove_file(&partial) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = directory.open_with(&partial, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(bytes)?;
    crate::platform::full_sync(file.as_fd())?;
    Ok(partial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use std::fs;
    use std::path::Path;

    /// Creates a temporary folder and opens a handle of it.
    fn folder() -> (tempfile::TempDir, Dir) {
        let folder = tempfile::tempdir().unwrap();
        let handle = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        (folder, handle)
    }

    fn refusal(directory: &Dir) -> String {
        let error = read(directory, "sandbox.json").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        error.to_string()
    }

    fn links(path: &Path) -> u64 {
        std::os::unix::fs::MetadataExt::nlink(&fs::metadata(path).unwrap())
    }

    fn make_pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    #[test]
    fn pipe_link_folder_and_huge_file_are_refused() {
        let (place, directory) = folder();
        let at = place.path().join("sandbox.json");
        assert_eq!(read(&directory, "sandbox.json").unwrap_err().kind(), ErrorKind::NotFound);
        make_pipe(&at);
        assert!(refusal(&directory).contains("not a regular file"));
        fs::remove_file(&at).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &at).unwrap();
        assert!(refusal(&directory).contains("symbolic link"));
        fs::remove_file(&at).unwrap();
        fs::create_dir(&at).unwrap();
        assert!(refusal(&directory).contains("not a regular file"));
        fs::remove_dir(&at).unwrap();
        fs::File::create(&at).unwrap().set_len(6 << 30).unwrap();
        assert!(refusal(&directory).contains("larger than 1 MiB"));
    }

    #[test]
    fn hard_linked_file_is_never_written_to() {
        let (place, directory) = folder();
        let victim = place.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        for name in ["sandbox.json.partial", "sandbox.json"] {
            fs::hard_link(&victim, place.path().join(name)).unwrap();
        }
        assert_eq!(read(&directory, "sandbox.json").unwrap(), b"mine");
        assert_eq!(links(&victim), 3, "`read` must not change links");
        assert_eq!(read_unshared(&directory, "sandbox.json").unwrap(), b"mine");
        replace(&directory, "sandbox.json", b"ours").unwrap();
        assert_eq!(read(&directory, "sandbox.json").unwrap(), b"ours");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(links(&victim), 1, "the sandbox no longer contains links to the file");
    }
}
