//! The files that longhaul keeps on the local disk, recognized by name, and their privacy.

use std::ffi::OsStr;
use std::fs::DirEntry;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use longhaul_measure::{platform, private_files};
use longhaul_store::APPLICATION_ID;

use crate::{LOG_FILE, ROTATED_LOG_FILES};

/// Suffixes of the files that SQLite keeps next to a database.
const SQLITE_SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];
/// Extensions of the files that the service keeps next to a database, without the dot.
const SERVICE_EXTENSIONS: [&str; 5] = ["lock", "starts", "read-key", "daemon.json", "daemon.draft"];
/// Extensions of databases that the service moved aside; a timestamp follows.
const QUARANTINE_EXTENSIONS: [&str; 2] = ["damaged-", "kept-"];
/// Extension of the copy that the service writes while it restores a damaged database.
const RESTORE_EXTENSION: &str = "restored";

/// Returns whether a file is the database, or one that SQLite or the service put next to it.
pub fn belongs_to_database(name: &[u8], database: &Path) -> bool {
    let part = |part: Option<&OsStr>| part.unwrap_or_default().as_encoded_bytes().to_owned();
    let (file, stem, extension) =
        (part(database.file_name()), part(database.file_stem()), part(database.extension()));
    let is_of_sqlite = |rest: Option<&[u8]>| {
        rest.is_some_and(|rest| SQLITE_SUFFIXES.iter().any(|known| rest == known.as_bytes()))
    };
    if is_of_sqlite(name.strip_prefix(&file[..])) {
        return true;
    }
    let Some(rest) = name.strip_prefix(&stem[..]).and_then(|rest| rest.strip_prefix(b".")) else {
        return false;
    };
    // For example, `damaged-17.sqlite-wal` becomes `damaged-17`.
    let without_ending = SQLITE_SUFFIXES.iter().find_map(|known| {
        let ending = [b".", &extension[..], known.as_bytes()].concat();
        rest.strip_suffix(&ending[..])
    });
    let is_dated = |word: &[u8]| {
        QUARANTINE_EXTENSIONS.iter().any(|known| is_number(word.strip_prefix(known.as_bytes())))
    };
    SERVICE_EXTENSIONS.iter().any(|known| rest == known.as_bytes())
        || without_ending.is_some_and(|word| word == RESTORE_EXTENSION.as_bytes() || is_dated(word))
}

/// Returns whether a file is the service's log or a rotated one.
pub fn is_log(name: &[u8]) -> bool {
    let rotated = (1..=ROTATED_LOG_FILES).map(|number| format!("{LOG_FILE}.{number}"));
    [LOG_FILE.to_owned(), format!("{LOG_FILE}.new")]
        .into_iter()
        .chain(rotated)
        .any(|known| name == known.as_bytes())
}

/// Returns whether a text has decimal digits only. False for `None` and for an empty text.
pub fn is_number(text: Option<&[u8]>) -> bool {
    text.is_some_and(|text| !text.is_empty() && text.iter().all(u8::is_ascii_digit))
}

/// Takes the access of other users away from the files of a database and from the logs in a folder, which earlier versions
/// created with the user's umask, and from longhaul's own folders for them. Returns what other users could
/// access. A file that cannot be changed stays as it is. Nothing changes around a file that is no database of longhaul: a mistyped
/// path could lead anywhere.
pub fn restrict_to_user(database: &Path, logs: Option<&Path>) -> Vec<PathBuf> {
    if !is_longhaul_database(database) {
        return vec![];
    }
    let data = database.parent().unwrap_or(Path::new("/"));
    let own_data = platform::data_directory().filter(|folder| folder == data);
    let own_folders = own_data.into_iter().flat_map(|folder| [folder.join("local"), folder]);
    let folders = own_folders.chain(logs.map(Path::to_owned));
    let files = files_in(data, &|name| belongs_to_database(name, database));
    let log_files = logs.into_iter().flat_map(|folder| files_in(folder, &is_log));
    let all = folders.chain(files).chain(log_files);
    all.filter(|path| private_files::restrict(path).unwrap_or(false)).collect()
}

/// Returns whether a file is a database of longhaul, by its header (sqlite.org/fileformat2.html, 1.3): the name of the format, and at
/// byte 68 the number of the application.
fn is_longhaul_database(path: &Path) -> bool {
    let mut header = [0; 72];
    let read = private_files::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header.starts_with(b"SQLite format 3\0") && header[68..] == APPLICATION_ID.to_be_bytes()
}

fn files_in(folder: &Path, is_own: &dyn Fn(&[u8]) -> bool) -> Vec<PathBuf> {
    let names =
        std::fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).unwrap_or_default();
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let own =
        names.into_iter().filter(|entry| is_own(entry.file_name().as_encoded_bytes()) && is_file(entry));
    own.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn header(application: i32) -> Vec<u8> {
        let mut header = b"SQLite format 3\0".to_vec();
        header.resize(68, 0);
        [header, application.to_be_bytes().to_vec()].concat()
    }

    #[test]
    fn files_of_earlier_versions_are_restricted_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("results.sqlite");
        let path = |name: &str| folder.path().join(name);
        for name in ["results.sqlite", "results.sqlite-wal", "results.txt", "letter"] {
            std::fs::write(path(name), header(APPLICATION_ID)).unwrap();
            std::fs::set_permissions(path(name), PermissionsExt::from_mode(0o644)).unwrap();
        }
        let mut restricted = restrict_to_user(&database, None);
        restricted.sort();
        assert_eq!(restricted, [path("results.sqlite"), path("results.sqlite-wal")]);
        let mode = |name: &str| std::fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(["results.sqlite", "results.sqlite-wal", "letter"].map(mode), [0o600, 0o600, 0o644]);
        assert!(restrict_to_user(&database, None).is_empty(), "told once");
    }

    #[test]
    fn nothing_changes_around_what_is_no_database_of_longhaul() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str, content: Option<&[u8]>| {
            let path = folder.path().join(name);
            match content {
                Some(content) => std::fs::write(&path, content).unwrap(),
                None => std::fs::create_dir(&path).unwrap(),
            }
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        };
        let others = [
            open("local", None),
            open("letter", Some(b"Dear all,")),
            open("photos.sqlite", Some(&header(7))),
            open("folder", None),
        ];
        let database = open("results.sqlite", Some(&header(APPLICATION_ID)));
        for mistyped in &others {
            assert_eq!(restrict_to_user(mistyped, None), [] as [PathBuf; 0]);
        }
        assert_eq!(restrict_to_user(&database, None), [database]);
        for path in others {
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755, "{path:?}");
        }
    }
}
