//! The administrator's configuration file, whose settings a user's file and arguments cannot change.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use longhaul_measure::platform;
use longhaul_measure::private_files::MAX_BYTES;
use rustix::fs::OFlags;

use super::ConfigError;

/// File name of the administrator's configuration in its system folder.
const MANAGED_FILE: &str = "managed.toml";
/// User id of the administrator.
const ROOT: u32 = 0;
/// Write access of the group and of others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Location of the administrator's file, and the user it has to belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedFile {
    /// Path of the file, which need not exist.
    pub path: PathBuf,
    /// Id of the user who must own the file and its folder.
    pub owner: u32,
}

impl ManagedFile {
    /// Returns the file in the system's folder, which has to belong to root.
    pub fn system() -> Self {
        Self { path: platform::managed_config_directory().join(MANAGED_FILE), owner: ROOT }
    }

    /// Reads the file. `None`: there is none.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or if others than its owner could have written it.
    pub(super) fn read(&self) -> Result<Option<String>, ConfigError> {
        match self.open().and_then(|file| file.map(|file| self.read_open(file)).transpose()) {
            Ok(text) => Ok(text),
            Err(source) => Err(ConfigError::Managed { path: self.path.clone(), source }),
        }
    }

    fn open(&self) -> io::Result<Option<File>> {
        // A pipe in its place is not waited for, and a link could lead to a file of a user.
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        match File::options().read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if self.path.is_symlink() => {
                Err(io::Error::new(error.kind(), "it is a symbolic link: put the file itself there"))
            }
            Err(error) => Err(error),
        }
    }

    fn read_open(&self, file: File) -> io::Result<String> {
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
        }
        self.check_access("it", &found)?;
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        self.check_access("its folder", &folder.symlink_metadata()?)?;
        let mut bytes = vec![];
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(io::Error::new(ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
        }
        String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
    }

    fn check_access(&self, subject: &str, found: &Metadata) -> io::Result<()> {
        let owner = found.uid();
        let refused = |text| Err(io::Error::new(ErrorKind::PermissionDenied, text));
        if found.is_symlink() {
            return refused(format!("{subject} is a symbolic link"));
        }
        if owner != self.owner {
            return refused(format!(
                "{subject} belongs to user {owner} instead of user {}: `chown`",
                self.owner
            ));
        }
        if found.mode() & WRITABLE_BY_OTHERS != 0 {
            return refused(format!(
                "{subject} can be changed by others than its owner (mode {:o}): `chmod go-w`",
                found.mode() & 0o7777
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Fixture {
        _folder: tempfile::TempDir,
        file: ManagedFile,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(MANAGED_FILE);
            fs::write(&path, "scale = \"quick\"\n").unwrap();
            set_mode(&path, 0o644);
            let owner = fs::metadata(&path).unwrap().uid();
            Self { _folder: folder, file: ManagedFile { path, owner } }
        }

        fn refusal(&self) -> String {
            self.file.read().expect_err("the file is refused").to_string()
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn file_of_the_administrator_is_read() {
        let fixture = Fixture::new();
        assert_eq!(fixture.file.read().unwrap().as_deref(), Some("scale = \"quick\"\n"));
        fs::remove_file(&fixture.file.path).unwrap();
        assert_eq!(fixture.file.read().unwrap(), None);
    }

    #[test]
    fn file_that_others_can_change_is_refused() {
        let fixture = Fixture::new();
        for mode in [0o664, 0o646, 0o666] {
            set_mode(&fixture.file.path, mode);
            let text = fixture.refusal();
            assert!(
                text.contains(&format!("it can be changed by others than its owner (mode {mode:o})")),
                "{text}"
            );
            assert!(text.contains(MANAGED_FILE) && text.contains("administrator"), "{text}");
        }
    }

    #[test]
    fn file_in_a_folder_that_others_can_change_is_refused() {
        let fixture = Fixture::new();
        set_mode(fixture.file.path.parent().unwrap(), 0o775);
        assert!(fixture.refusal().contains("its folder can be changed by others"));
    }

    #[test]
    fn file_of_another_user_is_refused() {
        let mut fixture = Fixture::new();
        fixture.file.owner += 1;
        assert!(fixture.refusal().contains("it belongs to user"), "{}", fixture.refusal());
    }

    #[test]
    fn links_folders_and_large_files_are_refused() {
        let fixture = Fixture::new();
        let path = fixture.file.path.clone();
        fs::rename(&path, path.with_extension("other")).unwrap();
        symlink(path.with_extension("other"), &path).unwrap();
        assert!(fixture.refusal().contains("it is a symbolic link"), "{}", fixture.refusal());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(fixture.refusal().contains("it is not a regular file"), "{}", fixture.refusal());
        fs::remove_dir(&path).unwrap();
        fs::write(&path, vec![b'#'; MAX_BYTES as usize + 1]).unwrap();
        set_mode(&path, 0o644);
        assert!(fixture.refusal().contains("larger than 1 MiB"), "{}", fixture.refusal());
    }
}
