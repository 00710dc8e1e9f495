//! Files and folders on the local disk that only their user may read, whatever the umask, and small files that a user names.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Maximum size of a file that a user names, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;
/// Access of the group and of others.
const OTHER_USERS: u32 = 0o077;

/// Returns options that create a file for its user only (mode 0600). The mode of an existing file stays as it is.
pub fn options() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

/// Reads a whole regular file of at most `most` bytes. A pipe in its place is not waited for.
///
/// # Errors
///
/// The error of the operating system, `InvalidInput` if it is no regular file, or `FileTooLarge`.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_at_most(open(path)?, most)
}

fn read_at_most(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("it is larger than {} MiB: is it the right file?", most >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text: is it the right file?"))
}

/// Reads a whole text file of at most 1 MiB, or a pipe of this process to its end.
///
/// # Errors
///
/// Those of [`read`], or `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    // `<(command)` of a shell is a pipe there, which has a writer. Any other pipe may never have one.
    let is_descriptor =
        ["/dev/fd", "/dev/stdin", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder));
    let file = if is_descriptor { File::open(path)? } else { open(path)? };
    utf8(read_at_most(file, MAX_BYTES)?)
}

/// Reads a secret, such as a password, from a text file that only its user may read.
///
/// # Errors
///
/// Those of [`read`], `PermissionDenied` if other users can read the file, or `InvalidData` if it is not UTF-8.
pub fn read_secret(path: &Path) -> io::Result<String> {
    let file = open(path)?;
    if file.metadata()?.permissions().mode() & OTHER_USERS != 0 {
        let text = "other users can read it: run `chmod 600` on it";
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    utf8(read_at_most(file, MAX_BYTES)?)
}

/// Opens a regular file for reading. A pipe in its place is not waited for.
///
/// # Errors
///
/// The error of the operating system, or `InvalidInput` if it is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Creates a folder and its missing parents for the user only (mode 0700). Existing ones stay as they are.
///
/// # Errors
///
/// If a folder cannot be created.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Permission to replace an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// The file must not exist yet.
    Never,
    /// An existing file is replaced.
    Always,
}

/// Writes a file atomically: first under a temporary name next to it, then moved into place. The permissions of a file
/// that is replaced are kept. Missing folders are created.
///
/// # Errors
///
/// If the file cannot be written; with [`Overwrite::Never`] also if it exists.
pub fn write_atomically(path: &Path, bytes: &[u8], overwrite: Overwrite) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let written = write_new(&temporary, path, bytes).and_then(|()| match overwrite {
        Overwrite::Always => fs::rename(&temporary, path),
        // Unlike `rename`, `hard_link` fails if the file has been created in the meantime.
        Overwrite::Never => fs::hard_link(&temporary, path),
    });
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => written.and(Err(error)),
        _ => written,
    }
}

/// Writes a new file, with the permissions of the one that it replaces.
fn write_new(path: &Path, replaced: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = options().write(true).create_new(true).open(path)?;
    if let Ok(found) = fs::metadata(replaced) {
        file.set_permissions(found.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Takes the access to a file or folder away from other users. Returns true if they had any. A symbolic link is not
/// followed.
///
/// A private file is not opened: closing any handle of a database drops the locks that SQLite holds on it in this process
/// (fcntl(2)). So this must run before the database is opened.
///
/// # Errors
///
/// If the file cannot be opened, or belongs to another user.
pub fn restrict(path: &Path) -> io::Result<bool> {
    let found = path.symlink_metadata()?;
    if !found.is_symlink() && found.permissions().mode() & OTHER_USERS == 0 {
        return Ok(false);
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    let is_open = mode & OTHER_USERS != 0;
    if is_open {
        file.set_permissions(Permissions::from_mode(mode & !OTHER_USERS))?;
    }
    Ok(is_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let [file, pipe] = ["file", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&file, [7; 9]).unwrap();
        assert_eq!(read(&file, 9).unwrap(), [7; 9]);
        assert_eq!(read(&file, 8).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read(&pipe, 9).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn an_endless_device_is_refused() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn an_open_pipe_of_this_process_is_read() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, b"scale = 1").unwrap();
        drop(writer);
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read_text(Path::new(&path)).unwrap(), "scale = 1");
    }

    #[test]
    fn a_small_file_is_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "scale = \"quick\"\n").unwrap();
        assert_eq!(read_text(file.path()).unwrap(), "scale = \"quick\"\n");
        std::fs::write(file.path(), [0xff, 0xfe]).unwrap();
        assert_eq!(read_text(file.path()).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn secret_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, "tk_secret\n").unwrap();
        for open in [0o644, 0o640, 0o602] {
            std::fs::set_permissions(&file, Permissions::from_mode(open)).unwrap();
            assert_eq!(read_secret(&file).unwrap_err().kind(), ErrorKind::PermissionDenied, "{open:o}");
        }
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_secret(&file).unwrap(), "tk_secret\n");
        std::fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_secret(&file).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn new_files_and_folders_are_for_their_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("a"), folder.path().join("a/b"));
        create_folder(&inner).unwrap();
        options().write(true).create_new(true).open(inner.join("file")).unwrap();
        assert_eq!([mode(&outer), mode(&inner), mode(&inner.join("file"))], [0o700, 0o700, 0o600]);
    }

    #[test]
    fn file_is_written_atomically_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/config.toml");
        write_atomically(&path, b"one", Overwrite::Never).unwrap();
        assert_eq!(
            write_atomically(&path, b"two", Overwrite::Never).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_atomically(&path, b"three", Overwrite::Always).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "the temporary file is removed");
    }

    #[test]
    fn restricting_takes_access_away_once_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        restrict(&link).unwrap_err();
        assert_eq!(mode(&file), 0o644);
        assert!(restrict(&file).unwrap());
        assert_eq!(mode(&file), 0o600);
        assert!(!restrict(&file).unwrap());
    }
}
