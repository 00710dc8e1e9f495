//! The stored recordings of a person's own programs: one file each, in a folder next to the database. They are private
//! (mode 0600) and at most 64 MiB long.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use longhaul_measure::private_files::{self, Overwrite, write_atomically};
use longhaul_recording::MAX_FILE_BYTES;
use serde::{Deserialize, Serialize};

/// Name of the folder next to the database.
pub const FOLDER: &str = "recordings";
/// Extension of a recording, with the dot.
const EXTENSION: &str = ".recording";
/// Extension of a recording that [`write_atomically`] is writing; the number of the process follows.
const NEW: &str = ".new-";
/// Beginning of the names that recordings get without one of the user.
const DEFAULT_NAME: &str = "day-";
/// Longest name of a recording.
const MAX_NAME: usize = 64;

/// Name of a recording: letters, digits and hyphens; it begins with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecordingName(String);

/// Text that is not a recording name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a recording name: use letters (a to z), digits and hyphens, {MAX_NAME} at most, with a letter or digit first"
)]
pub struct RecordingNameError(String);

impl RecordingName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for RecordingName {
    type Err = RecordingNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_known = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_name = is_known && !text.is_empty() && !text.starts_with('-') && text.len() <= MAX_NAME;
        is_name.then(|| Self(text.to_owned())).ok_or_else(|| RecordingNameError(text.to_owned()))
    }
}

impl TryFrom<String> for RecordingName {
    type Error = RecordingNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RecordingName> for String {
    fn from(name: RecordingName) -> Self {
        name.0
    }
}

impl std::fmt::Display for RecordingName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number of names that others may take while a recording looks for its own.
const MAX_TAKEN: usize = 100;

/// An operation on a stored recording that failed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingFileError {
    /// There is no recording of this name.
    #[error("there is no recording `{name}`. `longhaul record list` shows those that exist")]
    Missing {
        /// Name that was asked for.
        name: RecordingName,
    },
    /// There is a recording of this name.
    #[error(
        "there is a recording `{name}` already. Give another name with --name, or remove it with `longhaul record delete {name}`"
    )]
    Exists {
        /// Name that is taken.
        name: RecordingName,
    },
    /// The recording is larger than 64 MiB.
    #[error("{}: it is larger than 64 MiB, the limit of recordings. Record a shorter time", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// The operating system refused an operation.
    #[error("{operation} {}: {source}", path.display())]
    Refused {
        /// Operation that failed.
        operation: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error returned by the operating system.
        source: io::Error,
    },
}

/// The folder of stored recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recordings {
    folder: PathBuf,
}

impl Recordings {
    /// Returns the recordings that belong to a database. The folder need not exist.
    pub fn of_database(database: &Path) -> Self {
        Self { folder: database.parent().unwrap_or(Path::new("/")).join(FOLDER) }
    }

    /// Returns the path of a recording, which need not exist.
    pub fn path(&self, name: &RecordingName) -> PathBuf {
        self.folder.join(format!("{name}{EXTENSION}"))
    }

    /// Returns the names of all recordings in alphabetical order.
    ///
    /// # Errors
    ///
    /// If the folder exists and cannot be read.
    pub fn names(&self) -> Result<Vec<RecordingName>, RecordingFileError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
            found => found.and_then(Iterator::collect::<io::Result<Vec<_>>>),
        };
        let entries = entries.map_err(refused("list", &self.folder))?;
        let mut names: Vec<RecordingName> =
            entries.iter().filter_map(|entry| name_of_file(entry.file_name().to_str()?)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the first of the names `day-1`, `day-2`, ... that is free.
    fn free_name(&self) -> Result<RecordingName, RecordingFileError> {
        let taken = self.names()?;
        let mut names = (1u64..).map(|number| RecordingName(format!("{DEFAULT_NAME}{number}")));
        Ok(names.find(|name| !is_taken(name, &taken)).expect("there are more numbers than files"))
    }

    /// Fails if there is a recording of this name.
    ///
    /// # Errors
    ///
    /// [`RecordingFileError::Exists`], or the errors of [`Recordings::names`].
    pub fn require_free(&self, name: &RecordingName) -> Result<(), RecordingFileError> {
        if is_taken(name, &self.names()?) {
            return Err(RecordingFileError::Exists { name: name.clone() });
        }
        Ok(())
    }

    /// Reads a recording, 64 MiB at most.
    ///
    /// # Errors
    ///
    /// If it does not exist, is too large or cannot be read.
    pub fn read(&self, name: &RecordingName) -> Result<Vec<u8>, RecordingFileError> {
        let path = self.path(name);
        private_files::read(&path, MAX_FILE_BYTES).map_err(|source| match source.kind() {
            ErrorKind::NotFound => RecordingFileError::Missing { name: name.clone() },
            ErrorKind::FileTooLarge => RecordingFileError::TooLarge { path },
            _ => refused("read", &path)(source),
        })
    }

    /// Writes a new recording: first under another name, then in place, so that it is there as a whole or not at all.
    ///
    /// # Errors
    ///
    /// If the name is taken, or the recording is too large or cannot be written.
    pub fn create(&self, name: &RecordingName, bytes: &[u8]) -> Result<PathBuf, RecordingFileError> {
        let path = self.path(name);
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(RecordingFileError::TooLarge { path });
        }
        private_files::create_folder(&self.folder).map_err(refused("create", &self.folder))?;
        match write_atomically(&path, bytes, Overwrite::Never) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(RecordingFileError::Exists { name: name.clone() })
            }
            Err(error) => Err(refused("write", &path)(error)),
            Ok(()) => Ok(path),
        }
    }

    /// Writes a new recording under the next free name, also if others are written at the same time, and returns the name.
    ///
    /// # Errors
    ///
    /// If the recording is too large or cannot be written.
    pub fn create_next(&self, bytes: &[u8]) -> Result<RecordingName, RecordingFileError> {
        let mut name = self.free_name()?;
        for _ in 0..MAX_TAKEN {
            match self.create(&name, bytes) {
                Err(RecordingFileError::Exists { .. }) => name = self.free_name()?,
                created => return created.map(|_| name),
            }
        }
        self.create(&name, bytes).map(|_| name)
    }

    /// Removes a recording.
    ///
    /// # Errors
    ///
    /// If it does not exist or cannot be removed.
    pub fn delete(&self, name: &RecordingName) -> Result<(), RecordingFileError> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => RecordingFileError::Missing { name: name.clone() },
            _ => refused("remove", &path)(source),
        })
    }
}

