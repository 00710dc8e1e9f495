//! The key with which other machines may read the pages and the JSON, for widgets of other dashboards. Unlike the token of
//! the service it stays the same after a restart, and it allows no command.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use longhaul_measure::private_files;

/// Largest key that is read, in bytes.
const MAX_BYTES: u64 = 1024;
/// Shortest key that is accepted, in characters.
const MIN_CHARS: usize = 32;

/// Returns the path of a database's read key.
fn path(database: &Path) -> PathBuf {
    database.with_extension("read-key")
}

/// Returns the read key of a database; the first call makes one, readable by its owner only.
///
/// # Errors
///
/// If the file cannot be read or made, others may read it, or its key is too short. The text names the file.
pub fn load_or_create(database: &Path) -> Result<String, String> {
    let path = path(database);
    let key = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => create(&path),
        file => file.and_then(read),
    };
    key.map_err(|error| {
        format!("{}: {error}. Delete the file: a new key is made at the next start", path.display())
    })
}

fn create(path: &Path) -> io::Result<String> {
    let key = longhaul_web::new_token()?;
    let mut file = private_files::options().write(true).create_new(true).open(path)?;
    writeln!(file, "{key}")?;
    Ok(key)
}

fn read(file: File) -> io::Result<String> {
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        return Err(io::Error::other("other users may read the key"));
    }
    let mut key = String::new();
    file.take(MAX_BYTES).read_to_string(&mut key)?;
    match key.trim() {
        key if key.len() < MIN_CHARS => {
            Err(io::Error::other(format!("the key has fewer than {MIN_CHARS} characters")))
        }
        key => Ok(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_stays_the_same_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        let key = load_or_create(&database).unwrap();
        assert_eq!(load_or_create(&database), Ok(key.clone()));
        assert_eq!(key.len(), 64);
        let set_mode =
            |mode| std::fs::set_permissions(path(&database), std::fs::Permissions::from_mode(mode));
        set_mode(0o644).unwrap();
        assert!(load_or_create(&database).unwrap_err().contains("longhaul.read-key: other users may read"));
    }

    #[test]
    fn short_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        load_or_create(&database).unwrap();
        std::fs::write(path(&database), "short\n").unwrap();
        assert!(load_or_create(&database).unwrap_err().contains("fewer than 32"));
    }
}