/// Returns true if there is a recording of this name on a file system that may ignore case.
fn is_taken(name: &RecordingName, names: &[RecordingName]) -> bool {
    names.iter().any(|taken| taken.0.eq_ignore_ascii_case(&name.0))
}

/// Returns true for the file name of a recording, or of one that is being written.
pub fn is_recording_file(name: &str) -> bool {
    let finished = name.rsplit_once(NEW).filter(|(_, process)| process.parse::<u32>().is_ok());
    name_of_file(finished.map_or(name, |(file, _)| file)).is_some()
}

fn name_of_file(file: &str) -> Option<RecordingName> {
    file.strip_suffix(EXTENSION)?.parse().ok()
}

fn refused(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordingFileError {
    let path = path.to_owned();
    move |source| RecordingFileError::Refused { operation, path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn name(text: &str) -> RecordingName {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_letters_digits_and_hyphens() {
        for good in ["day-1", "a", "0", "Photos-2026"] {
            assert_eq!(good.parse::<RecordingName>().map(String::from).as_deref(), Ok(good));
        }
        let long = "a".repeat(65);
        for bad in ["", "-a", "a/b", "..", "a.b", "a b", "é", "a\n", "example:git", &long] {
            assert!(bad.parse::<RecordingName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn recording_is_private_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let recordings = Recordings::of_database(&folder.path().join("x.sqlite"));
        let path = recordings.create(&name("day-1"), b"bytes").unwrap();
        assert_eq!(recordings.read(&name("day-1")).unwrap(), b"bytes");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&path), mode(path.parent().unwrap())], [0o600, 0o700]);
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 1, "the new file is removed");
    }

    #[test]
    fn taken_names_are_refused_and_free_ones_found() {
        let folder = tempfile::tempdir().unwrap();
        let recordings = Recordings::of_database(&folder.path().join("x.sqlite"));
        assert_eq!(recordings.free_name().unwrap(), name("day-1"));
        for taken in ["day-1", "day-3"] {
            recordings.create(&name(taken), b"1").unwrap();
        }
        let again = recordings.create(&name("day-3"), b"2").unwrap_err();
        assert!(matches!(again, RecordingFileError::Exists { .. }), "{again}");
        assert_eq!(recordings.read(&name("day-3")).unwrap(), b"1");
        assert_eq!(recordings.free_name().unwrap(), name("day-2"));
        assert_eq!(recordings.names().unwrap(), [name("day-1"), name("day-3")]);
        recordings.delete(&name("day-1")).unwrap();
        assert!(matches!(recordings.read(&name("day-1")), Err(RecordingFileError::Missing { .. })));
    }

    #[test]
    fn only_files_of_recordings_are_recognized() {
        for own in ["day-1.recording", "a.recording.new-17"] {
            assert!(is_recording_file(own), "{own}");
        }
        for other in
            ["day-1", "notes.txt", ".recording", "a.recording.new-x", "a b.recording", "a.recording.bak"]
        {
            assert!(!is_recording_file(other), "{other}");
        }
    }
}
